"""What was compiled in a block, and which version served each call: a row for each version of a
function, calls from left to right."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from inductor_lab.compiler.step_time import duration
from inductor_lab.debug.recompiles.reasons import in_words
from inductor_lab.debug.recompiles.served import Call
from inductor_lab.debug.recompiles.watch_recompiles import Compiled, Recompiles
from inductor_lab.notebook.language import say
from inductor_lab.widgets.charts import WIDTH, chart_page, text_at
from inductor_lab.widgets.function_name import AFTER, RESUMED, function_name
from inductor_lab.widgets.markup import Tree, element, said_heads, table, written
from inductor_lab.widgets.page import bench_style

LEFT, RIGHT = 190.0, 150.0
TOP, ROW = 44.0, 26.0
WIDEST = 34.0
"""Pixels: maximum width of one call."""
BINS = 520
"""Maximum number of calls that are drawn separately; more calls share a bin."""
MOST_LETTERS = 24
LEGEND = "calls in order; solid: compiled in this call; pale: served by existing code"
COLUMNS = ("compile id", "function", ">at call", ">took", ">calls served", "failed guards")
EAGER = (
    "{n} calls of {name} ran in eager mode: it has reached torch._dynamo.config.recompile_limit."
)
NOTHING = (
    "Nothing was compiled in this block. Code compiled earlier is still cached; "
    "torch.compiler.reset() removes it."
)
_STYLE = ".lab-recompiles td div + div{margin-top:2px}"


@dataclass(frozen=True)
class _Version:
    """One row: `served` has the numbers of its calls, `made` is the call that compiled it."""

    compiled: Compiled
    served: tuple[int, ...]
    made: int | None

    @property
    def counted(self) -> str:
        text = "{n} call" if len(self.served) == 1 else "{n} calls"
        return say(text, n=f"{len(self.served):,}")


def recompiles_html(found: Recompiles) -> str:
    """HTML for a cell's output; readable without a script."""
    return f"<style>{bench_style()}{_STYLE}</style>{written(recompiles_tree(found))}"


def recompiles_tree(found: Recompiles) -> Tree:
    """Picture and table; the block may still be running."""
    calls = found.calls
    rows = _versions(found.compiled, calls)
    body: list[Tree] = [element("h1", {}, _title(found))]
    if not rows:
        body.append(element("p", {}, say(NOTHING)))
    if found.more_calls:
        later = say("{n} later calls are not shown.", n=f"{found.more_calls:,}")
        body.append(element("p", {}, later))
    for name, runs in found.eager_calls.items():
        said = say(EAGER, n=f"{runs:,}", name=name)
        body.append(element("p", {}, said))
    if calls:
        body.append(_chart(rows, calls))
    if rows:
        grid = table(said_heads(COLUMNS), ([""] * len(COLUMNS) for _ in rows))
        for drawn, version in zip(grid[3][2:], rows, strict=True):
            for cell, inside in zip(drawn[2:], _cells(version), strict=True):
                cell[2:] = inside
        body.append(element("div", {"class": "lab-table"}, grid))
    return element("div", {"class": "lab-bench lab-recompiles"}, *body)


def _title(found: Recompiles) -> str:
    """`repr(found)` in the current language."""
    held = sum(each.seconds for each in found.compiled)
    made = [each for each in found.compiled if not each.refused]
    return say(
        "compiles: {n}, {took} of {seconds:.2f} s; recompiles: {again}",
        n=len(made), seconds=found.seconds, took=duration(held),
        again=sum(each.again for each in made),
    )  # fmt: skip


def recompiles_svg(found: Recompiles) -> str:
    """The picture alone."""
    calls = found.calls
    return written(_chart(_versions(found.compiled, calls), calls))


def _versions(compiled: Iterable[Compiled], calls: Sequence[Call]) -> list[_Version]:
    """The versions by function, then in the order of compilation."""
    served: dict[str, list[int]] = {}
    for call in calls:
        for name in dict.fromkeys(call.served):
            served.setdefault(name, []).append(call.number)
    made = {name: call.number for call in calls for name in call.compiled}
    rows = [
        _Version(each, tuple(served.get(each.compile_id, ())), made.get(each.compile_id))
        for each in compiled
    ]
    order: dict[str, int] = {}
    for row in rows:
        order.setdefault(_frame(row), len(order))
    return sorted(rows, key=lambda row: order[_frame(row)])


def _frame(version: _Version) -> str:
    return version.compiled.compile_id.rpartition("/")[0]


