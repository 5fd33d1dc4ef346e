"""What each memory budget saves for the backward: bars, a sentence and a table, with a slider.

Python draws all cuts.  The page and the standalone picture show one at a time (`data-steps`, see
`markup.py`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from inductor_lab.compiler.autograd.graphs import Cut, Partition
from inductor_lab.compiler.base.display import bytes_text
from inductor_lab.notebook.language import say, translate
from inductor_lab.widgets.links import Links
from inductor_lab.widgets.markup import Tree, at_step, element, inside
from inductor_lab.widgets.shapes import BudgetView
from inductor_lab.widgets.svg import SUB, drawing, drawing_svg, width_of
from inductor_lab.widgets.views import Row, note_tree, row, table_view, tree_of, tree_view

NAMES, LONGEST, LINE = 104, 140, 22
"""Pixels: width of the budgets' names, of the longest bar, and the height of a row.  With the text
after the bars, most pictures fit into a quarter of a 1,400 px page."""
COLUMNS = ("value", ">size", "choice", "reason as compiled")


def budget_view(partition: Partition, scope: str, links: Links) -> BudgetView:
    """All cuts of a partition; the slider starts at the compiled one."""
    compiled = _nearest(partition)
    note = say(
        "Eager mode saves {eager} for the backward. "
        "Inputs are excluded (they stay in memory anyway).",
        eager=bytes_text(partition.bytes_if_all_saved),
    )
    said = (_sentence(cut, step, step == compiled) for step, cut in enumerate(partition.cuts))
    values = table_view("values", COLUMNS, _rows(partition, compiled, scope, links))
    shown = element(
        "div", {"class": "lab-budget-tree"}, note_tree(note), _bars(partition, compiled),
        element("p", {"class": "lab-budget-said", "role": "status"}, *said), tree_of(values),
    )  # fmt: skip
    budgets = [cut.memory_budget for cut in partition.cuts]
    return {"kind": "budget", "name": "budget", "tree": shown, "budgets": budgets, "at": compiled}


def budget_svg(partition: Partition) -> str:
    """The bars alone, with the compiled cut selected."""
    view = budget_view(partition, "", Links())
    whole = at_step(view["tree"], view["at"])
    (note, *_), (bars,) = inside(whole, "p"), inside(whole, "svg")
    return drawing_svg(tree_view(view["name"], element("div", {}, note, bars)))


def _bars(partition: Partition, compiled: int) -> Tree:
    """A bar of the saved bytes for each cut; the bar of the selected step is outlined."""
    most = max([partition.bytes_if_all_saved, *(cut.cut_bytes for cut in partition.cuts), 1])
    texts = [_saved_and_recomputed(cut) for cut in partition.cuts]
    texts[compiled] += f"   {say('as compiled')}"
    lengths = [max(LONGEST * cut.cut_bytes / most, 2) for cut in partition.cuts]
    ends = [bar + SUB * width_of(text) for bar, text in zip(lengths, texts, strict=True)]
    size = {"width": NAMES + 8 + math.ceil(max(ends)), "height": len(texts) * LINE + 2}
    row_of, body = {"x": 0, "width": size["width"], "height": LINE}, []
    for step, (cut, text, length) in enumerate(zip(partition.cuts, texts, lengths, strict=True)):
        y = step * LINE + 2
        place = {"x": NAMES, "y": y, "width": f"{length:.1f}", "height": LINE - 5, "rx": 2}
        around = {**place, "class": "chosen", "data-steps": step}
        name = say("budget {b}", b=_budget_text(cut))
        body.append(element(
            "g", {"data-step": step}, element("title", {}, f"{name}: {text}"),
            element("rect", {**row_of, "y": y, "fill": "none", "pointer-events": "all"}),
            element("text", {"x": 2, "y": y + 13}, name),
            element("rect", {**place, "class": "other" if step == compiled else "bar"}),
            element("rect", around),
            element("text", {"class": "sub", "x": f"{NAMES + 8 + length:.1f}", "y": y + 13}, text),
        ))  # fmt: skip
    shown = element("svg", {**drawing(say("memory budgets")), **size}, *body)
    return element("div", {"class": "lab-budget-bars"}, shown)


def _sentence(cut: Cut, step: int, is_compiled: bool) -> Tree:
    kept = say("{bytes} saved", bytes=bytes_text(cut.cut_bytes))
    return element(
        "span", {"data-steps": step}, element("b", {}, f"memory_budget {_budget_text(cut)}"),
        f"  {kept}, {_recomputed(cut)}",
        element("span", {"class": "lab-soft"}, f"  {say('as compiled')}") if is_compiled else None,
    )  # fmt: skip


def _saved_and_recomputed(cut: Cut) -> str:
    return f"{bytes_text(cut.cut_bytes)}, {_recomputed(cut)}"


def _recomputed(cut: Cut) -> str:
    text = "{n} op recomputed ({flop} flop)" if cut.recomputed == 1 else (
        "{n} ops recomputed ({flop} flop)")  # fmt: skip
    return say(text, n=cut.recomputed, flop=f"{cut.flops:,}")


def _budget_text(cut: Cut) -> str:
    """A budget that selects this cut, rounded up to four digits."""
    return f"{math.ceil(cut.memory_budget * 10_000) / 10_000:g}"


def _rows(partition: Partition, compiled: int, scope: str, links: Links) -> Iterator[Row]:
    """A row for each value that the compiled cut or the selected cut saves, with its choice."""
    decisions = {decision.node: decision for decision in partition.decisions}
    inputs = {value.name for value in partition.saved if value.is_input}
    keeping: dict[str, list[int]] = {}
    for step, cut in enumerate(partition.cuts):
        for name in cut.saved:
            keeping.setdefault(name, []).append(step)
    for name in (each for each in keeping if each in decisions):
        keep = keeping[name]
        others = [step for step in range(len(partition.cuts)) if step not in keep]
        label, things = links.label("node", scope, name), links.find("node", scope, [name])
        size = say("input") if name in inputs else bytes_text(decisions[name].nbytes)
        reasons = "; ".join(map(translate, decisions[name].reasons))
        fates = [("saved", "", keep), ("recomputed", "no", others)]
        for here, mark, steps in fates if compiled in keep else [("also saved", "warn", keep)]:
            if steps:
                yield row((label, size, say(here), reasons), things, mark=mark, steps=steps)


def _nearest(partition: Partition) -> int:
    """The compiled cut: of those that fit into the budget, the one that saves most."""
    budgets = [cut.memory_budget for cut in partition.cuts]
    fits = [n for n, budget in enumerate(budgets) if budget <= partition.memory_budget]
    return fits[0] if fits else len(budgets) - 1
