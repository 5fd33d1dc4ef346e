"""The profile of a call: a table with bars, and a timeline of one call."""

from __future__ import annotations

from collections.abc import Iterator

from inductor_lab.compiler.base.display import bytes_text
from inductor_lab.compiler.step_time import duration
from inductor_lab.debug.profile import HOST, Profile, Row, shortened
from inductor_lab.notebook.language import say
from inductor_lab.widgets.markup import Tree, element, said_heads, table, written
from inductor_lab.widgets.page import bench_style
from inductor_lab.widgets.svg import drawing_svg
from inductor_lab.widgets.time import timeline_view

COLUMNS = ("kernel or library", "part", ">share", ">time", ">calls", ">moves", ">GB/s", ">GFLOP/s",
           ">of the roof", "lines")  # fmt: skip
ROOF = COLUMNS.index(">of the roof")
MOST_LINES = 3
BAR = 44
_STYLE = """
.lab-profile span.bar{display:inline-block;height:9px;background:var(--bar);margin-right:6px}
.lab-profile table{width:100%;table-layout:auto}
.lab-profile .lab-table td,.lab-profile .lab-table th{padding:3px 4px}
.lab-profile .lab-table td:first-child{min-width:11em}
.lab-profile .lab-table td:nth-child(2){white-space:nowrap}
.lab-profile .lab-table td:last-child{width:35%;min-width:10em}
.lab-profile td div{
  width:0;min-width:100%;overflow-wrap:anywhere;overflow:hidden;
  display:-webkit-box;-webkit-box-orient:vertical;-webkit-line-clamp:2;
  font-family:var(--mono);font-size:11.5px
}
"""


def profile_html(found: Profile) -> str:
    """HTML for a cell's output."""
    timeline = profile_svg(found) if found.events else ""
    return (
        f"<style>{bench_style()}{_STYLE}</style>"
        f'<div class="lab-bench lab-profile">{written(_head(found))}{written(_table(found))}'
        f"{timeline}</div>"
    )


def profile_svg(found: Profile) -> str:
    """The kernels of one call over time, without the Python code before and after them."""
    note = "From the start of the first kernel to the end of the last."
    return drawing_svg(timeline_view(found.name, found.events, note=note))


def _head(found: Profile) -> Tree:
    parts = (
        (found.kernel_seconds, "in generated kernels"),
        (found.library_seconds, "in libraries"),
        (found.host_seconds, HOST),
    )
    comma = say(", ")
    shares = comma.join(f"{100 * found.share(took):.1f} % {say(where)}" for took, where in parts)
    cost = "timer overhead {cost:+.1f} %" if found.clock_cost >= 0 else (
        "timer overhead is below the noise of this machine")  # fmt: skip
    plain = say(
        "{time} per call without timers ({cost}), {n} calls each",
        time=duration(found.plain_seconds), n=found.steps,
        cost=say(cost, cost=100 * found.clock_cost),
    )  # fmt: skip
    title = say("{name}: {time} per call", name=found.name, time=duration(found.call_seconds))
    return element(
        "div", {},
        element("h1", {}, title),
        element("p", {}, shares),
        element("p", {"class": "lab-machine"}, plain),
    )  # fmt: skip


def _table(found: Profile) -> Tree:
    rows = [_cells(row, found) for row in found.rows]
    host = found.host_seconds
    rows.append((say(HOST), "", "", duration(host), "", "", "", "", "", ""))
    columns: tuple[str, ...] = COLUMNS
    if all(row.of_roof is None for row in found.rows):  # for example, the machine is too noisy
        columns = (*COLUMNS[:ROOF], *COLUMNS[ROOF + 1 :])
        rows = [(*cells[:ROOF], *cells[ROOF + 1 :]) for cells in rows]
    grid = table(said_heads(columns), rows)
    shares = [*(found.share(row.seconds) for row in found.rows), found.share(host)]
    lines = [*(row.lines for row in found.rows), ()]
    for drawn, share, source in zip(grid[3][2:], shares, lines, strict=True):
        width = f"width:{max(share, 0) * BAR:.0f}px"
        drawn[4][2:] = [element("span", {"class": "bar", "style": width}), f"{100 * share:.2f} %"]
        drawn[-1][2:] = list(_lines(source))
    return element("div", {"class": "lab-table"}, grid)


def _cells(row: Row, found: Profile) -> tuple[str, ...]:
    roof = "" if row.of_roof is None else f"{100 * row.of_roof:.0f} %"
    return (
        row.name, row.part, "", duration(row.seconds), str(row.calls), bytes_text(row.nbytes),
        f"{row.bandwidth / 1e9:.3g}", f"{row.flop_rate / 1e9:.3g}", roof, "",
    )  # fmt: skip


def _lines(source: tuple[str, ...]) -> Iterator[Tree]:
    for line in source[:MOST_LINES]:
        yield element("div", {"title": line}, shortened(line))
    if len(source) > MOST_LINES:
        yield element("div", {}, say("and {n} more", n=len(source) - MOST_LINES))
