"""Views: the content of panes, as plain JSON data.

    text     numbered lines in titled blocks, each line with the things it shows
    graph    a `Picture`
    table    rows that may open to inner rows
    tree     anything else that Python draws: lifetimes, bars, timelines, text (`markup.py`)
    budget   a tree with a slider: what each memory budget saves for the backward
    steps    instructions with the symbolic stack and the current graph
    guards   a form of inputs, and conditions over them that the page evaluates

Their fields are declared in `shapes.py`.  The page draws them (`javascript/explorer.js`); a tree
or a table can also be written as HTML and SVG without a script.
"""

from __future__ import annotations

import difflib
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from inductor_lab.compiler.capture.fx_graph import FxGraph
from inductor_lab.compiler.codegen.kernel import Code
from inductor_lab.compiler.ir.program import LoopProgram
from inductor_lab.compiler.ir.text import program_lines
from inductor_lab.notebook.language import say
from inductor_lab.widgets.links import Links, Thing
from inductor_lab.widgets.markup import Tree, about, element, head_row, inside, number
from inductor_lab.widgets.shapes import (
    Block,
    OfferedFile,
    Pane,
    ShownLine,
    TableView,
    TextView,
    TreeView,
    View,
)

if TYPE_CHECKING:
    from inductor_lab.compiler.records import CompiledPart

Opcode: TypeAlias = tuple[str, int, int, int, int]
"""Of difflib: what to do with which lines of the old and the new text."""

CONTEXT = 3
ONE_LINE, MANY_LINES = 24, 60
"""Characters: maximum length of a name that is not wrapped, and of a text in a narrow column."""
EMPTY_ROW: tuple[Any, ...] = ([], [], "", [], "", [])
SIGNS = {"ok": "✓", "no": "✗", "warn": "!"}


def pane(
    title: str,
    views: Sequence[View],
    *,
    count: int | str = "",
    seconds: float | None = None,
    problem: str = "",
) -> Pane:
    """`count` and `seconds` are shown in the rail; `problem` is the text of a warning dot."""
    shown = count if isinstance(count, str) else f"{count:,}"
    return {
        "title": title, "views": list(views), "count": shown, "seconds": seconds, "problem": problem
    }


def text_view(name: str, blocks: Sequence[Block]) -> TextView:
    return {"kind": "text", "name": name, "blocks": list(blocks)}


def block(
    lines: Iterable[ShownLine], title: str = "", first: int = 1, language: str = "python"
) -> Block:
    """Lines under a title, numbered from `first`; 0 means without numbers.

    `language` is a language of `colours.js`, or "" for prose.
    """
    return {"title": title, "first": first, "language": language, "lines": list(lines)}


PartView: TypeAlias = "Callable[[CompiledPart, str, Links], View]"
PART_VIEWS: dict[str, dict[str, PartView]] = {}
"""Views added by users: pane of a part → name → function that makes the view."""


def part_view(pane_name: str) -> Callable[[PartView], PartView]:
    """Add a view to a pane of every part (`graph`, `schedule`, `code`, ...), named as the function.

    The function receives the part, its scope (`g0.forward`) and the links.  `part.plot(name)` draws
    the same view.  Raises ValueError if the pane already has a view of this name.
    """

    def register(make: PartView) -> PartView:
        known = PART_VIEWS.setdefault(pane_name, {})
        if make.__name__ in known:
            raise ValueError(f"the pane {pane_name} already has a view {make.__name__}")
        known[make.__name__] = make
        return make

    return register


def tree_view(name: str, tree: Tree, files: Sequence[OfferedFile] = ()) -> TreeView:
    """A view made from a tree (see `markup.py`).

    `files` are offered for download next to its note.
    """
    view: TreeView = {"kind": "tree", "name": name, "tree": tree}
    if files:
        view["files"] = list(files)
    return view


@dataclass(frozen=True)
class Row:
    """A row of a table: its cells, its things, and the inner rows that it opens.

    `mark` and `more_marks` are ok, no or warn; `pair` is the request of its button (see
    `decision_row`); `steps` are the steps of a slider in which the row exists.
    """

    cells: tuple[str, ...]
    things: tuple[Thing, ...] = ()
    more: tuple[tuple[str, ...], ...] = ()
    mark: str = ""
    more_marks: tuple[str, ...] = ()
    pair: str = ""
    steps: tuple[int, ...] = ()


