"""Stock's wrapper, statement by statement: each kernel on correct inputs, then judged.

Stock's `call` is Python.  It runs with a hook around each statement that calls something.  Before
a kernel, the buffers that it reads get the values of the graph; after it, the buffers that it
made are compared with the float64 values of exactly the nodes between.  A buffer that changes
although no statement names it was reused too early, and what is returned must be what was made.

A wrapper in C++, or one with branches or loops, is not examined: `why_not_examined` gives the
reason.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx import Graph, GraphModule, Node

from inductor_lab.compiler.capture.fx_graph import FxGraph
from inductor_lab.compiler.capture.fx_to_record import fx_graph
from inductor_lab.debug.blame.stages import GraphRun, run_graph
from inductor_lab.debug.compare.precision import Judged, judge
from inductor_lab.debug.compare.values import copies, widened
from inductor_lab.debug.isolate import Tell
from inductor_lab.stock.blame.record_stages import WrapperCode

HOOK = "_lab_hook"
NO_KERNEL = re.compile(
    r"^(assert_|empty_|reinterpret_tensor|alloc|args\.clear|torch\.cuda|get_raw_stream)"
)
_STORE = r"(\.store\(\s*{0}\b|^\s*{0}\[|tl\.store\(\s*{0}\b|atomic_add\S*\(\s*&?{0}\b)"


@dataclass(frozen=True)
class WrapperFault:
    """The first thing that is wrong: `stage` is `"kernel"` or `"host program"`."""

    stage: str
    says: str
    buffer: str
    node: str
    kernel: str
    line: int
    code: str
    judged: Judged | None = None


@dataclass(frozen=True)
class WrapperChecks:
    """What a run has found: the first fault, or the kernels whose results have no counterpart
    among the values of the graph, so that they were not compared."""

    fault: WrapperFault | None
    not_compared: tuple[str, ...] = ()


class Found(Exception):
    """Ends the run at the first fault."""

    def __init__(self, fault: WrapperFault) -> None:
        super().__init__(fault.says)
        self.fault = fault


class WrapperRun:
    """Runs one part's wrapper on the inputs of its call."""

    def __init__(
        self, wrapper: WrapperCode, graph: FxGraph, given: Sequence[Any], tell: Tell
    ) -> None:
        self.wrapper, self.graph, self.given, self.tell = wrapper, graph, given, tell
        self.lines = wrapper.text.split("\n")
        self.values: GraphRun = run_graph(graph, copies(given), widened(given), ())
        self.holds: dict[str, str] = {}
        self.kept: dict[str, torch.Tensor] = {}
        self.made: set[str] = set()
        self.early: dict[str, int] = {}
        self.before: dict[str, torch.Tensor] = {}
        self.not_compared: list[str] = []

    def run(self) -> WrapperChecks:
        """Run the wrapper up to its first fault; `why_not_examined` was asked before."""
        found = _call_of(ast.parse(self.wrapper.text))
        assert found is not None, "a wrapper that is examined has a function `call`"
        self.statements = dict(_hooked(found))
        module = ast.fix_missing_locations(ast.Module([found], []))
        names = dict(vars(self.wrapper.module)) | {HOOK: self._hook}
        exec(compile(module, "wrapper", "exec"), names)
        self._take_inputs(found)
        owner = getattr(self.wrapper.module.call, "__self__", None)
        leading = [owner] if len(found.args.args) > 1 else []
        try:
            with torch.no_grad():  # as AOTAutograd calls it: operators with out= need that
                names[found.name](*leading, list(copies(self.given)))
        except Found as stop:
            return WrapperChecks(stop.fault)
        return WrapperChecks(None, tuple(self.not_compared))

    def _take_inputs(self, function: ast.FunctionDef) -> None:
        """Inputs hold what their placeholders have."""
        for node in self.graph.nodes:
            if node.op == "placeholder":
                self.holds[node.name] = node.name

    # ---- around each statement -----------------------------------------------------------------

    def _hook(self, number: int, after: bool, known: dict[str, Any]) -> None:
        statement = self.statements[number]
        names = [n for n in _names(statement) if isinstance(known.get(n), torch.Tensor)]
        if isinstance(statement, ast.Return):
            self._returned(statement, known)
        elif not after:
            self._before(statement, names, known)
        else:
            self._after(statement, names, known)

    def _before(self, statement: ast.stmt, names: list[str], known: dict[str, Any]) -> None:
        if not _is_kernel(statement):
            return
        self.tell(_callee(statement))
        read = [n for n in names if n in self.made or n in self.holds]
        for name in read:
            if name in self.early and name in self.kept:
                self._overwritten(name, self.early[name])
        values = {n: self._right(n, known[n]) for n in read}
        if all(value is not None for value in values.values()):
            for name, value in values.items():
                if value is not None and not _same(known[name], value):
                    known[name].copy_(value)
        self.before = {n: known[n].clone() for n in read}
        self.kept.update(self.before)

    def _after(self, statement: ast.stmt, names: list[str], known: dict[str, Any]) -> None:
        target = _target(statement)
        if not _is_kernel(statement):
            self._follow_alias(target, statement, known)
            return
        new = [n for n in dict.fromkeys([*names, target]) if self._is_new(n, known)]
        inputs = {n: self.holds.get(n, "") for n in self.before}
        mutated = [n for n in self.before if n not in new and not _same(known[n], self.before[n])]
        compared = []
        for name in new:
            self.made.add(name)
            node = self.wrapper.buffers[name].node
            compared.append(self._judge(name, node, inputs, statement, known))
        for name in mutated:
            facts = next((f for b, f in self.wrapper.buffers.items()
                          if name in f.writes_to and b not in self.made), None)  # fmt: skip
            self.holds[name] = ""
            if facts is None and any(_share_storage(known[name], known[n]) for n in new):
                self.early.setdefault(name, statement.lineno)
            if facts is not None:
                self.made.add(next(b for b, f in self.wrapper.buffers.items() if f is facts))
                compared.append(self._judge(name, facts.node, inputs, statement, known))
        if not any(compared):
            self.not_compared.append(_callee(statement))
        for name in (*new, *mutated):
            self.kept[name] = known[name].clone()
        for name, value in self.kept.items():
            tensor = known.get(name)
            if isinstance(tensor, torch.Tensor) and name not in (*new, *mutated):
                if not _same(tensor, value):
                    self.early.setdefault(name, statement.lineno)
        self.before = {}

    def _follow_alias(self, target: str, statement: ast.stmt, known: dict[str, Any]) -> None:
        """`buf5 = buf0`, or a view: the new name holds what the old one holds."""
        sources = [n for n in _names(statement) if n != target and n in self.holds]
        if not target or not sources:
            return
        source = sources[-1]
        self.holds[target] = self.holds[source]
        if source in self.early:
            self.early[target] = self.early[source]
        if source in self.kept and _fits(self.kept[source], known.get(target)):
            self.kept[target] = self.kept[source]

    def _is_new(self, name: str, known: dict[str, Any]) -> bool:
        is_tensor = isinstance(known.get(name), torch.Tensor)
        return is_tensor and name in self.wrapper.buffers and name not in self.made

    # ---- verdicts ------------------------------------------------------------------------------

    def _right(self, name: str, tensor: torch.Tensor) -> torch.Tensor | None:
        """The value that a buffer should have, where the graph says so."""
        value = self.values.own.get(self.holds.get(name, ""))
        known = isinstance(value, torch.Tensor) and _fits(value, tensor)
        return value if known else None

    def _judge(
        self, name: str, node: str, inputs: dict[str, str], statement: ast.stmt,
        known: dict[str, Any],
    ) -> bool:  # fmt: skip
        """Compare a buffer with its node; False if the graph has no value for it."""
        tensor, callee = known[name], _callee(statement)
        facts = self.wrapper.buffers.get(name)
        self.holds[name] = node
        if facts and facts.stride is not None and facts.size is not None:
            laid = tuple(tensor.shape), _strides(tensor.shape, tensor.stride())
            if laid != (facts.size, _strides(facts.size, facts.stride)):
                says = (f"{name} has size {laid[0]} and stride {tuple(tensor.stride())}; the "
                        f"kernel was written for {facts.size} and {facts.stride}")  # fmt: skip
                self._stop("host program", says, name, node, callee, statement.lineno)
        expected = self.values.own.get(node)
        if not isinstance(expected, torch.Tensor) or not _fits(expected, tensor):
            self.holds[name] = ""
            return False
        run = self._between(node, set(inputs.values())) or self.values
        exact = None if run.exact is None else run.exact.get(node)
        judged = judge(tensor, run.own[node], exact, run.spread.get(node))
        if judged.right:
            return True
        generated = callee.startswith(("cpp_", "triton_"))
        stage = "kernel" if generated else "host program"
        if generated:
            line, code = self._store(callee, name, statement)
        else:
            line, code = statement.lineno, self.lines[statement.lineno - 1]
        raise Found(WrapperFault(stage, f"{callee}: {name}: {judged}", name, node, callee, line,
                                 code, judged))  # fmt: skip

    def _between(self, node: str, given: set[str]) -> GraphRun | None:
        """The nodes that a kernel computes, on the values that it is given."""
        given = {n for n in given if isinstance(self.values.own.get(n), torch.Tensor)}
        given -= {node}
        cut = _cut(self.graph.module, node, given)
        if cut is None:
            return None
        module, names = cut
        values = [self.values.own[n] for n in names]
        return run_graph(fx_graph(module, "kernel"), copies(values), widened(values), ())

    def _overwritten(self, name: str, line: int) -> None:
        says = f"{name} is overwritten in line {line} of the wrapper and read afterwards"
        self._stop("host program", says, name, self.holds.get(name, ""), "wrapper", line)

    def _stop(
        self, stage: str, says: str, name: str, node: str, kernel: str, line: int
    ) -> None:
        code = self.lines[line - 1]
        raise Found(WrapperFault(stage, says, name, node, kernel, line, code))

    def _returned(self, statement: ast.Return, known: dict[str, Any]) -> None:
        values = eval(compile(ast.Expression(_value(statement)), "wrapper", "eval"),
                      dict(vars(self.wrapper.module)), known)  # fmt: skip
        (output,) = self.graph.module.graph.find_nodes(op="output")
        nodes = output.args[0]
        if not isinstance(values, tuple) or len(values) != len(nodes):
            return
        for number, (value, node) in enumerate(zip(values, nodes, strict=True)):
            name = node.name if isinstance(node, Node) else ""
            expected = self.values.own.get(name)
            if not isinstance(value, torch.Tensor) or not isinstance(expected, torch.Tensor):
                continue
            if _is_outside(value):
                says = f"result {number} is a view past the end of its buffer"
                self._stop("host program", says, f"result {number}", name, "wrapper",
                           statement.lineno)  # fmt: skip
            exact = None if self.values.exact is None else self.values.exact.get(name)
            judged = judge(value, expected, exact, self.values.spread.get(name))
            if not judged.right:
                line = statement.lineno
                raise Found(WrapperFault("host program", f"result {number}: {judged}",
                                         f"result {number}", name, "wrapper", line,
                                         self.lines[line - 1], judged))  # fmt: skip

    def _store(self, callee: str, name: str, statement: ast.stmt) -> tuple[int, str]:
        """The kernel's last line that stores to a buffer."""
        call = next(n for n in ast.walk(statement) if isinstance(n, ast.Call))
        given = [a.id if isinstance(a, ast.Name) else "" for a in call.args]
        starts = [n for n, text in enumerate(self.lines) if text.startswith(f"{callee} = ")]
        if not starts or name not in given:
            return statement.lineno, self.lines[statement.lineno - 1]
        ends = [n for n, text in enumerate(self.lines) if n > starts[0] and text.startswith("'''")]
        body = self.lines[starts[0] : ends[0] if ends else len(self.lines)]
        parameters = re.findall(r"\b((?:in_out|in|out)_ptr\d+)\b(?=[,)]|$)", "\n".join(body[:40]))
        parameters = list(dict.fromkeys(parameters))
        if len(parameters) <= given.index(name):
            return statement.lineno, self.lines[statement.lineno - 1]
        store = re.compile(_STORE.format(parameters[given.index(name)]))
        hits = [n for n, text in enumerate(body) if store.search(text)]
        line = starts[0] + (hits[-1] if hits else 0)
        return line + 1, self.lines[line]


