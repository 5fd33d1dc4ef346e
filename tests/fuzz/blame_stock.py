"""Stock is not blamed for random programs that it compiles correctly:
`python -m tests.fuzz.blame_stock --programs 200`.

A third of the programs has float32 inputs, a third bfloat16, a third float16; half of them have
gradients.  If blame reports a fault, the results of stock are compared with eager mode by the rule
of `tests/fuzz/check.py`, which shares nothing with blame: the fault is a false one if they agree.
That rule ignores the sign of a zero, which is compared here if blame reports it.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import torch

import inductor_lab as lab
from inductor_lab.debug.isolate import Tell, run_isolated
from tests.fuzz.blame import given
from tests.fuzz.check import found_with
from tests.fuzz.eager import is_comparable, known, results
from tests.fuzz.jumps import jumps
from tests.fuzz.program import Program, tensors_of
from tests.fuzz.run import draw
from tests.fuzz.shrink import said
from tests.fuzz.values import REFUSALS

DTYPES = ("float32", "bfloat16", "float16")
LINES = (2, 8)
"""Lines of a program."""
LIMIT = 60.0
"""Seconds for one call of compiled code."""
DRAWN = 12
"""Programs that are drawn from one seed."""


def programs(seed: int) -> Iterator[tuple[Program, bool]]:
    """Programs that eager mode accepts, of each dtype in turn, and whether to take gradients."""
    number = 0
    for batch in itertools.count(1000 * seed):
        drawn: list[Program] = []
        draw(DRAWN, batch, drawn.append, "default", LINES)
        for program in drawn:
            dtype, gradients = DTYPES[number % len(DTYPES)], number // len(DTYPES) % 2 == 1
            program = with_dtype(program, dtype)
            program = program.with_copies() if gradients else program
            if eager_accepts(program, gradients):
                number += 1
                yield program, gradients


def with_dtype(program: Program, dtype: str) -> Program:
    """The program with floating-point inputs of this dtype; at least the first input gets it."""
    inputs = [
        replace(one, dtype=dtype) if "float" in one.dtype else one for one in program.inputs
    ]
    if all(one.dtype != dtype for one in inputs):
        inputs[0] = replace(inputs[0], dtype=dtype)
    return replace(program, inputs=tuple(inputs))


def eager_accepts(program: Program, gradients: bool) -> bool:
    try:
        results = tensors_of(program.function()(*given(program, gradients)))
        results = [r for r in results if isinstance(r, torch.Tensor) and r.requires_grad]
        if results:
            torch.autograd.backward(results, list(map(torch.ones_like, results)))
    except REFUSALS:
        return False
    return True


def verdict(program: Program, gradients: bool) -> tuple[str, str]:
    """The verdict of blame, and the text of a false fault ("" if there is none)."""
    torch.compiler.reset()
    try:
        found = lab.blame(
            program.function(), *given(program, gradients), compiler="stock", limit=LIMIT
        )
    except Exception as error:
        return "error", f"blame raises {said(error)}\n{program}"
    if found.fault is None:
        return found.verdict, ""
    judged = found.fault.judged
    of_zero = judged is not None and judged.kind == "sign of zero"
    if difference(program, gradients) or (of_zero and signs_differ(program, gradients)):
        return f"stock is wrong: {found.fault.stage}", ""
    return "false", f"{found}\n{program}"


def difference(program: Program, gradients: bool) -> str:
    """How stock differs from eager mode by the rule of `check`; "" if it agrees."""
    call = known(program, gradients)
    if not is_comparable(call, gradients) or jumps(call, gradients):
        return "the results depend on roundings"
    ended = run_isolated(lambda tell: found_with("inductor", [call], gradients, False), LIMIT)
    return str(ended.value or "") if ended.how == "returned" else str(ended)


def signs_differ(program: Program, gradients: bool) -> bool:
    """Does a zero of stock have another sign than in eager mode?"""

    def work(tell: Tell) -> bool:
        compiled = torch.compile(program.function())
        pairs = zip(*(results(fn, program.make(), gradients)
                      for fn in (program.function(), compiled)), strict=True)  # fmt: skip
        return any(
            bool(((a == 0) & (b == 0) & (a.signbit() != b.signbit())).any())
            for a, b in pairs if isinstance(a, torch.Tensor) and a.is_floating_point()
        )  # fmt: skip

    ended = run_isolated(work, LIMIT)
    return ended.how == "returned" and bool(ended.value)


def blame_programs(count: int, seed: int, show: bool = False) -> tuple[Counter[str], list[str]]:
    """Blame `count` programs: how often each verdict was given, and the false faults."""
    verdicts: Counter[str] = Counter()
    false: list[str] = []
    started = time.monotonic()
    for program, gradients in itertools.islice(programs(seed), count):
        found, why = verdict(program, gradients)
        verdicts[found] += 1
        false += [why] if why else []
        if show:
            taken = f"{time.monotonic() - started:.0f} s"
            print(*([why] if why else []), f"{dict(verdicts)} after {taken}", sep="\n", flush=True)
    return verdicts, false


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="tests.fuzz.blame_stock", description=__doc__.split("\n")[0]
    )
    parser.add_argument("--programs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args(arguments)
    _, false = blame_programs(chosen.programs, chosen.seed, show=True)
    print(f"{len(false)} false faults")
    return int(bool(false))


if __name__ == "__main__":
    sys.exit(main())
