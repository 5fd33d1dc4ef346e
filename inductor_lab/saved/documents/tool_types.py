"""The documents of the tools: blame, minify, recompiles, traces, benchmarks.

As in `kernel_types.py`, a test generates the JSON Schemas from these types.
"""

from typing import Literal, NotRequired

from typing_extensions import TypedDict

from inductor_lab.saved.documents.compile_types import GraphBreak, Recompile, Specialized, Varied
from inductor_lab.saved.documents.kernel_types import Item, Place, Time

BlameVerdict = Literal[
    "right", "rounding", "wrong", "raises", "crashes", "hangs", "race", "not deterministic",
    "stale", "unknown",
]  # fmt: skip


class Judged(TypedDict):
    """A tensor, compared with eager mode and with float64."""

    kind: str
    """`equal`, `rounding`, `wrong`, `NaN`, `inf`, `shape`, `dtype` and so on."""
    ulp: float | None
    """The largest distance from float64 in ULP; null if it is not finite."""
    eager_ulp: float | None
    """The same for eager mode."""
    place: list[int]
    """The index of the worst element."""
    got: str
    """Its value."""
    expected: str
    """Its expected value."""
    wrong: int
    """The number of wrong elements."""
    total: int
    """The number of elements."""


class CompilerError(TypedDict):
    """An error of the compiler of an edited kernel."""

    line: int
    """The line of the edited text; 0 if it is unknown."""
    message: str
    """The message."""


class Fault(TypedDict):
    """The first thing that is wrong."""

    verdict: BlameVerdict
    """How it fails."""
    where: str
    """The graph, or its part."""
    stage: str
    """The first wrong stage."""
    message: str
    """What is wrong."""
    value: str
    """The first wrong value."""
    node: str
    """Its FX node."""
    operator: str
    """The operator of the node."""
    place: Place | None
    """The line of the user's source."""
    kernel: str
    """The kernel that computes it."""
    line: int
    """The line of the kernel's text."""
    code: str
    """The text of this line."""


class Stage(Item):
    """One stage of one graph."""

    kind: Literal["stage"]
    """The kind of the document."""
    where: str
    """The graph, or its part."""
    stage: str
    """The name of the stage."""
    verdict: BlameVerdict
    """The verdict."""
    message: str
    """The details."""
    ulp: float | None
    """The largest distance from float64 in ULP; null if it was not compared."""


class Nonfinite(TypedDict):
    """The first NaN or inf of a run."""

    what: Literal["NaN", "inf"]
    """The value."""
    stage: str
    """The stage that ran."""
    node: str
    """The node that computes it."""
    in_float64: bool
    """Whether float64 has it too."""
    place: Place | None
    """The line of the user's source."""


class Blame(Item):
    """The first wrong stage of a call."""

    kind: Literal["blame"]
    """The kind of the document."""
    name: str
    """The name of the function."""
    right: bool
    """Whether nothing is wrong."""
    verdict: BlameVerdict
    """The verdict on the call."""
    fault: Fault | None
    """The first thing that is wrong; null if nothing is."""
    stages: list[Stage]
    """Every stage, in order."""
    results: dict[str, Judged]
    """Results, written arguments and gradients, by name."""
    nonfinite: list[Nonfinite]
    """Where a NaN or inf first appears."""
    notes: list[str]
    """Remarks."""


class MinifyStep(TypedDict):
    """A step that made the graph smaller."""

    strategy: str
    """The name of the strategy."""
    before: str
    """The graph before."""
    after: str
    """The graph after."""
    tries: int
    """The number of candidates."""
    seconds: float
    """The time of the step."""


class Minified(Item):
    """The smallest graph that fails like the original."""

    kind: Literal["minified"]
    """The kind of the document."""
    name: str
    """The name of the function."""
    symptom: str
    """How it fails."""
    nodes: int
    """The number of nodes that are left."""
    complete: bool
    """False if it was interrupted."""
    seconds: float
    """The time of the search."""
    folder: str | None
    """The folder that contains the script and its inputs."""
    script: str
    """A program that shows the failure."""
    steps: list[MinifyStep]
    """The steps that made the graph smaller."""


