"""Who is wrong? Every stage of a call beside the one before it, with float64 as the referee.

    eager        the function as it stands
    captured     the graphs that TorchDynamo has made of it, run by torch
    decomposed   ATen's operators (with gradients: the joint graph, then its two halves)
    rewrite      one pass after another
    loops        one nest for each operator
    schedule     groups of nests
    loop tree    the loops of each kernel, as they are built and after each pass
    kernel       each kernel by itself, on inputs that are right
    host program all together, statement by statement

The stages before any code are compared in float64, where they agree to many digits; code is
compared with the interpreter of its own stage, and may be as far from float64 as roundings reach
(`debug/compare/precision.py`).  Kernels run in a process of their own (`debug/isolate.py`): they
may crash, or hang.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from inductor_lab.api.arguments import Seconds, checked
from inductor_lab.compiler.base.errors import NotRunnable
from inductor_lab.compiler.base.options import Options
from inductor_lab.debug.blame.analysis import Analysis
from inductor_lab.debug.blame.blame_result import Blame, Fault, StageRow
from inductor_lab.debug.blame.run_graphs import is_random
from inductor_lab.debug.blame.stale_guards import stale_guard
from inductor_lab.debug.blame.watch_call import Watching, watch
from inductor_lab.debug.explore.run_stages import calling
from inductor_lab.debug.explore.what_if import call_of

if TYPE_CHECKING:
    from inductor_lab.compiler.records import Record

LIMIT = 60.0
"""Seconds that compiled code may take."""


@checked
def blame(
    fn: Callable[..., Any],
    /,
    *args: Any,
    options: Options | dict[str, Any] | None = None,
    limit: Seconds = LIMIT,
    **kwargs: Any,
) -> Blame:
    """Compile and run one call, and say which stage, value, kernel line and line of the user's is
    the first that is wrong; or that all is right, and how far roundings go.

    limit   seconds that the compiled code of a graph may take

    The function runs a few times, on copies of its arguments.  State that it keeps (buffers,
    parameters, closures, counters, random generators) is put back before each run and in the end.
    Gradients are checked where an argument requires them, and so is what is written to arguments
    and state.  An exception of `fn` itself comes through.
    """
    chosen = options if isinstance(options, Options) else Options.make(options)
    if chosen.target is not None:
        raise NotRunnable(
            f"code for {chosen.target} does not run here, so nobody can say whether it is right",
            todo="leave the target out",
        )
    seen = watch(fn, args, kwargs, replace(chosen, cache=False))
    name = getattr(fn, "__name__", type(fn).__name__)
    return verdict_of(name, seen, limit)


def verdict_of(name: str, seen: Watching, limit: float) -> Blame:
    """Each graph in turn; the first that is wrong has the fault."""
    first, found = captured_differs(seen)
    rows = [first]
    unsure = [*([first.says] if first.verdict == "unknown" else []), *seen.silent]
    analyses = []
    for site in seen.sites:
        analysis = Analysis(site, limit)
        analyses.append(analysis)
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


def captured_differs(seen: Watching) -> tuple[StageRow, Fault | None]:
    """Does Python with the captured graphs in it do what the function does?"""
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


def blame_again(compilation: Record, *args: Any, limit: float = LIMIT, **kwargs: Any) -> Blame:
    """`Compilation.blame`, which says what it does."""
    call = call_of(compilation)
    if not args and not kwargs:
        args, kwargs = call.args, dict(call.kwargs)
    with calling("blame", call, args, kwargs):
        stale = stale_guard(compilation, args, kwargs)
        if stale is not None:
            return stale
        return blame(call.fn, *args, options=call.options, limit=limit, **kwargs)

