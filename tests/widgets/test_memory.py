from __future__ import annotations

import pytest
import torch

import inductor_lab as lab
from inductor_lab.compiler.base.display import bytes_text
from inductor_lab.compiler.schedule.memory import live_bytes
from inductor_lab.compiler.schedule.schedule import Lifetime
from inductor_lab.widgets.budget import budget_svg, budget_view
from inductor_lab.widgets.markup import at_step, inside, text_of
from inductor_lab.widgets.memory import memory_views
from inductor_lab.widgets.model import linked_document
from inductor_lab.widgets.svg import SUB, width_of
from tests.widgets.reading import parts, rows


def layered(x, w):
    h = torch.exp(torch.sin(x)).tanh()
    return (torch.softmax(h @ w, -1).sigmoid() @ w).relu()


@pytest.fixture(scope="module")
def trained():
    given = (torch.randn(32, 16, requires_grad=True), torch.randn(16, 16, requires_grad=True))
    return lab.inspect(layered, *given)


def test_cuts_keep_ever_less_and_run_ever_more_again(trained):
    cuts = trained.graphs[0].partition.cuts
    kept = [cut.cut_bytes for cut in cuts]
    assert len(cuts) >= 3 and kept == sorted(kept, reverse=True)
    assert cuts[0].memory_budget == 1.0 and kept[-1] == trained.graphs[0].partition.bytes_if_min
    assert cuts[0].recomputed == len(trained.graphs[0].partition.recomputed)
    assert cuts[0].flops == sum(r.flops for r in trained.graphs[0].partition.recomputed)
    assert cuts[-1].flops > cuts[0].flops


def test_a_cuts_budget_compiles_that_cut(trained):
    cuts = trained.graphs[0].partition.cuts
    cut = cuts[-2]
    other = trained.what_if(memory_budget=cut.memory_budget)
    assert other.graphs[0].partition.cut_bytes == cut.cut_bytes
    torch.testing.assert_close(other.result, trained.result)
    links = linked_document(other)[1]
    assert budget_view(other.graphs[0].partition, "g0.joint", links)["at"] == len(cuts) - 2


def test_the_slider_starts_at_what_was_compiled(trained):
    partition, links = trained.graphs[0].partition, linked_document(trained)[1]
    view = budget_view(partition, "g0.joint", links)
    values = rows({"tree": at_step(view["tree"], view["at"])})
    saved = {links.label("node", "g0.joint", value.name) for value in partition.saved}
    assert view["at"] == 0 and {row["cells"][0] for row in values} == saved
    assert all(row["things"] and row["cells"][2] == "saved" for row in values)


def test_each_step_of_the_slider_shows_its_cut(trained):
    partition, links = trained.graphs[0].partition, linked_document(trained)[1]
    view = budget_view(partition, "g0.joint", links)
    assert view["budgets"] == [cut.memory_budget for cut in partition.cuts]
    for step, cut in enumerate(partition.cuts):
        tree = at_step(view["tree"], step)
        kept = [row["cells"][0] for row in rows({"tree": tree}) 
                if row["cells"][2] != "recomputed"]
        assert sorted(kept) == sorted(links.label("node", "g0.joint", name) for name in cut.saved)
        said = text_of(list(inside(tree, "p"))[1])
        assert bytes_text(cut.cut_bytes) in said and f"({cut.flops:,} flop)" in said
        assert ("as compiled" in said) == (step == view["at"])


def test_the_picture_that_stands_alone_is_the_drawing_of_the_compiled_step(trained):
    partition = trained.graphs[0].partition
    shown = budget_svg(partition)
    assert shown.count('class="bar"') + shown.count('class="other"') == len(partition.cuts)
    assert shown.count('class="chosen"') == 1 and "data-step" not in shown


