"""The user's source, each line shaded by its memory traffic.  A line opens to its generated code.

After `measure()`, lines are shaded by their share of the time instead.  The time of a kernel is
split in proportion to its bytes.

The bytes of a kernel are split among the source lines that load and store its buffers.  The bytes
of a loaded buffer are divided equally among the lines whose loop nests read it.  The bytes of a
stored buffer go to the lines it came from.  The sum over all lines is the total of the schedule.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from inductor_lab.compiler.base.display import bytes_text
from inductor_lab.compiler.ir.index import hint
from inductor_lab.compiler.ir.program import Buffer, read_by
from inductor_lab.compiler.schedule.cost import extern_cost
from inductor_lab.compiler.schedule.schedule import Group
from inductor_lab.compiler.step_time import Spent, duration
from inductor_lab.notebook.language import say
from inductor_lab.widgets.links import Links, Thing
from inductor_lab.widgets.parts import link_part
from inductor_lab.widgets.plain import STYLE
from inductor_lab.widgets.shapes import ShownLine
from inductor_lab.widgets.user_side import source_view
from inductor_lab.widgets.views import code_lines, loop_lines

if TYPE_CHECKING:
    from inductor_lab.api.compilation import Compilation
    from inductor_lab.compiler.records import CompiledPart

SHADES = """
.lab-ann{--shade:#ffb000;overflow-x:auto}
.lab-ann pre{margin:0 0 6px 9em;border-left:3px solid #8c959f;padding-left:8px}
.lab-ann summary,.lab-ann .lab-flat{font:12.5px/1.6 ui-monospace,Menlo,Consolas,monospace;
white-space:pre;overflow-wrap:normal;min-width:max-content}
.lab-ann .lab-flat{padding-left:1.15em}
.lab-ann b{display:inline-block;width:8em;text-align:right;font-weight:400;padding-right:1em}
"""
STRONGEST = 0.38
"""Opacity of the heaviest line; a higher opacity makes the text hard to read."""
NO_LINE = "in no line of your code"
NO_TIME = 1e-12
"""Seconds; smaller remainders are rounding errors of a sum."""


@dataclass(frozen=True)
class AnnotatedLine:
    """A line of source, its memory traffic, and the lines generated from it.

    `seconds` is 0 before the compilation is measured.
    """

    number: int
    text: str
    nbytes: float
    seconds: float
    loops: tuple[str, ...]
    code: tuple[str, ...]


class Annotated:
    """A compilation's source with memory traffic; `blocks` has (file, lines) for each source range.

    `elsewhere` has the bytes and seconds that belong to none of these lines.
    """

    def __init__(self, compilation: Compilation) -> None:
        self.name = compilation.name
        self.moved = bytes_text(compilation.after.bytes)
        seconds = Spent.of(took for part in compilation.parts for took in part.times).seconds
        self.measured = seconds > 0
        self.took = duration(seconds)
        self.total = f"{self.name}: {self.moved} moved" + f" in {self.took}" * self.measured
        links = Links()
        links.called_from = compilation.source.called_from
        became = _became(compilation, links)
        amounts = amounts_by_line(compilation, links)
        shown = source_view(compilation.source, links)
        self.blocks = [
            (block["title"], list(_annotated(block, amounts, became)))
            for block in (shown["blocks"] if shown["kind"] == "text" else ())
        ]
        lines = [line for _, found in self.blocks for line in found]
        self.elsewhere = (
            compilation.after.bytes - math.fsum(line.nbytes for line in lines),
            seconds - math.fsum(line.seconds for line in lines),
        )

    def __repr__(self) -> str:
        return f"Annotated({self.total})"

    def __str__(self) -> str:
        lines = [self.total]
        for file, found in self.blocks:
            lines.append(file)
            for line in found:
                amount = self._amount(line.nbytes, line.seconds)
                lines.append(f"{amount:>9}  {line.number:4d}  {line.text}")
        rest = self._amount(*self.elsewhere)
        return "\n".join([*lines, *([f"{rest:>9}  {NO_LINE}"] if rest else [])])

    def _repr_html_(self) -> str:
        lines = [line for _, found in self.blocks for line in found]
        most = max((self._weight(line.nbytes, line.seconds) for line in lines), default=0) or 1
        parts = [f"<style>{STYLE}{SHADES}</style>"]
        text = "{name}: {moved} moved in {took}; open a line to see its code" if (
            self.measured) else "{name}: {moved} moved; open a line to see its code"
        total = say(text, name=self.name, moved=self.moved, took=self.took)
        parts.append(f"<p>{escape(total)}</p>")
        for file, found in self.blocks:
            parts.append(f"<div><code>{escape(file)}</code></div>")
            for line in found:
                moved = line.nbytes, line.seconds
                parts.append(_line_html(line, self._amount(*moved), self._weight(*moved) / most))
        if rest := self._amount(*self.elsewhere):
            parts.append(f'<div class="lab-flat"><b>{rest}</b>{say(NO_LINE)}</div>')
        return f'<div class="lab-plain lab-ann">{"".join(parts)}</div>'

    def _weight(self, nbytes: float, seconds: float) -> float:
        return seconds if self.measured else nbytes

    def _amount(self, nbytes: float, seconds: float) -> str:
        """The number next to a line; "" if only rounding errors remain."""
        if self.measured:
            return duration(seconds) if seconds > NO_TIME else ""
        return bytes_text(round(nbytes)) if round(nbytes) else ""


def _line_html(line: AnnotatedLine, amount: str, share: float) -> str:
    shade = ""
    if share:
        percent = round(100 * STRONGEST * share, 1)
        mixed = f"color-mix(in srgb,var(--shade) {percent}%,transparent)"
        shade = f' style="background:{mixed}"'
    head = f"<b>{amount}</b>{line.number:4d}  {escape(line.text) or ' '}"
    if not line.loops and not line.code:
        return f'<div class="lab-flat"{shade}>{head}</div>'
    code = "\n".join([*line.loops, "", *line.code])
    return f"<details><summary{shade}>{head}</summary><pre>{escape(code)}</pre></details>"


def amounts_by_line(compilation: Compilation, links: Links) -> dict[Thing, tuple[float, float]]:
    """Source line → (bytes, seconds) of the kernels and library calls that came from it."""
    found: dict[Thing, tuple[float, float]] = defaultdict(lambda: (0.0, 0.0))
    for number, graph in enumerate(compilation.graphs):
        for part in graph.parts:
            for nbytes, seconds, origins in _amounts(part):
                things = links.find("node", f"g{number}.{part.name}", sorted(origins))
                lines = links.sources(things)
                for line in lines:
                    old = found[line]
                    found[line] = old[0] + nbytes / len(lines), old[1] + seconds / len(lines)
    return found


def _amounts(part: CompiledPart) -> Iterator[tuple[float, float, Iterable[str]]]:
    """(bytes, seconds, FX nodes they belong to)."""
    buffers = part.loops.buffers
    for position, step in enumerate(part.schedule.steps):
        took = part.times[position].seconds if part.times else 0.0
        if isinstance(step, Group):
            yield from _timed(list(_group_amounts(step, buffers)), took)
        else:
            yield extern_cost(step, buffers).bytes, took, step.origins


def _timed(
    shares: Sequence[tuple[float, Iterable[str]]], took: float
) -> Iterator[tuple[float, float, Iterable[str]]]:
    """Split a kernel's seconds in proportion to its bytes; equally if it moves no bytes."""
    whole = math.fsum(nbytes for nbytes, _ in shares)
    for nbytes, nodes in shares:
        yield nbytes, took * (nbytes / whole if whole else 1 / len(shares)), nodes


def _group_amounts(
    group: Group, buffers: Mapping[str, Buffer]
) -> Iterator[tuple[float, Iterable[str]]]:
    nests = (*group.inlined.values(), *group.nests)
    own = {nest.buffer for nest in nests}
    readers: dict[str, list[Iterable[str]]] = defaultdict(list)
    for nest in nests:
        for name in sorted(read_by(nest)):
            if name not in own:
                readers[name].append(nest.origins)
    read = {name: _nbytes(buffers[name]) for name in readers}
    scale = group.cost.bytes_read / (sum(read.values()) or 1)
    for name, origins in readers.items():
        for each in origins:
            yield scale * read[name] / len(origins), each
    written = {n.buffer: (_nbytes(buffers[n.buffer]), n) for n in nests if n.buffer in group.stored}
    scale = group.cost.bytes_written / (sum(size for size, _ in written.values()) or 1)
    for size, nest in written.values():
        yield scale * size, nest.origins


def _nbytes(buffer: Buffer) -> float:
    count = 1
    for size in buffer.layout.size:
        count *= hint(size)
    return max(count, 1) * buffer.dtype.itemsize


def _became(compilation: Compilation, links: Links) -> dict[str, dict[Thing, list[str]]]:
    """Source line → the lines of loop programs and kernels that came from it."""
    loops: dict[Thing, list[str]] = defaultdict(list)
    code: dict[Thing, list[str]] = defaultdict(list)
    for number, graph in enumerate(compilation.graphs):
        earlier = f"g{number}.captured"
        links.graph(graph.captured, earlier, None)
        if graph.joint is not None:
            links.graph(graph.joint.graph, f"g{number}.joint", earlier)
            earlier = f"g{number}.joint"
        for part in graph.parts:
            scope = f"g{number}.{part.name}"
            link_part(part, scope, earlier, links)
            _sort_lines(loop_lines(part.loops, links, scope), links, loops)
            for kernel in part.kernels:
                _sort_lines(code_lines(kernel.code, links, scope), links, code)
    return {"loops": loops, "code": code}


def _sort_lines(
    lines: Iterable[ShownLine], links: Links, found: dict[Thing, list[str]]
) -> None:
    for line in lines:
        for source in links.sources(line[1]) if len(line) > 1 else ():
            found[source].append(line[0])


def _annotated(
    block: Mapping[str, Any],
    amounts: Mapping[Thing, tuple[float, float]],
    became: Mapping[str, Mapping[Thing, list[str]]],
) -> Iterator[AnnotatedLine]:
    for number, (text, things, *_) in enumerate(block["lines"], block["first"]):
        thing = things[0]
        yield AnnotatedLine(
            number,
            text,
            *amounts.get(thing, (0.0, 0.0)),
            tuple(became["loops"].get(thing, ())),
            tuple(became["code"].get(thing, ())),
        )
