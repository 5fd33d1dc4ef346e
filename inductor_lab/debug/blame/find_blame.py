"""Find the first wrong stage: compare each stage of a call with the previous one, in float64.

    eager        the function itself
    captured     the graphs that TorchDynamo has captured, run by torch
    decomposed   ATen operators (with gradients: the joint graph, then its two halves)
    rewrite      after each pass
    loops        one nest for each operator
    schedule     groups of nests
    loop tree    the loops of each kernel, after the build and after each pass
    kernel       each kernel in isolation, on correct inputs
    host program all kernels together, statement by statement

The stages before code generation are compared in float64, where they agree to many digits.  Code is
compared with the interpreter of its stage, within the rounding error of the program
(`debug/compare/precision.py`).  Kernels run in a separate process (`debug/isolate.py`), because
they may crash or hang.
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
"""Time limit of compiled code in seconds."""


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
    """Compile and run one call, and find the first wrong stage, value, kernel line and user line.

    If nothing is wrong, the result contains the rounding errors.

    limit     time limit for the compiled code of a graph, in seconds
    compiler  `"inductor_lab"`, or `"stock"`: torch's own compiler (`stock/blame/blame_stock.py`)

    The function runs a few times on copies of its arguments.  Its state (buffers, parameters,
    closures, counters, random generators) is restored before each run and at the end.  Results,
    values written to arguments and state, and the gradients of arguments that require them are
    compared.  Exceptions of `fn` are passed on.
    """
    chosen = options if isinstance(options, Options) else Options.make(options)
    if chosen.target is not None:
        raise NotRunnable(
            f"code for {chosen.target} does not run on this machine, so it cannot be checked",
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
    """Implements `Compilation.blame` and `StockCompilation.blame`."""
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

