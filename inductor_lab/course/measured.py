"""Show measured times only where they are clear; otherwise show recorded ones.

    course.slowdowns("times as long as fused", timings, "fused", recorded)

Noise can make the slower program look faster.  A measured ratio is shown if its whole interval is
above `CLEAR`.  Otherwise the cell says so, and shows a ratio that was recorded on a named machine.
The recorded ratios of a picture are shown together, because they are compared with each other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from inductor_lab.bench.timings import Timings
from inductor_lab.course.language import Both, one_of, say
from inductor_lab.course.pictures import Bar, Picture, bars

CLEAR = 1.05
"""A smaller ratio is no difference: the clock rate changes between two runs of one program."""


@dataclass(frozen=True)
class Recorded:
    """Ratios that were measured on a machine that ran nothing else.

    where   the machine, the versions and the date
    ratios  by name: how many times as long as the baseline a call takes
    """

    where: str
    ratios: Mapping[str, float] = field(default_factory=dict)


def is_slower(timings: Timings, name: str, base: str) -> bool:
    """Whether `name` takes clearly longer than `base` in the whole interval of the ratio."""
    return timings.interval(base, name)[0] > CLEAR


def slowdowns(
    title: Both, timings: Timings, base: str, recorded: Recorded,
    names: Mapping[str, Both] | None = None,
) -> Picture:  # fmt: skip
    """Bars: how many times as long as `base` each other program takes.

    The chapter says that all of them are slower than `base`.
    """
    rows: list[Bar] = []
    kept = recorded.ratios
    replaced = not all(is_slower(timings, name, base) for name in kept if name in timings.seconds)
    for name in timings.seconds:
        if name == base:
            continue
        label = one_of((names or {}).get(name, name))
        if replaced and name in kept:
            label = say("{name} (recorded)", name=label)
            rows.append((label, kept[name], f"{kept[name]:.2f}x"))
        elif is_slower(timings, name, base):
            ratio = timings.ratio(name, base)
            rows.append((label, ratio, f"{ratio:.2f}x"))
        else:
            rows.append((label, 0.0, say("no clear difference")))
    head = one_of(title)
    if replaced:
        head = say("{title}; recorded, where this machine is too noisy to tell: {where}",
                   title=head, where=recorded.where)  # fmt: skip
    return bars(head, rows)


def slowdown_intervals(timings: Timings, base: str) -> dict[str, tuple[float, float]]:
    """For each other program the interval of how many times as long as `base` it takes."""
    return {name: timings.interval(base, name) for name in timings.seconds if name != base}


def clear_maximum(
    intervals: Mapping[str, tuple[float, float]], recorded: Mapping[str, float]
) -> str:
    """The name with the largest value, if its interval is clearly above all others; otherwise the
    name with the largest recorded value."""
    best = max(intervals, key=lambda name: intervals[name][0])
    others = (high for name, (_, high) in intervals.items() if name != best)
    if all(high * CLEAR < intervals[best][0] for high in others):
        return best
    return max(recorded, key=lambda name: recorded[name])
