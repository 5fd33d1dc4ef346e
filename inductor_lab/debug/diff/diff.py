"""`lab.diff`: where two runs, or the ranks of one run, differ first.

```
lab.diff(lab.inspect(f, x), lab.inspect(g, x))        # two compilations, ours or stock's
lab.diff("trace_before", "trace_after")               # two folders of TORCH_TRACE
lab.diff("trace_of_all_ranks")                        # the processes of one run
```
"""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any, overload

from inductor_lab.api.arguments import checked
from inductor_lab.compiler.base.errors import BadArguments, UnreadableFile
from inductor_lab.compiler.records import Record
from inductor_lab.debug.diff.rank_diff import RankDiff, compare_ranks
from inductor_lab.debug.diff.run_diff import RunDiff, compare_compiles
from inductor_lab.debug.diff.run_stages import CompileRun, compiles_of
from inductor_lab.debug.explore.comparison import Comparison
from inductor_lab.stock.stock_compilation import StockCompilation
from inductor_lab.stock.trace_log import TraceLog, read_trace

Run = Record | StockCompilation | TraceLog


@overload
def diff(old: Any, new: None = None, *, processes: None = None) -> RankDiff: ...


@overload
def diff(old: Any, new: Any, *, processes: tuple[str, str] | None = None) -> RunDiff: ...


@checked
def diff(
    old: Any, new: Any = None, *, processes: tuple[str, str] | None = None
) -> RunDiff | RankDiff:
    """Compare two runs, and find the first stage that differs in each compile.

    old, new    compilations (`lab.inspect`, ours or stock's), trace logs (`lab.read_trace`), or
                paths of saved compilations, trace files and folders of TORCH_TRACE; without `new`,
                the processes of the trace log `old` are compared: the result says which ranks
                differ from the others, and where
    processes   for logs of several processes: the process of each that is compared (`"rank0"`); by
                default each is compared with that of the same name

    Numbers of nodes and GPUs, names of symbols, addresses and folders may differ between equal
    runs: they are not compared, and neither are times.  A stage that one run does not report is not
    compared.  Raises UnreadableFile for a path that is neither.
    """
    if new is None:
        return compare_ranks(_log_of_ranks(old))
    runs = [_opened(run) for run in (old, new)]
    which = processes or (None, None)
    before, after = (_compiles(run, each) for run, each in zip(runs, which, strict=True))
    return compare_compiles(
        _names(old, new, runs, which), before, after,
        versions=(runs[0].torch_version, runs[1].torch_version), numbers=_numbers(*runs),
    )  # fmt: skip


def _log_of_ranks(given: Any) -> TraceLog:
    run = _opened(given)
    if not isinstance(run, TraceLog) or len(run.files) < 2:
        name = given if isinstance(given, str | PathLike) else run.name
        raise BadArguments(
            f"{name} is not the log of several processes",
            todo="give two runs, or a folder of TORCH_TRACE with a log of each rank",
        )
    return run


def _numbers(old: Run, new: Run) -> tuple[tuple[str, str, str], ...]:
    """What generated code costs; compile times are in `seconds`."""
    if not (isinstance(old, Record) and isinstance(new, Record)):
        return ()
    return tuple(row for row in Comparison(old, new).rows if row[0] != "compile seconds")


def _compiles(run: Run, process: str | None) -> tuple[CompileRun, ...]:
    found = tuple(compiles_of(run, process))
    known = {each.process for each in run.compiled} if isinstance(run, TraceLog) else set()
    if process is not None and process not in known:
        there = ", ".join(sorted(known - {""})) or "a single process"
        raise BadArguments(f"the run has no process {process!r}", todo=f"it has {there}")
    return found


def _opened(run: Any) -> Run:
    if isinstance(run, Run):
        return run
    if not isinstance(run, str | PathLike):
        what = f"{type(run).__name__} is not a run"
        raise BadArguments(what, todo="give a compilation, a trace log, or a path of one")
    path = Path(run)
    if path.suffix == ".json":
        from inductor_lab.api.compilation import load

        loaded = load(path)
        if isinstance(loaded, Run):
            return loaded
        raise UnreadableFile(f"{path} holds {type(loaded).__name__}", todo="give a compilation")
    return read_trace(path)


def _names(
    old: Any, new: Any, runs: Sequence[Run], which: Sequence[str | None]
) -> tuple[str, str]:
    """Distinct names of the two runs: their paths, processes or functions."""
    found = []
    for given, run, process in zip((old, new), runs, which, strict=True):
        name = Path(given).name if isinstance(given, str | PathLike) else run.name
        found.append(f"{name} {process}" if process else name)
    return ("old", "new") if found[0] == found[1] else (found[0], found[1])
