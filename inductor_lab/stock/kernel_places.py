"""Where stock's output code computes each node of its scheduler: kernel, call, loop nest.

A C++ function of stock may contain several loop nests that share nothing, so a place has the number
of the nest too.  Two nodes were fused if their places are equal.

```
cpp_fused_add_sum_0(x, buf0, buf2)      call 0: nest 0 computes op0 and op1, nest 1 computes op2
extern_kernels.mm(buf0, w, out=buf3)    call 1
```
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import prod
from typing import Literal

from inductor_lab.stock.scheduler_nodes import NodeFacts
from inductor_lab.stock.stock_compilation import FusionStep, IrNode, StockKernel, StockPart

_PARAMETER = re.compile(r"(?:([\w:]+(?:<[^>]*>)?)\s*\*\s*)?\b((?:in_out|in|out)_ptr\d+|ws_ptr)\b")
_STORED = re.compile(
    r"\.store\(\s*(\w+_ptr\d+)\b|^\s*(\w+_ptr\d+)\[[^=]*\] [-+*/]?= |"
    r"tl\.(?:store|atomic_\w+)\(\s*(\w+_ptr\d+)\b|atomic_add\w*(?:<[^>]*>)?\(\s*&?(\w+_ptr\d+)\b",
    re.M,
)
_ALIAS = re.compile(r"^\s*auto (\w+_ptr\d+) = (\w+_ptr\d+);", re.M)

Role = Literal["in", "out"]

NO_CODE = ("MultiOutput", "NopKernelSchedulerNode")
"""Kinds of nodes that only name memory: no kernel computes them."""


@dataclass(frozen=True, slots=True)
class KernelCall:
    """One call in the wrapper: its arguments, and earlier names of their storage."""

    kernel: str
    arguments: tuple[str, ...]
    earlier: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def names(self) -> frozenset[str]:
        return frozenset(self.arguments).union(*self.earlier.values()) - {""}


@dataclass(frozen=True, slots=True)
class KernelPlace:
    """The kernel that computes a node: the number of its call, and of the loop nest in it."""

    kernel: str
    call: int
    nest: int = 0


def kernel_calls(part: StockPart) -> list[KernelCall]:
    """The calls of kernels and library functions, in order."""
    known = {kernel.name for kernel in part.kernels}
    try:
        tree = ast.parse(part.text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    found = []
    for function in ast.walk(tree):
        is_program = isinstance(function, ast.FunctionDef) and (
            function.name == "call" or function.name.startswith("partition_")
        )
        if is_program:
            assert isinstance(function, ast.FunctionDef)
            found += list(_calls(function.body, known))
    return found


def _calls(body: Sequence[ast.stmt], known: set[str]) -> Iterator[KernelCall]:
    """The calls of a block; `later = earlier; del earlier` gives the same storage another name."""
    earlier: dict[str, tuple[str, ...]] = {}
    used: set[str] = set()
    renamed = ("", "")
    for statement in _statements(body):
        target = _target(statement)
        callee, arguments = _called(statement)
        if callee in known:
            names = (*arguments, target) if target else arguments
            chains = {n: tuple(e for e in earlier.get(n, ()) if e not in used) for n in names}
            used |= {*names, *(e for chain in chains.values() for e in chain)}
            yield KernelCall(callee, names, {n: chain for n, chain in chains.items() if chain})
        elif isinstance(statement, ast.Delete) and _is_deleted(statement, renamed[1]):
            earlier[renamed[0]] = (*earlier.get(renamed[1], ()), renamed[1])
        renamed = (target, _viewed(getattr(statement, "value", None)))


def _statements(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    for statement in body:
        if isinstance(statement, (ast.With, ast.If, ast.For, ast.While)):
            yield from _statements(statement.body)
        else:
            yield statement


def _target(statement: ast.stmt) -> str:
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)]):
            return name
    return ""


def _called(statement: ast.stmt) -> tuple[str, tuple[str, ...]]:
    """The function that a statement calls, and its arguments: "" for one that is no buffer."""
    value = getattr(statement, "value", None)
    if not isinstance(value, ast.Call):
        return "", ()
    given = [*value.args, *(keyword.value for keyword in value.keywords)]
    return ast.unparse(value.func).removesuffix(".run"), tuple(map(_viewed, given))


def _viewed(value: ast.expr | None) -> str:
    """The name in `buf0` and `reinterpret_tensor(buf0, ...)`; else ""."""
    match value:
        case ast.Name(id=name):
            return name
        case ast.Call(func=ast.Name(id="reinterpret_tensor"), args=[ast.Name(id=name), *_]):
            return name
    return ""


def _is_deleted(statement: ast.Delete, name: str) -> bool:
    return any(isinstance(t, ast.Name) and t.id == name for t in statement.targets)


# ---- the text of a kernel -----------------------------------------------------------------------


def parameters(kernel: StockKernel) -> list[tuple[str, tuple[Role, ...]]]:
    """The parameters that are buffers, in order, and whether the kernel reads or writes them."""
    head = str(kernel.code)
    start = max(head.find(" kernel("), head.find(f"def {kernel.name}("), head.find("def triton_"))
    head = head[max(start, 0) :]
    names = dict.fromkeys(name for _, name in _PARAMETER.findall(head[: _end_of_head(head)]))
    return [(name, _roles(name)) for name in names]


def _end_of_head(text: str) -> int:
    depth = 0
    for position, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if character == ")" and not depth:
            return position
    return len(text)


def _roles(name: str) -> tuple[Role, ...]:
    if name.startswith("in_out"):
        return "in", "out"
    return ("in",) if name.startswith("in") else ("out",)


def loop_nests(kernel: StockKernel) -> list[frozenset[str]]:
    """The parameters that each loop nest of a C++ function stores to; one entry for Triton."""
    text = str(kernel.code)
    if kernel.language != "cpp":
        return [_stored(text)]
    aliases = dict(_ALIAS.findall(text))
    return [frozenset(aliases.get(n, n) for n in _stored(nest)) for nest in _blocks(text)]


def _stored(text: str) -> frozenset[str]:
    return frozenset(name for found in _STORED.findall(text) for name in found if name)


def _blocks(text: str) -> Iterator[str]:
    """The blocks of a function, also those in its parallel regions: each is a loop nest."""
    depth, before, current = 0, "", list[str]()
    nest_depth, region = 1, False
    for line in text.split("\n"):
        word = line.strip()
        if word == "{" and depth == 1 and before == "#pragma omp parallel" and not current:
            region, nest_depth = True, 2
        elif word == "{" and depth == nest_depth and not current:
            current = [line]
        elif current:
            current.append(line)
        depth += line.count("{") - line.count("}")
        if current and depth == nest_depth:
            yield "\n".join(current)
            current = []
        if region and depth == 1:
            region, nest_depth = False, 1
        before = re.sub(r" num_threads\(\w+\)", "", word) or before


# ---- the places of nodes ------------------------------------------------------------------------


@dataclass(frozen=True)
class _Unit:
    """A node after fusion: the nests that it becomes if stock does not merge its outer loops."""

    node: IrNode
    inner: tuple[frozenset[str], ...]


def places(part: StockPart, facts: Mapping[str, NodeFacts]) -> dict[str, KernelPlace]:
    """The place of each node that the output code computes, by the node's name."""
    calls = kernel_calls(part)
    kernels = {kernel.name: kernel for kernel in part.kernels}
    found: dict[str, KernelPlace] = {}
    in_call: dict[int, list[_Unit]] = {}
    for node in part.ir_after:
        members = [name for name in node.members if name in facts and has_code(facts[name])]
        made = {buffer for name in members for buffer in facts[name].outputs}
        over = {buffer for name in members for buffer in facts[name].mutates}
        number = _call_that_makes(calls, kernels, made, over)
        if number is not None:
            for name in members:
                found[name] = KernelPlace(calls[number].kernel, number)
            unit = _Unit(node, outer_nodes(node, part.fusion, facts))
            in_call.setdefault(number, []).append(unit)
    for number, units in in_call.items():
        kernel = kernels[calls[number].kernel]
        if kernel.language == "cpp":
            for name, nest in _nest_of_each(units, kernel, calls[number], facts).items():
                found[name] = KernelPlace(kernel.name, number, nest)
    return found


