"""The documents of comparisons: two compilations, two runs, an edited kernel, a judged candidate.

As in `kernel_types.py`, a test generates the JSON Schemas from these types.
"""

from typing import Literal, NotRequired

from typing_extensions import TypedDict

from inductor_lab.saved.documents.kernel_types import Cost, Item
from inductor_lab.saved.documents.tool_types import CompilerError, Judged


class PartDifference(TypedDict):
    """The generated code of one part in two compilations."""

    part: str
    """The part."""
    diff: str
    """The unified diff of the code; "" if it is equal."""


class Comparison(Item):
    """Two compilations of one function."""

    kind: Literal["comparison"]
    """The kind of the document."""
    name: str
    """The name of the function."""
    before: Cost
    """The cost of the first compilation."""
    after: Cost
    """The cost of the second compilation."""
    numbers: dict[str, list[str]]
    """Other numbers, each before and after."""
    parts: list[PartDifference]
    """The differences of the code."""


class StageChange(Item):
    """A compile whose stages differ in two runs."""

    kind: Literal["stage_change"]
    """The kind of the document."""
    old: str
    """The name in the first run: function and compile id."""
    new: str
    """The name in the second run."""
    stage: str
    """The first stage that differs."""
    diff: str
    """The unified diff of this stage."""
    consequences: list[str]
    """Later stages that differ too."""
    not_reported: list[str]
    """Stages that only one run reports; they are not compared."""


class RunDiff(Item):
    """Two runs, compared compile by compile."""

    kind: Literal["run_diff"]
    """The kind of the document."""
    old: str
    """The name of the first run."""
    new: str
    """The name of the second run."""
    differs: bool
    """Whether a compile differs, or is in one run only."""
    changes: list[StageChange]
    """The compiles that differ."""
    equal: int
    """The number of compiles that are equal in every stage."""
    only_old: list[str]
    """Compiles that only the first run has."""
    only_new: list[str]
    """Compiles that only the second run has."""
    versions: list[str]
    """The version of torch in both runs; "" if it is unknown."""
    seconds: list[float]
    """The compile time of both runs."""
    numbers: NotRequired[dict[str, list[str]]]
    """Kernels, bytes and so on of two compilations of inductor_lab, each before and after."""


class RankChange(TypedDict):
    """Ranks that are equal to each other, and differ from the reference."""

    ranks: list[str]
    """The ranks."""
    out_of_step: str
    """The first compile whose id or function differs; "" if there is none."""
    collectives: str
    """The first collective that differs; "" if there is none."""
    run: RunDiff
    """The first of these ranks, compared with the reference."""


class RankDiff(Item):
    """The ranks of one run, compared with each other."""

    kind: Literal["rank_diff"]
    """The kind of the document."""
    name: str
    """The name of the trace log."""
    differs: bool
    """Whether a rank differs."""
    equal: list[str]
    """The largest group of equal ranks; the first is the reference."""
    changes: list[RankChange]
    """The other groups."""


class JudgedCase(TypedDict):
    """One call of a candidate."""

    kind: str
    """`given`, or what is awkward: `values`, `sizes`, `strides`, `alias`, `dtypes` and so on."""
    case: str
    """The arguments in words."""
    result: Literal["right", "wrong", "refused"]
    """What the candidate did; it refuses a case by an exception."""
    message: str
    """Why it is wrong, or how it refused; "" otherwise."""
    ulp: float | None
    """The worst distance of a result from float64 in ULP; null if nothing was compared."""
    same_bits: bool
    """Whether repeated calls gave the same bits."""


class EditedKernel(Item):
    """The run of an edited kernel."""

    kind: Literal["edited_kernel"]
    """The kind of the document."""
    name: str
    """The name of the kernel."""
    part: str
    """The part that contains it."""
    right: bool
    """Whether it compiled and ran, and all results of the part are correct."""
    errors: list[CompilerError]
    """Why it does not compile."""
    failure: str
    """How its run ended, if it did not return; "" otherwise."""
    against: str
    """What the results were compared with."""
    results: list[Judged]
    """The verdict about each result of the part."""
    cases: NotRequired[list[JudgedCase]]
    """The cases of the judge; empty if an earlier check failed or the part has random numbers."""
    reasons: NotRequired[list[str]]
    """Why the judge rejects it."""
    original_seconds: float | None
    """The median time of the original kernel; null if it was not timed."""
    edited_seconds: float | None
    """The median time of the edited kernel; null if it was not timed."""
    verdict: str
    """The comparison of the times in words; "" if they were not measured."""


class JudgedSpeed(TypedDict):
    """The times of a candidate and of its reference, interleaved."""

    reference_seconds: float
    """The median time of the reference."""
    candidate_seconds: float
    """The median time of the candidate."""
    candidate_interval: list[float]
    """The 95 % confidence interval of the candidate's median: its two ends, in seconds."""
    speedup_interval: list[float]
    """The 95 % confidence interval of the speedup: its two ends."""
    rounds: int
    """The number of rounds."""
    bound_seconds: float | None
    """The least time for the bytes that must be moved; null if it is unknown."""
    verdict: str
    """The comparison in words."""
    cold_reference_seconds: NotRequired[float | None]
    """The median time of the reference with arguments that are in no cache of the processor; null
    if it was not measured."""
    cold_candidate_seconds: NotRequired[float | None]
    """The median time of the candidate with such arguments; null if it was not measured."""
    cold_verdict: NotRequired[str | None]
    """The comparison with cold caches, in words; null if it was not measured."""


class Judgement(Item):
    """The verdict of the judge about a candidate."""

    kind: Literal["judgement"]
    """The kind of the document."""
    name: str
    """The name of the candidate's function."""
    accepted: bool
    """Whether it is right in all cases and no cheat was found."""
    reasons: list[str]
    """Why it is rejected."""
    ulp: float | None
    """The worst distance of a result from float64 in ULP; null if nothing was compared."""
    deterministic: bool
    """Whether repeated calls gave the same bits."""
    cases: list[JudgedCase]
    """Every case that was tried."""
    speed: JudgedSpeed | None
    """The times; null if it was not timed."""
    notes: list[str]
    """What the judge could not do on this machine."""
