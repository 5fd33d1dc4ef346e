"""What a partitioner trades: bytes saved for the backward against the time of recomputing.

    traded(partition)
                     kept      peak    a training step
    waves      ours  0 B       8.4 MB   4.31 ms  ± 2%
               you   12.6 MB  16.8 MB   3.90 ms  ± 3%
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from inductor_lab.api.compilation import Compilation
from inductor_lab.bench.jobs import Job
from inductor_lab.bench.timing import compare
from inductor_lab.compiler.autograd.graphs import Partition
from inductor_lab.compiler.base.display import bytes_text
from inductor_lab.course.given.gradients import compiled
from inductor_lab.course.language import say
from inductor_lab.course.pictures import Picture, bars
from inductor_lab.notebook.columns import padded

SIZES = (512, 128)
"""Rows and columns of x: enough that kernels take longer than the calls around them."""


@dataclass(frozen=True)
class Trade:
    """One partition of one program.

    kept     bytes that the forward keeps for the backward, inputs left out
    peak     the peak of bytes alive, in the forward, or in the backward with what was kept
    seconds  of a training step, the median; `spread` is half the distance of the quartiles over it
    """

    program: str
    who: str
    kept: int
    peak: int
    seconds: float
    spread: float

    @property
    def step(self) -> str:
        return f"{self.seconds * 1e3:.3g} ms ±{self.spread:.0%}"


@dataclass(frozen=True)
class Traded:
    """Memory and time, a line for each program and each partitioner."""

    rows: tuple[Trade, ...]

    def __str__(self) -> str:
        heads = ("", "", say("kept"), say("peak"), say("a training step"))
        lines = [heads] + [
            (row.program, row.who, bytes_text(row.kept), bytes_text(row.peak), row.step)
            for row in self.rows
        ]
        return "\n".join("".join(padded(cell, 12) for cell in line).rstrip() for line in lines)

    __repr__ = __str__

    def picture(self) -> Picture:
        """The bytes as bars, each with the time of a step."""
        title = say("bytes saved for the backward; then the time of a training step")
        return bars(title, [
            (f"{row.program} {row.who}".strip(), float(row.kept),
             f"{bytes_text(row.kept)}, {row.step}") for row in self.rows
        ])  # fmt: skip


def traded(
    partitioner: Callable[..., Any],
    programs: Sequence[Callable[..., Any]],
    seconds: float = 1.0,
    sizes: tuple[int, int] = SIZES,
) -> Traded:
    """Compare a partitioner with ours on programs.

    The training steps run interleaved, for so many seconds for each program.  Raises Refused for a
    partition that is not legal.
    """
    rows = []
    for function in programs:
        found = {
            say("inductor_lab"): compiled(function, None, sizes),
            say("you"): compiled(function, partitioner, sizes),
        }
        steps = {who: _step(each) for who, each in found.items()}
        times = compare(steps, seconds=seconds)
        rows += [
            Trade(function.__name__, who, _partition(each).cut_bytes, peak_of(each),
                  times.median_ms(who) / 1e3, times.spread(who))
            for who, each in found.items()
        ]  # fmt: skip
    return Traded(tuple(rows))


def peak_of(compilation: Compilation) -> int:
    """The values that the forward computes and saves, or those that the backward computes."""
    graph = compilation.graphs[0]
    assert graph.backward is not None, "lab 3 trains"
    kept = _partition(compilation).cut_bytes
    made: int = graph.backward.schedule.memory.peak_after
    forward: int = graph.forward.schedule.memory.peak_after
    return max(forward, kept + made)


def _partition(compilation: Compilation) -> Partition:
    partition = compilation.graphs[0].partition
    assert partition is not None, "lab 3 trains"
    return partition


def _step(compilation: Compilation) -> Callable[[], Any]:
    call, function = compilation.call, compilation.compiled
    assert call is not None and function is not None, "compiled in this process"
    return Job(function, call.args, call.kwargs, backward=True)