# ---- the text of a wrapper ----------------------------------------------------------------------


def _call_of(tree: ast.Module) -> ast.FunctionDef | None:
    found = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.name == "call"]
    return found[0] if found else None


def why_not_examined(text: str) -> str:
    """The reason why a wrapper cannot be examined statement by statement; "" if it can."""
    function = _call_of(ast.parse(text))
    if function is None:
        return "the wrapper is C++, which is not examined"
    if not _is_flat(function):
        return "the wrapper has branches or loops, which are not examined"
    return ""


def _is_flat(function: ast.FunctionDef) -> bool:
    """Does it consist of statements and `with` blocks, without loops and branches?"""
    known = (ast.Assign, ast.Expr, ast.Delete, ast.Return, ast.With, ast.Pass, ast.Assert)
    return all(isinstance(n, known) for n in ast.walk(function) if isinstance(n, ast.stmt)
               and n is not function)  # fmt: skip


def _hooked(function: ast.FunctionDef) -> Iterator[tuple[int, ast.stmt]]:
    """Put a hook before and after each statement; the statements by number."""

    def block(body: list[ast.stmt]) -> Iterator[tuple[int, ast.stmt]]:
        made: list[ast.stmt] = []
        for statement in body:
            number = statement.lineno * 1000 + statement.col_offset
            if isinstance(statement, ast.With):
                yield from block(statement.body)
                made.append(statement)
                continue
            yield number, statement
            made.append(_hook_call(number, False))
            made.append(statement)
            if not isinstance(statement, ast.Return):
                made.append(_hook_call(number, True))
        body[:] = made

    yield from block(function.body)


