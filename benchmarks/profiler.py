"""The overhead of profiling: `python -m benchmarks.profiler`, for an operator and for MobileBERT.

    asking     the overhead without a profiler: each graph checks once whether one is active
    clocks     the slowdown of a call while `c.profile()` times each step
    shares     the sum of the profile's rows and the gaps, relative to a call without timers

The targets: shares within 5 % of a call, and asking below 1 % of it.  On a busy machine the median
of the rounds is still meaningful, because calls with and without timers are interleaved.
"""

from __future__ import annotations

import argparse
import timeit
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any

import torch

import inductor_lab as lab
from benchmarks.models import mobilebert
from inductor_lab.api.compilation import Compilation
from inductor_lab.compiler.records import CompiledPart

CALLS = 200_000
ROUNDS = 7
HEAD = ("", "call", "steps", "asking", "of a call", "clocks", "shares")


def asking_seconds(part: CompiledPart) -> float:
    """The overhead of a part's `call`; its host program does nothing here."""
    assert part.executable is not None, "it was compiled here"
    call = part.executable.call

    def nothing(args: list[Any]) -> None:
        return None

    asking = FunctionType(call.__code__, {**call.__globals__, "_program": nothing})
    return max(_least(asking) - _least(nothing), 0.0)


def _least(function: Callable[[list[Any]], Any]) -> float:
    return min(timeit.repeat(lambda: function([]), number=CALLS, repeat=ROUNDS)) / CALLS


def row(name: str, compilation: Compilation, steps: int) -> tuple[str, ...]:
    """One line of the table."""
    found = compilation.profile(steps=steps)
    call = found.call_seconds / (1 + found.clock_cost)
    asking = sum(asking_seconds(part) for part in compilation.parts)
    shares = sum(row.seconds for row in found.rows) + found.host_seconds
    return (
        name, f"{1e3 * call:.4g} ms", str(len(found.events)), f"{1e9 * asking:.0f} ns",
        f"{asking / call:.4%}", f"{found.clock_cost:+.2%}", f"{shares / call:.1%}",
    )  # fmt: skip


def rows(steps: int) -> Iterator[tuple[str, ...]]:
    """An operator of 4 MB, and MobileBERT with random weights on 4 x 128 tokens."""
    yield row("sin of 4 MB", lab.inspect(torch.sin, torch.randn(1 << 20)), 10 * steps)
    model, arguments = mobilebert()
    with torch.no_grad():
        yield row("MobileBERT 4x128", lab.inspect(model, *arguments), steps)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--steps", type=int, default=20, help="calls of the model")
    steps = parser.parse_args().steps
    print("| " + " | ".join(HEAD) + " |\n|" + "---|" * len(HEAD))
    for cells in rows(steps):
        print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
