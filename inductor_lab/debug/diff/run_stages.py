"""A run as compiles, and each compile as stages of comparable lines.

    Compilation, StockCompilation, TraceLog    →    CompileRun per captured graph    →    Stage

Two runs number nodes, symbols, objects and files differently.  So nodes and symbols are numbered
again in the order in which they appear, and addresses, hashes and folders are removed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from inductor_lab.compiler.capture.capture import Capture, GraphBreak, Recompile, readable_source
from inductor_lab.compiler.capture.fx_graph import FxGraph
from inductor_lab.compiler.records import CompiledGraph, CompiledPart, Record
from inductor_lab.stock.stock_compilation import StockCompilation, StockGraph, StockPart
from inductor_lab.stock.trace_log import Compiled, TraceLog

STAGES = (
    "TorchDynamo", "captured graph", "guards", "joint graph", "forward graph", "backward graph",
    "forward passes", "backward passes", "forward loops", "backward loops", "forward fusion",
    "backward fusion", "forward kernels", "backward kernels", "forward host program",
    "backward host program", "cache",
)  # fmt: skip
"""All stages, in the order in which a compile reaches them."""

THE_FUNCTION = "the function"
"""The key of the inspected function: two compilations may have functions of different names."""

_ENDS = {"placeholder": "input", "output": "output"}
_RESUMED = re.compile(r"torch_dynamo_resume_in_(.+)_at_\d+")
_NAME = re.compile(r"[A-Za-z_]\w*")
_SYMBOL = re.compile(r"\b([su])\d+\b")
_GPU = re.compile(r"(\bcuda:|\bdevice=|\b_DeviceGuard\(|\bset_device\(|\bstream\(?)(\d+)\b")
_NOISE = (
    (re.compile(r"^# AOT ID: .*"), "# AOT ID"),
    (re.compile(r"\b0x[0-9a-f]{6,}\b|\b\d{9,}\b"), "#"),
    (re.compile(r"\b[a-z2-7]{40,}\b|\b[0-9a-f]{32,}\b"), "#"),
    (re.compile(r"(?<![\w.])/(?:[\w.+#-]+/)+"), ".../"),
    (re.compile(r"\b__builtins_dict___\d+\b"), "__builtins__"),
    (re.compile(r"_\d{9,}_c\d+\b"), "_#"),
)
"""Numbers of compiles, addresses and ids of objects, names of cached files, folders, TorchDynamo's
numbered names for the builtins and for objects."""
_SETTINGS = re.compile(r"\btorch\.compiler\.config\b|_config_module\b")
"""How torch stores its settings: which parts are read depends on whether a setting has been set."""
_DEFINITION = ("def ", "class ", "@", " ")
"""How lines of functions begin; the imports before them differ between versions of torch."""


@dataclass(frozen=True)
class Stage:
    """The comparable lines of one stage; no lines mean that the run does not report it."""

    name: str
    lines: tuple[str, ...]


@dataclass(frozen=True)
class CompileRun:
    """One captured graph of a run, or a compile without a graph.

    key         the function, and its file if that is known: what is the same in both runs
    label       how this run names it: the function and the compile id
    compile_id  TorchDynamo's id; "" if it is unknown
    seconds     compile time; 0 if it is unknown
    stages      reads the stages; a log is read only then
    """

    key: str
    label: str
    compile_id: str
    seconds: float
    stages: Callable[[], tuple[Stage, ...]]


def compiles_of(run: Any, process: str | None = None) -> Iterator[CompileRun]:
    """The compiles of a compilation or of a trace log, in their order.

    With `process` (`"rank0"`), only those of one process of a log.  Without, the process is a part
    of each key: a rank is compared with the same rank of another run.
    """
    if isinstance(run, TraceLog):
        for found in run.compiled:
            if process in (None, found.process):
                yield _of_entry(run, found, found.process if process is None else "")
        return
    yield from _of_compilation(run)


def _of_compilation(run: Record | StockCompilation) -> Iterator[CompileRun]:
    functions = {code.compile_id: code.function for code in run.capture.bytecode}
    seconds = run.seconds.get("total", 0.0)
    graphs: Sequence[CompiledGraph | StockGraph] = run.graphs
    for graph, at in zip(graphs, _compile_ids(run), strict=True):
        function = functions.get(at) or run.name
        yield CompileRun(
            function_key(function).replace(run.name, THE_FUNCTION), f"{function} {at}".strip(), at,
            seconds, partial(_ordered_stages, run.capture, graph, at),
        )  # fmt: skip
        seconds = 0.0
    if not graphs:
        events = Stage("TorchDynamo", _events(run.capture, ""))
        yield CompileRun(THE_FUNCTION, run.name, "", seconds, lambda: (events,))


def function_key(function: str) -> str:
    """`torch_dynamo_resume_in_f_at_12`, the code after a graph break of f, without its line."""
    return _RESUMED.sub(r"\1 after a graph break", function)


def _compile_ids(run: Record | StockCompilation) -> list[str]:
    known = [getattr(graph, "compile_id", "") for graph in run.graphs]
    if not all(known) and len(run.capture.compile_ids) == len(known):
        return list(run.capture.compile_ids)
    return known


def _of_entry(log: TraceLog, found: Compiled, process: str) -> CompileRun:
    file = re.split(r"[/\\]", found.where.file)[-1] if found.where else ""
    key = f"{process} {function_key(found.function)} {file}".strip()

    def stages() -> tuple[Stage, ...]:
        opened: StockCompilation = log[found.key]
        events = _breaks_and_recompiles(found.breaks, found.recompiles)
        events += [f"restart: {_first_line(reason)}" for reason in found.restarts]
        events += [f"failed: {_first_line(found.error)}"] * bool(found.error)
        known = [Stage("TorchDynamo", tuple(map(_plain, events)))]
        for graph in opened.graphs:
            known += _stages(replace(opened.capture, breaks=(), recompiles=()), graph, "")
        known.append(Stage("cache", found.caches))
        return ordered(known)

    label = f"{found.function} {found.key}".strip()
    return CompileRun(key, label, found.compile_id, found.seconds, stages)


def ordered(stages: Iterable[Stage]) -> tuple[Stage, ...]:
    """One stage of each name, in the order of `STAGES`; lines of equal names are joined."""
    lines: dict[str, list[str]] = {}
    for stage in stages:
        lines.setdefault(stage.name, []).extend(stage.lines)
    return tuple(Stage(name, tuple(lines[name])) for name in STAGES if name in lines)


# ---- one compile -----------------------------------------------------------------------------


def _ordered_stages(
    capture: Capture, graph: CompiledGraph | StockGraph, at: str
) -> tuple[Stage, ...]:
    return ordered(_stages(capture, graph, at))


def _stages(capture: Capture, graph: CompiledGraph | StockGraph, at: str) -> Iterator[Stage]:
    yield Stage("TorchDynamo", _events(capture, at))
    yield Stage("captured graph", graph_lines(graph.captured))
    yield Stage("guards", _guards(capture, at))
    if graph.joint is not None:
        yield Stage("joint graph", graph_lines(graph.joint.graph))
    for part in graph.parts:
        yield from _part_stages(part)


def _part_stages(part: CompiledPart | StockPart) -> Iterator[Stage]:
    name = part.name
    yield Stage(f"{name} graph", graph_lines(part.graph))
    if isinstance(part, StockPart):
        groups = (f"{node.kind}: {', '.join(sorted(node.origins))}" for node in part.ir_after)
        yield Stage(f"{name} fusion", tuple(groups))
        after = part.after
        kernels: Sequence[object] = part.generated
    else:
        yield Stage(f"{name} loops", _text_lines(str(part.loops)))
        yield Stage(f"{name} fusion", _text_lines(str(part.schedule)))
        after = part.rewrites.steps[-1].after if part.rewrites.steps else None
        kernels = part.all_kernels
    if after is not None:
        yield Stage(f"{name} passes", graph_lines(after))
    yield Stage(f"{name} kernels", _text_lines("\n".join(map(str, kernels))))
    functions = (line for line in str(part.host).splitlines() if line.startswith(_DEFINITION))
    yield Stage(f"{name} host program", _text_lines("\n".join(functions)))


def _events(capture: Capture, at: str) -> tuple[str, ...]:
    """Graph breaks, recompiles and graphs in eager mode, of one compile id if it is known."""
    breaks = [each for each in capture.breaks if at in ("", each.compile_id)]
    again = [each for each in capture.recompiles if at in ("", each.compile_id)]
    found = _breaks_and_recompiles(breaks, again)
    found += [f"in eager mode: {each.reason}" for each in capture.as_captured]
    return tuple(map(_plain, found))


def _breaks_and_recompiles(
    breaks: Iterable[GraphBreak], recompiles: Iterable[Recompile]
) -> list[str]:
    found = [f"graph break: {each.reason}    {each.span.code if each.span else ''}".rstrip()
             for each in breaks]  # fmt: skip
    return found + [f"recompile: {readable_source(each.reason)}" for each in recompiles]


def _guards(capture: Capture, at: str) -> tuple[str, ...]:
    """The guards about the user's code, sorted: their order means nothing."""
    names = _Names()
    known = {
        f"{guard.kind}: {names.numbered(_plain(readable_source(guard.code)))}"
        for guard in capture.guards
        if (guard.source or guard.span) and at in ("", guard.compile_id)
        and not _SETTINGS.search(guard.code)
    }
    return tuple(sorted(known))