def has_code(node: NodeFacts) -> bool:
    """Does the output code compute it, in a kernel or a library call?"""
    return node.is_generated or bool(node.library) or node.kind not in NO_CODE


def _call_that_makes(
    calls: Sequence[KernelCall], kernels: Mapping[str, StockKernel], made: set[str], over: set[str]
) -> int | None:
    """The first call that has one of the buffers; a node that only overwrites has none."""
    for wanted in (made, over):
        for number, call in enumerate(calls):
            if not wanted.isdisjoint(_written(call, kernels[call.kernel])):
                return number
    return None


def _written(call: KernelCall, kernel: StockKernel) -> frozenset[str]:
    """The buffers that a call computes; all its arguments if the kernel does not say."""
    roles = [roles for _, roles in parameters(kernel)]
    if kernel.language == "extern" or not roles:
        return call.names
    written = [name for name, r in zip(call.arguments, roles, strict=False) if "out" in r]
    return frozenset(written).union(*(call.earlier.get(name, ()) for name in written))


def _nest_of_each(
    units: Sequence[_Unit], kernel: StockKernel, call: KernelCall, facts: Mapping[str, NodeFacts]
) -> dict[str, int]:
    """The loop nest of each node of a C++ function.

    The nests are in the order of the nodes.  A node whose outer loops were fused is one nest, or
    one for each of its inner nodes: the number of nests and their stores decide.
    """
    nests = loop_nests(kernel)
    stores = _stores(nests, kernel, call)
    for split in product(*((False, True) if len(unit.inner) > 1 else (False,) for unit in units)):
        groups: list[frozenset[str]] = []
        for unit, apart in zip(units, split, strict=True):
            groups += unit.inner if apart else (frozenset(unit.node.members),)
        if len(groups) == len(nests) and _agree(groups, stores, facts):
            return {name: nest for nest, group in enumerate(groups) for name in group}
        if len(units) > 12:
            break
    return {name: n for n, unit in enumerate(units) for name in unit.node.members}


