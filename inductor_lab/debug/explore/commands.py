"""The commands that change something and compare: why-not-fused, what-if, diff, try-kernel."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from inductor_lab.compiler.base.errors import BadArguments
from inductor_lab.debug.command_line import FAILED, SUCCESS, Answer, inspected, seconds
from inductor_lab.stock.stock_compilation import StockCompilation


def add_commands(commands: Any, json: list[argparse.ArgumentParser]) -> None:
    """Add the four commands to the parser of `inductor-lab`."""
    why = commands.add_parser(
        "why-not-fused", parents=json, help="which rules prevent fusing two loop nests"
    )
    _takes_function(why, _why_not_fused)
    pair = "two buffers, FX nodes or source lines; without them: all pairs that were not fused"
    why.add_argument("buffers", nargs="*", metavar="VALUE", help=pair)
    why.add_argument("--part", help="the graph and the direction")
    why.add_argument("--stock", action="store_true", help="the decisions of stock torch.compile")
    why.add_argument("--measure", type=seconds, metavar="SECONDS",
                     help="with --stock: time our compiler with and without the fusion")

    what_if = commands.add_parser(
        "what-if", parents=json, help="compile again with other options, and compare"
    )
    _takes_function(what_if, _what_if)
    for name in ("forbid", "force"):
        what_if.add_argument(f"--{name}", action="append", default=[], metavar="PRODUCER,CONSUMER",
                             type=_pair, help=f"{name} fusing these buffers")  # fmt: skip
    for name, what in (("fusion", "a profit rule of fusion"), ("rewrites", "a rewrite pass"),
                       ("passes", "a pass")):  # fmt: skip
        what_if.add_argument(f"--{name}-off", action="append", default=[], metavar="NAME",
                             help=f"disable {what}")  # fmt: skip
    what_if.add_argument("--no-fusion", action="store_true", help="each loop nest is a kernel")
    what_if.add_argument("--memory-budget", type=float, metavar="SHARE",
                         help="0 to 1: how much may be kept for the backward")  # fmt: skip

    diff = commands.add_parser(
        "diff", parents=json,
        help="the first stage at which two compilations, two trace logs or the ranks of one differ",
    )  # fmt: skip
    saved = "FILE:FUNCTION, a file that `explain --save` wrote, or a folder or .log of TORCH_TRACE"
    diff.add_argument("before", help=saved)
    diff.add_argument("function", metavar="after", nargs="?",
                      help=f"{saved}; without it, the ranks of the log BEFORE are compared")
    diff.add_argument("--args", help="a Python expression: the tuple of arguments")
    diff.add_argument("--stock", action="store_true", help="compile with stock torch.compile")
    diff.add_argument("--exit-code", action="store_true", help="exit with 1 if they differ")
    diff.set_defaults(run=_diff)

    attempt = commands.add_parser(
        "try-kernel", parents=json, help="run an edited kernel: is it correct, how fast is it"
    )
    _takes_function(attempt, _try_kernel)
    attempt.add_argument("kernel", help="the name of the kernel")
    attempt.add_argument("text", type=Path, help="a file with the text of the edited function")
    attempt.add_argument("--part", default="g0.forward", help="the graph and the direction")
    attempt.add_argument("--seconds", type=seconds, default=0.5, help="for timing")
    attempt.add_argument("--limit", type=seconds, default=60.0, help="seconds for its run")


def _takes_function(command: argparse.ArgumentParser, run: Any) -> None:
    command.add_argument("function", metavar="FILE:FUNCTION")
    command.add_argument("--args", help="a Python expression: the tuple of arguments")
    command.set_defaults(run=run)


def _pair(text: str) -> tuple[str, ...]:
    """`buf0,buf3`, optionally with the part: `buf0,buf3,g0.backward`."""
    found = tuple(text.split(","))
    if len(found) not in (2, 3) or not all(found):
        raise argparse.ArgumentTypeError(f"{text!r} is not PRODUCER,CONSUMER")
    return found


def _why_not_fused(given: argparse.Namespace) -> Answer:
    if len(given.buffers) not in (0, 2):
        raise BadArguments("one value is not a pair", todo="give two values, or none")
    compiler = "stock" if given.stock else "inductor_lab"
    compilation = inspected(given, given.function, compiler=compiler)
    part = given.part if given.part or given.buffers else "g0.forward"
    more = {"measure": given.measure} if isinstance(compilation, StockCompilation) else {}
    found = compilation.why_not_fused(*given.buffers, part=part, **more)
    return Answer(str(found), found)


def _what_if(given: argparse.Namespace) -> Answer:
    before = inspected(given, given.function)
    after = before.what_if(
        forbid=given.forbid, force=given.force, fusion_off=given.fusion_off,
        rewrites_off=given.rewrites_off, passes_off=given.passes_off,
        memory_budget=given.memory_budget, fusion=False if given.no_fusion else None,
    )  # fmt: skip
    found = before.compare(after)
    return Answer(str(found), found)


def _diff(given: argparse.Namespace) -> Answer:
    from inductor_lab.debug.diff.diff import diff

    compiler = "stock" if given.stock else "inductor_lab"
    paths = filter(None, (given.before, given.function))
    runs = [path if _is_log(path) else inspected(given, path, compiler=compiler) for path in paths]
    found = diff(*runs)
    return Answer(str(found), found, FAILED if found and given.exit_code else SUCCESS)


def _is_log(path: str) -> bool:
    return Path(path).is_dir() or path.endswith(".log")


def _try_kernel(given: argparse.Namespace) -> Answer:
    from inductor_lab.debug.explore.edit_kernel import try_kernel

    try:
        text = given.text.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        todo = "give a file with the text of the edited function"
        raise BadArguments(f"{given.text} cannot be read: {error}", todo=todo) from None
    found = try_kernel(inspected(given, given.function), given.kernel, text, part=given.part,
                       seconds=given.seconds, limit=given.limit)  # fmt: skip
    return Answer(str(found), found, SUCCESS if found.right else FAILED)
