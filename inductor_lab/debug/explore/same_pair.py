"""`why_not_fused` for stock: the same pair in our compiler, which compiles the inspected call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from inductor_lab import inspect
from inductor_lab.bench.jobs import Job
from inductor_lab.bench.timing import compare
from inductor_lab.compiler.schedule.schedule import Decision
from inductor_lab.debug.explore.fused_pair import FusedPair, OurAnswer
from inductor_lab.debug.explore.fused_parts import Computed, FusedPart, parts_of
from inductor_lab.debug.explore.what_if import call_of, recompile
from inductor_lab.stock.stock_compilation import StockCompilation


def with_ours(
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
