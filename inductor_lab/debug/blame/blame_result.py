"""The result of blame: the verdict, the verdict of each stage, and the values after each stage."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from inductor_lab.compiler.base.display import Shown
from inductor_lab.compiler.capture.fx_graph import Span
from inductor_lab.debug.compare.precision import Judged
from inductor_lab.saved.documents import tool_types
from inductor_lab.saved.documents.kinds import document, finite
from inductor_lab.saved.documents.sources import place

Verdict: TypeAlias = Literal[
    "right", "rounding", "wrong", "raises", "crashes", "hangs", "race", "not deterministic",
    "stale", "unknown",
]  # fmt: skip


@dataclass(frozen=True)
class StageRow:
    """One stage of one graph, judged by its results.

    where   `"g0.forward"`, or `"g0"` for a stage of both directions
    ulp     worst distance from float64 in ULP; None if it was not compared with float64
    """

    where: str
    stage: str
    verdict: Verdict
    says: str = ""
    ulp: float | None = None


@dataclass(frozen=True)
class ValueRow:
    """One value of a graph after each stage: `ulp` has its distances from float64 (None: it does
    not exist in the stage), `kinds` the verdicts."""

    where: str
    node: str
    buffer: str
    span: Span | None
    ulp: Mapping[str, float | None]
    kinds: Mapping[str, str]


@dataclass(frozen=True)
class Born:
    """The first NaN or inf of a run: its node, and whether it also appears in float64."""

    what: Literal["NaN", "inf"]
    stage: str
    where: str
    node: str
    span: Span | None
    in_float64: bool

    def __str__(self) -> str:
        also = "also in float64" if self.in_float64 else "finite in float64"
        at = f"  {self.span}  {self.span.code}" if self.span else ""
        return f"{self.what} in {self.stage} first appears at {self.node} ({also}){at}"


@dataclass(frozen=True)
class Fault:
    """The first fault.

    stage    the first wrong stage: `"captured"`, `"joint"`, `"partition"`, `"decomposed"`,
             `"rewrite: identities"`, `"loops"`, `"schedule"`, `"loop tree: tiles"` (the pass after
             which it is wrong), `"kernel"`, `"host program"`, `"guards"`, or the phase that raised
    value    the first wrong value: a buffer, or a result
    node     its FX node, and the target of the node
    span     the user's line
    kernel   the kernel (or "host program") with the line that computes it
    """

    verdict: Verdict
    where: str
    stage: str
    says: str
    value: str = ""
    node: str = ""
    op: str = ""
    span: Span | None = None
    kernel: str = ""
    line: int = 0
    code: str = ""
    judged: Judged | None = None

    def __str__(self) -> str:
        lines = [f"{self.verdict} in {self.stage} of {self.where}: {self.says}"]
        if self.value or self.node:
            node = f"{self.node} = {self.op}" if self.op else self.node
            lines.append(f"  value   {' · '.join(filter(None, (self.value, node)))}")
        if self.code:
            lines.append(f"  line    {self.kernel}:{self.line}  {self.code.strip()}")
        if self.span:
            lines.append(f"  yours   {self.span}  {self.span.code}")
        return "\n".join(lines)


@dataclass(frozen=True, eq=False)
class Blame(Shown):
    """The first wrong stage of one call, if any.

    fault    the first fault; None if everything is right
    verdict  "right": bit-identical to eager mode; "rounding": about as near to float64 as eager
    stages   every stage in order; `values` has each value after every stage
    births   the first NaN or inf in eager mode and in our stages
    results  the verdicts about results, written arguments and gradients
    """

    name: str
    verdict: Verdict
    fault: Fault | None
    stages: tuple[StageRow, ...]
    values: tuple[ValueRow, ...] = ()
    births: tuple[Born, ...] = ()
    results: Mapping[str, Judged] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def right(self) -> bool:
        """Is there no fault?"""
        return self.fault is None

    @property
    def summary(self) -> str:
        """One sentence."""
        if self.fault is not None:
            return str(self.fault).split("\n")[0]
        if len(self.stages) == 1:  # no stage of the compiler ran
            return f"{self.stages[0].verdict}: {self.stages[0].says}"
        if not self.results:
            return "right: no stage differs from the one before it; there is no result to compare"
        if self.verdict == "right":
            return "right: every result has the bits that eager computes"
        worst = max(self.results.values(), key=lambda judged: judged.units)
        return f"rounding: at most {worst.distance}"

    def to_dict(self) -> dict[str, Any]:
        """The data as JSON (docs/json.md)."""
        return document(tool_types.Blame(
            id="blame",
            summary=f"{self.name}: {self.summary}",
            kind="blame",
            name=self.name,
            right=self.right,
            verdict=self.verdict,
            fault=None if self.fault is None else _fault(self.fault),
            stages=[_stage(row, f"stage:{number}") for number, row in enumerate(self.stages)],
            results={name: judged.as_data() for name, judged in self.results.items()},
            nonfinite=[
                tool_types.Nonfinite(what=born.what, stage=born.stage, node=born.node,
                                     in_float64=born.in_float64, place=place(born.span))
                for born in self.births
            ],
            notes=list(self.notes),
        ))  # fmt: skip

    def __repr__(self) -> str:
        return f"Blame({self.name}: {self.summary})"

    def __str__(self) -> str:
        lines = [f"{self.name}: {self.fault or self.summary}", ""]
        width = max([len(f"{row.where} {row.stage}") for row in self.stages], default=0)
        for row in self.stages:
            where = f"{row.where} {row.stage}"
            lines.append(f"  {where:{width}}  {row.verdict:9}  {row.says}".rstrip())
        lines += [f"  {name}: {judged}" for name, judged in self.results.items()]
        lines += [str(born) for born in self.births]
        return "\n".join([*lines, *(f"note: {note}" for note in self.notes)])


def _fault(fault: Fault) -> tool_types.Fault:
    return tool_types.Fault(
        verdict=fault.verdict, where=fault.where, stage=fault.stage, message=fault.says,
        value=fault.value, node=fault.node, operator=fault.op, place=place(fault.span),
        kernel=fault.kernel, line=fault.line, code=fault.code,
    )  # fmt: skip


def _stage(row: StageRow, at: str) -> tool_types.Stage:
    text = f"{row.where} {row.stage}: {row.verdict}"
    return tool_types.Stage(
        id=at, summary=f"{text}, {row.says}" if row.says else text, kind="stage",
        where=row.where, stage=row.stage, verdict=row.verdict, message=row.says,
        ulp=finite(row.ulp),
    )  # fmt: skip
