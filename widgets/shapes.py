"""What Python sends to the explorer's page, by its fields.

`javascript/sent.d.ts` says the same to the modules that draw it; `tests/widgets/test_shapes.py`
compares the two, and documents with both.
"""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypeAlias, TypedDict

from inductor_lab.widgets.markup import Tree

ShownLine: TypeAlias = "list[Any]"
"""[text], [text, things] or [text, things, mark]; marks are `+`, `-` and `@` (a heading)."""


class Block(TypedDict):
    """Lines under a title, numbered from `first`; 0 leaves numbers out.

    `language` is one that `colours.js` knows, or "" for prose; `kernel` is the part and the name of
    a kernel that can be edited.
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
    """A file that a view offers; `data` becomes JSON."""

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


class BudgetView(TypedDict):
    """A tree with parts for each step of a slider, whose steps are these memory budgets; `at` is
    the compiled one."""

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
    """A picture (see `picture.py`): `edges` are pairs of places in `items`, `inside` the layouts by
    frame ("" is the whole), `told` is the title with the picture's boxes.

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
    """A tensor has size, stride (None: contiguous), dtype and requires_grad, a number its value."""

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
    """One try of TorchDynamo to trace a frame; `rows` are the first of its `total` instructions:
    [depth, function, line, opname, argument, [stack], [added], [[old, new]], things]."""

    title: str
    total: int
    rows: list[list[Any]]


class StepsView(TypedDict):
    """`texts` has every text once; rows refer to their texts by number."""

    kind: Literal["steps"]
    name: str
    runs: list[Run]
    texts: list[str]


View: TypeAlias = TextView | TreeView | GraphPicture | BudgetView | GuardsView | StepsView


class Pane(TypedDict):
    """`count` and `seconds` stand beside the title in the rail; `problem` is a word for a dot."""

    title: str
    views: list[View]
    count: str
    seconds: float | None
    problem: str
    note: NotRequired[str]


class Fact(TypedDict):
    """A number of the header and the pane that explains it; `mark` is "" or warn."""

    label: str
    value: str
    pane: str
    mark: str


class PaneGroup(TypedDict):
    title: str
    panes: list[str]


class Switches(TypedDict):
    """Changes are [label, arguments of `Compilation.what_if`]."""

    title: str
    changes: list[list[Any]]


class LinkColumns(TypedDict):
    """Kind, scope, label and parents of thing number 0, 1, 2, ... (see `links.py`)."""

    kind: list[str]
    scope: list[str]
    label: list[str]
    parents: list[list[int]]


class Document(TypedDict):
    """All that an explorer shows (see `model.py`)."""

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
