"""The command `inductor-lab`: demo, explain, blame, minify, trace, notebooks, course, ..."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing, redirect_stdout
from pathlib import Path
from typing import Any

from inductor_lab import __version__
from inductor_lab.bench.progress import StatusLine
from inductor_lab.compiler.base.display import bytes_text
from inductor_lab.compiler.base.errors import (
    BadArguments,
    LabError,
    MissingPackage,
    needing_torch,
    unknown_name,
)
from inductor_lab.compiler.base.options import Options
from inductor_lab.debug.command_line import (
    BAD_INPUT,
    FAILED,
    INTERRUPTED,
    SUCCESS,
    Answer,
    PhaseProgress,
    Printed,
    inspected,
    seconds,
)
from inductor_lab.debug.explore.commands import add_commands as add_explore_commands
from inductor_lab.debug.judge.commands import add_commands as add_judge_command
from inductor_lab.debug.mcp.commands import add_commands as add_agent_commands
from inductor_lab.debug.user_file import load_calls, load_function, place_in
from inductor_lab.notebook.failure import sentence, torch_failed, where
from inductor_lab.notebook.quiet import suppress_warnings


def main(
    arguments: Sequence[str] | None = None, tell: Callable[[str], None] | None = None
) -> int:
    """Run one command; returns the exit code (0 success, 1 a check failed, 2 bad input).

    `tell` is called with the progress of a long command.
    """
    given = _parser().parse_args(arguments)
    given.tell = tell
    try:
        with ExitStack() as during:
            if not given.traceback:
                during.enter_context(suppress_warnings())
            if given.json:  # what else is printed, such as by the user's function
                during.enter_context(redirect_stdout(sys.stderr))
            during.enter_context(needing_torch())
            answer = given.run(given)
        _print(answer, given)
        return int(answer.code)
    except KeyboardInterrupt:
        return _refused(given, "interrupted", "KeyboardInterrupt", INTERRUPTED)
    except BrokenPipeError:  # the reader of the output closed it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except SystemExit as end:
        if "function" not in given:  # `course` parses its own arguments
            raise
        return _refused(given, f"{given.function} ended the program: exit({end.code!r})",
                        "SystemExit")  # fmt: skip
    except LabError as error:
        name = type(error).__name__
        return _refused(given, f"{name}: {error}", name)
    except Exception as error:
        if given.traceback:
            raise
        said = f"{type(error).__name__}: {error}"
        place = place_in(error, Path(getattr(given, "function", "").rpartition(":")[0]))
        if torch_failed(error):
            said, place = sentence(error), where(error) or place
        lines = [said, *([f"  {place}"] if place else [])]
        lines.append("  --traceback shows where it was raised")
        return _refused(given, "\n".join(lines), type(error).__name__)


def _print(answer: Answer, given: argparse.Namespace) -> None:
    if not given.json:
        print(answer.text)
        return
    from inductor_lab.saved.documents import outline

    value = Printed(answer.text) if answer.value is None else answer.value
    found = value if isinstance(value, dict) else value.to_dict()
    if given.select:
        found = outline.select(found, given.select)
    if given.max_bytes is not None or given.skip:
        found = outline.within(found, given.max_bytes or sys.maxsize, given.skip)
    print(outline.written(found))


def _refused(given: argparse.Namespace, message: str, name: str, code: int = BAD_INPUT) -> int:
    if given.json:
        from inductor_lab.saved.documents.command_types import Error
        from inductor_lab.saved.documents.kinds import document
        from inductor_lab.saved.documents.outline import written

        first = message.partition("\n")[0]
        error = Error(id="error", summary=first, kind="error", error=name, message=message,
                      exit_code=code)  # fmt: skip
        print(written(document(error)))
        return code
    red, plain = ("\x1b[31m", "\x1b[0m") if sys.stderr.isatty() else ("", "")
    print(f"{red}{message}{plain}", file=sys.stderr)
    return code


def _json_options() -> argparse.ArgumentParser:
    """The options of every command that prints a result."""
    options = argparse.ArgumentParser(add_help=False)
    json = options.add_argument_group("JSON (docs/json.md)")
    json.add_argument("--json", action="store_true", help="print the result as JSON")
    json.add_argument("--select", metavar="ID", help="only this part: g0.forward.kernel:3")
    json.add_argument("--max-bytes", type=int, metavar="N", help="list parts of a larger result")
    json.add_argument("--skip", type=int, default=0, metavar="N", help="leave out the first parts")
    return options


def _add_notebook_commands(commands: Any, json: list[argparse.ArgumentParser]) -> None:
    notebooks = commands.add_parser(
        "notebooks", parents=json, help="copy the notebooks to a folder of yours"
    )
    notebooks.add_argument("folder", type=Path, nargs="?", default=Path("notebooks"))
    notebooks.set_defaults(run=_notebooks)

    warm = commands.add_parser("warm", parents=json, help="run notebooks to fill the compile cache")
    warm.add_argument("paths", nargs="+", type=Path, metavar="NOTEBOOK", help="or a folder of them")
    warm.add_argument("--into", type=Path, metavar="FOLDER", help="of a cache that a class shares")
    warm.set_defaults(run=_warm)


def _add_compile_commands(commands: Any, json: list[argparse.ArgumentParser]) -> None:
    """The commands that take a function of the user."""
    made = {}
    for name, run, what in (
        ("explain", _explain, "compile and report a function of your own"),
        ("memory", _memory, "the memory of a step: its peak, and who keeps each byte"),
        ("compile-time", _compile_time, "what stock's compile costs: phases, memory, caches"),
        ("recompiles", _recompiles, "make several calls: which were compiled again, and why"),
        ("bench", _bench, "compare eager mode, stock and inductor_lab on one call"),
        ("blame", _blame, "find the first wrong stage, value and line"),
        ("minify", _minify, "shrink the graph of a failing call to a few nodes, as a script"),
    ):
        made[name] = command = commands.add_parser(name, parents=json, help=what)
        command.add_argument("function", metavar="FILE:FUNCTION")
        command.set_defaults(run=run)
        if name == "recompiles":
            what = "the tuple of arguments of a call; once for each call"
            command.add_argument("--args", action="append", required=True, help=what)
            command.add_argument("--stock", action="store_true", help="of stock torch.compile")
            command.add_argument("--advise", action="store_true",
                                 help="try edits that reduce the recompiles")  # fmt: skip
        else:
            command.add_argument("--args", help="a Python expression: the tuple of arguments")
        if name == "compile-time":
            command.add_argument("--limit", type=seconds, default=600.0, help="of each compile")
        if name in ("blame", "minify"):
            command.add_argument("--stock", action="store_true", help="of stock torch.compile")
            command.add_argument("--limit", type=seconds, default=60.0,
                                 help="seconds for compiled code")  # fmt: skip
    _add_memory_options(made["memory"])
    minify, explain = made["minify"], made["explain"]
    minify.add_argument("--folder", type=Path, default=Path("minified"), help="of the script")
    explain.add_argument("--report", type=Path, help="where to write the report (HTML)")
    explain.add_argument("--save", type=Path, help="where to save the result: `explain` reads it")
    explain.add_argument("--measure", type=seconds, metavar="SECONDS", help="time each kernel")
    explain.add_argument("--target", help="write code for a named GPU: cuda:90, hip:gfx942")
    explain.add_argument("--ladder", metavar="GPU", help="include all stages of Triton")
    explain.add_argument("--assembly", action="store_true", help="include machine code of the CPU")
    made["bench"].add_argument("--seconds", type=seconds, default=2.0, help="for timing")
    made["bench"].add_argument("--against", nargs="+", default=["eager", "inductor"])


def _add_memory_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("--stock", action="store_true", help="measure stock torch.compile too")
    command.add_argument("--no-suggestions", action="store_true", help="do not try any change")
    command.add_argument("--limit", type=seconds, default=300.0, help="seconds for each compiler")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="inductor-lab", description=__doc__)
    parser.add_argument("--version", action="version", version=f"inductor-lab {__version__}")
    parser.add_argument("--traceback", action="store_true", help="show all of an error")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    json = [_json_options()]

    demo = commands.add_parser(
        "demo", parents=json, help="compile, run, check and report the eight programs"
    )
    demo.add_argument("names", nargs="*", help="only these (trig, uint8, add_mul, ...)")
    demo.add_argument("--reports", type=Path, default=Path("reports"), help="folder of the reports")
    demo.set_defaults(run=_demo)

    _add_compile_commands(commands, json)
    add_explore_commands(commands, json)
    add_judge_command(commands, json)

    trace = commands.add_parser(
        "trace", parents=json, help="a TORCH_TRACE log, from any machine, as a page"
    )
    trace.add_argument("log", type=Path, metavar="FOLDER", help="or one of its .log files")
    trace.add_argument("-o", "--output", type=Path, default=Path("trace.html"))
    trace.set_defaults(run=_trace)

    _add_notebook_commands(commands, json)
    add_agent_commands(commands, json)

    doctor = commands.add_parser(
        "doctor", parents=json, help="check this machine and list what is missing"
    )
    doctor.add_argument("--measure", action="store_true", help="time thread counts and allocators")
    doctor.add_argument("--all", action="store_true", help="list every feature and required API")
    doctor.set_defaults(run=_doctor)

    # course/command.py parses all following arguments, including options
    course = commands.add_parser(
        "course", help="points; notebooks; nbgrader", add_help=False, prefix_chars="\0"
    )
    course.add_argument("rest", nargs=argparse.REMAINDER)
    course.set_defaults(run=_course, json=False)

    cache = commands.add_parser("cache", parents=json, help="show the size of the caches on disk")
    cache.add_argument("--clear", action="store_true", help="delete all of it")
    cache.set_defaults(run=_cache)

    schema = commands.add_parser("schema", help="print the JSON Schema of a kind of result")
    schema.add_argument("kind", nargs="?", help="such as kernel; without one: lists the kinds")
    schema.set_defaults(run=_schema, json=False)

    completion = commands.add_parser("completion", help="print what completes this command in a "
                                     "shell")  # fmt: skip
    completion.add_argument("shell", choices=("bash", "zsh", "tcsh"))
    completion.set_defaults(run=_completion, json=False)
    return parser


def _demo(given: argparse.Namespace) -> Answer:
    from inductor_lab.bench.demo.programs import PROGRAMS
    from inductor_lab.bench.demo.run import run_program
    from inductor_lab.bench.demo.table import outcome_table

    known = [program.name for program in PROGRAMS]
    unknown = [name for name in given.names if name not in known]
    if unknown:
        what, todo = unknown_name("program", unknown[0], known)
        raise BadArguments(what, todo=todo)
    chosen = [p for p in PROGRAMS if not given.names or p.name in given.names]
    failed, tables = [], []
    started = time.perf_counter()
    for program in chosen:
        with closing(PhaseProgress(program.title)) as observer:
            outcome = run_program(program, given.reports, observer)
        tables.append(str(outcome_table(outcome)))
        print(tables[-1], flush=True)
        if not outcome.passed:
            failed.append(program.name)
    took = time.perf_counter() - started
    agree = f"{len(chosen) - len(failed)} of {len(chosen)} programs agree with eager"
    last = f"{agree}, {took:.0f} s; reports in {given.reports}/"
    return Answer(last, Printed("\n".join([*tables, last])), FAILED if failed else SUCCESS)


def _explain(given: argparse.Namespace) -> Answer:
    Options(target=given.ladder)  # checked before anything is compiled
    compilation = inspected(given, given.function, given.target)
    if given.measure:
        compilation = compilation.measure(given.measure)
    lines = [str(compilation)]
    lines += [str(kernel) for part in compilation.parts for kernel in part.kernels]
    if given.report:
        path = compilation.report(given.report, ladder=given.ladder, assembly=given.assembly)
        lines.append(f"report: {path}")
    if given.save:
        lines.append(f"saved: {compilation.save(given.save)}")
    return Answer("\n".join(lines), compilation)


def _memory(given: argparse.Namespace) -> Answer:
    if given.function.endswith(".json"):
        from inductor_lab.debug.memory_report import MemoryReport

        report = MemoryReport(inspected(given, given.function))
        return Answer(str(report), report)
    from inductor_lab import memory

    fn, args = load_function(given.function, given.args)
    compilers = ("eager", *(["stock"] if given.stock else []), "inductor_lab")
    found = memory(fn, *args, compilers=compilers, suggest=not given.no_suggestions,
                   limit=given.limit)  # fmt: skip
    return Answer(str(found), found)


def _compile_time(given: argparse.Namespace) -> Answer:
    found = inspected(given, given.function, compiler="stock").compile_time(limit=given.limit)
    return Answer(str(found), found)


def _recompiles(given: argparse.Namespace) -> Answer:
    import torch

    from inductor_lab import compile as compile_function
    from inductor_lab import recompiles
    from inductor_lab.debug.advice.advise import advise_calls

    fn, calls = load_calls(given.function, given.args)
    if given.advise:
        advice = advise_calls(fn, calls, _compiler(given))
        return Answer(str(advice), advice)
    fast = torch.compile(fn) if given.stock else compile_function(fn)
    with recompiles() as seen:
        for args in calls:
            fast(*args)
    return Answer(str(seen), seen)


def _bench(given: argparse.Namespace) -> Answer:
    from inductor_lab.bench.run import bench

    fn, args = load_function(given.function, given.args)
    result = bench(fn, *args, against=given.against, seconds=given.seconds)
    agree = all(each.agrees and not each.failure for each in result.contenders)
    return Answer(str(result), result, SUCCESS if agree else FAILED)


def _compiler(given: argparse.Namespace) -> str:
    return "stock" if given.stock else "inductor_lab"


def _blame(given: argparse.Namespace) -> Answer:
    from inductor_lab import blame

    fn, args = load_function(given.function, given.args)
    found = blame(fn, *args, limit=given.limit, compiler=_compiler(given))
    return Answer(str(found), found, SUCCESS if found.right else FAILED)


def _minify(given: argparse.Namespace) -> Answer:
    from inductor_lab import minify

    fn, args = load_function(given.function, given.args)
    found = minify(
        fn, *args, limit=given.limit, folder=given.folder, tell=given.tell or print,
        compiler=_compiler(given),
    )  # fmt: skip
    return Answer(f"{found.script}\nwritten to {found.folder}/", found, FAILED)


def _trace(given: argparse.Namespace) -> Answer:
    from inductor_lab.stock.trace_log import read_trace

    with closing(StatusLine(sys.stdout)) as line:
        log = read_trace(given.log, lambda done, of: line.tell("reading", done / max(of, 1)))
        path = log.report(given.output, lambda done, of: line.tell("writing", done / max(of, 1)))
    if not len(log):
        print(f"{given.log} has no readable entry", file=sys.stderr)
    return Answer(f"{log}\nreport: {path}", log, SUCCESS if len(log) else FAILED)


def _notebooks(given: argparse.Namespace) -> Answer:
    from inductor_lab.course.build import copy_for_students

    copy_for_students(given.folder)
    return Answer(f"jupyter lab {given.folder}")


def _warm(given: argparse.Namespace) -> Answer:
    from inductor_lab.notebook.warm import warm

    kept = warm(given.paths, given.into, print)
    place = f"{kept} entries added to {given.into}"
    return Answer(place if given.into else "entries are in your cache")


def _doctor(given: argparse.Namespace) -> Answer:
    from inductor_lab.debug.doctor import report

    doctor = report(given.all)
    text = str(doctor)
    if given.measure:
        from inductor_lab.bench.surroundings import surroundings

        text += f"\n{surroundings()}"
    return Answer(text, doctor, SUCCESS if doctor.healthy else FAILED)


def _course(given: argparse.Namespace) -> Answer:
    from inductor_lab.course.command import command

    return Answer(command(given.rest))


def _cache(given: argparse.Namespace) -> Answer:
    from inductor_lab.compiler.runtime.cache import prune
    from inductor_lab.compiler.runtime.cache.kernel_cache import open_cache, own_version
    from inductor_lab.saved.documents.command_types import Cache, CacheKind
    from inductor_lab.saved.documents.kinds import document

    root, version = open_cache().root, own_version()
    deleted = prune.clear(root, version) if given.clear else 0
    found, limit = prune.kinds(root, version), prune.limit_in(os.environ)
    if given.clear:
        text = f"deleted {bytes_text(deleted)}"
    else:
        lines = [str(root), f"{'kept on disk':30}{'entries':>9}{'size':>10}"]
        lines += [f"{k.name:30}{len(k.paths):9}{bytes_text(k.nbytes):>10}" for k in found]
        lines.append(f"limit: {bytes_text(limit)}; least recently used entries are deleted first "
                     f"({prune.LIMIT_VARIABLE})")  # fmt: skip
        text = "\n".join([*lines, "--clear deletes all entries"])
    data = Cache(
        id="cache", summary=text.split("\n")[0], kind="cache", folder=str(root), limit_bytes=limit,
        deleted_bytes=deleted,
        kinds=[CacheKind(name=k.name, entries=len(k.paths), nbytes=k.nbytes) for k in found],
    )  # fmt: skip
    return Answer(text, document(data))


def _schema(given: argparse.Namespace) -> Answer:
    import json

    from inductor_lab.saved.documents import kinds

    if given.kind is None:
        return Answer("\n".join(kinds.KINDS))
    return Answer(json.dumps(kinds.schema(given.kind), indent=1))


def _completion(given: argparse.Namespace) -> Answer:
    try:
        import shtab
    except ImportError:
        raise MissingPackage("shtab", "shell") from None
    parser = _parser()
    for command in _commands_of(parser):
        for action in command._actions:
            if action.type is Path or str(action.metavar).startswith("FILE"):
                action.complete = shtab.FILE  # type: ignore[attr-defined]
    return Answer(shtab.complete(parser, given.shell))


def _commands_of(parser: argparse.ArgumentParser) -> list[argparse.ArgumentParser]:
    found: list[argparse.ArgumentParser] = []
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            found += action.choices.values()
    return found
