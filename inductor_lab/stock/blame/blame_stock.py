"""`lab.blame(f, x, compiler="stock")`: the first stage of stock `torch.compile` that is wrong.

    eager → captured → joint → decomposed → pre_grad_passes → joint_graph_passes → partition
        → post_grad_passes → each kernel, on correct inputs → the wrapper around them

Everything happens in a process of its own: stock may crash, or hang, while it compiles.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from torch.fx import GraphModule

from inductor_lab.compiler.base.options import Options
from inductor_lab.compiler.capture.fx_graph import FxGraph
from inductor_lab.debug.blame.blame_result import Blame, Fault, StageRow, Verdict
from inductor_lab.debug.blame.verdict import verdict_of
from inductor_lab.debug.blame.watch_call import watch_with
from inductor_lab.debug.compare.values import copied_call
from inductor_lab.debug.isolate import Ended, Tell, run_isolated
from inductor_lab.stock.blame.stock_analysis import StockAnalysis
from inductor_lab.stock.blame.stock_site import StockSite

COMPILE_LIMIT = 5.0
"""Times `limit` that compiling and all checks of one call may take."""
CHECKS = "checks"
CALLED_OFTEN = "the function is called a few times, in a process of its own"


def blame_stock(
    fn: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any], options: Options,
    limit: float,
) -> Blame:  # fmt: skip
    """The verdict; of the options `mode`, `fullgraph` and `dynamic` hold.

    An exception of `fn` itself comes through.
    """
    name = getattr(fn, "__name__", type(fn).__name__)

    def site(number: int, module: GraphModule, captured: FxGraph) -> StockSite:
        return StockSite(number, module, captured, mode=options.mode, dynamic=options.dynamic)

    def work(tell: Tell) -> Blame:
        tell("compile")
        seen = watch_with(site, fn, args, kwargs, options)
        tell(CHECKS)
        return verdict_of(name, seen, [StockAnalysis(each, limit) for each in seen.sites])

    ended = run_isolated(work, limit * COMPILE_LIMIT)
    if ended.how == "returned":
        found: Blame = ended.value
        return replace(found, notes=(*found.notes, CALLED_OFTEN))
    if ended.how == "raised":
        given, named = copied_call(args, kwargs)
        fn(*given, **named)
    return _ended(name, ended)


def _ended(name: str, ended: Ended) -> Blame:
    """Stock, or TorchDynamo, did not come to an end."""
    verdicts: dict[str, Verdict] = {"raised": "raises", "crashed": "crashes", "hung": "hangs"}
    verdict = verdicts[ended.how]
    stage = str(ended.messages[-1]) if ended.messages else "compile"
    says = str(ended).strip().split("\n")[0]
    if ended.how == "raised" and stage == CHECKS:  # stock has compiled the call
        row = StageRow("all", stage, "unknown", f"the call could not be checked: {says}")
        return Blame(name, "unknown", None, (row,), notes=(CALLED_OFTEN,))
    fault = Fault(verdict, "all", stage, says)
    row = StageRow("all", stage, verdict, says)
    return Blame(name, verdict, fault, (row,), notes=(CALLED_OFTEN,))
