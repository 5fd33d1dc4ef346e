"""The documents of the command `inductor-lab`: doctor, cache, memory, errors, outlines; and the
facts of compile contracts.

As in `kernel_types.py`, a test generates the JSON Schemas from these types.
"""

from typing import Any, Literal, NotRequired

from typing_extensions import TypedDict

from inductor_lab.saved.documents.kernel_types import Item, MemoryPlan, Place


class DoctorRow(TypedDict):
    """One thing that was looked for."""

    name: str
    """Its name."""
    found: str
    """What was found; "" if nothing was."""
    needed: bool
    """Whether inductor_lab needs it."""
    todo: str
    """What to do if it is missing."""
    names: list[str]
    """The names that `found` counts."""


class Doctor(Item):
    """What this machine has."""

    kind: Literal["doctor"]
    """The kind of the document."""
    healthy: bool
    """Whether everything that is needed was found."""
    rows: list[DoctorRow]
    """Every thing that was looked for."""


class MemoryPoint(TypedDict):
    """The bytes alive after an allocation or a release."""

    phase: str
    """`forward`, `backward` or `update`."""
    nbytes: int
    """The bytes that are alive."""


class MemoryHolder(TypedDict):
    """What keeps some bytes at the peak."""

    kind: str
    """`parameter`, `argument`, `gradient`, `output`, `saved`, `variable`, `checkpoint`, `pool` or
    `temporary`."""
    nbytes: int
    """The bytes."""
    tensors: int
    """The number of allocations."""
    name: str
    """An argument, a parameter, a variable or an FX node; "" if it has no name."""
    why: str
    """The node of autograd or the rule that saves it; "" if there is none."""
    maker: str
    """The operator, or the line of the host program, that allocated it."""
    place: Place | None
    """The line of the user that made it; null if it is unknown."""
    before: bool
    """Whether it existed before the step."""


class MemoryRun(TypedDict):
    """The memory of one step with one compiler."""

    compiler: str
    """`eager`, `stock` or `inductor_lab`."""
    failure: str
    """Why there is no measurement; "" if there is one."""
    sentence: str
    """The peak in one sentence."""
    base_bytes: int
    """Arguments, parameters and gradients that exist before the step."""
    peak_bytes: int
    """The largest number of bytes alive."""
    kept_bytes: int
    """Bytes made in the forward that are saved when the backward begins."""
    planned_bytes: int | None
    """The peak by the memory plan; null for other compilers."""
    peak_phase: str
    """`forward`, `backward` or `update`."""
    peak_place: Place | None
    """The line of the user that runs at the peak; null if it is unknown."""
    holders: list[MemoryHolder]
    """Who keeps the bytes at the peak, the largest first."""
    points: list[MemoryPoint]
    """The curve: the bytes alive over the step, at most 400 points."""


class MemorySuggestion(TypedDict):
    """A change that was tried: it lowers a peak, and the results are equal."""

    compiler: str
    """Whose peak it lowers."""
    name: str
    """`del`, `checkpoint` or `memory_budget`."""
    what: str
    """A sentence about it."""
    before_bytes: int
    """The measured peak without it."""
    after_bytes: int
    """The measured peak with it."""
    diff: str
    """The edit of the user's code as a unified diff; "" for an option."""


class Memory(Item):
    """The memory plans of a compile, and the memory of a step with several compilers."""

    kind: Literal["memory"]
    """The kind of the document."""
    name: str
    """The name of the function."""
    peak_bytes: int
    """The largest peak of any part."""
    kept_bytes: int
    """Bytes kept for the backward."""
    plans: list[MemoryPlan]
    """The plan of each part."""
    device: NotRequired[str]
    """The device whose memory was measured."""
    runs: NotRequired[list[MemoryRun]]
    """The measured step with each compiler."""
    suggestions: NotRequired[list[MemorySuggestion]]
    """Changes that were tried and that lower a peak."""
    tried: NotRequired[int]
    """The number of changes that were tried."""


class CacheKind(TypedDict):
    """One kind of entries of the caches on disk."""

    name: str
    """What the entries are."""
    entries: int
    """The number of entries."""
    nbytes: int
    """Their size in bytes."""


class Cache(Item):
    """The caches on disk."""

    kind: Literal["cache"]
    """The kind of the document."""
    folder: str
    """Where they are."""
    limit_bytes: int
    """The limit; least recently used entries are deleted first."""
    deleted_bytes: int
    """What this command has deleted."""
    kinds: list[CacheKind]
    """What is left."""


class Facts(TypedDict):
    """What a compile contract compares: an entry of a snapshot file."""

    counts: dict[str, float]
    """The counts, by name (docs/contracts.md lists them)."""
    lines: dict[str, int]
    """What each line of the user causes, and how often."""
    source: list[str]
    """The lines of the compiled function."""


class Error(Item):
    """A command that failed; the exit code is `exit_code`."""

    kind: Literal["error"]
    """The kind of the document."""
    error: str
    """The class of the error."""
    message: str
    """What happened, where, and what to do."""
    exit_code: int
    """The exit code of the command."""


class OutlineItem(TypedDict):
    """A part that can be selected."""

    id: str
    """Selects it."""
    kind: str
    """Its kind."""
    summary: str
    """One line about it."""
    nbytes: int
    """The size of its document in bytes."""


class Outline(Item):
    """A document that is larger than the limit: its parts, with their ids."""

    kind: Literal["outline"]
    """The kind of the document."""
    of: str
    """The kind of the larger document."""
    nbytes: int
    """Its size in bytes."""
    fields: dict[str, Any]
    """Its small fields, as they are."""
    large_fields: dict[str, int]
    """The sizes of its other fields; `--select ID/FIELD` shows one."""
    items: list[OutlineItem]
    """Its parts: first those that it contains directly, then the parts of these."""
    next: int | None
    """More parts are shown with `--skip NEXT`; null if these are all."""


class Field(Item):
    """One field of a document."""

    kind: Literal["field"]
    """The kind of the document."""
    value: Any
    """The value, or the elements of a list or the characters of a text from `skip` on."""
    next: NotRequired[int | None]
    """More elements are shown with `--skip NEXT`; null if these are all."""
