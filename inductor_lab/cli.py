"""The command `inductor-lab`: demo, explain, blame, minify, trace, doctor, cache."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
)
from rich.table import Table

from inductor_lab import __version__
from inductor_lab.display import bytes_text
from inductor_lab.errors import BadArguments, LabError
from inductor_lab.observer import Observer
from inductor_lab.options import Options
from inductor_lab.user_file import load_function, place_in

UNLIMITED = 1_000_000
"""Columns of an output that is no terminal."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code (0 fine, 1 a check failed, 2 bad input)."""
    given = _parser().parse_args(arguments)
    try:
        return int(given.run(given, _console(sys.stdout)))
    except KeyboardInterrupt:
        return _refused("interrupted", 130)
    except BrokenPipeError:  # whoever read the output has read enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except LabError as error:
        return _refused(f"{type(error).__name__}: {error}")
    except Exception as error:
        if given.traceback:
            raise
        where = place_in(error, Path(getattr(given, "function", "").rpartition(":")[0]))
        lines = [f"{type(error).__name__}: {error}", *([f"  {where}"] if where else [])]
        return _refused("\n".join([*lines, "  --traceback shows where it was raised"]))


def _refused(message: str, code: int = 2) -> int:
    _console(sys.stderr).print(message, style="red", markup=False, highlight=False)
    return code


def _console(stream: IO[str]) -> Console:
    """Lines stay whole where no terminal limits them: what goes to a file can be compiled."""
    return Console(file=stream, soft_wrap=True, width=None if stream.isatty() else UNLIMITED)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="inductor-lab", description=__doc__)
    parser.add_argument("--version", action="version", version=f"inductor-lab {__version__}")
    parser.add_argument("--traceback", action="store_true", help="show all of an error")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    demo = commands.add_parser("demo", help="compile, run, check and report the eight programs")
    demo.add_argument("names", nargs="*", help="only these (trig, uint8, add_mul, ...)")
    demo.add_argument("--reports", type=Path, default=Path("reports"), help="folder of the reports")
    demo.set_defaults(run=_demo)

    explain = commands.add_parser("explain", help="compile and report a function of your own")
    explain.add_argument("function", metavar="FILE:FUNCTION")
    explain.add_argument("--args", help="a Python expression: the tuple of arguments")
    explain.add_argument("--report", type=Path, help="where to write the report (HTML)")
    explain.add_argument("--target", help="write code for a named GPU: cuda:90, hip:gfx942")
    explain.add_argument("--ladder", metavar="GPU", help="with Triton's rungs down to its assembly")
    explain.add_argument("--assembly", action="store_true", help="with the CPU's instructions")
    explain.set_defaults(run=_explain)

    for name, run, what in (
        ("blame", _blame, "which stage, value and line is the first that is wrong, if any"),
        ("minify", _minify, "shrink the graph of a failing call to a few nodes, as a script"),
    ):
        debug = commands.add_parser(name, help=what)
        debug.add_argument("function", metavar="FILE:FUNCTION")
        debug.add_argument("--args", help="a Python expression: the tuple of arguments")
        debug.add_argument("--limit", type=float, default=60.0, help="seconds for compiled code")
        debug.set_defaults(run=run)
    debug.add_argument("--folder", type=Path, default=Path("minified"), help="of the script")

    trace = commands.add_parser("trace", help="a TORCH_TRACE log, from any machine, as a page")
    trace.add_argument("log", type=Path, metavar="FOLDER", help="or one of its .log files")
    trace.add_argument("-o", "--output", type=Path, default=Path("trace.html"))
    trace.set_defaults(run=_trace)

    doctor = commands.add_parser("doctor", help="what this machine has, and what it lacks")
    doctor.set_defaults(run=_doctor)

    cache = commands.add_parser("cache", help="what is kept on disk, and how much")
    cache.add_argument("--clear", action="store_true", help="delete all of it")
    cache.set_defaults(run=_cache)
    return parser


class PhaseProgress(Observer):
    """Shows the running phase with its elapsed time; silent where the output is no terminal."""

    def __init__(self, progress: Progress, title: str) -> None:
        self._progress = progress
        self._title = title
        self._task = progress.add_task(title, total=None)

    def entered(self, phase: str) -> None:
        self._progress.update(self._task, description=f"{self._title}: {phase}")

    def left(self, phase: str, result: Any) -> None:
        self._progress.update(self._task, description=f"{self._title}: {phase} done")

    def close(self) -> None:
        self._progress.remove_task(self._task)


def _progress(console: Console) -> Progress:
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)


def _demo(given: argparse.Namespace, console: Console) -> int:
    from inductor_lab.demo.programs import PROGRAMS
    from inductor_lab.demo.run import run_program

    known = [program.name for program in PROGRAMS]
    unknown = [name for name in given.names if name not in known]
    if unknown:
        raise BadArguments(f"no demo program {unknown[0]}", todo=f"there are: {', '.join(known)}")
    chosen = [p for p in PROGRAMS if not given.names or p.name in given.names]
    failed = []
    started = time.perf_counter()
    with _progress(console) as progress:
        for program in chosen:
            observer = PhaseProgress(progress, program.title)
            outcome = run_program(program, given.reports, observer)
            observer.close()
            console.print(_outcome_table(outcome))
            if not outcome.passed:
                failed.append(program.name)
    took = time.perf_counter() - started
    agree = f"{len(chosen) - len(failed)} of {len(chosen)} programs agree with eager"
    console.print(f"{agree}, {took:.0f} s; reports in {given.reports}/")
    return 1 if failed else 0