class Compile(Item):
    """One compilation that TorchDynamo made in a block."""

    kind: Literal["compile"]
    """The kind of the document."""
    compile_id: str
    """TorchDynamo's name of it: `0/1` is the second compilation of the first frame."""
    function: str
    """The name of the function."""
    when: float
    """Seconds since the block began."""
    seconds: float
    """The time for which the call waited."""
    refused: bool
    """Whether nothing was compiled, as after too many versions."""
    reasons: list[Recompile]
    """All guards that failed; empty for the first version."""
    restarts: NotRequired[list[str]]
    """Why TorchDynamo began its analysis again."""
    limit: NotRequired[str]
    """The limit that was reached; "" if none."""
    specialized: NotRequired[list[Specialized]]
    """Sizes that were dynamic and became constant."""


class Calls(TypedDict):
    """Consecutive calls that ran the same code."""

    first: int
    """The number of the first call."""
    last: int
    """The number of the last call."""
    compile_ids: list[str]
    """The code that they ran."""


class PhaseCost(TypedDict):
    """All runs of one phase of a compile."""

    name: str
    """The name of the phase in torch."""
    compiler: str
    """TorchDynamo, AOTAutograd or TorchInductor."""
    seconds: float
    """The time with the phases inside it."""
    own_seconds: float
    """The time without them."""
    calls: int
    """How often it ran."""


class CompileCost(TypedDict):
    """One compile: the first call and its backward."""

    seconds: float
    """The time of the call and its backward."""
    peak_bytes: int | None
    """By how much it increased the memory of its process; null if that is unknown."""
    caches: list[str]
    """What stock's caches answered, in order: `fx_graph hit`."""
    reasons: list[str]
    """Why a cache had no entry."""
    phases: list[PhaseCost]
    """The phase with the most time of its own first."""


class CompileTime(Item):
    """A cold and a warm compile by stock."""

    kind: Literal["compile_time"]
    """The kind of the document."""
    name: str
    """The name of the function."""
    torch_version: str
    """The version of torch."""
    cold: CompileCost
    """With empty caches on disk."""
    warm: CompileCost
    """In another process, with the caches of the first compile."""


class Recompiles(Item):
    """What was compiled while a program ran."""

    kind: Literal["recompiles"]
    """The kind of the document."""
    seconds: float
    """The duration of the block."""
    compiles: int
    """The number of compilations."""
    recompiles: int
    """The number of compilations after a failed guard."""
    compiled: list[Compile]
    """Every compilation, in order."""
    calls: list[Calls]
    """Which calls ran which code."""
    eager_calls: dict[str, int]
    """By function: calls that ran in eager mode after too many versions."""
    varied: NotRequired[list[Varied]]
    """What differed between the calls that were compiled."""
    cache_reasons: NotRequired[list[str]]
    """Why stock's caches had no entry."""


class VerifiedEdit(TypedDict):
    """An edit that was tried: it compiles less and keeps the results."""

    names: list[str]
    """Its name; several if edits were combined."""
    what: list[str]
    """A sentence about each."""
    diff: str
    """A unified diff of the user's code."""
    compiles: int
    """The number of compilations with it."""
    eager_calls: int
    """The number of calls that run in eager mode with it."""


class Advice(Item):
    """Edits of a program that reduce its recompiles."""

    kind: Literal["advice"]
    """The kind of the document."""
    name: str
    """The name of the program."""
    compiles: int
    """The number of compilations without an edit."""
    recompiles: int
    """The number of recompiles without an edit."""
    calls: dict[str, int]
    """How often one run calls each compiled function."""
    edits: list[VerifiedEdit]
    """The verified edits, the best first."""
    tried: int
    """The number of edits that were tried."""
    runs: int
    """How often the program ran, each time in a process of its own."""
    refused: str
    """Why nothing was tried; "" if edits were tried."""


