"""The pages of `lab.diff` and `lab.advise`: without a script, escaped, in two languages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import pytest
import torch

import inductor_lab as lab
from inductor_lab.debug.advice.advise import Advice, Verified
from inductor_lab.debug.diff.rank_diff import RankChange, RankDiff
from inductor_lab.debug.diff.run_diff import Change, RunDiff
from inductor_lab.widgets.markup import inside, text_of
from inductor_lab.widgets.run_diff import MOST_CHANGES
from inductor_lab.widgets.text_diff import diff_tree, sides_tree
from tests.saved.schemas import valid

DIFF = "--- a.py\n+++ a.py\n@@ -1,3 +1,3 @@\n def f(x):\n--- x < 1\n+    return x"
EDIT = Verified(("dynamic=True", "mark"), ("sizes are dynamic", "the size is marked"), DIFF, 1, 2)
ADVICE = Advice("loop", 8, 7, {"step": 20}, (EDIT, replace(EDIT, compiles=2)), 5, 7)
LINES = ("--- old", "+++ new", "@@ -1 +1 @@", " same", "-a < b", "-c", "+d", "@@ -9 +9 @@", "+e")
CHANGE = Change("f 0/0", "g 0/0", "captured graph", LINES, ("forward kernels",), ("guards",))
RUNS = RunDiff("before", "after", (CHANGE, CHANGE), 3, ("h 0/1",), (), ("2.12", "2.13"), (1, 2))

IDS = ("compile ids are out of step from compile 1: rank0 compiles f as 0/0; "
       "rank2 compiles g as 0/0")  # fmt: skip
COLLECTIVE = ("collective 2 differs, so the ranks can deadlock: rank0 starts none; "
              "rank2 starts all_reduce(f32[4], 'sum', '0')")  # fmt: skip
RANKS = RankDiff("log", ("rank0", "rank1"), (RankChange(("rank2",), IDS, COLLECTIVE, RUNS),))


@pytest.fixture
def chinese() -> Iterator[None]:
    lab.language("zh")
    yield
    lab.language("en")


def words(html: str | None) -> str:
    assert html is not None and "<script" not in html
    assert "prefers-color-scheme" in html and 'data-jp-theme-light="false"' in html
    return re.sub(r"<[^>]+>", " ", html.rpartition("</style>")[2])


def test_lines_that_differ_are_side_by_side() -> None:
    table = sides_tree(LINES[2:], ("old", "new"))
    rows = [[text_of(cell) for cell in row[2:]] for row in inside(table, "tr")]
    assert rows == [["old", "new"], ["  same", "  same"], ["- a < b", "+ d"], ["- c", ""], ["⋯"],
                    ["", "+ e"]]  # fmt: skip
    marks = [cell[1].get("class") for row in inside(table, "tr") for cell in row[2:]]
    assert marks.count("lab-old") == marks.count("lab-new") == 2


def test_only_the_first_lines_of_a_diff_name_files() -> None:
    spans = inside(diff_tree(DIFF), "span")
    marked = {text_of(span): span[1].get("class") for span in spans}
    assert marked["--- a.py"] is None and marked["--- x < 1"] == "lab-old"
    assert marked["+    return x"] == "lab-new"


def test_the_page_of_a_difference() -> None:
    html = RUNS._repr_html_()
    said = words(html)
    assert "2 of 5 compiles differ" in said and "only in before: h 0/1" in said
    assert "torch 2.12 → 2.13" in said and "1.00 s → 2.00 s" in said
    assert "f 0/0 → g 0/0: the first stage that differs is the captured graph" in said
    assert "a &lt; b" in said and "Later stages that differ too: forward kernels." in said
    assert "Only one run reports: guards." in said
    assert html is not None and html.count('<details open="">') == 1 and "<details>" in html


def test_a_long_difference_is_cut_and_counted() -> None:
    many = replace(CHANGE, lines=(*LINES, *(f"+{n}" for n in range(100))))
    said = words(replace(RUNS, changes=(many,) * (MOST_CHANGES + 7))._repr_html_())
    assert "67 more lines" in said and "7 more" in said


def test_equal_runs_and_runs_with_other_compiles() -> None:
    equal = replace(RUNS, changes=(), only_old=())
    assert "The runs are equal in every stage." in words(equal._repr_html_())
    alone = words(replace(RUNS, changes=())._repr_html_())
    assert "Only one run has some of the compiles." in alone


def test_ranks_that_differ(request: pytest.FixtureRequest) -> None:
    valid(RANKS.to_dict(), keep=request.config.getoption("--update-golden"))
    said = words(RANKS._repr_html_())
    assert "rank2: not equal to rank0, rank1" in said and "2 of 5 compiles differ" in said
    assert IDS in said and "collective 2 differs" in said
    assert "The 2 ranks are equal." in words(replace(RANKS, changes=())._repr_html_())


def test_two_compilations_of_stock_differ_in_a_cell() -> None:
    x = torch.ones(8)
    first, second = (lab.inspect(f, x, compiler="stock")
                     for f in (lambda x: x.sin() + 1, lambda x: x.cos() + 1))  # fmt: skip
    said = words(lab.diff(first, second)._repr_html_())
    assert "the first stage that differs is the captured graph" in said
    assert re.search(r"- %1 = [^-+]*sin.*\+ %1 = [^-+]*cos", said, re.DOTALL)


def test_the_page_of_advice() -> None:
    html = ADVICE._repr_html_()
    said = words(html)
    assert "compiles: 8, recompiles: 7; with the best edit: 1" in said
    assert "dynamic=True, mark: 8 → 1" in said and "dynamic=True, mark: 8 → 2" in said
    assert "sizes are dynamic. the size is marked." in said and "x &lt; 1" in said
    assert "The program ran 7 times" in said and "step × 20" in said
    assert html is not None and html.count('<details open="">') == 1


@pytest.mark.parametrize("advice, says", [
    (replace(ADVICE, edits=()), "compiles: 8, recompiles: 7: no edit reduces them"),
    (replace(ADVICE, edits=(), recompiles=0), "there is nothing to improve"),
    (replace(ADVICE, edits=(), refused="it <writes> a file"), "No edit was tried: it &lt;writes"),
])  # fmt: skip
def test_advice_without_an_edit_says_why(advice: Advice, says: str) -> None:
    assert says in words(advice._repr_html_())
    assert ("The program ran" in words(advice._repr_html_())) is not bool(advice.refused)


def test_the_pages_in_chinese(chinese: None) -> None:
    said = words(RUNS._repr_html_())
    assert "5 次编译中有 2 次不同" in said and "第一个不同的阶段是捕获的图" in said
    assert "前向 kernel" in said
    assert "采用最好的修改：1 次" in words(ADVICE._repr_html_())
    said = words(RANKS._repr_html_())
    assert "从第 1 次编译起，编译编号不一致：rank0 把 f 编译为 0/0；rank2 把 g 编译为 0/0" in said
    assert "各 rank 可能死锁：rank0 发起 none" in said
