"""The documents of a compile: `to_dict()` of a `Compilation` and of its parts.

As in `kernel_types.py`, a test generates the JSON Schemas from these types.
"""

from typing import Literal, NotRequired

from typing_extensions import TypedDict

from inductor_lab.saved.documents.kernel_types import (
    BufferUse,
    CodeLine,
    Cost,
    Decision,
    Item,
    Kernel,
    LibraryCall,
    LibraryChoice,
    MemoryPlan,
    Operation,
    Origin,
    Place,
    Recomputed,
    Text,
)


class RewritePass(TypedDict):
    """One pass over the FX graph that changed it."""

    name: str
    """The name of the pass."""
    fired: list[str]
    """The rules that fired, and where."""


class Part(Item):
    """One direction of one graph."""

    kind: Literal["part"]
    """The kind of the document."""
    name: Literal["forward", "backward"]
    """The direction."""
    before: Cost
    """The cost if every operator were a kernel."""
    after: Cost
    """The cost as compiled."""
    order: list[str]
    """The ids of kernels and library calls in the order in which they run."""
    kernels: list[Kernel]
    """The generated kernels."""
    library_calls: list[LibraryCall]
    """The library calls."""
    decisions: list[Decision]
    """The decisions about fusion and writes in place; of several about a pair the final one."""
    memory: MemoryPlan
    """The memory plan."""
    rewrites: list[RewritePass]
    """The passes that changed the FX graph."""
    passes: list[str]
    """The passes that changed something, at any level."""
    texts: list[Text]
    """The loop program before fusion, and the host program; a second one if consecutive steps are
    single calls of C++."""
    libraries: NotRequired[list[LibraryChoice]]
    """The libraries that were chosen by measurement."""


class KeptValue(TypedDict):
    """A value that the forward saves for the backward, or that the backward recomputes."""

    value: str
    """The name of the value."""
    nbytes: int
    """Its size in bytes; 0 for a recomputed value."""
    is_input: bool
    """Whether it is an input, which stays in memory anyway."""
    why: str
    """The reason."""


class Partition(TypedDict):
    """What is kept for the backward."""

    kept_bytes: int
    """Bytes kept only for the backward."""
    eager_bytes: int
    """Bytes that eager mode keeps."""
    minimum_bytes: int
    """The minimum for any memory budget."""
    saved: list[KeptValue]
    """Saved values."""
    recomputed: list[KeptValue]
    """Recomputed values."""


class Graph(Item):
    """One captured graph."""

    kind: Literal["graph"]
    """The kind of the document."""
    nodes: int
    """The number of nodes of the captured graph."""
    eager_kernels: int | None
    """The operator calls of eager mode that compute something; null if unknown."""
    partition: Partition | None
    """What the forward keeps for the backward; null without a gradient."""
    parts: list[Part]
    """Forward, and backward if there is a gradient."""


class Guard(TypedDict):
    """A condition that is checked before compiled code is used again."""

    type: str
    """TorchDynamo's type of the guard."""
    code: str
    """The condition."""
    source: str
    """The guarded object."""
    compile_id: str
    """The compilation that it belongs to."""
    place: Place | None
    """The line that created it."""


class GraphBreak(Item):
    """A place where capture stopped."""

    kind: Literal["graph_break"]
    """The kind of the document."""
    reason: str
    """The reason."""
    explanation: str
    """The explanation."""
    hints: list[str]
    """Possible fixes."""
    compile_id: str
    """The compilation that it belongs to."""
    place: Place | None
    """The line."""
    stack: list[Place]
    """The calls that lead to it, outermost first."""


class Recompile(TypedDict):
    """Compiled code that could not be used."""

    compile_id: str
    """The new compilation."""
    failed: str
    """The compilation whose guard failed."""
    reason: str
    """The guard that failed."""
    place: Place | None
    """The user's line that created the guard, or that called the library that did."""
    type: NotRequired[str]
    """TorchDynamo's type of the guard; "" if it is unknown."""
    source: NotRequired[str]
    """The guarded object; "" if it is unknown."""
    value: NotRequired[str]
    """The guarded object in the new call, as short text; "" if it is unknown."""
    via: NotRequired[Place | None]
    """The library line that created the guard; null if the user's line did."""


class Varied(TypedDict):
    """An object whose guards failed, and its values in the calls that were compiled."""

    source: str
    """The object."""
    compile_ids: list[str]
    """The compilations."""
    values: list[str]
    """Its value in the call of each compilation, as short text."""


class Specialized(TypedDict):
    """A dynamic size that became constant."""

    compile_id: str
    """The compilation."""
    source: str
    """The size."""
    value: str
    """The constant."""
    chain: list[str]
    """The conditions on sizes that led to it, each with its line."""
    place: Place | None
    """The user's line of the decisive condition."""
    via: Place | None
    """The library line that requires it; null if it is the user's line."""


