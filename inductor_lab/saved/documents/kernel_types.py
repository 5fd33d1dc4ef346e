"""The documents of a kernel and of what it contains.

A test generates the JSON Schemas from these types; a text below a field is its description there.
Fields are only added.  A new field is `NotRequired`, because older documents do not have it.

No `from __future__ import annotations`: the schemas need the types themselves.
"""

from typing import Literal, NotRequired

from typing_extensions import TypedDict

Size = int | str
"""A number, or an expression of symbols (`"s0"`)."""


class Item(TypedDict):
    """A part of a document that can be selected."""

    id: str
    """Selects this part: `--select ID`."""
    summary: str
    """One line about this part."""
    schema: NotRequired[str]
    """The schema of the document, such as `kernel.v1`; only at the top of a document."""


class Place(TypedDict):
    """A place in the user's source.  Lines and columns count from 1."""

    file: str
    """A path, or a notebook cell (`cell 3`)."""
    line: int
    """The line."""
    column: int
    """The column; 0 if it is unknown."""
    code: str
    """The text of the line."""


class Origin(TypedDict):
    """A node of the FX graph that was compiled."""

    node: str
    """The name of the node."""
    operator: str
    """The operator that it calls; "" if the node is unknown."""
    place: Place | None
    """The line of the user's source that it is from."""


class Cost(TypedDict):
    """Memory traffic and arithmetic.  A symbolic size counts with the value of a hint."""

    bytes_read: int
    """Bytes read from memory."""
    bytes_written: int
    """Bytes written to memory."""
    flops: int
    """Floating-point operations."""
    kernels: int
    """Launches of kernels and library calls."""
    passes: int
    """Memory passes: one buffer, read or written once by one kernel."""


class Time(TypedDict):
    """The measured time of one kernel or library call."""

    seconds: float
    """The median of all rounds."""
    interval: list[float] | None
    """The 95 % confidence interval of the median, in seconds; null if it was not recorded."""
    spread: float
    """Half the interquartile range as a fraction of the median."""
    roof_seconds: float | None
    """The minimum time for these bytes and flops on this machine; null if it is unknown."""
    bound: Literal["memory", "arithmetic"]
    """What limits the time on this machine."""


class BufferUse(TypedDict):
    """A buffer that a kernel reads or writes."""

    buffer: str
    """The name of the buffer."""
    parameter: str
    """Its name in the generated code."""
    role: Literal["in", "out"]
    """Whether the kernel reads or writes it.  A buffer that is read and written has two entries."""
    filled_by: Literal["input", "constant", "computed", "extern"]
    """What fills the buffer: the caller, the compiler, a kernel or a library."""
    given: str
    """The user's name of an input or parameter; "" for other buffers."""
    dtype: str
    """Such as `float32`."""
    shape: list[Size]
    """Sizes."""
    stride: list[Size]
    """Strides in elements."""
    nbytes: int
    """The size in bytes."""


class Axis(TypedDict):
    """One loop."""

    name: str
    """The loop variable."""
    size: Size
    """The number of iterations."""


class Operation(Item):
    """One loop nest of a kernel."""

    kind: Literal["operation"]
    """The kind of the document."""
    nest: Literal["pointwise", "reduction", "scan", "scatter"]
    """What the nest does."""
    buffer: str
    """The buffer that it computes."""
    role: Literal["stored", "inlined", "register"]
    """Stored to memory, inlined into its readers, or kept in a register."""
    axes: list[Axis]
    """The loops."""
    reduce_axes: list[Axis]
    """The loops of a reduction."""
    reads: list[str]
    """The buffers that it reads."""
    text: str
    """The loop nest as text."""
    origins: list[Origin]
    """The FX nodes that it computes."""


class Recomputed(TypedDict):
    """A value that several kernels compute."""

    buffer: str
    """The value."""
    also_in: list[str]
    """The ids of the other kernels."""


class Verdict(TypedDict):
    """The answer of one rule."""

    rule: str
    """The name of the rule (docs/rules.md explains each)."""
    kind: Literal["legality", "profit"]
    """A legality rule must hold, a profit rule should hold."""
    reason: str | None
    """The reason against; null if the rule accepts."""
    meaning: NotRequired[str]
    """The rule in plain words; "" if the rule accepts, or is unknown."""
    cure: NotRequired[str]
    """What would have to change; "" if the rule accepts, or is unknown."""


class OursOfPair(TypedDict):
    """The same pair in our compiler."""

    pair: list[str]
    """Its buffers; empty if there are no loop nests for the two."""
    fused: bool
    """Whether one kernel computes both."""
    bytes_saved: int
    """The memory traffic that this saves."""
    seconds: float | None
    """The time of the call; null if it was not measured."""
    seconds_apart: float | None
    """The time of the call without this fusion; null if it was not measured."""