def _stores(
    nests: Sequence[frozenset[str]], kernel: StockKernel, call: KernelCall
) -> dict[str, int]:
    """The nest that stores a buffer, for buffers that share their storage with no other."""
    found = {}
    for argument, (name, _) in zip(call.arguments, parameters(kernel), strict=False):
        where = [number for number, stored in enumerate(nests) if name in stored]
        if len(where) == 1 and not call.earlier.get(argument):
            found[argument] = where[0]
    return found


def _agree(
    groups: Sequence[frozenset[str]], stores: Mapping[str, int], facts: Mapping[str, NodeFacts]
) -> bool:
    return all(
        stores.get(buffer, number) == number
        for number, group in enumerate(groups)
        for name in group
        if name in facts
        for buffer in facts[name].outputs
    )


def outer_nodes(
    node: IrNode, steps: Sequence[FusionStep], facts: Mapping[str, NodeFacts]
) -> tuple[frozenset[str], ...]:
    """The nodes whose outer loops were fused into this one; the fusion log has their order.

    Inductor: `codegen/cpp.py`, `OuterLoopFusedSchedulerNode.get_outer_nodes`.
    """
    if node.kind != "OuterLoopFusedSchedulerNode":
        return (frozenset(node.members),)
    groups: dict[str, tuple[frozenset[str], ...]] = {n: (frozenset([n]),) for n in node.members}
    for step in steps:
        if step.fused and step.first in groups and step.second in groups:
            first, second = groups.pop(step.first), groups.pop(step.second)
            merged: tuple[frozenset[str], ...] = (*first, *second)
            if not _fuses_outer_loops(first, second, facts):
                merged = (frozenset().union(*merged),)
            groups[f"{step.first}_{step.second}"] = merged
    return tuple(inner for group in groups.values() for inner in group)


def _fuses_outer_loops(
    first: tuple[frozenset[str], ...],
    second: tuple[frozenset[str], ...],
    facts: Mapping[str, NodeFacts],
) -> bool:
    if len(first) > 1 or len(second) > 1:
        return True
    producers = [facts[name] for name in first[0] if name in facts]
    consumers = [facts[name] for name in second[0] if name in facts]
    made = {buffer for producer in producers for buffer in producer.outputs}
    if not any(made.intersection(consumer.reads) for consumer in consumers):
        return False
    return any(p.reduced for p in producers) or not compatible_loops(producers, consumers)


def compatible_loops(producers: Sequence[NodeFacts], consumers: Sequence[NodeFacts]) -> bool:
    """Can stock's C++ backend compute both in the same loops?

    They iterate over the same sizes, or the consumer reduces a part of the producer's sizes.
    """
    first, second = (
        max(nodes, key=lambda node: bool(node.reduced)) for nodes in (producers, consumers)
    )
    here, there = first.iterates or (), second.iterates or ()
    if (here, first.reduced) == (there, second.reduced):
        return True
    if first.reduced:
        return False
    if here == (*there, *second.reduced):
        return True
    numbers = [n for n in (*here, *there) if isinstance(n, int)]
    flat = len(here) == 1 or len(there) == 1
    known = len(numbers) == len(here) + len(there)
    return not second.reduced and flat and known and prod(map(int, here)) == prod(map(int, there))
