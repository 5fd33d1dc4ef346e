"""The command `inductor-lab`: demo, explain, doctor."""

from __future__ import annotations

import argparse
import importlib.util
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from inductor_lab.display import bytes_text
from inductor_lab.errors import BadArguments, LabError
from inductor_lab.observer import Observer


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code (0 fine, 1 a check failed, 2 bad input)."""
    given = _parser().parse_args(arguments)
    console = Console()
    try:
        return int(given.run(given, console))
    except LabError as error:
        Console(stderr=True).print(f"{type(error).__name__}: {error}", style="red", markup=False)
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="inductor-lab", description=__doc__)
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

    doctor = commands.add_parser("doctor", help="what this machine has, and what it lacks")
    doctor.set_defaults(run=_doctor)
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
    return Progress(*columns, console=console, transient=True)


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
    table.add_row("kernels", f"{c.before.kernels} → {c.after.kernels}")
    table.add_row("memory passes", f"{c.before.passes} → {c.after.passes}")
    table.add_row("bytes saved", f"{bytes_text(c.before.bytes - c.after.bytes)} ({c.saved:.1%})")
    table.add_row("generated code", f"{c.coverage.share:.0%}, {c.coverage.calls} extern calls")
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

    fn, args = _load_function(given.function, given.args)
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


def _load_function(where: str, expression: str | None) -> tuple[Any, tuple[Any, ...]]:
    """`FILE:FUNCTION` and its arguments: from --args, or from the file's own example_inputs()."""
    file, _, name = where.rpartition(":")
    if not file or not Path(file).is_file():
        raise BadArguments(f"{where!r} does not name a function", todo="write path/to/file.py:name")
    spec = importlib.util.spec_from_file_location(Path(file).stem, file)
    assert spec is not None and spec.loader is not None, f"{file} is not Python"
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    if not hasattr(module, name):
        raise BadArguments(f"{file} has no {name}", todo="check the name after the colon")
    if expression is not None:
        args = _evaluate(expression, vars(module))
    elif hasattr(module, "example_inputs"):
        args = module.example_inputs()
    else:
        raise BadArguments(
            f"no arguments for {name}",
            todo=f'give --args "(torch.randn(8),)", or define example_inputs() in {file}',
        )
    return getattr(module, name), args if isinstance(args, tuple) else (args,)


def _evaluate(expression: str, names: dict[str, Any]) -> Any:
    """The value of --args, with torch and the names of the person's file at hand."""
    import torch

    try:
        return eval(expression, {"torch": torch, **names})
    except Exception as problem:
        raise BadArguments(
            f"--args {expression!r}: {type(problem).__name__}: {problem}",
            todo='give a Python expression, for example --args "(torch.randn(8),)"',
        ) from problem


def _doctor(given: argparse.Namespace, console: Console) -> int:
    from inductor_lab.doctor import report

    doctor = report()
    console.print(str(doctor), markup=False, highlight=False)
    return 0 if doctor.healthy else 1
