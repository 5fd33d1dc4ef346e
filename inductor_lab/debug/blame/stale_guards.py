"""Find compiled code that is reused although a value that it depends on has changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch

from inductor_lab.compiler.capture.fx_graph import FxGraph, FxNode
from inductor_lab.debug.blame.blame_result import Blame, Fault, StageRow
from inductor_lab.debug.blame.watch_call import CallSite, watch_with
from inductor_lab.debug.compare.compare_results import first_wrong, judge_all
from inductor_lab.debug.compare.values import copied_call, named_results, plain_tensors
from inductor_lab.debug.explore.what_if import call_of
from inductor_lab.debug.recompiles.call_again import called_again
from inductor_lab.stock.stock_compilation import StockCompilation

if TYPE_CHECKING:
    from inductor_lab.compiler.records import Record


class CaptureOnly(CallSite):
    """A graph that is captured but not compiled."""

    def compile(self, inputs: Sequence[Any]) -> Callable[..., Any]:
        return self.first_call


def stale_guard(
    compilation: Record | StockCompilation, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Blame | None:
    """What to blame if the compiled function answers this call with code that does not fit it."""
    call = call_of(compilation)
    given, named = copied_call(args, kwargs)
    again = called_again(compilation, *given, **named)
    given, named = copied_call(args, kwargs)
    with torch.set_grad_enabled(call.with_grad):
        expected = plain_tensors(dict(named_results(call.fn(*given, **named))))
    judged = judge_all(plain_tensors(dict(named_results(again.result))), expected, None, {})
    wrong = first_wrong(judged)
    if wrong is None or not again.hit:
        return None
    now = watch_with(CaptureOnly, call.fn, args, kwargs, call.options)
    new = [site.captured for site in now.sites]
    if isinstance(compilation, StockCompilation):
        old = compilation.as_captured
    else:
        old = compilation.capture.graphs
    changed = _first_change(old, new)
    if changed is None:
        return None
    name, node = wrong[0], changed
    says = f"{name} comes from code that was compiled for something else: {wrong[1]}"
    fault = Fault(
        "stale", "all", "guards", says, name, node.name, f"{node.target}({node.args})", node.span,
        "captured graph", 0, f"{node.name} = {node.target}({node.args})", wrong[1],
    )  # fmt: skip
    guards = len(compilation.capture.guards)
    row = StageRow("all", "guards", "stale", f"{guards} guards let the call pass")
    return Blame(compilation.name, "stale", fault, (row,), results=judged)


def _first_change(old: tuple[FxGraph, ...], new: list[FxGraph]) -> FxNode | None:
    """The first node of the compiled graphs that differs in a new capture."""
    for before, after in zip(old, new, strict=False):
        for mine, other in zip(before.nodes, after.nodes, strict=False):
            facts = [(n.target, n.args, n.tensor.shape if n.tensor else ()) for n in (mine, other)]
            if facts[0] != facts[1]:
                return mine
    return None
