"""inductor_lab and stock on one call: a table of the user's lines, with the code of both."""

from __future__ import annotations

from collections.abc import Iterable

from inductor_lab.notebook.language import say, translate
from inductor_lab.stock.compare import LineWork, SideBySide, Work, total_text, work_text
from inductor_lab.widgets.markup import Tree, element, said_heads, table, written
from inductor_lab.widgets.page import bench_style

_STYLE = """
.lab-side td{vertical-align:top}
.lab-side td div,.lab-side pre{font:11.5px/1.5 var(--mono);white-space:pre-wrap;margin:0}
.lab-side pre{color:var(--fg);background:var(--bg);max-width:46vw;overflow:auto;white-space:pre}
"""


def side_by_side_html(both: SideBySide) -> str:
    """HTML for a cell's output."""
    grid = table(said_heads(("line", "inductor_lab", "stock")), ([""] * 3 for _ in both.lines))
    for drawn, found in zip(grid[3][2:], both.lines, strict=True):
        code, stock = both.code(found.line, found.file)
        drawn[2][2:] = [_line(found)]
        drawn[3][2:] = _side(found.ours, code)
        drawn[4][2:] = _side(found.stock, stock)
    head = element(
        "div", {},
        element("h1", {}, both.name),
        element("p", {}, f"inductor_lab: {translate(total_text(both.ours))}"),
        element("p", {}, f"{say('stock')}: {translate(total_text(both.stock))}"),
    )  # fmt: skip
    body = written(head) + written(element("div", {"class": "lab-table"}, grid))
    style = f"<style>{bench_style()}{_STYLE}</style>"
    return f'{style}<div class="lab-bench lab-side">{body}</div>'


def _line(found: LineWork) -> Tree:
    return element("div", {"title": f"{found.file}:{found.line}"}, f"{found.line}  {found.code}")


def _side(works: Iterable[Work], code: str) -> list[Tree]:
    shown = [element("div", {}, work_text(work)) for work in works]
    if any(work.generated for work in works):
        summary = element("summary", {}, say("code"))
        shown.append(element("details", {}, summary, element("pre", {}, code)))
    return shown
