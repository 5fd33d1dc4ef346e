"""A number that several panes show is the same in all of them, whatever was compiled."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch.nn.attention.flex_attention import flex_attention

import inductor_lab as lab
from inductor_lab.compiler.base.display import bytes_text
from inductor_lab.compiler.schedule.cost import extern_cost
from inductor_lab.compiler.schedule.schedule import Group
from inductor_lab.compiler.step_time import duration
from inductor_lab.widgets.markup import inside, text_of
from inductor_lab.widgets.model import document
from inductor_lab.widgets.plain import plain_document
from tests.widgets.reading import parts as elements
from tests.widgets.reading import rows


def infers(x: torch.Tensor) -> torch.Tensor:
    return (x.sin() + 1).softmax(-1)


def trains(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    hidden = F.gelu(F.linear(x, w, b))
    return F.layer_norm(hidden, (16,)).log_softmax(-1).mean()


def writes(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    x.mul_(2).sin_()
    y.add_(x.sum())
    return x.exp() @ x.t()


def calls_libraries(x: torch.Tensor) -> torch.Tensor:
    first = x @ x
    second = (first @ x).relu()
    return torch.linalg.qr(second @ x)[0].sort()[0] + 1


def breaks(x: torch.Tensor) -> torch.Tensor:
    y = x * 2
    print("a break", end="")
    z = y.cos()
    print("another", end="")
    return z @ z


def has_nothing(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return x.sin() * 2, y + 1


def attends(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> Any:
    return flex_attention(q.sin(), k, v, lambda score, b, h, i, j: score + (i - j))


def given(*size: int) -> torch.Tensor:
    return torch.randn(*size, requires_grad=True)


PROGRAMS: dict[str, Callable[[], Any]] = {
    "inference": lambda: lab.inspect(infers, torch.randn(40, 50)),
    "training": lambda: lab.inspect(trains, given(8, 32), given(16, 32), given(16)),
    "written inputs": lambda: lab.inspect(writes, torch.ones(20, 30), torch.ones(20, 30)),
    "library calls": lambda: lab.inspect(calls_libraries, torch.randn(16, 16)),
    "dynamic sizes": lambda: lab.inspect(infers, torch.randn(5, 6), options={"dynamic": True}),
    "dynamic training": lambda: lab.inspect(
        trains, given(8, 32), given(16, 32), given(16), options={"dynamic": True}
    ),
    "graph breaks": lambda: lab.inspect(breaks, torch.randn(8, 8)),
    "nothing in it": lambda: lab.inspect(has_nothing, torch.zeros(0, 4), torch.zeros(3)),
    "attention": lambda: lab.inspect(attends, *(torch.randn(1, 2, 200, 16) for _ in range(3))),
    "no graph": lambda: lab.inspect(lambda x: x, torch.zeros(3)),
}


@cache
def shown(name: str) -> tuple[Any, Any]:
    """The compilation, with the time of its kernels, and its document."""
    c = PROGRAMS[name]()
    c = c.measure(0) if c.graphs else c
    return c, document(c)


@pytest.fixture(params=PROGRAMS)
def both(request: pytest.FixtureRequest) -> tuple[Any, Any]:
    return shown(request.param)


def facts(doc: Any) -> dict[str, str]:
    return {fact["label"]: fact["value"] for fact in doc["facts"]}


def parts(c: Any) -> dict[str, Any]:
    return {f"g{n}.{part.name}": part for n, g in enumerate(c.graphs) for part in g.parts}


def view(doc: Any, pane: str, name: str) -> Any:
    return next(found for found in doc["panes"][pane]["views"] if found["name"] == name)


def steps_of(doc: Any, scope: str) -> list[list[str]]:
    """The rows of a schedule's table, without the two sums below them."""
    return [row["cells"] for row in rows(view(doc, f"{scope}.schedule", "kernels"))[:-2]]


def whole(doc: Any, scope: str) -> list[str]:
    return rows(view(doc, f"{scope}.schedule", "kernels"))[-1]["cells"]


def compared(c: Any) -> dict[str, str]:
    return {what: before for what, before, _ in c.compare(c).rows}