class Symbol(TypedDict):
    """A symbolic size or number."""

    name: str
    """The name of the symbol."""
    value: str
    """Its value in this call."""
    range: str
    """The range that it may have."""
    source: str
    """Where it is from."""
    place: Place | None
    """The line that created it."""


class AsCaptured(TypedDict):
    """A graph that runs in eager mode."""

    rule: str
    """The rule that decided it."""
    reason: str
    """The reason."""
    place: Place | None
    """The line that causes it."""


class Capture(Item):
    """The work of TorchDynamo."""

    kind: Literal["capture"]
    """The kind of the document."""
    compile_ids: list[str]
    """The compilation of each graph."""
    breaks: list[GraphBreak]
    """Graph breaks."""
    guards: list[Guard]
    """Guards."""
    recompiles: list[Recompile]
    """Recompiles."""
    symbols: list[Symbol]
    """Symbolic sizes and numbers."""
    in_eager_mode: list[AsCaptured]
    """Graphs that run in eager mode."""


class Source(TypedDict):
    """The source of the compiled function."""

    file: str
    """The file or cell."""
    first_line: int
    """The number of the first line."""
    text: str
    """The text."""


class Compilation(Item):
    """One inspected call."""

    kind: Literal["compilation"]
    """The kind of the document."""
    name: str
    """The name of the function."""
    target: str | None
    """The machine that it was compiled for without running."""
    kernels: int
    """Launches of generated kernels."""
    library_calls: int
    """Calls of a library."""
    eager_kernels: int | None
    """The operator calls of eager mode that compute something; null if unknown."""
    before: Cost
    """The cost if every operator were a kernel."""
    after: Cost
    """The cost as compiled."""
    peak_bytes: int
    """The largest peak of any part."""
    compile_seconds: float
    """The compile time, with capture."""
    seconds: dict[str, float]
    """The compile time by phase."""
    source: Source
    """The source of the function."""
    capture: Capture
    """What TorchDynamo did."""
    graphs: list[Graph]
    """The captured graphs, in order."""


class StockKernel(Item):
    """One kernel of stock `torch.compile`, or one library function that it calls."""

    kind: Literal["stock_kernel"]
    """The kind of the document."""
    name: str
    """The name of the function."""
    language: Literal["cpp", "triton", "extern"]
    """The language; `extern` is a library function."""
    calls: int
    """How often one run calls it."""
    bytes_read: int
    """Bytes read by all calls, as far as sizes are known."""
    bytes_written: int
    """Bytes written by all calls, as far as sizes are known."""
    seconds: float | None
    """The time of all calls; null if it was not measured."""
    origins: list[Origin]
    """The FX nodes that it computes."""
    code: list[CodeLine]
    """The generated text."""
    flops: NotRequired[int]
    """Floating-point operations of all calls, as far as sizes are known."""
    buffers: NotRequired[list[BufferUse]]
    """What the first call reads and writes, in the order of the parameters."""
    operations: NotRequired[list[Operation]]
    """The loop nests, in order; empty if stock did not report its IR."""
    recomputed: NotRequired[list[Recomputed]]
    """FX nodes that other kernels compute too."""


class StockFusion(TypedDict):
    """A line of stock's fusion log."""

    first: str
    """One node."""
    second: str
    """The other node."""
    fused: bool
    """Whether they were fused."""
    reason: str
    """The reason against."""


class StockPart(Item):
    """One direction of one graph that stock compiled."""

    kind: Literal["stock_part"]
    """The kind of the document."""
    name: str
    """The direction."""
    cache: str
    """The answer of stock's graph cache; "" if it is unknown."""
    kernels: list[StockKernel]
    """Kernels and library functions."""
    fusion: list[StockFusion]
    """The pairs that stock fused or refused."""


class StockGraph(Item):
    """One captured graph that stock compiled."""

    kind: Literal["stock_graph"]
    """The kind of the document."""
    compile_id: str
    """The compilation that it belongs to."""
    error: str
    """Why stock did not finish it; "" if it did."""
    parts: list[StockPart]
    """Forward and backward."""


class StockCompilation(Item):
    """One call compiled by stock `torch.compile`."""

    kind: Literal["stock_compilation"]
    """The kind of the document."""
    name: str
    """The name of the function."""
    torch_version: str
    """The version of torch."""
    compile_seconds: float
    """The compile time, with capture."""
    source: Source
    """The source of the function."""
    capture: Capture
    """What TorchDynamo did."""
    graphs: list[StockGraph]
    """The captured graphs."""
    problems: list[str]
    """What could not be read."""
