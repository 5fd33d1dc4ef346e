"""`c.why_not_fused(a, b)`: are two nodes or source lines in one kernel, and which rules decided?

The same method, names and words for our compiler and for stock `torch.compile`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from inductor_lab import inspect
from inductor_lab.bench.jobs import Job
from inductor_lab.bench.timing import compare
from inductor_lab.compiler.base.display import Documented, bytes_text, counted
from inductor_lab.compiler.base.errors import BadArguments, UnknownName, unknown_name
from inductor_lab.compiler.records import Record
from inductor_lab.compiler.schedule.schedule import Decision, Verdict
from inductor_lab.compiler.schedule.text import decision_text
from inductor_lab.compiler.step_time import duration
from inductor_lab.debug.explore.fused_parts import Computed, FusedPart, apart, parts_of
from inductor_lab.debug.explore.what_if import call_of, recompile
from inductor_lab.saved.documents.kernel_types import Decision as DecisionDocument
from inductor_lab.saved.documents.kinds import document
from inductor_lab.saved.documents.of_kernel import decision as decision_document
from inductor_lab.stock.stock_compilation import StockCompilation

Asked: TypeAlias = str | int
"""A buffer (`"buf0"`), a node of stock's scheduler (`"op0"`), an FX node (`"exp"`), each optionally
with its part (`"g0.backward.buf0"`), or a line of the source (`12`, `"12"`, `"model.py:12"`)."""


@dataclass(frozen=True)
class OurAnswer:
    """The same pair in our compiler.

    pair   its buffers; empty if ours computes one of the two inside other loop nests only
    seconds, seconds_apart   measured times of the call, with the pair fused and kept apart
    """

    pair: tuple[str, ...]
    fused: bool
    bytes_saved: int
    seconds: float | None = None
    seconds_apart: float | None = None

    def __str__(self) -> str:
        if not self.pair:
            return "inductor_lab: has no loop nests for the two"
        if len(set(self.pair)) == 1:
            return f"inductor_lab: computes both in one loop nest ({self.pair[0]})"
        names = " and ".join(self.pair)
        if not self.fused:
            return f"inductor_lab: does not fuse them ({names})"
        text = f"inductor_lab: fuses them ({names}), which saves {bytes_text(self.bytes_saved)}"
        if self.seconds is not None and self.seconds_apart is not None:
            text += f"; the call takes {duration(self.seconds)} with and "
            text += f"{duration(self.seconds_apart)} without this fusion"
        return text


@dataclass(frozen=True)
class FusedPair:
    """The answer for one pair of buffers of one part.

    kernels   the kernel that computes each; "" if none does
    meanings  for each verdict: what it means, and what would have to change
    earlier   earlier decisions about the pair
    ours      the same pair in our compiler, for a pair of stock
    """

    part: str
    decision: Decision
    kernels: tuple[str, str]
    meanings: tuple[tuple[str, str], ...]
    earlier: tuple[Decision, ...] = ()
    ours: OurAnswer | None = None

    @property
    def fused(self) -> bool:
        return self.decision.fused

    def __str__(self) -> str:
        return self.text(self.decision.verdicts, set())

    def text(self, verdicts: Sequence[Verdict], explained: set[tuple[str, str]]) -> str:
        """The text with these verdicts, and without the meanings in `explained`, to which it adds
        those that it prints."""
        head, saves, *rules = decision_text(self.decision).split("\n")
        lines = [f"{self.part}: {head}", saves]
        here, there = self.kernels
        if here == there and here:
            apart = "" if self.fused else ", in separate loops"
            lines.append(f"  both in {here}{apart}")
        else:
            lines.append(f"  in {here or 'no kernel'} and {there or 'no kernel'}")
        for verdict, rule, (meaning, cure) in zip(
            self.decision.verdicts, rules, self.meanings, strict=True
        ):
            if verdict not in verdicts:
                continue
            lines.append(rule)
            if (meaning, cure) in explained:
                continue
            explained.add((meaning, cure))
            lines += [f"            means: {meaning}"] if meaning else []
            lines += [f"            to fuse: {cure}"] if cure else []
        lines += [f"  {self.ours}"] if self.ours is not None else []
        for number, decision in enumerate(self.earlier, 1):
            lines.append(f"  earlier attempt {number}: {decision_text(decision)}")
        return "\n".join(lines)


@dataclass(frozen=True, eq=False)
class WhyNotFused(Documented):
    """Why two values are or are not computed by one kernel; made by `c.why_not_fused(a, b)`.

    `listed` is the part whose refused pairs these are ("" for all parts), None for values that were
    asked about.
    """

    name: str
    compiler: str
    pairs: tuple[FusedPair, ...]
    listed: str | None = None

    @property
    def fused(self) -> bool:
        """Is every pair in one kernel?"""
        return all(pair.fused for pair in self.pairs)

    def __repr__(self) -> str:
        fused = sum(pair.fused for pair in self.pairs)
        return f"WhyNotFused({self.name}: {fused} of {counted(len(self.pairs), 'pair')} fused)"

    def __str__(self) -> str:
        """The pair that would save the most bytes first.  Of several pairs only the rules that
        refuse are printed, and what a rule means is printed once."""
        head = f"{self.name}, compiled by {self.compiler}: {counted(len(self.pairs), 'pair')}"
        if len(self.pairs) == 1:
            return f"{head}\n\n{self.pairs[0]}"
        explained: set[tuple[str, str]] = set()
        texts = [head]
        for pair in sorted(self.pairs, key=lambda pair: -pair.decision.bytes_saved):
            refused = [verdict for verdict in pair.decision.verdicts if verdict.reason is not None]
            texts.append(pair.text(refused, explained))
        return "\n\n".join(texts)

    def to_dict(self) -> dict[str, Any]:
        """A `decision` document for one pair that was asked about, else `decisions`."""
        found = [_pair_document(pair, self.compiler) for pair in self.pairs]
        if self.listed is None and len(found) == 1:
            return document(found[0])
        fused = sum(pair.fused for pair in self.pairs)
        summary = f"{counted(len(found), 'pair')}, {fused} fused"
        if self.listed is not None:
            summary = f"{counted(len(found), 'pair')} not fused"
        at = f"{self.listed}.decisions" if self.listed else "decisions"
        return document({"id": at, "summary": summary, "kind": "decisions", "decisions": found})


def _pair_document(pair: FusedPair, compiler: str) -> DecisionDocument:
    found = decision_document(pair.decision, f"{pair.part}.", len(pair.earlier))
    for verdict, (meaning, cure) in zip(found["verdicts"], pair.meanings, strict=True):
        verdict["meaning"], verdict["cure"] = meaning, cure
    found["compiler"], found["part"] = compiler, pair.part
    found["kernels"] = list(pair.kernels)
    if pair.ours is not None:
        found["ours"] = {
            "pair": list(pair.ours.pair), "fused": pair.ours.fused,
            "bytes_saved": pair.ours.bytes_saved, "seconds": pair.ours.seconds,
            "seconds_apart": pair.ours.seconds_apart,
        }  # fmt: skip
    return found


def why_not_fused(
    compilation: Record | StockCompilation,
    first: Asked | None = None,
    second: Asked | None = None,
    *,
    part: str | None = None,
    ours: bool = True,
    measure: float | None = None,
) -> WhyNotFused:
    """Implements `Compilation.why_not_fused` and `StockCompilation.why_not_fused`."""
    parts = _wanted(parts_of(compilation), part)
    if (first is None) != (second is None):
        raise BadArguments("one value is not a pair", todo="give two values, or none")
    stock = isinstance(compilation, StockCompilation)
    if first is None or second is None:
        pairs = [_answer(each, each, x, y) for each in parts for x, y in each.refused()]
    else:
        pairs = list(_pairs(parts, first, second))
    if isinstance(compilation, StockCompilation) and ours and compilation.call is not None:
        pairs = _with_ours(compilation, parts, pairs, measure)
    compiler = "stock torch.compile" if stock else "inductor_lab"
    listed = (part or "") if first is None else None
    return WhyNotFused(compilation.name, compiler, tuple(pairs), listed)


def _wanted(parts: Sequence[FusedPart], name: str | None) -> Sequence[FusedPart]:
    if name is None:
        return parts
    found = [part for part in parts if part.name == name]
    if not found:
        there = ", ".join(part.name for part in parts) or "no part: nothing was compiled"
        raise UnknownName(f"there is no part {name!r}", todo=f"there is {there}")
    return found


# ---- the pairs that are meant -------------------------------------------------------------------


def _pairs(parts: Sequence[FusedPart], first: Asked, second: Asked) -> Iterator[FusedPair]:
    """The pairs of one part; if there are none, one pair of two parts.

    Names mean the first part that has both, and lines mean all parts.
    """
    here, there = _found(parts, first), _found(parts, second)
    same = [(one, x, y) for one, x in here for other, y in there if one is other and x != y]
    if not same and here == there:
        same = [(one, x, x) for one, x in here]
    if not (_is_line(first) and _is_line(second)):
        same = [pair for pair in same if pair[0] is same[0][0]]
    seen = set()
    for part, x, y in same:
        if (part.name, frozenset((x, y))) not in seen:
            seen.add((part.name, frozenset((x, y))))
            yield _answer(part, part, x, y)
    if not same:
        (one, x), (other, y) = here[0], there[0]
        yield _answer(one, other, x, y)


def _found(parts: Sequence[FusedPart], asked: Asked) -> list[tuple[FusedPart, str]]:
    """The buffers of each part that a name or a line means; raises UnknownName."""
    found = [(part, each.buffer) for part in parts for each in _named(part, asked)]
    if not found:
        known = [name for part in parts for each in part.computed.values() for name in
                 (each.buffer, *sorted(each.names), *sorted(each.origins))]  # fmt: skip
        known += [str(line) for part in parts for each in part.computed.values()
                  for _, line in sorted(each.lines)]  # fmt: skip
        what, todo = unknown_name("value", asked, list(dict.fromkeys(known)))
        raise UnknownName(what, todo=todo)
    return found


def _is_line(asked: Asked) -> bool:
    return str(asked).rpartition(":")[2].isdigit()


def _named(part: FusedPart, asked: Asked) -> list[Computed]:
    text = str(asked)
    text = text.removeprefix(f"{part.name}.")
    if _is_line(text):
        file, _, number = text.rpartition(":")
        return [each for each in part.computed.values()
                if any(line == int(number) and where.endswith(file)
                       for where, line in each.lines)]  # fmt: skip
    for kind in (lambda c: {c.buffer}, lambda c: c.names, lambda c: c.origins):
        if found := [each for each in part.computed.values() if text in kind(each)]:
            return found
    return []


def _answer(one: FusedPart, other: FusedPart, first: str, second: str) -> FusedPair:
    if one is other:
        decision = one.decide(first, second)
    else:
        decision = apart(f"{one.name}.{first}", f"{other.name}.{second}")
    kernels = one.kernel(first), other.kernel(second)
    if one is other and decision.producer != first:
        kernels = kernels[::-1]
    meanings = tuple(one.explain(verdict) for verdict in decision.verdicts)
    name = one.name if one is other else f"{one.name} and {other.name}"
    earlier = one.earlier(first, second) if one is other else ()
    return FusedPair(name, decision, kernels, meanings, earlier)


# ---- the same pair in our compiler --------------------------------------------------------------


def _with_ours(
    compilation: StockCompilation, parts: Sequence[FusedPart], pairs: Sequence[FusedPair],
    measure: float | None,
) -> list[FusedPair]:  # fmt: skip
    """The pairs, each with the answer of our compiler, which compiles the call once."""
    call = call_of(compilation)
    compiled = inspect(call.fn, *call.args, options=call.options, **call.kwargs)
    by_name = {part.name: part for part in parts_of(compiled)}
    stock = {part.name: part for part in parts}
    found = []
    for pair in pairs:
        answer = None
        if pair.part in by_name and pair.part in stock:
            answer = _ours(stock[pair.part], by_name[pair.part], pair.decision)
            if measure is not None and answer.fused and len(set(answer.pair)) == 2:
                answer = _timed(compiled, pair.part, answer, measure)
        found.append(replace(pair, ours=answer))
    return found


def _ours(stock: FusedPart, own: FusedPart, asked: Decision) -> OurAnswer:
    names = [_counterpart(stock.computed[name], own) for name in (asked.producer, asked.consumer)]
    if not all(names):
        return OurAnswer((), False, 0)
    first, second = names
    if first == second:
        return OurAnswer((first, second), True, 0)
    decision = own.decide(first, second)
    return OurAnswer((first, second), decision.fused, decision.bytes_saved)


def _counterpart(value: Computed, own: FusedPart) -> str:
    """The buffer of our compiler with the same value, else with most of the same FX nodes."""

    def score(each: Computed) -> tuple[int, float, int]:
        alike = len(each.origins & value.origins) / max(len(each.origins | value.origins), 1)
        return len(each.results & value.results), alike, len(each.lines & value.lines)

    best = max(own.computed.values(), key=score, default=None)
    return best.buffer if best is not None and any(score(best)) else ""


def _timed(compiled: Any, part: str, answer: OurAnswer, seconds: float) -> OurAnswer:
    """The time of the call with and without this fusion, interleaved."""
    call = call_of(compiled)
    without = recompile(compiled, forbid=[(*answer.pair, part)])
    jobs: dict[str, Callable[..., Any]] = {
        name: Job(each.compiled, call.args, call.kwargs, backward=None)
        for name, each in (("fused", compiled), ("apart", without))
    }
    times = compare(jobs, seconds=seconds)
    return replace(answer, seconds=times.median_ms("fused") / 1e3,
                   seconds_apart=times.median_ms("apart") / 1e3)  # fmt: skip