def test_kernels(both: tuple[Any, Any]) -> None:
    c, doc = both
    total = c.after.kernels
    assert facts(doc)["kernels"] == c.kernels_text
    calls = c.coverage.calls
    fused = f"{total - calls:,} generated + {calls:,} library call" if calls else f"{total:,} fused"
    assert f"→ {fused}" in c.kernels_text
    assert f"kernels        {c.kernels_text}" in str(c) and c.kernels_text in repr(c)
    assert compared(c)["kernels"] == f"{total:,}"
    tables = [steps_of(doc, scope) for scope in parts(c)]
    assert sum(map(len, tables)) == total
    coded = generated = 0
    for scope, part in parts(c).items():
        assert doc["panes"][f"{scope}.schedule"]["count"].endswith(f"→ {len(part.schedule.steps)}")
        coded += int(doc["panes"][f"{scope}.code"]["count"])
        blocks = view(doc, f"{scope}.code", "text").get("blocks", ())
        assert len(blocks) == int(doc["panes"][f"{scope}.code"]["count"])
        generated += sum("(" not in cells[0] for cells in steps_of(doc, scope))
    assert coded == generated == total - c.coverage.calls
    if any(part.times for part in c.parts):
        bars = [text_of(bar[2]) for bar in view(doc, "time", "kernels")["tree"][3:]]
        timed = sum(int(found[1]) if (found := re.search(r"×(\d+)$", bar)) else 1 for bar in bars)
        assert timed == sum(len(part.times) for part in c.parts)


def test_bytes(both: tuple[Any, Any]) -> None:
    c, doc = both
    read, written = c.after.bytes_read, c.after.bytes_written
    assert compared(c)["bytes read"] == f"{read:,}"
    assert compared(c)["bytes written"] == f"{written:,}"
    for scope, part in parts(c).items():
        after = part.schedule.after
        assert whole(doc, scope)[1:3] == [bytes_text(after.bytes_read),
                                          bytes_text(after.bytes_written)]  # fmt: skip
        costs = [step.cost if isinstance(step, Group) else extern_cost(step, part.loops.buffers)
                 for step in part.schedule.steps]  # fmt: skip
        assert [cells[1:3] for cells in steps_of(doc, scope)] == [
            [bytes_text(cost.bytes_read), bytes_text(cost.bytes_written)] for cost in costs]
        assert sum(cost.bytes for cost in costs) == after.bytes
        assert [took.nbytes for took in part.times] in ([cost.bytes for cost in costs], [])
    annotated = c.annotate()
    assert f"{bytes_text(read + written)} moved" in annotated.total
    lines = [line for _, found in annotated.blocks for line in found]
    told = math.fsum(line.nbytes for line in lines) + annotated.elsewhere[0]
    assert round(told) == read + written
    assert round(annotated.elsewhere[0]) == 0, "all bytes belong to a line"
    saved = f"{100 * c.saved:.1f}"
    assert facts(doc)["traffic saved by fusion"] == f"{saved} %"
    assert f"({saved}% of the traffic saved)" in str(c) and f"{saved}% saved" in repr(c)


def test_passes(both: tuple[Any, Any]) -> None:
    c, doc = both
    assert facts(doc)["memory passes"].endswith(f"→ {c.after.passes:,} fused")
    assert f"{c.after.passes:,} fused (" in str(c)
    assert compared(c)["passes over memory"] == f"{c.after.passes:,}"
    numbers = [int(whole(doc, scope)[4].replace(",", "")) for scope in parts(c)]
    assert sum(numbers) == c.after.passes


def test_time(both: tuple[Any, Any]) -> None:
    c, doc = both
    compile_text = f"{c.total_seconds:.2f} s"
    assert facts(doc)["compile time"] == compile_text and f"compile time   {compile_text}" in str(c)
    assert doc["panes"]["time"]["seconds"] == c.total_seconds
    assert compared(c)["compile seconds"] == f"{c.total_seconds:.2f}"
    times = [took for part in c.parts for took in part.times]
    kernels, libraries = (math.fsum(t.seconds for t in times if t.generated == kind)
                          for kind in (True, False))  # fmt: skip
    wanted = {"time in kernels": kernels, "time in library calls": libraries}
    for label, seconds in wanted.items():
        assert facts(doc).get(label, "") == (duration(seconds) if seconds else "")
    measured = f"measured       {duration(kernels)} in kernels, {duration(libraries)} in library"
    assert (measured in str(c)) == bool(times)
    if not times:
        return
    note = text_of(next(inside(view(doc, "time", "kernels")["tree"], "p")))
    assert note.startswith(f"{duration(kernels + libraries)} in total: {duration(kernels)} in "
                           f"kernels, {duration(libraries)} in library calls.")  # fmt: skip
    for scope, part in parts(c).items():
        if part.times:
            assert whole(doc, scope)[5] == duration(sum(took.seconds for took in part.times))
            assert [cells[5] for cells in steps_of(doc, scope)] == [
                duration(took.seconds) for took in part.times]
    annotated = c.annotate()
    assert annotated.total.endswith(f"moved in {duration(kernels + libraries)}")
    lines = [line for _, found in annotated.blocks for line in found]
    assert math.fsum(line.seconds for line in lines) == pytest.approx(kernels + libraries)


