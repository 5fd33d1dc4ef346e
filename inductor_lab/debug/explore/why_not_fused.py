"""`c.why_not_fused(a, b)`: are two nodes or source lines in one kernel, and which rules decided?

The same method, names and words for our compiler and for stock `torch.compile`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from inductor_lab.compiler.base.display import Documented, counted
from inductor_lab.compiler.base.errors import BadArguments, UnknownName, unknown_name
from inductor_lab.compiler.records import Record
from inductor_lab.debug.explore.fused_pair import FusedPair
from inductor_lab.debug.explore.fused_parts import Computed, FusedPart, apart, parts_of
from inductor_lab.saved.documents.kernel_types import Decision as DecisionDocument
from inductor_lab.saved.documents.kinds import document
from inductor_lab.saved.documents.of_kernel import decision as decision_document
from inductor_lab.stock.stock_compilation import StockCompilation

Asked: TypeAlias = str | int
"""A buffer (`"buf0"`), a node of stock's scheduler (`"op0"`), an FX node (`"exp"`), each optionally
with its part (`"g0.backward.buf0"`), or a line of the source (`12`, `"12"`, `"model.py:12"`)."""


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
        from inductor_lab.debug.explore.same_pair import with_ours

        pairs = with_ours(compilation, parts, pairs, measure)
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