def row(
    cells: Iterable[Any], things: Iterable[Thing] = (), more: Iterable[Any] = (), mark: str = "",
    steps: Iterable[int] = (),
) -> Row:  # fmt: skip
    """One row; `more` has the inner rows that it opens; `mark` is ok, no or warn."""
    inner = tuple(tuple(map(str, each)) for each in more)
    return Row(tuple(map(str, cells)), tuple(things), inner, mark, steps=tuple(steps))


def table_view(name: str, columns: Sequence[str], rows: Iterable[Row], note: str = "") -> TableView:
    """A table; `columns` that start with `>` are numbers and right-aligned."""
    data = [_row_data(shown, len(columns)) for shown in rows]
    said = say(note) if note else ""
    return {"kind": "table", "name": name, "columns": [*columns], "note": said, "rows": data}


def _row_data(shown: Row, columns: int) -> list[Any]:
    if len(shown.cells) != columns:
        raise ValueError(f"{len(shown.cells)} cells for {columns} columns")
    marks = shown.more_marks or ("",) * len(shown.more)
    more = [[mark, *cells] for cells, mark in zip(shown.more, marks, strict=True)]
    data = [[*shown.cells], [*shown.things], shown.mark, more, shown.pair, [*shown.steps]]
    while not data[-1]:
        data.pop()
    return data


def tree_of(view: TreeView | TableView) -> Tree:
    """The tree of a view; a table becomes elements, as in `javascript/table.js`."""
    if view["kind"] == "tree":
        return view["tree"]
    body = (each for data in view["rows"] for each in _row_trees(data, view["columns"]))
    title = say("{name}, rows", name=say(view["name"]))
    return element(
        "div", {"class": "lab-table", "role": "group", "aria-label": title},
        note_tree(view["note"]),
        element("table", {}, _heads(view["columns"]), element("tbody", {}, *body)),
    )  # fmt: skip


def note_tree(note: str) -> Tree | None:
    """The note above a view."""
    return element("p", {"class": "lab-note"}, say(note)) if note else None


def _heads(columns: Sequence[str]) -> Tree:
    """Heads in the current language; the page looks up their meaning by the English term."""
    heads = head_row(columns)
    for head in inside(heads, "th"):
        head[1] |= _term(head[2])
        head[2] = say(head[2])
    return heads


def _term(word: str) -> dict[str, str]:
    return {"data-term": "" if say(word) == word else word}


def _row_trees(data: Sequence[Any], columns: Sequence[str]) -> Iterator[Tree]:
    cells, things, mark, more, pair, steps = [*data, *EMPTY_ROW[len(data) :]]
    shown = [element("td", number(column) or _breaks(cell), cell)
             for column, cell in zip(columns, cells, strict=True)]  # fmt: skip
    if mark:
        shown[0].insert(2, _sign("span", mark))
    attributes = about(things)
    attributes |= {"data-pair": pair} if pair else {}
    attributes |= {"data-steps": " ".join(map(str, steps))} if steps else {}
    yield element("tr", attributes, *shown)
    if more:
        inner = (element("tr", {}, _sign("td", mark) if mark else None,
                         element("td", _term(first), say(first)),
                         *(element("td", {}, cell) for cell in others))
                 for mark, first, *others in more)  # fmt: skip
        held = element("td", {"colspan": len(columns)}, element("table", {}, *inner))
        yield element("tr", {"class": "lab-more", "hidden": ""}, held)


def _breaks(cell: str) -> dict[str, str]:
    """The class of a cell: a short name is not wrapped; a long text gets a minimum width, so that a
    narrow pane scrolls."""
    if len(cell) <= ONE_LINE and len(cell.split()) == 1:
        return {"class": "whole"}
    return {"class": "long"} if len(cell) > MANY_LINES else {}


def _sign(tag: str, mark: str) -> Tree:
    return element(tag, {"class": f"lab-sign {mark}"}, SIGNS[mark])


def empty_view(name: str, text: str) -> TreeView:
    """A sentence that explains why a view is empty."""
    return tree_view(name, element("p", {"class": "lab-empty"}, say(text)))


def plain_lines(text: str) -> list[ShownLine]:
    return [[line] for line in text.rstrip("\n").split("\n")]


