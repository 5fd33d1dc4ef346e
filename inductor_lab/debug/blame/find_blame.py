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
from inductor_lab.compiler.base.errors import BadOption, NotRunnable
from inductor_lab.compiler.base.options import Options
from inductor_lab.debug.blame.analysis import Analysis
from inductor_lab.debug.blame.blame_result import Blame
from inductor_lab.debug.blame.stale_guards import stale_guard
from inductor_lab.debug.blame.verdict import verdict_of
from inductor_lab.debug.blame.watch_call import watch
from inductor_lab.debug.explore.run_stages import calling
from inductor_lab.debug.explore.what_if import call_of
from inductor_lab.stock.blame.blame_stock import blame_stock
from inductor_lab.stock.stock_compilation import StockCompilation

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
    compiler: str = "inductor_lab",
    **kwargs: Any,
) -> Blame:
    """Compile and run one call, and say which stage, value, kernel line and line of the user's is
    the first that is wrong; or that all is right, and how far roundings go.

    limit     seconds that the compiled code of a graph may take
    compiler  `"inductor_lab"`, or `"stock"`: torch's own compiler (`stock/blame/blame_stock.py`)

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
    if compiler == "stock":
        return blame_stock(fn, args, kwargs, chosen, limit)
    if compiler != "inductor_lab":
        raise BadOption("compiler", compiler, "'inductor_lab' or 'stock'")
    seen = watch(fn, args, kwargs, replace(chosen, cache=False))
    name = getattr(fn, "__name__", type(fn).__name__)
    return verdict_of(name, seen, [Analysis(site, limit) for site in seen.sites])


def blame_again(
    compilation: Record | StockCompilation, *args: Any, limit: float = LIMIT, **kwargs: Any
) -> Blame:
    """`Compilation.blame` and `StockCompilation.blame`, which say what they do."""
    call = call_of(compilation)
    if not args and not kwargs:
        args, kwargs = call.args, dict(call.kwargs)
    with calling("blame", call, args, kwargs):
        stale = stale_guard(compilation, args, kwargs)
        if stale is not None:
            return stale
        if isinstance(compilation, StockCompilation):
            return blame_stock(call.fn, args, kwargs, call.options, limit)
        return blame(call.fn, *args, options=call.options, limit=limit, **kwargs)

