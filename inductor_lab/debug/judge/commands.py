"""The command `inductor-lab judge`."""

from __future__ import annotations

import argparse
from contextlib import closing
from pathlib import Path
from typing import Any

from inductor_lab.debug.command_line import FAILED, SUCCESS, Answer, PhaseProgress, seconds
from inductor_lab.debug.user_file import load_function


def add_commands(commands: Any, json: list[argparse.ArgumentParser]) -> None:
    """Add `judge` to the parser of `inductor-lab`."""
    command = commands.add_parser(
        "judge", parents=json, help="is a candidate correct, how fast is it, does it cheat"
    )
    command.add_argument("candidate", type=Path, help="a .py or .cpp file; it is not imported here")
    command.add_argument("function", metavar="FILE:FUNCTION", help="the reference")
    command.add_argument("--name", default="", help="the candidate's function, if not `candidate`")
    command.add_argument("--args", help="a Python expression: the tuple of arguments")
    command.add_argument("--gradients", action="store_true", help="judge them too")
    command.add_argument("--seconds", type=seconds, default=1.0, help="for timing")
    command.add_argument("--no-timing", action="store_true", help="only check the results")
    command.add_argument("--limit", type=seconds, default=120.0, help="seconds for the candidate")
    command.set_defaults(run=_judge)


def _judge(given: argparse.Namespace) -> Answer:
    from inductor_lab.debug.judge.cases import CaseArguments
    from inductor_lab.debug.judge.judge import Judge

    reference, args = load_function(given.function, given.args)
    by_keyword = len(args) == 1 and isinstance(args[0], CaseArguments)
    with closing(PhaseProgress(str(given.candidate), given.tell)) as progress, Judge() as judge:
        found = judge.judge(
            reference, given.candidate, [args[0] if by_keyword else args], name=given.name,
            gradients=given.gradients, limit=given.limit,
            seconds=None if given.no_timing else given.seconds, tell=progress.entered,
        )  # fmt: skip
    return Answer(str(found), found, SUCCESS if found.accepted else FAILED)