def _hook_call(number: int, after: bool) -> ast.stmt:
    return ast.parse(f"{HOOK}({number}, {after}, locals())").body[0]


def _names(statement: ast.stmt) -> list[str]:
    found = [n.id for n in ast.walk(statement) if isinstance(n, ast.Name)]
    return list(dict.fromkeys(found))


def _target(statement: ast.stmt) -> str:
    if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
        return statement.targets[0].id
    return ""


def _value(statement: ast.Return) -> ast.expr:
    return statement.value or ast.Constant(None)


def _callee(statement: ast.stmt) -> str:
    value = getattr(statement, "value", None)
    if not isinstance(value, ast.Call):
        return ""
    return ast.unparse(value.func).removesuffix(".run")  # which launches a kernel of Triton's


def _is_kernel(statement: ast.stmt) -> bool:
    callee = _callee(statement)
    return bool(callee) and not NO_KERNEL.match(callee)


def _same(first: torch.Tensor, second: torch.Tensor) -> bool:
    return first.shape == second.shape and torch.equal(_bits(first), _bits(second))


def _share_storage(first: torch.Tensor, second: torch.Tensor) -> bool:
    return first.untyped_storage().data_ptr() == second.untyped_storage().data_ptr()


def _bits(value: torch.Tensor) -> torch.Tensor:
    if value.dtype.is_complex:
        value = torch.view_as_real(value.resolve_conj())
    value = value.detach().contiguous()
    if not value.dtype.is_floating_point:
        return value
    kinds = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    return value.view(kinds[value.dtype.itemsize])


