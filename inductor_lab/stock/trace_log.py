"""`lab.read_trace`: read the log of a run with `TORCH_TRACE`, from any machine.

```
log = lab.read_trace("trace_folder")
log                       # the index: what was compiled, recompiles and graph breaks with reasons
log["1/0"]                # one compile id, in the explorer
log.report("trace.html")
```
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any, TypeVar

from inductor_lab.api.arguments import checked
from inductor_lab.compiler.base.display import Shown, counted, write_trace_report
from inductor_lab.compiler.base.errors import UnknownName, UnreadableFile, unknown_name
from inductor_lab.compiler.base.observer import in_order
from inductor_lab.compiler.capture import events
from inductor_lab.compiler.capture.capture import Bytecode, Capture, GraphBreak, Guard, Recompile
from inductor_lab.compiler.capture.events import Event, Reader
from inductor_lab.compiler.capture.fx_graph import Span
from inductor_lab.compiler.capture.source import SourceFile
from inductor_lab.compiler.capture.span import outside_torch, shown_file
from inductor_lab.debug.recompiles import causes
from inductor_lab.debug.recompiles.graph_breaks import GraphBreaks
from inductor_lab.saved.documents import of_compile, tool_types
from inductor_lab.saved.documents.kinds import document
from inductor_lab.saved.documents.sources import place
from inductor_lab.stock.graphs import stock_graph
from inductor_lab.stock.log_file import LogFile, Progress
from inductor_lab.stock.phases import by_compiler
from inductor_lab.stock.stock_compilation import StockCompilation, StockGraph
from inductor_lab.stock.trace_causes import CACHE_ENTRIES, CacheReasons, all_failed
from inductor_lab.stock.trace_index import by_compile_id, kind_of, size_hints

T = TypeVar("T")

_CARETS = re.compile(r"^[ ]*[~^]+[ ]*$\n?", re.M)
_BYTECODE = re.compile(r"(.*)_(ORIGINAL|MODIFIED)_BYTECODE$")
_FACTS = (
    "compilation_metrics", "create_symbol", "describe_source", "describe_tensor",
    "dynamo_cpp_guards_str", "guard_added_fast", "symbolic_shape_specialization",
)  # fmt: skip
_REASONS = ("dynamo_graph_break_reason", "recompile_reasons")


@dataclass(frozen=True, eq=False)
class Compiled(Shown):
    """One line of the index.

    process    the file of the folder that it is from; "" if there is only one
    where      the function that was compiled
    caches     results of stock's caches (`miss`, `hit`, `bypass`), forward first
    recompiles   all failed guards, as far as the log has the values of the call
    restarts     why TorchDynamo restarted the frame
    limit        the limit that was reached; "" if none
    specialized  sizes that were dynamic and became constant
    cache_reasons  why stock's caches had no entry
    seen         tensors and numbers of the call, by source
    error        why it was not compiled
    """

    process: str
    compile_id: str
    function: str
    where: Span | None
    seconds: float
    parts: int
    caches: tuple[str, ...]
    restarts: tuple[str, ...]
    breaks: tuple[GraphBreak, ...]
    recompiles: tuple[Recompile, ...]
    error: str
    limit: str = ""
    specialized: tuple[causes.Specialized, ...] = ()
    cache_reasons: tuple[str, ...] = ()
    seen: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def key(self) -> str:
        """The key for `TraceLog[...]`: `"0/1"`, or `"process 0/1"` if there are several files."""
        return f"{self.process} {self.compile_id}".strip()

    def to_dict(self) -> dict[str, Any]:
        """The data as JSON (docs/json.md)."""
        return document(_entry(self))

    @property
    def status(self) -> str:
        return "failed" if self.error else "compiled" if self.parts else "no graph"

    @property
    def happened(self) -> tuple[tuple[str, str], ...]:
        """Restarts, recompiles, graph breaks and errors: the kind and one line about each."""
        found = [("restarted", reason.strip().partition("\n")[0]) for reason in self.restarts]
        found += [("recompiled", str(again).partition(": ")[2]) for again in self.recompiles]
        found += [("graph break", f"{b.reason}    {b.span or ''}".rstrip()) for b in self.breaks]
        found += [("limit reached", self.limit)] * bool(self.limit)
        found += [("specialized", line) for each in self.specialized
                  for line in str(each).split("\n")]  # fmt: skip
        found += [("cache", reason) for reason in self.cache_reasons]
        found += [("failed", self.error.strip().partition("\n")[0])] * bool(self.error)
        return tuple(found)

    def __str__(self) -> str:
        caches = "".join(f", cache {found}" for found in self.caches)
        head = (f"{self.key:8} {self.function}  {self.where or ''}  {self.seconds:.2f} s  "
                f"{self.status}{caches}")
        return "\n".join([head, *(f"    {kind}: {text}" for kind, text in self.happened)])


@dataclass(frozen=True, eq=False)
class TraceLog(Shown):
    """The index of a log; `log["0/0"]` opens a compile id, `problems` lists damage."""

    name: str
    files: tuple[LogFile, ...] = field(repr=False)
    torch_version: str = ""

    @property
    def problems(self) -> tuple[str, ...]:
        """Damaged places; for a file with many, the number of further ones."""
        more = (
            f"{f.path.name}: {f.damaged - len(f.problems)} more damaged places"
            for f in self.files
            if f.damaged > len(f.problems)
        )
        return (*(problem for f in self.files for problem in f.problems), *more)

    @cached_property
    def compiled(self) -> tuple[Compiled, ...]:
        """Every compile id of each process, in the order in which they began."""
        names = _process_names(self.files)
        return tuple(
            found
            for log, name in zip(self.files, names, strict=True)
            for found in _index(log, name)
        )

    @cached_property
    def breaks(self) -> GraphBreaks:
        """All graph breaks of the log, each once; `breaks.write("breaks.txt")` for a report."""
        return GraphBreaks.of((b for each in self.compiled for b in each.breaks),
                              self.torch_version)  # fmt: skip

    @cached_property
    def varied(self) -> tuple[causes.Varied, ...]:
        """What differed between the calls that were compiled, for each process."""
        found: list[causes.Varied] = []
        for process in dict.fromkeys(each.process for each in self.compiled):
            mine = [each for each in self.compiled if each.process == process]
            facts = {each.compile_id: each.seen for each in mine}
            found += causes.varied([r for each in mine for r in each.recompiles], facts)
        return tuple(found)

    def __len__(self) -> int:
        return len(self.compiled)

    def __getitem__(self, key: str) -> StockCompilation:
        """One compile id as a compilation; raises UnknownName."""
        names = _process_names(self.files)
        for log, name in zip(self.files, names, strict=True):
            for found in self.compiled:
                if found.process == name and key in (found.key, _tlparse_key(found)):
                    return _open(log, found, self.torch_version)
        what, todo = unknown_name("compile id", key, [found.key for found in self.compiled])
        raise UnknownName(what, todo=todo)

    def to_dict(self) -> dict[str, Any]:
        """The data as JSON (docs/json.md)."""
        return document(tool_types.Trace(
            id="trace", summary=repr(self), kind="trace", name=self.name,
            torch_version=self.torch_version, compiled=[_entry(each) for each in self.compiled],
            problems=list(self.problems), varied=[causes.varied_data(each) for each in self.varied],
        ))  # fmt: skip

    def __repr__(self) -> str:
        found = {
            "compile id": len(self),
            "graph break": sum(len(found.breaks) for found in self.compiled),
            "recompile": sum(bool(found.recompiles) for found in self.compiled),
            "problem": len(self.problems),
        }
        counts = ", ".join(counted(number, noun) for noun, number in found.items())
        return f"TraceLog({self.name}: {counts})"

    def __str__(self) -> str:
        damage = [f"damaged: {problem}" for problem in self.problems]
        varied = [f"varied: {each}" for each in self.varied]
        return "\n".join([repr(self), *map(str, self.compiled), *varied, *damage])

    def report(self, path: str | Path, progress: Progress | None = None) -> Path:
        """Write one HTML file: the index, and each compile id in the explorer."""
        return write_trace_report(self, Path(path), progress)


def _entry(found: Compiled) -> tool_types.TraceEntry:
    return tool_types.TraceEntry(
        id=f"compile:{found.key}",
        summary=str(found).split("\n")[0],
        kind="trace_entry",
        key=found.key,
        function=found.function,
        place=place(found.where),
        seconds=found.seconds,
        status=found.status,
        parts=found.parts,
        caches=list(found.caches),
        restarts=list(found.restarts),
        breaks=[of_compile.graph_break(each, f"compile:{found.key}.break:{number}")
                for number, each in enumerate(found.breaks)],
        recompiles=[of_compile.recompile(each) for each in found.recompiles],
        error=found.error,
        limit=found.limit,
        specialized=[causes.specialized_data(each) for each in found.specialized],
        cache_reasons=list(found.cache_reasons),
    )  # fmt: skip


@checked
def read_trace(source: str | Path, progress: Progress | None = None) -> TraceLog:
    """The log in a file, or in all `*.log` files of a folder; raises UnreadableFile.

    The files are read as streams.  `progress(done, total)` is called with the number of bytes read.
    Damaged lines are skipped and listed in `problems`.
    """
    path = Path(source)
    paths = sorted(path.glob("*.log")) if path.is_dir() else [path]
    if not paths:
        raise UnreadableFile(
            f"{path} has no trace log",
            todo="give the folder in the variable TORCH_TRACE, or one of its .log files",
        )
    sizes = [one.stat().st_size if one.is_file() else 0 for one in paths]
    logs = []
    for number, one in enumerate(paths):
        logs.append(LogFile.read(one, partial(_report_total, progress, sizes, number)))
    versions = (_version(log) for log in logs)
    return TraceLog(path.name, tuple(logs), next(filter(None, versions), ""))


def _report_total(
    progress: Progress | None, sizes: Sequence[int], number: int, done: int, _: int
) -> None:
    """Report the progress of one file as progress of all files."""
    if progress is not None:
        progress(sum(sizes[:number]) + done, sum(sizes))


def _process_names(files: Sequence[LogFile]) -> list[str]:
    """"" for a single file; else the rank, or the number of the file."""
    if len(files) == 1:
        return [""]
    ranks = [log.rank or (found[1] if (found := re.search(r"rank_(\d+)", log.path.name)) else "")
             for log in files]
    distinct = len(set(ranks)) == len(ranks) and all(ranks)
    return [f"rank{rank}" if distinct else f"file{n}" for n, rank in enumerate(ranks)]


def _tlparse_key(found: Compiled) -> str:
    return f"[{found.compile_id}]"


def _version(log: LogFile) -> str:
    for event in log.events("", ("torch_version",)):
        found = re.search(r'"pytorch_version": "([^"]*)"', str(event.payload))
        return found[1] if found else ""
    return ""


# ---- the index -------------------------------------------------------------------------------


@dataclass
class _Facts:
    """The facts about one compile id in the index, collected entry by entry."""

    start: Mapping[str, Any] = field(default_factory=dict)
    metrics: dict[str, Any] = field(default_factory=dict)
    parts: int = 0
    graph: bool = False
    caches: list[str] = field(default_factory=list)

    def add(self, metadata: Mapping[str, Any]) -> None:
        kind = kind_of(metadata)
        if kind == "dynamo_start":
            self.start = metadata[kind] if isinstance(metadata[kind], Mapping) else {}
        elif kind == "compilation_metrics":
            known = metadata[kind] if isinstance(metadata[kind], Mapping) else {}
            self.metrics |= {name: value for name, value in known.items() if value}
        elif kind == "inductor_output_code":
            self.parts += 1
        elif kind.startswith("fx_graph_cache_"):
            self.caches.append(kind.rpartition("_")[2])


def _index(log: LogFile, process: str) -> Iterator[Compiled]:
    reader = _reader(log)
    reasons_of_caches = CacheReasons()
    for compile_id, places in log.places.items():
        if not compile_id:
            continue
        found = _Facts()
        for entry in places:
            found.add(entry.metadata)
        reasons = [_harmless(event) for event in log.events(compile_id, _REASONS)]
        metrics = found.metrics
        where = _where(log, found)
        facts = list(log.events(compile_id, _FACTS))
        seen = dict(_readable(log, "inputs", _seen(facts)))
        recompiles = _readable(log, "recompiles", reader.recompiles([*facts, *reasons]))
        yield Compiled(
            process=process,
            compile_id=compile_id,
            function=str(metrics.get("co_name") or (where.function if where else "")),
            where=where,
            seconds=float(metrics.get("entire_frame_compile_time_s") or 0.0),
            parts=found.parts,
            caches=tuple(found.caches),
            restarts=tuple(map(str, metrics.get("restart_reasons") or ())),
            breaks=_readable(log, "graph breaks", reader.breaks(reasons)),
            recompiles=tuple(all_failed(recompiles, partial(_guards, log, reader), seen)),
            error=_error(metrics),
            limit="".join(_readable(log, "limits", _limit(facts))),
            specialized=_readable(log, "sizes", causes.specializations(facts, reader)),
            cache_reasons=_readable(log, "caches", reasons_of_caches.reasons(
                log.events(compile_id, CACHE_ENTRIES))),
            seen=seen,
        )


def _seen(facts: Sequence[Event]) -> Iterator[tuple[str, str]]:
    yield from causes.seen_values(facts).items()


def _limit(facts: Sequence[Event]) -> Iterator[str]:
    yield causes.restarts_and_limit(facts)[1]


def _guards(log: LogFile, reader: Reader, compile_id: str) -> tuple[Guard, ...]:
    kinds = ("dynamo_cpp_guards_str",)
    return _readable(log, "guards", reader.guards(log.events(compile_id, kinds)))


def _error(metrics: Mapping[str, Any]) -> str:
    if not metrics.get("fail_type"):
        return ""
    file, line = metrics.get("fail_user_frame_filename"), metrics.get("fail_user_frame_lineno")
    at = f"    {shown_file(str(file))}:{line}" if file else ""
    return f"{metrics['fail_type']}: {metrics.get('fail_reason')}{at}"


def _where(log: LogFile, found: _Facts) -> Span | None:
    """The compiled function: the last frame of the stack at the start, or from the metrics."""
    stack = found.start.get("stack")
    frames = [f for f in stack if isinstance(f, Mapping)] if isinstance(stack, list) else []
    if frames and isinstance(frames[-1].get("filename"), int):
        frame = frames[-1]
        inner, line = log.file_of(frame["filename"]), frame.get("line")
        if inner and isinstance(line, int):
            return Span(shown_file(inner), line, function=str(frame.get("name") or ""))
    file, line = found.metrics.get("co_filename"), found.metrics.get("co_firstlineno")
    if isinstance(file, str) and isinstance(line, int):
        return Span(shown_file(file), line, function=str(found.metrics.get("co_name") or ""))
    return None


def _reader(log: LogFile) -> Reader:
    return Reader({f for f in log.strings.values() if outside_torch(f)}, log.file_of)


def _readable(log: LogFile, what: str, found: Iterable[T]) -> tuple[T, ...]:
    """All entries up to the first that has an unexpected format, which is added to `problems`."""
    read: list[T] = []
    try:
        read.extend(found)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        reason = f"{type(error).__name__}: {error}"
        log.add_problem(f"{what}: an entry has an unexpected format ({reason})")
    return tuple(read)


def _harmless(event: Event) -> Event:
    """The entry without column markers of code lines: placing them would open the source file."""
    if isinstance(event.payload, str) and kind_of(event.metadata) in _REASONS:
        return Event(event.metadata, _CARETS.sub("", event.payload))
    return event


# ---- one compile id --------------------------------------------------------------------------


def _open(log: LogFile, found: Compiled, torch_version: str) -> StockCompilation:
    heard = [_harmless(event) for event in log.events(found.compile_id)]
    reader = _reader(log)
    graphs = _readable(log, "graphs", _graphs(heard))
    phases = _readable(log, "times", events.phases(heard))
    capture = Capture(
        graphs=tuple(graph.captured for graph in graphs),
        guards=_readable(log, "guards", reader.guards(heard)),
        breaks=found.breaks,
        bytecode=tuple(_bytecode(heard, found.compile_id)),
        symbols=_readable(log, "symbols", reader.symbols(heard)),
        recompiles=found.recompiles,
        compile_ids=(found.compile_id,),
        seconds=events.seconds_by_phase(phases),
    )
    return StockCompilation(
        name=f"{found.function or 'frame'} {found.key}",
        source=SourceFile("", 1, ""),
        capture=capture,
        graphs=graphs,
        seconds={"total": found.seconds},
        phases=by_compiler(in_order(phases)),
        torch_version=torch_version,
        problems=tuple(log.problems),
    )


def _graphs(heard: Sequence[Event]) -> Iterator[StockGraph]:
    hints = size_hints(heard)
    for texts in by_compile_id(heard).values():
        if texts.captured or texts.parts:
            yield stock_graph(texts, hints, "graph0")


def _bytecode(heard: Sequence[Event], compile_id: str) -> Iterator[Bytecode]:
    texts: dict[str, dict[str, str]] = {}
    for event in heard:
        found = _BYTECODE.match(kind_of(event.metadata))
        if found:
            texts.setdefault(found[1], {})[found[2]] = str(event.payload)
    for function, both in texts.items():
        yield Bytecode(compile_id, function, both.get("ORIGINAL", ""), both.get("MODIFIED", ""))
