"""Dependences between steps, compared with the definition."""

from __future__ import annotations

import random
from collections.abc import Collection

from inductor_lab.compiler.schedule.order.dependences import Reachability, positions


def reached(edges: Collection[tuple[int, int]], start: int) -> set[int]:
    """All steps that can be reached from a step, without the step itself."""
    found, waiting = set[int](), [start]
    while waiting:
        at = waiting.pop()
        fresh = {there for here, there in edges if here == at} - found
        found |= fresh
        waiting += fresh
    return found - {start}


def test_merged_steps_have_the_dependences_of_one_step() -> None:
    draw = random.Random(0)
    for _ in range(60):
        count = draw.randint(2, 14)
        sources = [{p for p in range(at) if draw.random() < 0.25} for at in range(count)]
        reach = Reachability(sources)
        edges = {(source, at) for at in range(count) for source in sources[at]}
        sets = [1 << at for at in range(count)]
        for _ in range(count):
            first, second = draw.choice(sets), draw.choice(sets)
            if first == second or reach.between(first, second):
                continue
            reach.join(first, second)
            sets = [s for s in sets if s not in (first, second)] + [first | second]
            both = list(positions(first | second))
            edges |= {(a, b) for a in both for b in both if a != b}
            for at in range(count):
                assert set(positions(reach.after[at])) == {at} | reached(edges, at)
                back = {(b, a) for a, b in edges}
                assert set(positions(reach.before[at])) == {at} | reached(back, at)