def fx_lines(graph: FxGraph, links: Links, scope: str) -> Iterator[ShownLine]:
    """The graph's text; a line that assigns a node is linked to that node.

    `capture/text.py` writes one line per node, in order, so only the next name has to be compared.
    """
    waiting = [node.name for node in graph.nodes if node.op != "output"]
    given = [node.name for node in graph.nodes if node.op == "placeholder"]
    for line in graph.text.rstrip("\n").split("\n"):
        code = line.strip()
        if code.startswith("def forward(") and code.endswith(":"):
            yield [line, links.find("node", scope, given)]
            waiting = waiting[len(given) :]
        elif waiting and code.startswith((f"{waiting[0]}:", f"{waiting[0]} =", f"{waiting[0]},")):
            yield [line, links.find("node", scope, [waiting.pop(0)])]
        else:
            yield [line]


def loop_lines(program: LoopProgram, links: Links, scope: str) -> list[ShownLine]:
    """The loop program's text, each line with its FX nodes."""
    return [
        [text.rstrip(), links.find("node", scope, sorted(origins))]
        for text, origins in program_lines(program)
    ]


def code_lines(code: Code, links: Links, scope: str) -> list[ShownLine]:
    """Generated code, each line with its FX nodes."""
    return [
        [line.text, links.find("node", scope, sorted(line.origins))] for line in code.lines
    ]


def diff_lines(before: Sequence[ShownLine], after: Sequence[ShownLine]) -> list[ShownLine]:
    """A diff with some lines of context; `-` lines are old, `+` lines are new."""
    old, new = [line[0] for line in before], [line[0] for line in after]
    shown: list[ShownLine] = []
    for hunk in _hunks(old, new):
        if shown:
            shown.append(["⋯", [], "@"])
        for tag, a0, a1, b0, b1 in hunk:
            if tag == "equal":
                shown += [_marked(line, " ") for line in after[b0:b1]]
            else:
                shown += [_marked(line, "-") for line in before[a0:a1]]
                shown += [_marked(line, "+") for line in after[b0:b1]]
    return shown


def _hunks(old: Sequence[str], new: Sequence[str]) -> Iterator[Sequence[Opcode]]:
    """The groups of opcodes of difflib.

    difflib compares the lines between anchors, since it takes quadratic time (patience diff, by B.
    Cohen).
    """
    blocks: list[tuple[int, int, int]] = []
    i = j = 0
    for a, b in [*_anchors(old, new), (len(old), len(new))]:
        if i < a and j < b:
            inner = difflib.SequenceMatcher(a=old[i:a], b=new[j:b]).get_matching_blocks()
            blocks += [(i + block.a, j + block.b, block.size) for block in inner[:-1]]
        blocks.append((a, b, int(a < len(old))))
        i, j = a + 1, b + 1
    whole: Any = difflib.SequenceMatcher()
    whole.matching_blocks = [*_joined(blocks[:-1]), blocks[-1]]
    return iter(whole.get_grouped_opcodes(CONTEXT))


def _anchors(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]]:
    """The places of lines that occur once in both texts: the most that are in the same order."""
    once = [{line for line, times in Counter(text).items() if times == 1} for text in (old, new)]
    both = once[0] & once[1]
    where = {line: j for j, line in enumerate(new) if line in both}
    lasts: list[int] = []
    before: dict[tuple[int, int], tuple[int, int] | None] = {}
    ends: list[tuple[int, int]] = []
    for i, line in enumerate(old):
        if line in where:
            j = where[line]
            length = bisect_left(lasts, j)
            before[i, j] = ends[length - 1] if length else None
            lasts[length : length + 1] = [j]
            ends[length : length + 1] = [(i, j)]
    found: list[tuple[int, int]] = []
    place = ends[-1] if ends else None
    while place is not None:
        found.append(place)
        place = before[place]
    return found[::-1]


def _joined(blocks: Iterable[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """Blocks of equal lines, of which adjacent ones become one."""
    found: list[tuple[int, int, int]] = []
    for a, b, size in blocks:
        if found and (a, b) == (found[-1][0] + found[-1][2], found[-1][1] + found[-1][2]):
            found[-1] = (*found[-1][:2], found[-1][2] + size)
        else:
            found.append((a, b, size))
    return found


def _marked(line: ShownLine, mark: str) -> ShownLine:
    things = line[1] if len(line) > 1 else []
    return [line[0], things, mark]
