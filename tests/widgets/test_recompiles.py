"""The timeline of a block: rows, calls, reasons; while it runs, and afterwards."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import inductor_lab as lab
from inductor_lab.debug.recompiles.watch_recompiles import Recompiles
from inductor_lab.widgets import recompiles_live
from inductor_lab.widgets.function_name import function_name
from inductor_lab.widgets.markup import Tree
from inductor_lab.widgets.recompiles import BINS, recompiles_html, recompiles_tree


def shifted(x: torch.Tensor, scale: float) -> torch.Tensor:
    return x * scale


def watched(sizes: list[int], live: bool = False) -> Recompiles:
    torch.compiler.reset()
    fast = torch.compile(shifted, backend="eager")
    with lab.recompiles(live=live) as seen:
        for size in sizes:
            fast(torch.ones(size), 1.0)
    return seen


def below(tree: Tree | str, tag: str) -> list[Tree]:
    if isinstance(tree, str):
        return []
    inside = [found for child in tree[2:] for found in below(child, tag)]
    return [tree, *inside] if tree[0] == tag else inside


def texts(tree: Tree | str) -> str:
    return tree if isinstance(tree, str) else " ".join(map(texts, tree[2:]))


def test_each_version_has_a_row_with_its_calls_and_its_reason() -> None:
    seen = watched([4, 4, 5, 6, 1])
    tree = recompiles_tree(seen)
    bars = [texts(bar) for bar in below(tree, "rect")]
    ids = [each.compile_id for each in seen.compiled]
    assert bars == [
        f"{ids[0]} shifted: calls 1 to 2", f"{ids[0]} shifted was compiled at call 1",
        f"{ids[1]} shifted: calls 3 to 4", f"{ids[1]} shifted was compiled at call 3",
        f"{ids[2]} shifted: calls 5 to 5", f"{ids[2]} shifted was compiled at call 5",
    ]  # fmt: skip
    rows = [texts(row) for row in below(tree, "tr")[1:]]
    assert "x has size 5 in dimension 0; the code was compiled for 4" in rows[1]
    assert "x.size()[0] is 0 or 1; the code was compiled for sizes from 2" in rows[2]
    html = seen._repr_html_()
    assert html is not None and repr(seen) in html and "<script" not in html
    assert str(seen.plot("timeline")).startswith("<svg")


def test_many_calls_are_few_bars() -> None:
    seen = watched([4, *[5, 4] * BINS])
    tree = recompiles_tree(seen)
    assert len(below(tree, "rect")) < 8
    assert texts(tree).count("1,040 calls") == 1 and len(recompiles_html(seen)) < 30_000


def test_a_block_without_compilations_says_so() -> None:
    tree = recompiles_tree(watched([]))
    assert "Nothing was compiled" in texts(tree) and not below(tree, "svg")


def test_a_version_above_the_limit_has_a_row() -> None:
    with torch._dynamo.config.patch(recompile_limit=1):
        tree = recompiles_tree(watched([4, 5]))
    assert "not compiled" in texts(below(tree, "svg")[0]) and "eager mode" in texts(tree)


def test_code_after_a_graph_break_is_named_by_its_line() -> None:
    assert function_name("torch_dynamo_resume_in_f_at_12") == "f after line 12"
    assert function_name("forward") == "forward"


def test_the_timeline_is_drawn_while_the_block_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[Any] = []

    class Handle:
        update = staticmethod(shown.append)

    monkeypatch.setattr(recompiles_live, "display", lambda widget, display_id: Handle())
    monkeypatch.setattr(recompiles_live, "INTERVAL", 0.0)
    monkeypatch.setattr("inductor_lab.widgets.home.in_kernel", lambda: True)
    drawn: list[str] = []
    monkeypatch.setattr(
        recompiles_live, "recompiles_tree", lambda seen: [str(len(seen.calls)), {}]
    )
    monkeypatch.setattr(
        recompiles_live.RunningBenchmark, "close", lambda self: drawn.append(self.tree[0])
    )
    seen = watched([4, 4, 5, 6], live=True)
    assert int(drawn[0]) >= 1, "the picture followed the calls"
    assert shown[-1].data == recompiles_html(seen)