class GraphBreaks(Item):
    """All graph breaks of a program, each once."""

    kind: Literal["graph_breaks"]
    """The kind of the document."""
    torch_version: str
    """The version of torch that reported them."""
    breaks: list[GraphBreak]
    """The graph breaks."""
    compile_ids: list[list[str]]
    """For each: the compilations that it stopped."""


class TraceEntry(Item):
    """One compile id of a trace log."""

    kind: Literal["trace_entry"]
    """The kind of the document."""
    key: str
    """What `TraceLog[key]` takes."""
    function: str
    """The name of the function."""
    place: Place | None
    """The line of the function."""
    seconds: float
    """The compile time."""
    status: str
    """`compiled`, `no graph` or `failed`."""
    parts: int
    """The number of compiled parts."""
    caches: list[str]
    """The answers of stock's caches."""
    restarts: list[str]
    """Why TorchDynamo began again."""
    breaks: list[GraphBreak]
    """Graph breaks."""
    recompiles: list[Recompile]
    """The guards that failed."""
    error: str
    """Why it was not compiled; "" if it was."""
    limit: NotRequired[str]
    """The limit that was reached; "" if none."""
    specialized: NotRequired[list[Specialized]]
    """Sizes that were dynamic and became constant."""
    cache_reasons: NotRequired[list[str]]
    """Why stock's caches had no entry."""


class Trace(Item):
    """The index of a `TORCH_TRACE` log."""

    kind: Literal["trace"]
    """The kind of the document."""
    name: str
    """The name of the log."""
    torch_version: str
    """The version of torch that wrote it."""
    compiled: list[TraceEntry]
    """Every compile id."""
    problems: list[str]
    """Damaged places of the log."""
    varied: NotRequired[list[Varied]]
    """What differed between the calls that were compiled."""


class MeasuredStep(TypedDict):
    """The time of a kernel or library call of a benchmark."""

    name: str
    """The kernel or the operator."""
    generated: bool
    """False for a library call."""
    nbytes: int
    """Bytes read and written."""
    flops: int
    """Floating-point operations; 0 if unknown."""
    time: Time
    """The time."""


class Contender(TypedDict):
    """One way to run the function."""

    name: str
    """The name."""
    median_seconds: float | None
    """The median time of a call; null if it was not timed."""
    spread: float | None
    """Half the interquartile range as a fraction of the median."""
    speedup: float | None
    """How many times as fast as the baseline: the median of per-round ratios."""
    speedup_interval: list[float] | None
    """The 95 % confidence interval of the speedup."""
    verdict: str
    """The comparison with the baseline in words; "" for the baseline."""
    cold_compile_seconds: float | None
    """The first call with empty caches; null if it was not measured."""
    warm_compile_seconds: float | None
    """The first call with full caches; null if it was not measured."""
    difference: float | None
    """The largest difference from the first contender, relative to 1 + |expected|."""
    agrees: bool
    """Whether the difference is rounding."""
    peak_bytes: int | None
    """The peak memory of a separate process; null if it was not measured."""
    failure: str
    """Why it does not run; "" if it does."""
    note: str
    """A remark."""


class Benchmark(Item):
    """One function on one set of arguments, timed."""

    kind: Literal["benchmark"]
    """The kind of the document."""
    title: str
    """The title."""
    work: str
    """What was timed."""
    machine: str
    """The machine."""
    rounds: int
    """The number of complete rounds."""
    complete: bool
    """False if it was stopped."""
    baseline: str
    """The contender that speedups refer to."""
    contenders: list[Contender]
    """Every way to run the function."""
    steps: list[MeasuredStep]
    """Our kernels and library calls."""
    sentences: list[str]
    """The results in words."""


class BenchmarkSeries(Item):
    """Several benchmarks: over sizes, or of several programs."""

    kind: Literal["benchmark_series"]
    """The kind of the document."""
    title: str
    """The title."""
    machine: str
    """The machine."""
    complete: bool
    """False if it was stopped."""
    sizes: list[int]
    """The size of each benchmark; empty if they are different programs."""
    results: list[Benchmark]
    """The benchmarks."""
    sentences: list[str]
    """The results in words."""
