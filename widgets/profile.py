"""Where the time of a call goes: a table with bars, and a timeline of one call."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath

from inductor_lab.bench.roofline import duration
from inductor_lab.debug.profile import HOST, Profile, Row
from inductor_lab.display import bytes_text
from inductor_lab.widgets.diagrams import timeline_svg
from inductor_lab.widgets.markup import Tree, element, table, written
from inductor_lab.widgets.page import bench_style
from inductor_lab.widgets.time import timeline_view

COLUMNS = ("kernel or library", "part", ">share", ">time", ">calls", ">moves", ">GB/s", ">GFLOP/s",
           ">of the roof", "lines")  # fmt: skip
MOST_LINES = 3
LONGEST = 70
BAR = 90
_STYLE = """
.lab-profile .bar{display:inline-block;height:9px;background:var(--bar);margin-right:6px}
.lab-profile td div{white-space:nowrap;font-family:var(--mono);font-size:11.5px}
"""


def profile_html(found: Profile) -> str:
    """The page for a notebook's cell."""
    timeline = timeline_svg(timeline_view(found.name, found.events)) if found.events else ""
    return (
        f"<style>{bench_style()}{_STYLE}</style>"
        f'<div class="lab-bench lab-profile">{written(_head(found))}{written(_table(found))}'
        f"{timeline}</div>"
    )


def _head(found: Profile) -> Tree:
    parts = (
        (found.kernel_seconds, "in generated kernels"),
        (found.library_seconds, "in libraries"),
        (found.host_seconds, HOST),
    )
    shares = ", ".join(f"{100 * found.share(took):.1f} % {where}" for took, where in parts)
    cost = f"clocks cost {100 * found.clock_cost:+.1f} %"
    plain = f"{duration(found.plain_seconds)} without clocks ({cost}), {found.steps} calls of each"
    return element(
        "div", {},
        element("h1", {}, f"{found.name}: {duration(found.call_seconds)} a call"),
        element("p", {}, shares),
        element("p", {"class": "lab-machine"}, plain),
    )  # fmt: skip


def _table(found: Profile) -> Tree:
    rows = [_cells(row, found) for row in found.rows]
    host = found.host_seconds
    rows.append((HOST, "", "", duration(host), "", "", "", "", "", ""))
    grid = table(COLUMNS, rows)
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


def shortened(line: str) -> str:
    """`/long/path/m.py:3  y = x.sin()` → `m.py:3  y = x.sin()`, cut where it is long."""
    place, _, code = line.partition("  ")
    shown = f"{PurePath(place).name}  {code}"
    return shown if len(shown) <= LONGEST else f"{shown[: LONGEST - 1]}…"


def _lines(source: tuple[str, ...]) -> Iterator[Tree]:
    for line in source[:MOST_LINES]:
        yield element("div", {"title": line}, shortened(line))
    if len(source) > MOST_LINES:
        yield element("div", {}, f"and {len(source) - MOST_LINES} more")