class FusionOfKernel(TypedDict):
    """A decision that concerns a value of the kernel."""

    decision: str
    """The id of the decision, which has the answers of all rules."""
    producer: str
    """The first buffer of the pair."""
    consumer: str
    """The second buffer of the pair."""
    fused: bool
    """Whether the pair was fused, or the write is in place."""
    choice: Literal["rules", "forced", "forbidden", "disabled"]
    """Whether the rules or the options decided."""
    against: list[Verdict]
    """The rules that have a reason against."""


class CodeLine(TypedDict):
    """A line of generated code."""

    text: str
    """The line."""
    nodes: list[str]
    """The FX nodes that it computes."""


class Kernel(Item):
    """One generated kernel."""

    kind: Literal["kernel"]
    """The kind of the document."""
    name: str
    """The name of the function."""
    language: Literal["cpp", "triton"]
    """The language."""
    device: str
    """Such as `cpu` or `cuda:0`."""
    cost: Cost
    """Bytes and flops of one launch."""
    buffers: list[BufferUse]
    """What it reads and writes, in the order of the parameters."""
    operations: list[Operation]
    """The loop nests, in order."""
    recomputed: list[Recomputed]
    """Values that other kernels compute too."""
    fusion: list[FusionOfKernel]
    """The decisions about the values of the kernel."""
    origins: list[Origin]
    """The FX nodes that it computes."""
    time: Time | None
    """The measured time; null before `Compilation.measure`."""
    code: list[CodeLine]
    """The generated text."""


class LibraryCall(Item):
    """One call of a library, such as a matrix product."""

    kind: Literal["library_call"]
    """The kind of the document."""
    operator: str
    """The operator, such as `aten.mm.default`."""
    reason: str
    """Why no code was generated for it."""
    reads: list[str]
    """The buffers that it reads."""
    writes: list[str]
    """The buffers that it computes."""
    cost: Cost
    """The minimum that it reads and writes, and its arithmetic."""
    origins: list[Origin]
    """The FX nodes that it computes."""
    time: Time | None
    """The measured time; null before `Compilation.measure`."""


class MeasuredLibrary(TypedDict):
    """The time of one implementation of a library call."""

    name: str
    """The library; `packed` if the weight is kept in its layout between calls."""
    seconds: float
    """The minimum of several calls."""


class LibraryChoice(TypedDict):
    """The measured library for all matrix products, or convolutions, of one size."""

    operator: str
    """The operator, such as `addmm` or `convolution`."""
    sizes: list[int]
    """m, k and n of the product (m, k) x (k, n)."""
    dtype: str
    """The dtype of the operands."""
    measured: list[MeasuredLibrary]
    """The implementations that were timed."""
    chosen: str
    """The name of the implementation that is called."""


class Decision(Item):
    """Whether two loop nests were fused, with the answer of every rule."""

    kind: Literal["decision"]
    """The kind of the document."""
    producer: str
    """The first buffer of the pair."""
    consumer: str
    """The second buffer of the pair."""
    fused: bool
    """Whether the pair was fused, or the write is in place."""
    relation: Literal["vertical", "horizontal", "combo", "in place"]
    """How the two are related."""
    choice: Literal["rules", "forced", "forbidden", "disabled"]
    """Whether the rules or the options decided."""
    bytes_saved: int
    """The memory traffic that fusing saves."""
    verdicts: list[Verdict]
    """The answer of every rule."""
    earlier_attempts: int
    """How often this pair was decided before."""
    compiler: NotRequired[str]
    """`inductor_lab` or `stock torch.compile`."""
    part: NotRequired[str]
    """The graph and the direction."""
    kernels: NotRequired[list[str]]
    """The kernel that computes each of the two; "" if none does."""
    ours: NotRequired[OursOfPair]
    """The same pair in our compiler, for a pair of stock."""


class Decisions(Item):
    """All decisions of a schedule."""

    kind: Literal["decisions"]
    """The kind of the document."""
    decisions: list[Decision]
    """The decisions; of several about a pair the final one."""


class Lifetime(TypedDict):
    """A buffer that is allocated."""

    buffer: str
    """The name."""
    nbytes: int
    """The size in bytes."""
    first: int
    """The position of the step that computes it, among all steps in order."""
    last: int
    """The position of the last step that uses it; the number of steps for outputs."""
    storage: str
    """The buffer whose storage it uses; itself if it has its own."""
    in_place: bool
    """Whether one kernel reads the old and writes the new elements of this storage."""
    origins: list[Origin]
    """The FX nodes that compute it."""


class MemoryPlan(Item):
    """The memory of one part."""

    kind: Literal["memory_plan"]
    """The kind of the document."""
    peak_bytes: int
    """The peak of live intermediates and outputs."""
    peak_bytes_without_reuse: int
    """The peak if no buffer reused storage."""
    peak_bytes_unfused: int
    """The peak if every operator were a kernel, without reuse."""
    buffers: list[Lifetime]
    """Every buffer, in the order in which they are computed."""


class Text(Item):
    """A result that has no document of its own, as text."""

    kind: Literal["text"]
    """The kind of the document."""
    type: str
    """The class of the result."""
    text: str
    """Its complete text."""
