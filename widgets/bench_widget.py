"""The result of a benchmark as a widget: programs read and set what it shows.

    view      "contenders" or "kernels"; "sizes" of a sweep, "programs" of `four_experiments`
    selected  a row of a table: {"contender": "eager"}, {"kernel": "cpp_fused_sin_0"},
              {"size": 1024}, {"program": "sin", "contender": "inductor"}; {} for none
    value     the data of the result (docs/json.md)
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import anywidget
import traitlets

from inductor_lab.bench.bench_result import BenchResult, Experiments, Measured, SweepResult
from inductor_lab.notebook.language import say
from inductor_lab.widgets.bench import chart, head, markdown, roofline
from inductor_lab.widgets.markup import Tree, element, said_heads, table
from inductor_lab.widgets.page import bench_style, choice_widget_script
from inductor_lab.widgets.places import WrongTrait, known

Selection = dict[str, Any]


class BenchmarkWidget(anywidget.AnyWidget):
    """A benchmark result: one view at a time, with rows that can be selected."""

    _esm = choice_widget_script()
    _css = bench_style()
    tree: traitlets.List[Any] = traitlets.List().tag(sync=True)
    selected = traitlets.Dict().tag(sync=True)
    view = traitlets.Unicode().tag(sync=True)
    value = traitlets.Dict(read_only=True).tag(sync=True)

    def __init__(self, result: Measured) -> None:
        self._result, self._rows = result, rows_by_view(result)
        super().__init__(view=next(iter(self._rows)))
        self.set_trait("value", result.to_dict())

    @traitlets.validate("view")
    def _known_view(self, proposal: Any) -> str:
        return known("view", proposal["value"], self._rows)

    @traitlets.validate("selected")
    def _known_selection(self, proposal: Any) -> Selection:
        wanted: Selection = proposal["value"]
        rows = [row for found in self._rows.values() for row in found]
        if wanted and wanted not in rows:
            valid = ", ".join(map(str, rows))
            raise WrongTrait(f"the result has no {wanted}", todo=f"Valid selections: {valid}")
        return wanted

    @traitlets.observe("selected")
    def _show_selected(self, change: Any) -> None:
        if change["new"]:
            self.view = next(v for v, rows in self._rows.items() if change["new"] in rows)
        self._draw()

    @traitlets.observe("view")
    def _show_view(self, change: Any) -> None:
        self._draw()

    def _draw(self) -> None:
        self.tree = tree(self._result, self._rows, self.view, self.selected)


def rows_by_view(result: Measured) -> dict[str, list[Selection]]:
    """The views, and what each row of its table selects."""
    tables = result.tables
    match result:
        case SweepResult():
            return {"sizes": [{"size": size} for size in result.sizes[: len(tables[0].rows)]]}
        case Experiments():
            return {"programs": [{"program": row[0], "contender": row[1]}
                                 for row in tables[0].rows]}  # fmt: skip
        case BenchResult():
            found: dict[str, list[Selection]] = {
                "contenders": [{"contender": each.name} for each in result.contenders]
            }
            if len(tables) > 1:  # the last row may be a sum: it has no number
                found["kernels"] = [{"kernel": row[1]} if row[0] else {} for row in tables[1].rows]
            return found
    raise TypeError(f"no rows of a {type(result).__name__}")


def tree(
    result: Measured, rows: dict[str, list[Selection]], view: str, selected: Selection
) -> Tree:
    """One view of a result, with buttons for the others."""
    shown = result.tables[list(rows).index(view)]
    buttons = (
        element("button", {"type": "button", "data-view": name,
                           "aria-pressed": "true" if name == view else "false"}, say(name))
        for name in rows
    )  # fmt: skip
    drawn = table(said_heads(shown.columns), shown.rows)
    mark_rows(drawn[3][2:], rows[view], selected)
    return element(
        "div", {"class": "lab-bench"},
        *head(result),
        element("div", {"class": "lab-steps"}, *buttons) if len(rows) > 1 else None,
        roofline(result) if view == "kernels" else chart(result),
        element("div", {"class": "lab-table"}, drawn) if shown.rows else None,
        markdown(result),
    )  # fmt: skip


def mark_rows(drawn: Iterable[Tree], rows: Iterable[Selection], selected: Selection) -> None:
    """What a click on each row selects: its selection, or nothing if it is selected."""
    for row, choice in zip(drawn, rows, strict=True):
        if choice:
            chosen = choice == selected
            row[1] |= {"data-select": json.dumps({} if chosen else choice), "tabindex": "0",
                       "aria-current": "true" if chosen else "false"}  # fmt: skip