def _cells(version: _Version) -> Iterator[list[Tree | str]]:
    one = version.compiled
    yield [one.compile_id]
    yield [function_name(one.function)]
    yield [say("not compiled") if one.refused else f"{version.made:,}" if version.made else ""]
    yield [duration(one.seconds)]
    yield [f"{len(version.served):,}"]
    yield [
        element("div", {"title": str(reason)}, f"{reason.failed}: {in_words(reason)}")
        for reason in one.reasons
    ]


def _chart(rows: Sequence[_Version], calls: Sequence[Call]) -> Tree:
    count = max(len(calls), 1)
    each = min(WIDEST, (WIDTH - LEFT - RIGHT) / count)
    height = TOP + ROW * len(rows) + 8
    body = [text_at(LEFT, 14, say(LEGEND), "sub"), *_axis(count, each, height)]
    for number, row in enumerate(rows):
        body += _row(row, TOP + ROW * number, each, number % 6 + 1, calls)
    title = say("{n} versions over {m} calls", n=len(rows), m=len(calls))
    return chart_page(title, height, body)


def _axis(count: int, each: float, height: float) -> Iterator[Tree]:
    """Grid lines with call numbers."""
    most = max(2, int(count * each / 60))
    step = next(s * 10**power for power in range(9) for s in (1, 2, 5)
                if count <= most * s * 10**power)  # fmt: skip
    for number in sorted({1, *range(step, count + 1, step)}):
        x = LEFT + (number - 0.5) * each
        place = {"x1": f"{x:.1f}", "x2": f"{x:.1f}", "y1": f"{TOP - 8:.0f}", "y2": f"{height:.0f}"}
        yield element("line", {"class": "grid", **place})
        if number == 1 or step * each > 30 or number > step:
            yield text_at(x, TOP - 12, f"{number:,}", "sub", "middle")


def _row(
    row: _Version, y: float, each: float, hue: int, calls: Sequence[Call]
) -> Iterator[Tree]:
    one = row.compiled
    label = f"{one.compile_id} {function_name(one.function)}"
    shown = _fitting(one)
    yield element("g", {}, element("title", {}, label), text_at(8, y + 14, shown))
    per_bin = max(1, -(-len(calls) // BINS))
    for first, last in _runs_of(sorted({(number - 1) // per_bin for number in row.served})):
        start, end = first * per_bin + 1, min((last + 1) * per_bin, len(calls))
        tip = say("{label}: calls {start} to {end}", label=label, start=start, end=end)
        yield _bar(f"bar s{hue}", start, end, y, each, tip)
    right = LEFT + each * len(calls) + 8
    if row.made is not None:
        yield _bar(f"s{hue}", row.made, row.made, y, each,
                   say("{label} was compiled at call {n}", label=label, n=row.made))  # fmt: skip
        yield text_at(right, y + 14, f"{row.counted}, {duration(one.seconds)}", "sub")
    elif one.refused:
        x = LEFT + each * sum(call.when < one.when for call in calls)
        path = f"M{x:.1f} {y:.0f}v{ROW - 6:.0f}"
        from_here = say("from here on, calls that match no version run in eager mode")
        yield element("path", {"class": "roof", "d": path}, element("title", {}, from_here))
        yield text_at(right, y + 14, say("not compiled"), "sub")


def _fitting(one: Compiled) -> str:
    """The compile id and the function; a long function name is cut."""
    resumed = RESUMED.fullmatch(one.function)
    name = resumed["function"] if resumed else one.function
    rest = len(function_name(one.function)) - len(name)
    room = MOST_LETTERS - rest - len(one.compile_id) - 1
    short = name if len(name) <= room else f"{name[: room - 1]}…"
    shown = say(AFTER, function=short, line=resumed["line"]) if resumed else short
    return f"{one.compile_id} {shown}"


def _bar(style: str, first: int, last: int, y: float, each: float, tip: str) -> Tree:
    gap = 1.0 if each > 6 else 0.0
    x, width = LEFT + (first - 1) * each, max((last - first + 1) * each - gap, 2.5)
    place = {"x": f"{x:.1f}", "y": f"{y:.0f}", "width": f"{width:.1f}", "height": f"{ROW - 6:.0f}"}
    return element("rect", {"class": style, **place}, element("title", {}, tip))


def _runs_of(places: Sequence[int]) -> Iterator[tuple[int, int]]:
    """`1 2 3 7` → `1 to 3`, `7 to 7`."""
    starts = [b for a, b in pairwise(places) if b != a + 1]
    ends = [a for a, b in pairwise(places) if b != a + 1]
    if places:
        yield from zip([places[0], *starts], [*ends, places[-1]], strict=True)
