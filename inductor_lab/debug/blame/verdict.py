"""The verdict over all graphs of one call."""

from __future__ import annotations

from collections.abc import Sequence

from inductor_lab.debug.blame.blame_result import Blame, Fault, StageRow
from inductor_lab.debug.blame.findings import Findings
from inductor_lab.debug.blame.run_graphs import is_random
from inductor_lab.debug.blame.watch_call import S, Watching


def verdict_of(name: str, seen: Watching[S], analyses: Sequence[Findings[S]]) -> Blame:
    """Check the graphs in order; the first wrong one has the fault."""
    first, found = captured_differs(seen)
    rows = [first]
    unsure = [*([first.says] if first.verdict == "unknown" else []), *seen.silent]
    for analysis in analyses:
        fault = analysis.run()
        rows += analysis.rows
        found = found or fault
    results = {
        (f"g{a.site.number} {name}" if len(analyses) > 1 else name): judged
        for a in analyses
        for name, judged in a.results.items()
    }
    exact = all(judged.kind == "equal" for judged in results.values())
    verdict = found.verdict if found is not None else ("right" if exact else "rounding")
    return Blame(
        name,
        verdict,
        found,
        tuple(rows),
        tuple(row for a in analyses for row in a.values),
        tuple(born for a in analyses for born in a.births),
        results,
        tuple(dict.fromkeys([*unsure, *(note for a in analyses for note in a.notes)])),
    )


def captured_differs(seen: Watching[S]) -> tuple[StageRow, Fault | None]:
    """Does Python with the captured graphs have the results of the function?"""
    if any(is_random(node) for site in seen.sites for node in site.module.graph.nodes):
        says = "random numbers are drawn"
        return StageRow("all", "captured", "unknown", says), None
    if seen.differs is None:
        says = "the captured graphs do what eager does"
        says = says if seen.sites else "nothing is captured, all runs as in eager"
        return StageRow("all", "captured", "right", says), None
    name, judged = seen.differs
    if seen.varies is not None:
        says = (f"two calls in eager mode differ ({seen.varies[0]}): the function keeps state that "
                "cannot be put back, so only its graphs are judged")  # fmt: skip
        return StageRow("all", "captured", "unknown", says), None
    says = f"{name}: {judged}"
    fault = Fault("wrong", "all", "captured", says, name, judged=judged)
    return StageRow("all", "captured", "wrong", says), fault