def test_lanes_after_planning_share_storage_and_lower_the_peak(trained):
    links = linked_document(trained)[1]
    schedule = trained.graphs[0].backward.schedule
    after, before = memory_views(schedule, "g0.backward", links)
    peak = bytes_text(schedule.memory.peak_before)
    assert f"peak {peak}" in text_of(before["tree"])
    places = [[bar[3][1]["y"] for bar in parts(view, "lab-lane")] for view in (before, after)]
    assert len(set(places[0])) == len(schedule.memory.lifetimes)
    assert len(set(places[1])) == len(set(places[0])) - len(schedule.memory.reuse)
    for view in (before, after):
        bars = [bar[1]["data-buffer"] for bar in parts(view, "lab-lane")]
        assert sorted(bars) == sorted(life.buffer for life in schedule.memory.lifetimes)


def test_live_bytes_count_shared_storage_once_and_an_inputs_not_at_all():
    a, b, c = Lifetime("a", 8, 0, 1), Lifetime("b", 8, 3, 3), Lifetime("c", 4, 1, 4)
    assert live_bytes([a, c, b], 4, {"b": "a"}) == [8, 12, 12, 12]
    assert live_bytes([a, c, b], 4, {}) == [8, 12, 4, 12]
    assert live_bytes([a, c, b], 4, {"c": "x"}) == [8, 8, 0, 8]


def writes_its_inputs(x, y):
    x.mul_(2).sin_()
    y.add_(x.sum())
    return x.exp() @ x.t()


WRITING = {
    "one input": (lambda x: x.add_(1), (torch.ones(100),)),
    "two inputs": (writes_its_inputs, (torch.ones(20, 30), torch.ones(20, 30))),
    "none": (lambda x: (x @ x).relu() @ x, (torch.ones(16, 16),)),
}


@pytest.mark.parametrize("name", WRITING)
def test_the_curve_has_the_peak_that_the_text_has(name):
    """Where a buffer is made in an input's storage, it is alive anyway and counts for nothing."""
    c = lab.inspect(*[WRITING[name][0], *WRITING[name][1]])
    schedule = c.graphs[0].forward.schedule
    plan = schedule.memory
    views = memory_views(schedule, "g0.forward", linked_document(c)[1])
    for view, peak in zip(views, (plan.peak_after, plan.peak_before), strict=True):
        (area,) = (path for path in inside(view["tree"], "path"))
        said = [text_of(text) for text in inside(view["tree"], "text")]
        assert f"peak {bytes_text(peak)}" in said
        assert ("16.0L" in area[1]["d"]) == (peak > 0), "the highest point is drawn highest"
    assert f"reuse -> {bytes_text(plan.peak_after)}" in text_of(views[0]["tree"])
    inputs = set(plan.reuse.values()) - {life.buffer for life in plan.lifetimes}
    assert text_of(views[0]["tree"]).count("of an input, not counted") == len(inputs)
    assert "not counted" not in text_of(views[1]["tree"])
    assert bool(inputs) == (name != "none")


def test_labels_have_room(trained):
    """Of many buffers that take one storage, and of inputs with long names."""

    def long(the_first_input_of_all_with_a_name_that_goes_on_and_on, w):
        x = the_first_input_of_all_with_a_name_that_goes_on_and_on
        x.add_(1)
        for _ in range(12):
            w = (w @ w).relu()
        return w

    c = lab.inspect(long, torch.ones(4), torch.ones(8, 8))
    (view, _) = memory_views(c.graphs[0].forward.schedule, "g0.forward", linked_document(c)[1])
    (svg,) = inside(view["tree"], "svg")
    labels = [child for child in svg[2:] if child[0] == "text"]
    for label in labels:
        x, text = float(label[1]["x"]), text_of(label[2])
        if label[1].get("text-anchor") != "middle":
            assert x + SUB * width_of(text) <= float(svg[1]["width"]), text
    (name,) = (label for label in labels if text_of(label[2]).startswith("the_first"))
    assert "…" in name[2] and text_of(name[3]).endswith("_name_that_goes_on_and_on")
    bars = [float(bar[3][1]["x"]) for bar in parts(view, "lab-lane")]
    assert 4 + width_of(name[2]) < min(bars)
