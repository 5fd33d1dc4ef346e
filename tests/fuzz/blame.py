"""`lab.blame` of random programs ends in a verdict: `python -m tests.fuzz.blame --programs 500`.

Programs with modules, parameters, `.data`, views, hooks and operators of the user's, half of them
with gradients.  What counts: nothing is raised but what the program raises in eager mode, and where
a stage is wrong, a line of the program is named.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from typing import get_args

import torch

import inductor_lab as lab
from inductor_lab.debug.blame.blame_result import Verdict
from tests.fuzz.eager import Wrong
from tests.fuzz.program import Program, tensors_of
from tests.fuzz.run import draw
from tests.fuzz.shrink import said
from tests.fuzz.values import REFUSALS

LINES = (3, 12)
"""Of a program: short ones are blamed in a second or two, and have as many kinds of lines."""


def verdict(program: Program, gradients: bool) -> str:
    """What blame says, or "" where eager mode refuses the program; raises Wrong."""
    if gradients:
        program = program.with_copies()
    try:
        results = tensors_of(program.function()(*given(program, gradients)))
        if differentiable := [result for result in results if result.requires_grad]:
            torch.autograd.backward(differentiable, list(map(torch.ones_like, differentiable)))
    except REFUSALS:
        return ""
    torch.compiler.reset()
    try:
        found = lab.blame(program.function(), *given(program, gradients))
    except Exception as wrong:
        raise Wrong(f"blame raises {said(wrong)}\n{program}") from wrong
    assert str(found) and found.verdict in get_args(Verdict)
    fault = found.fault
    ran = all(row.verdict != "raises" for row in found.stages if row.stage == "load")
    if fault is not None and fault.verdict in ("raises", "crashes") and ran and all_right(found):
        raise Wrong(f"{fault.says}, but the compiled program is right\n{found}\n{program}")
    if fault is not None and fault.verdict == "wrong" and fault.span is None:
        raise Wrong(f"no line is named by\n{found}\n{program}")
    return found.verdict


def all_right(found: lab.Blame) -> bool:
    """Did the compiled program leave what eager mode leaves?"""
    return bool(found.results) and all(judged.right for judged in found.results.values())


def given(program: Program, gradients: bool) -> list[torch.Tensor]:
    made = program.make()
    for tensor in tensors_of(made):
        if gradients and tensor.is_floating_point():
            tensor.requires_grad_()
    return made


def blame_programs(count: int, seed: int) -> tuple[Counter[str], list[str]]:
    """Blame `count` programs: how often each verdict was given, and what went wrong."""
    verdicts: Counter[str] = Counter()
    failures: list[str] = []

    def use(program: Program) -> None:
        try:
            found = verdict(program, gradients=verdicts.total() % 2 == 1)
        except Wrong as wrong:
            failures.append(str(wrong))
            found = "none"
        verdicts[found or "refused by eager mode"] += 1

    draw(count, seed, use, "aliases", LINES)
    return verdicts, failures


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="tests.fuzz.blame", description=__doc__.split("\n")[0])
    parser.add_argument("--programs", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args(arguments)
    start, verdicts, failures = time.monotonic(), Counter[str](), 0
    for batch in range(-(-chosen.programs // 25)):
        count = min(25, chosen.programs - 25 * batch)
        found, wrong = blame_programs(count, chosen.seed * 1000 + batch)
        verdicts, failures = verdicts + found, failures + len(wrong)
        seconds = f"{dict(verdicts)} after {time.monotonic() - start:.0f} s"
        print(*wrong, seconds, sep="\n", flush=True)
    print(f"{failures} failures")
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main())
