"""Memory: when each buffer lives, whose storage it takes, and what is kept for the backward."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from inductor_lab.autograd.result import Cut, Partition
from inductor_lab.display import bytes_text
from inductor_lab.schedule.result import Group, Lifetime, MemoryPlan, Schedule
from inductor_lab.schedule.text import peak_text
from inductor_lab.widgets.links import Links
from inductor_lab.widgets.views import View, empty_view


def memory_views(schedule: Schedule, scope: str, links: Links) -> list[View]:
    """Lifetimes of intermediates and outputs: a lane for each storage, as planned; and for each
    buffer, as it would be without a plan."""
    plan = schedule.memory
    if not plan.lifetimes:
        return [empty_view("after planning", "No intermediate buffers: nothing to plan.")]
    steps = [step.name if isinstance(step, Group) else step.op for step in schedule.steps]
    storages: dict[str, list[Lifetime]] = defaultdict(list)
    for life in plan.lifetimes:
        storages[storage_of(life.buffer, plan.reuse)].append(life)
    alone = {life.buffer: [life] for life in plan.lifetimes}
    saved = f"{peak_text(plan)}; {len(alone)} buffers in {len(storages)} storages"
    return [
        _lanes("after planning", storages, steps, plan, scope, links, saved),
        _lanes("without a plan", alone, steps, plan, scope, links, peak_text(plan)),
    ]


def storage_of(buffer: str, reuse: Mapping[str, str]) -> str:
    """The first buffer that had the storage in which this one lies."""
    while buffer in reuse:
        buffer = reuse[buffer]
    return buffer


def live_bytes(lanes: Iterable[list[Lifetime]], steps: int) -> list[int]:
    """Bytes alive at each step; buffers of one lane share their storage."""
    live = [0] * steps
    for lives in lanes:
        held = max(life.nbytes for life in lives)
        for step in range(lives[0].first, min(max(life.last for life in lives), steps - 1) + 1):
            live[step] += held
    return live


def _lanes(
    name: str,
    lanes: Mapping[str, list[Lifetime]],
    steps: list[str],
    plan: MemoryPlan,
    scope: str,
    links: Links,
    note: str,
) -> View:
    live = live_bytes(lanes.values(), len(steps))
    shown = [
        {
            "name": first,
            "size": bytes_text(max(life.nbytes for life in lives)),
            "bars": [
                {
                    "name": life.buffer,
                    "first": life.first,
                    "last": life.last,
                    "note": _storage_note(life.buffer, plan) if len(lives) > 1 else "",
                    "things": links.find("buffer", scope, [life.buffer]),
                }
                for life in lives
            ],
        }
        for first, lives in lanes.items()
    ]
    texts = [bytes_text(count) for count in live]
    return {"kind": "lanes", "name": name, "steps": steps, "lanes": shown, "note": note,
            "live": live, "live_text": texts}


def _storage_note(buffer: str, plan: MemoryPlan) -> str:
    if buffer not in plan.reuse:
        return ""
    how = "in place of" if buffer in plan.in_place else "takes the storage of"
    return f"{how} {plan.reuse[buffer]}"


def budget_view(partition: Partition, scope: str, links: Links) -> View:
    """What each budget keeps for the backward; `values` are all that any of them keeps."""
    sizes = {d.node: (d.nbytes, d.choice, "; ".join(d.reasons)) for d in partition.decisions}
    inputs = {value.name for value in partition.saved if value.is_input}
    names = list(dict.fromkeys(n for cut in partition.cuts for n in cut.saved if n in sizes))
    place = {name: number for number, name in enumerate(names)}
    values = [
        [
            links.label("node", scope, name),
            "input" if name in inputs else bytes_text(sizes[name][0]),
            sizes[name][2],
            links.find("node", scope, [name]),
        ]
        for name in names
    ]
    bars = [_cut_data(cut, place) for cut in partition.cuts]
    eager = bytes_text(partition.bytes_if_all_saved)
    note = f"Eager mode keeps {eager} for the backward. Inputs are alive anyway and do not count."
    return {
        "kind": "budget",
        "name": "budget",
        "cuts": bars,
        "at": _nearest(partition),
        "values": values,
        "eager": partition.bytes_if_all_saved,
        "note": note,
    }


def _cut_data(cut: Cut, place: Mapping[str, int]) -> dict[str, Any]:
    ops = "op" if cut.recomputed == 1 else "ops"
    return {
        "budget": cut.memory_budget,
        "bytes": cut.cut_bytes,
        "text": bytes_text(cut.cut_bytes),
        "again": f"{cut.recomputed} {ops} run again ({cut.flops:,} flop)",
        "saved": [place[name] for name in cut.saved if name in place],
    }


def _nearest(partition: Partition) -> int:
    """The cut that was compiled: of those that fit into the budget, the one that keeps most."""
    budgets = [cut.memory_budget for cut in partition.cuts]
    fits = [n for n, budget in enumerate(budgets) if budget <= partition.memory_budget]
    return fits[0] if fits else len(budgets) - 1