def _fits(value: torch.Tensor, tensor: Any) -> bool:
    is_tensor = isinstance(tensor, torch.Tensor)
    return is_tensor and value.shape == tensor.shape and value.dtype is tensor.dtype


def _is_outside(value: torch.Tensor) -> bool:
    """Does a tensor read past the end of its storage?"""
    if value.layout is not torch.strided or not value.numel():
        return False
    steps = ((n - 1) * step for n, step in zip(value.shape, value.stride(), strict=True))
    last = value.storage_offset() + sum(steps) + 1
    return bool(last * value.dtype.itemsize > value.untyped_storage().nbytes())


def _strides(size: Sequence[int], stride: Sequence[int]) -> tuple[int, ...]:
    """Strides of the dimensions that have more than one element."""
    return tuple(s for n, s in zip(size, stride, strict=True) if n > 1)


def _cut(module: GraphModule, wanted: str, given: set[str]) -> tuple[GraphModule, list[str]] | None:
    """The nodes behind `wanted`, up to those that are given; None where one draws or writes."""
    nodes = {n.name: n for n in module.graph.nodes}
    needed, waiting = set[str](), [wanted]
    while waiting:
        name = waiting.pop()
        if name in needed:
            continue
        needed.add(name)
        if name not in given and nodes[name].op != "placeholder":
            waiting += [n.name for n in nodes[name].all_input_nodes]
    graph, known = Graph(), dict[Node, Node]()
    inputs = []
    for node in module.graph.nodes:
        if node.name not in needed:
            continue
        schema = getattr(node.target, "_schema", None)
        if schema is not None and schema.is_mutable:
            return None
        if node.op == "placeholder" or node.name in given:
            inputs.append(node.name)
            known[node] = graph.placeholder(node.name)
        else:
            known[node] = graph.node_copy(node, lambda n: known[n])
        known[node].name = node.name
    graph.output(known[nodes[wanted]])
    return GraphModule(module, graph), inputs