def _outcome_table(outcome: Any) -> Table:
    c = outcome.compilation
    table = Table(title=outcome.program.title, title_justify="left", show_header=False)
    table.add_column(style="dim")
    table.add_column(justify="right")
    kinds = f"{sum(g.backward is not None for g in c.graphs)} with gradient"
    table.add_row("graphs", f"{len(c.graphs)} ({kinds}), {len(c.capture.breaks)} breaks")
    table.add_row("kernels", c.kernels_text)
    table.add_row("memory passes", f"one kernel per op {c.before.passes} → {c.after.passes} fused")
    table.add_row("bytes saved", f"{bytes_text(c.before.bytes - c.after.bytes)} ({c.saved:.1%})")
    table.add_row("code", f"{c.coverage.headline}, {c.coverage.calls} extern calls")
    table.add_row("compile seconds", _phase_text(c.seconds))
    table.add_row("eager", f"{outcome.eager_ms:.3f} ms")
    ratio = outcome.eager_ms / outcome.compiled_ms
    table.add_row("compiled", f"{outcome.compiled_ms:.3f} ms ({ratio:.2f}x)")
    verdict = "agrees" if outcome.passed else "DIFFERS"
    note = f", {outcome.note}" if outcome.note else ""
    table.add_row("largest error", f"{outcome.error:.1e} ({verdict}){note}")
    if outcome.report:
        table.add_row("report", str(outcome.report))
    return table


def _phase_text(seconds: dict[str, float]) -> str:
    """`0.61 = capture and autograd 0.40 + rewrite 0.01 + ...`, parts of both directions summed."""
    phases: dict[str, float] = {}
    for name, took in seconds.items():
        if name not in ("total", "graph"):
            short = name.split(".")[-1]
            phases[short] = phases.get(short, 0.0) + took
    rest = seconds["total"] - sum(phases.values())
    parts = [f"capture, autograd, first run {rest:.2f}"]
    parts += [f"{name} {took:.2f}" for name, took in phases.items()]
    return f"{seconds['total']:.2f} = " + " + ".join(parts)


def _explain(given: argparse.Namespace, console: Console) -> int:
    from inductor_lab import inspect

    Options(target=given.ladder)  # known before anything is compiled
    fn, args = load_function(given.function, given.args)
    with _progress(console) as progress:
        observer = PhaseProgress(progress, given.function)
        compilation = inspect(fn, *args, target=given.target, observer=observer)
        observer.close()
    console.print(str(compilation), markup=False, highlight=False)
    for part in compilation.parts:
        for kernel in part.kernels:
            console.print(str(kernel), markup=False, highlight=False)
    if given.report:
        path = compilation.report(given.report, ladder=given.ladder, assembly=given.assembly)
        console.print(f"report: {path}")
    return 0


def _blame(given: argparse.Namespace, console: Console) -> int:
    from inductor_lab import blame

    fn, args = load_function(given.function, given.args)
    found = blame(fn, *args, limit=given.limit)
    console.print(str(found), markup=False, highlight=False)
    return 0 if found.right else 1


def _minify(given: argparse.Namespace, console: Console) -> int:
    from inductor_lab import minify

    def say(line: str) -> None:
        console.print(line, markup=False, highlight=False)

    fn, args = load_function(given.function, given.args)
    found = minify(fn, *args, limit=given.limit, folder=given.folder, tell=say)
    say(found.script)
    say(f"written to {found.folder}/")
    return 1


def _trace(given: argparse.Namespace, console: Console) -> int:
    from inductor_lab.stock.trace_log import read_trace

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn())
    with Progress(*columns, console=console, transient=True) as bars:
        reading, writing = bars.add_task("reading"), bars.add_task("writing", start=False)
        log = read_trace(given.log, lambda done, of: bars.update(reading, completed=done, total=of))
        bars.start_task(writing)
        path = log.report(
            given.output, lambda done, of: bars.update(writing, completed=done, total=of)
        )
    console.print(str(log), markup=False, highlight=False)
    console.print(f"report: {path}")
    return 0


def _doctor(given: argparse.Namespace, console: Console) -> int:
    from inductor_lab.doctor import report

    doctor = report()
    console.print(str(doctor), markup=False, highlight=False)
    return 0 if doctor.healthy else 1


def _cache(given: argparse.Namespace, console: Console) -> int:
    from inductor_lab.runtime import prune
    from inductor_lab.runtime.cache import open_cache, own_version

    root, version = open_cache().root, own_version()
    if given.clear:
        console.print(f"deleted {bytes_text(prune.clear(root, version))}")
        return 0
    table = Table(title=str(root), title_justify="left", box=None)
    for heading, side in (("kept on disk", "left"), ("entries", "right"), ("size", "right")):
        table.add_column(heading, justify=side)  # type: ignore[arg-type]
    for kind in prune.kinds(root, version):
        table.add_row(kind.name, str(len(kind.paths)), bytes_text(kind.nbytes))
    console.print(table)
    limit = bytes_text(prune.limit_in(os.environ))
    console.print(f"at most {limit}, then what was used longest ago goes ({prune.LIMIT_VARIABLE})")
    console.print("--clear deletes all of it")
    return 0