def graph_lines(graph: FxGraph) -> tuple[str, ...]:
    """One line for each node, whose operands are numbers of nodes.

        %2 = aten.add.Tensor(%0, %1)  f32[8, 4] (4, 1)
    """
    numbers = {node.name: f"%{number}" for number, node in enumerate(graph.nodes)}
    names = _Names()
    lines = []
    for number, node in enumerate(graph.nodes):
        given = _NAME.sub(lambda name: numbers.get(name[0], name[0]), node.args)
        first, dot, rest = node.target.partition(".")  # of a method it is `x.sin`, or only `sin`
        called = f"{numbers.get(first, first)}.{rest}" if dot else first
        target = _ENDS.get(node.op, called)
        facts = f"  {node.tensor} ({', '.join(node.tensor.stride)})" if node.tensor else ""
        lines.append(names.numbered(_plain(f"%{number} = {target}({given}){facts}")))
    return tuple(lines)


def _text_lines(text: str) -> tuple[str, ...]:
    names = _Names()
    return tuple(names.numbered(_plain(line)) for line in text.splitlines() if line.strip())


@dataclass(frozen=True)
class _Names:
    """Numbers for symbols of sizes and for GPUs, in the order in which they appear.

    Each rank has a GPU of its own, and the same code runs on another one.
    """

    symbols: dict[str, str] = field(default_factory=dict)
    gpus: dict[str, str] = field(default_factory=dict)

    def numbered(self, line: str) -> str:
        return _GPU.sub(self._gpu, _SYMBOL.sub(self._symbol, line))

    def _symbol(self, found: re.Match[str]) -> str:
        return self.symbols.setdefault(found[0], f"{found[1]}{len(self.symbols)}")

    def _gpu(self, found: re.Match[str]) -> str:
        return f"{found[1]}{self.gpus.setdefault(found[2], str(len(self.gpus)))}"


def _plain(text: str) -> str:
    for pattern, new in _NOISE:
        text = pattern.sub(new, text)
    return text


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0]
