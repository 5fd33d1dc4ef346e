"""The pane of stock's schedule says why pairs were not fused, as `c.why_not_fused()` does."""

from __future__ import annotations

import pytest
import torch

import inductor_lab as lab
from inductor_lab.widgets import stock_fusion
from inductor_lab.widgets.markup import text_of
from inductor_lab.widgets.model import document
from inductor_lab.widgets.views import tree_of
from tests.widgets.reading import rows, tables


def view(compilation, name="why not fused", pane="g0.forward.schedule"):
    return next(v for v in document(compilation)["panes"][pane]["views"] if v["name"] == name)


def test_the_view_has_the_pairs_rules_and_reasons_of_the_answer(attended):
    listed = attended.why_not_fused(part="g0.forward", ours=False)
    shown = rows(view(attended))
    assert len(shown) == len(listed.pairs) > 2
    for row, pair in zip(shown, listed.pairs, strict=True):
        verdicts = pair.decision.verdicts
        assert row["cells"][1] == ", ".join(verdict.rule for verdict in verdicts)
        assert row["cells"][2] == "; ".join(verdict.reason for verdict in verdicts)
        assert len(row["things"]) == 2, "both nodes lead to their lines"
        meant = [["means", meaning] for meaning, _ in pair.meanings if meaning]
        assert [each for each in row["more"] if each[0] == "means"] == meant
        assert row["more"][-1][0] == "kernels"


def test_a_part_with_one_loop_nest_says_so():
    fused = lab.inspect(lambda x: x.sin() + 1, torch.ones(8), compiler="stock")
    assert "in one loop nest" in text_of(tree_of(view(fused)))


def test_a_large_part_names_the_method(attended, monkeypatch):
    monkeypatch.setattr(stock_fusion, "MOST_NODES", 2)
    shown = view(attended)
    assert not tables(shown) and "c.why_not_fused(a, b)" in text_of(tree_of(shown))


def test_the_view_in_chinese(attended):
    lab.language("zh")
    try:
        said = {each[0] for row in rows(view(attended)) for each in row["more"]}
    finally:
        lab.language("en")
    assert said <= {"含义", "如何融合", "kernel"}


@pytest.mark.parametrize("compiler", ["inductor_lab", "stock"])
def test_cuda_graphs_are_not_mentioned_on_a_cpu(compiler):
    c = lab.inspect(lambda x: x.sin() + 1, torch.ones(8), compiler=compiler)
    assert "CUDA graphs" not in [v["name"] for v in document(c)["panes"]["time"]["views"]]


@pytest.mark.parametrize(
    "mode, decision, reason",
    [("reduce-overhead", "replayed", ""), ("default", "not replayed", 'mode is "default"')],
)
def test_parts_for_a_gpu_say_whether_they_are_replayed(mode, decision, reason):
    pytest.importorskip("triton")
    options = {"mode": mode}
    c = lab.inspect(lambda x: x.sin() + 1, torch.ones(64), target="cuda:90", options=options)
    (row,) = rows(view(c, "CUDA graphs", "time"))
    assert row["cells"][:2] == ["g0.forward", decision] and row["cells"][2].startswith(reason)


def test_parts_of_stock_on_a_gpu_have_the_reasons_of_its_log(attended, monkeypatch):
    monkeypatch.setattr("inductor_lab.widgets.replayed.is_on_gpu", lambda part: True)
    shown = rows(view(attended, "CUDA graphs", "time"))
    assert [row["cells"][0] for row in shown] == ["g0.forward", "g0.backward"]
    assert all('mode="reduce-overhead"' in row["cells"][2] for row in shown)
