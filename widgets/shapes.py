"""The types of the data that Python sends to the explorer's page.

`javascript/sent.d.ts` declares the same types for JavaScript; `tests/widgets/test_shapes.py` checks
that the two agree, and that documents conform to them.
"""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypeAlias, TypedDict

from inductor_lab.widgets.markup import Tree

ShownLine: TypeAlias = "list[Any]"
"""[text], [text, things] or [text, things, mark]; marks are `+`, `-` and `@` (a heading)."""


class Block(TypedDict):
    """Lines under a title, numbered from `first`; 0 means without numbers.

    `language` is a language of `colours.js`, or "" for prose; `kernel` is the part and the name of
    an editable kernel.
    """

    title: str
    first: int
    language: str
    lines: list[ShownLine]
    kernel: NotRequired[list[str]]


class TextView(TypedDict):
    kind: Literal["text"]
    name: str
    blocks: list[Block]


class OfferedFile(TypedDict):
    """A file offered for download; `data` becomes JSON."""

    label: str
    tip: str
    name: str
    type: str
    data: Any


class TreeView(TypedDict):
    kind: Literal["tree"]
    name: str
    tree: Tree
    files: NotRequired[list[OfferedFile]]


class TableView(TypedDict):
    """A table; `columns` are English, those that start with `>` are numbers.

    A row is [cells, things, mark, more, pair, steps] without empty values at its end: `mark` is "",
    ok, no or warn; `more` has the inner rows that it opens, each [mark, English term, *cells];
    `pair` and `steps` are explained in `markup.py`.
    """

    kind: Literal["table"]
    name: str
    columns: list[str]
    note: str
    rows: list[list[Any]]


class BudgetView(TypedDict):
    """A tree with parts for each step of a slider over these memory budgets; `at` is the compiled
    step."""

    kind: Literal["budget"]
    name: str
    tree: Tree
    budgets: list[float]
    at: int


class Layout(TypedDict):
    """Boxes are [x, y, width, height], routes [source, target, bends], all in whole pixels."""

    size: list[int]
    names: list[str]
    boxes: list[list[int]]
    routes: list[list[Any]]


class GraphPicture(TypedDict):
    """A picture (see `picture.py`): `edges` are pairs of indices into `items`, `inside` has the
    layouts by frame ("" is the root); the last field is the accessible name.

    An item is [name, label, sub, role, tip, things, frame], a frame [name, label, sub, tip, parent,
    open, things].
    """

    kind: Literal["graph"]
    name: str
    title: str
    told: str
    items: list[list[Any]]
    frames: list[list[Any]]
    edges: list[int]
    inside: dict[str, Layout]


class GuardInput(TypedDict):
    """A tensor or NumPy array has size, stride (None: contiguous), dtype and requires_grad; a
    number has its value."""

    source: str
    name: str
    kind: str
    value: NotRequired[bool | float | str]
    size: NotRequired[list[int]]
    stride: NotRequired[list[int] | None]
    dtype: NotRequired[str]
    requires_grad: NotRequired[bool]


class GuardEntry(TypedDict):
    """One compiled version of the function; checks are [text, condition, kind, where, things]."""

    title: str
    checks: list[list[Any]]


class GuardsView(TypedDict):
    kind: Literal["guards"]
    name: str
    inputs: list[GuardInput]
    entries: list[GuardEntry]
    note: str


class Run(TypedDict):
    """One attempt of TorchDynamo to trace a frame; `rows` are the first of `total` instructions:
    [depth, function, line, opname, argument, [stack], [added], [[old, new]], things]."""

    title: str
    total: int
    rows: list[list[Any]]


class StepsView(TypedDict):
    """`texts` has every text once; rows refer to texts by index."""

    kind: Literal["steps"]
    name: str
    runs: list[Run]
    texts: list[str]


View: TypeAlias = (
    TextView | TreeView | TableView | GraphPicture | BudgetView | GuardsView | StepsView
)


class Pane(TypedDict):
    """`count` and `seconds` are shown in the rail; `problem` is the text of a warning dot."""

    title: str
    views: list[View]
    count: str
    seconds: float | None
    problem: str
    note: NotRequired[str]


class Fact(TypedDict):
    """A number in the header and the pane that explains it; `mark` is "" or warn."""

    label: str
    value: str
    pane: str
    mark: str


class PaneGroup(TypedDict):
    title: str
    panes: list[str]


class Switches(TypedDict):
    """Changes are [label, arguments of `Compilation.what_if`, meaning]."""

    title: str
    changes: list[list[Any]]


class LinkColumns(TypedDict):
    """Kind, scope, label and parents of thing number 0, 1, 2, ... (see `links.py`)."""

    kind: list[str]
    scope: list[str]
    label: list[str]
    parents: list[list[int]]


class Document(TypedDict):
    """The data of an explorer (see `model.py`)."""

    format: str
    version: int
    title: str
    subtitle: str
    facts: list[Fact]
    groups: list[PaneGroup]
    panes: dict[str, Pane]
    open: list[str]
    switches: list[Switches]
    words: dict[str, str]
    links: LinkColumns
    language: NotRequired[str]
    texts: NotRequired[dict[str, str]]