def test_peak_memory(both: tuple[Any, Any]) -> None:
    c, doc = both
    said = facts(doc)["peak memory"]
    assert said == c.peak_text and f"peak memory    {said}" in str(c)
    plans = {scope: part.schedule.memory for scope, part in parts(c).items()}
    assert compared(c)["peak of intermediates, bytes"] == (
        f"{max((plan.peak_after for plan in plans.values()), default=0):,}")  # fmt: skip
    for scope, plan in plans.items():
        unfused, fused = bytes_text(plan.peak_unfused), bytes_text(plan.peak_after)
        line = f"peak: {unfused} without fusion and reuse -> {fused}"
        assert line in str(parts(c)[scope].schedule)
        if plan.lifetimes:
            views = doc["panes"][f"{scope}.memory"]["views"]
            for drawn, peak in zip(views, (plan.peak_after, plan.peak_before), strict=True):
                assert line in text_of(drawn["tree"])
                assert f"peak {bytes_text(peak)}" in map(text_of, inside(drawn["tree"], "text"))
            lanes = {lane[3][1]["y"] for lane in elements(views[0], "lab-lane")}
            assert f"storages: {len(lanes):,}" in text_of(views[0]["tree"])


def test_each_pair_has_one_decision_that_agrees_with_the_kernels(both: tuple[Any, Any]) -> None:
    c, doc = both
    for scope, part in parts(c).items():
        schedule = part.schedule
        pairs = schedule.decisions.by_pair
        if not pairs:
            continue
        shown = [row["cells"][:2] for row in rows(view(doc, f"{scope}.schedule", "decisions"))]
        assert [pair for pair, _ in shown] == [f"{first} + {second}" for first, second in pairs]
        for (first, second), (_, state) in zip(pairs, shown, strict=True):
            final = schedule.decisions.about(first, second)
            if final.relation != "in place":
                assert (state != "not fused") == schedule.in_one_kernel(first, second)
                assert (state == "fused") == final.fused


def test_graphs_and_breaks(both: tuple[Any, Any]) -> None:
    c, doc = both
    graphs, broken = len(c.graphs), len(c.capture.breaks)
    told = facts(doc)
    assert told["graph" if graphs == 1 else "graphs"] == f"{graphs}"
    assert told["break" if broken == 1 else "breaks"] == f"{broken}"
    assert f"{graphs} graph" in str(c) and f"{broken} graph break" in str(c)
    assert sum(bool(re.fullmatch(r"g\d+\.captured", pane)) for pane in doc["panes"]) == graphs
    assert doc["panes"]["breaks"]["count"] == f"{broken}"
    assert len(rows(view(doc, "breaks", "breaks"))) == broken


def test_text_is_the_same_in_words(both: tuple[Any, Any]) -> None:
    """The page without a script, and the saved file, have the header's numbers."""
    _, doc = both
    plain = plain_document(doc)
    for fact in doc["facts"]:
        assert fact["value"] in plain, fact["label"]


def test_text_has_the_code_and_no_diffs_of_passes() -> None:
    """Without colours, a line that a pass removed looks like one that it kept."""
    c = lab.inspect(lambda x: torch.softmax(x, -1), torch.randn(8, 8))
    doc = document(c)
    assert "before all passes" in str(doc["panes"]["g0.forward.code"])
    plain = plain_document(doc)
    assert "before all passes" not in plain and "lab_maximum" in plain


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_saved_file_shows_the_same(name: str, tmp_path: Any) -> None:
    c, doc = shown(name)
    loaded = lab.load(c.save(tmp_path / "c.lab.json"))
    assert document(loaded)["facts"] == doc["facts"] and str(loaded) == str(c)
    assert loaded.annotate().total == c.annotate().total
