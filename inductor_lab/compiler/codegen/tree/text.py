"""A loop tree as text: one line per statement, bodies indented.

```
parallel i0 in 0 .. 64, threads:
  acc0 = sum of f32
  reduce j0 in 0 .. 1000, lanes:
    t0 = x[1000*i0 + j0]
    acc0 = sum(acc0, t0)
  buf0[i0] = acc0
```

Every line has its origins: the FX nodes that it computes.
"""

from __future__ import annotations

from collections.abc import Iterator

from inductor_lab.compiler.codegen.tree.loop_tree import (
    Accumulate,
    Address,
    Assign,
    Bound,
    Call,
    Check,
    ElementAlias,
    If,
    Init,
    LastFullBlock,
    Let,
    Local,
    Loop,
    Minimum,
    PartBound,
    Stmt,
    Store,
    Tree,
    When,
)
from inductor_lab.compiler.ir.expr import Origins, Temp
from inductor_lab.compiler.ir.index import ZERO, Index
from inductor_lab.compiler.ir.text import TextLine, dtype_text, expr_text, index_text, size_text


def tree_text(tree: Tree) -> str:
    """The tree as text."""
    return "".join(f"{text}\n" for text, _ in tree_lines(tree))


def tree_lines(tree: Tree, margin: str = "") -> Iterator[TextLine]:
    """The lines of a tree, each with its origins."""
    for stmt in tree:
        origins: Origins = frozenset() if isinstance(stmt, Loop) else stmt.origins
        yield margin + _head(stmt), origins
        if isinstance(stmt, Loop | When | If):
            yield from tree_lines(stmt.body, margin + "  ")
        if isinstance(stmt, When):
            value, other = expr_text(stmt.value), expr_text(stmt.other)
            yield f"{margin}  {stmt.result.name} = {value}, otherwise {other}", origins


def _head(stmt: Stmt) -> str:
    match stmt:
        case Let(temp, value):
            return f"{temp.name} = {expr_text(value)}"
        case Store(buffer, index, value, kind=kind):
            word = "" if kind == "store" else f"{kind} "
            return f"{buffer}[{index_text(index)}] = {word}{expr_text(value)}"
        case Accumulate(name, kind, value, position, found=found):
            at = "" if position is None else f" at {index_text(position)}"
            at = at if found is None else f" at {expr_text(found)}"
            return f"{name} = {kind}({name}, {expr_text(value)}{at})"
        case Init(name, kind, dtype, start=start):
            onward = f" from {', '.join(map(expr_text, start))}" if start else ""
            return f"{name} = {kind} of {dtype_text(dtype)}{onward}"
        case When(mask):
            return f"when {expr_text(mask)}:"
        case If(mask):
            return f"if {expr_text(mask)}:"
        case Loop():
            return f"{_loop(stmt)}:"
        case _:
            return _pass_statement(stmt)


def _loop(loop: Loop) -> str:
    """`parallel i0 in 0 .. 4096 by 128, threads, lanes`."""
    by = f" by {loop.step}" if loop.step > 1 else ""
    text = f"{loop.kind.value} {loop.axis.name} in {index_text(loop.begin)} .. "
    execution = loop.execution
    words = ["lanes"] if execution.simd else []
    if execution.threads:
        of = f" of {execution.threads} loops" if execution.threads > 1 else ""
        words.insert(0, ("the team's threads" if execution.team else "threads") + of)
    words += ["not unrolled"] if execution.rolled else []
    words += ["differences rounded"] if execution.rounds_differences else []
    return ", ".join([f"{text}{index_text(loop.stop)}{by}", *words])


def _pass_statement(stmt: Local | ElementAlias | Assign | Call | Bound | Check) -> str:
    match stmt:
        case Local(name, dtype, shape, zero=zero):
            start = " of zeros" if zero else ""
            return f"local {name}: {dtype_text(dtype)}[{', '.join(map(str, shape))}]{start}"
        case ElementAlias(name, array, at):
            return f"{name} is {array}[{', '.join(map(index_text, at))}]"
        case Assign(name, value):
            return f"{name} = {expr_text(value)}"
        case Call(function, args, result):
            call = f"{function}({', '.join(map(_argument, args))})"
            return f"{result} = {call}" if result else call
        case Bound(name):
            return f"{name.name} = {_bound(stmt)}"
        case Check(value, size):
            test = f"in 0 .. {size_text(size[0])}" if size else "not 0"
            return f"check {expr_text(value)} {test}"


def _argument(given: Address | Index | Temp) -> str:
    match given:
        case Address(buffer, index):
            return buffer if index == ZERO else f"{buffer} + {index_text(index)}"
        case Index():
            return index_text(given)
        case Temp(name):
            return name


def _bound(bound: Bound) -> str:
    match bound.value:
        case Index() as index:
            return index_text(index)
        case Minimum(first, second):
            return f"min({index_text(first)}, {index_text(second)})"
        case LastFullBlock(begin, end, width):
            return f"the last {index_text(begin)} + n*{width} up to {index_text(end)}"
        case PartBound(size, part, count, line, end):
            edge = "end" if end else "begin"
            lines = f" in lines of {line}" if line > 1 else ""
            return f"{edge} of {part.name} of {count} of {size_text(size)}{lines}"
