"""The command `inductor-lab`: demo, explain, blame, minify, trace, notebooks, course, ..."""

from __future__ import annotations

import argparse
import math
import os
import sys
import time
from collections.abc import Sequence
from contextlib import closing, nullcontext, suppress
from pathlib import Path
from typing import Any

from inductor_lab import __version__
from inductor_lab.bench.progress import StatusLine
from inductor_lab.compiler.base.display import bytes_text
from inductor_lab.compiler.base.errors import BadArguments, LabError, unknown_name
from inductor_lab.compiler.base.observer import Observer
from inductor_lab.compiler.base.options import Options
from inductor_lab.debug.user_file import load_function, place_in
from inductor_lab.notebook.failure import sentence, torch_failed, where
from inductor_lab.notebook.quiet import suppress_warnings


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code (0 success, 1 a check failed, 2 bad input)."""
    given = _parser().parse_args(arguments)
    try:
        with nullcontext() if given.traceback else suppress_warnings():
            return int(given.run(given))
    except KeyboardInterrupt:
        return _refused("interrupted", 130)
    except BrokenPipeError:  # the reader of the output closed it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except SystemExit as end:
        if "function" not in given:  # `course` parses its own arguments
            raise
        return _refused(f"{given.function} ended the program: exit({end.code!r})")
    except LabError as error:
        return _refused(f"{type(error).__name__}: {error}")
    except Exception as error:
        if given.traceback:
            raise
        said = f"{type(error).__name__}: {error}"
        place = place_in(error, Path(getattr(given, "function", "").rpartition(":")[0]))
        if torch_failed(error):
            said, place = sentence(error), where(error) or place
        lines = [said, *([f"  {place}"] if place else [])]
        return _refused("\n".join([*lines, "  --traceback shows where it was raised"]))


def seconds(text: str) -> float:
    """A time limit; raises ArgumentTypeError if it is not a positive number."""
    with suppress(ValueError):
        if 0 < float(text) < math.inf:
            return float(text)
    raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds")


def _refused(message: str, code: int = 2) -> int:
    red, plain = ("\x1b[31m", "\x1b[0m") if sys.stderr.isatty() else ("", "")
    print(f"{red}{message}{plain}", file=sys.stderr)
    return code


def _add_notebook_commands(commands: Any) -> None:
    notebooks = commands.add_parser("notebooks", help="copy the notebooks to a folder of yours")
    notebooks.add_argument("folder", type=Path, nargs="?", default=Path("notebooks"))
    notebooks.set_defaults(run=_notebooks)

    warm = commands.add_parser("warm", help="run notebooks to fill the compile cache")
    warm.add_argument("paths", nargs="+", type=Path, metavar="NOTEBOOK", help="or a folder of them")
    warm.add_argument("--into", type=Path, metavar="FOLDER", help="of a cache that a class shares")
    warm.set_defaults(run=_warm)


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
    explain.add_argument("--ladder", metavar="GPU", help="include all stages of Triton")
    explain.add_argument("--assembly", action="store_true", help="include machine code of the CPU")
    explain.set_defaults(run=_explain)

    for name, run, what in (
        ("blame", _blame, "find the first wrong stage, value and line"),
        ("minify", _minify, "shrink the graph of a failing call to a few nodes, as a script"),
    ):
        debug = commands.add_parser(name, help=what)
        debug.add_argument("function", metavar="FILE:FUNCTION")
        debug.add_argument("--args", help="a Python expression: the tuple of arguments")
        debug.add_argument("--stock", action="store_true", help="of stock torch.compile")
        debug.add_argument("--limit", type=seconds, default=60.0, help="seconds for compiled code")
        debug.set_defaults(run=run)
    debug.add_argument("--folder", type=Path, default=Path("minified"), help="of the script")

    trace = commands.add_parser("trace", help="a TORCH_TRACE log, from any machine, as a page")
    trace.add_argument("log", type=Path, metavar="FOLDER", help="or one of its .log files")
    trace.add_argument("-o", "--output", type=Path, default=Path("trace.html"))
    trace.set_defaults(run=_trace)

    _add_notebook_commands(commands)

    doctor = commands.add_parser("doctor", help="check this machine and list what is missing")
    doctor.add_argument("--measure", action="store_true", help="time thread counts and allocators")
    doctor.add_argument("--all", action="store_true", help="list every feature and required API")
    doctor.set_defaults(run=_doctor)

    # course/command.py parses all following arguments, including options
    course = commands.add_parser(
        "course", help="points; notebooks; nbgrader", add_help=False, prefix_chars="\0"
    )
    course.add_argument("rest", nargs=argparse.REMAINDER)
    course.set_defaults(run=_course)

    cache = commands.add_parser("cache", help="show the size of the caches on disk")
    cache.add_argument("--clear", action="store_true", help="delete all of it")
    cache.set_defaults(run=_cache)
    return parser


class PhaseProgress(Observer):
    """Shows the running phase with its elapsed time; silent if the output is not a terminal."""

    def __init__(self, title: str) -> None:
        self._line = StatusLine(sys.stdout)
        self._title = title
        self._line.tell(title)

    def entered(self, phase: str) -> None:
        self._line.tell(f"{self._title}: {phase}")

    def left(self, phase: str, result: Any) -> None:
        self._line.tell(f"{self._title}: {phase} done")

    def close(self) -> None:
        self._line.close()


def _demo(given: argparse.Namespace) -> int:
    from inductor_lab.bench.demo.programs import PROGRAMS
    from inductor_lab.bench.demo.run import run_program
    from inductor_lab.bench.demo.table import outcome_table

    known = [program.name for program in PROGRAMS]
    unknown = [name for name in given.names if name not in known]
    if unknown:
        what, todo = unknown_name("program", unknown[0], known)
        raise BadArguments(what, todo=todo)
    chosen = [p for p in PROGRAMS if not given.names or p.name in given.names]
    failed = []
    started = time.perf_counter()
    for program in chosen:
        with closing(PhaseProgress(program.title)) as observer:
            outcome = run_program(program, given.reports, observer)
        print(outcome_table(outcome))
        if not outcome.passed:
            failed.append(program.name)
    took = time.perf_counter() - started
    agree = f"{len(chosen) - len(failed)} of {len(chosen)} programs agree with eager"
    print(f"{agree}, {took:.0f} s; reports in {given.reports}/")
    return 1 if failed else 0


def _explain(given: argparse.Namespace) -> int:
    from inductor_lab import inspect

    Options(target=given.ladder)  # checked before anything is compiled
    fn, args = load_function(given.function, given.args)
    with closing(PhaseProgress(given.function)) as observer:
        compilation = inspect(fn, *args, target=given.target, observer=observer)
    print(str(compilation))
    for part in compilation.parts:
        for kernel in part.kernels:
            print(str(kernel))
    if given.report:
        path = compilation.report(given.report, ladder=given.ladder, assembly=given.assembly)
        print(f"report: {path}")
    return 0


def _compiler(given: argparse.Namespace) -> str:
    return "stock" if given.stock else "inductor_lab"


def _blame(given: argparse.Namespace) -> int:
    from inductor_lab import blame

    fn, args = load_function(given.function, given.args)
    found = blame(fn, *args, limit=given.limit, compiler=_compiler(given))
    print(str(found))
    return 0 if found.right else 1


def _minify(given: argparse.Namespace) -> int:
    from inductor_lab import minify

    fn, args = load_function(given.function, given.args)
    found = minify(
        fn, *args, limit=given.limit, folder=given.folder, tell=print, compiler=_compiler(given)
    )
    print(found.script)
    print(f"written to {found.folder}/")
    return 1


def _trace(given: argparse.Namespace) -> int:
    from inductor_lab.stock.trace_log import read_trace

    with closing(StatusLine(sys.stdout)) as line:
        log = read_trace(given.log, lambda done, of: line.tell("reading", done / max(of, 1)))
        path = log.report(given.output, lambda done, of: line.tell("writing", done / max(of, 1)))
    print(log)
    print(f"report: {path}")
    return 0 if len(log) else _refused(f"{given.log} has no readable entry", 1)


def _notebooks(given: argparse.Namespace) -> int:
    from inductor_lab.course.build import copy_for_students

    copy_for_students(given.folder)
    print(f"jupyter lab {given.folder}")
    return 0


def _warm(given: argparse.Namespace) -> int:
    from inductor_lab.notebook.warm import warm

    kept = warm(given.paths, given.into, print)
    print(f"{kept} entries added to {given.into}" if given.into else "entries are in your cache")
    return 0


def _doctor(given: argparse.Namespace) -> int:
    from inductor_lab.debug.doctor import report

    doctor = report(given.all)
    print(str(doctor))
    if given.measure:
        from inductor_lab.bench.surroundings import surroundings

        print(surroundings())
    return 0 if doctor.healthy else 1


def _course(given: argparse.Namespace) -> int:
    from inductor_lab.course.command import command

    print(command(given.rest))
    return 0


def _cache(given: argparse.Namespace) -> int:
    from inductor_lab.compiler.runtime.cache import prune
    from inductor_lab.compiler.runtime.cache.kernel_cache import open_cache, own_version

    root, version = open_cache().root, own_version()
    if given.clear:
        print(f"deleted {bytes_text(prune.clear(root, version))}")
        return 0
    print(f"{root}\n{'kept on disk':30}{'entries':>9}{'size':>10}")
    for kind in prune.kinds(root, version):
        print(f"{kind.name:30}{len(kind.paths):9}{bytes_text(kind.nbytes):>10}")
    limit = bytes_text(prune.limit_in(os.environ))
    print(f"limit: {limit}; least recently used entries are deleted first ({prune.LIMIT_VARIABLE})")
    print("--clear deletes all entries")
    return 0
