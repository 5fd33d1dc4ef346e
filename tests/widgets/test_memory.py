from __future__ import annotations

import pytest
import torch

import inductor_lab as lab
from inductor_lab.widgets.memory import budget_view, live_bytes, memory_views
from inductor_lab.widgets.model import linked_document


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
    now = {view["values"][i][0] for i in view["cuts"][view["at"]]["saved"]}
    saved = {links.label("node", "g0.joint", value.name) for value in partition.saved}
    assert view["at"] == 0 and now == saved
    assert all(things for _, _, _, things in view["values"])


def test_lanes_after_planning_share_storage_and_lower_the_peak(trained):
    links = linked_document(trained)[1]
    schedule = trained.graphs[0].backward.schedule
    after, before = memory_views(schedule, "g0.backward", links)
    assert max(before["live"]) == schedule.memory.peak_before
    assert max(after["live"]) <= max(before["live"])
    assert len(before["lanes"]) == len(schedule.memory.lifetimes)
    assert len(after["lanes"]) == len(before["lanes"]) - len(schedule.memory.reuse)
    bars = [bar["name"] for lane in after["lanes"] for bar in lane["bars"]]
    assert sorted(bars) == sorted(life.buffer for life in schedule.memory.lifetimes)


def test_live_bytes_count_shared_storage_once():
    from inductor_lab.schedule.result import Lifetime

    a, b, c = Lifetime("a", 8, 0, 1), Lifetime("b", 8, 2, 3), Lifetime("c", 4, 1, 4)
    assert live_bytes([[a, b], [c]], 4) == [8, 12, 12, 12]
    assert live_bytes([[a], [b], [c]], 4) == [8, 12, 12, 12]
    assert live_bytes([[a], [c]], 4) == [8, 12, 4, 4]
