from __future__ import annotations

import pytest
import torch

import inductor_lab as lab
from inductor_lab.display import bytes_text
from inductor_lab.widgets.budget import budget_svg, budget_view
from inductor_lab.widgets.markup import at_step, inside, text_of
from inductor_lab.widgets.memory import live_bytes, memory_views
from inductor_lab.widgets.model import linked_document
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
    assert all(row["things"] and row["cells"][2] == "kept" for row in values)


def test_each_step_of_the_slider_shows_its_cut(trained):
    partition, links = trained.graphs[0].partition, linked_document(trained)[1]
    view = budget_view(partition, "g0.joint", links)
    assert view["budgets"] == [cut.memory_budget for cut in partition.cuts]
    for step, cut in enumerate(partition.cuts):
        tree = at_step(view["tree"], step)
        kept = [row["cells"][0] for row in rows({"tree": tree}) 
                if row["cells"][2] != "run again instead"]
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


def test_live_bytes_count_shared_storage_once():
    from inductor_lab.schedule.result import Lifetime

    a, b, c = Lifetime("a", 8, 0, 1), Lifetime("b", 8, 2, 3), Lifetime("c", 4, 1, 4)
    assert live_bytes([[a, b], [c]], 4) == [8, 12, 12, 12]
    assert live_bytes([[a], [b], [c]], 4) == [8, 12, 12, 12]
    assert live_bytes([[a], [c]], 4) == [8, 12, 4, 4]
