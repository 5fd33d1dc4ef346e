"""`lab.judge_kernel`: judge an edited kernel of a compilation, of ours or of stock.

    c = lab.inspect(f, x)                      # or compiler="stock"
    kernel = c.graphs[0].forward.kernels[0]
    print(lab.judge_kernel(c, kernel.name, str(kernel.code).replace("16", "32")))

The candidate is the part of the compilation that contains the kernel, with the edited text; the
reference is the graph of this part in eager mode.  A part is compiled for its sizes, so the cases
have other values only.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from inductor_lab.api.arguments import Seconds, checked
from inductor_lab.bench.machine import ceilings
from inductor_lab.compiler.base.errors import NotRunnable, UnknownName
from inductor_lab.compiler.records import Record
from inductor_lab.debug.compare.values import copied_call, copies
from inductor_lab.debug.explore.edit_kernel import Refused, edited_part
from inductor_lab.debug.explore.what_if import call_of
from inductor_lab.debug.isolate import can_fork
from inductor_lab.debug.judge.candidate import Candidate
from inductor_lab.debug.judge.cases import CaseArguments
from inductor_lab.debug.judge.check_part import judge_part
from inductor_lab.debug.judge.judge import Judge, timed
from inductor_lab.debug.judge.speed import processes, shared_folder
from inductor_lab.debug.judge.tree import Tree
from inductor_lab.debug.judge.verdict import JudgeVerdict
from inductor_lab.stock.stock_compilation import StockCompilation, StockPart

CALLS = """

def candidate(*args):
    return call(list(args))
"""


@checked
def judge_kernel(
    compilation: Record | StockCompilation,
    kernel: str,
    text: str,
    *,
    part: str = "g0.forward",
    seconds: Seconds | None = 1.0,
    limit: Seconds = 120.0,
) -> JudgeVerdict:
    """Judge an edited kernel: is its part correct, and how fast is it?

    `kernel` is its name, `part` the part that contains it (`"g0.backward"`), and `text` the text of
    the complete function, with the same parameters.  A kernel of stock is judged in the forward of
    a call without gradients.  The part is timed for about `seconds` (None: not at all), next to
    eager mode.

    Raises UnknownName for an unknown part or kernel, BadArguments for a part with random numbers,
    and NotRunnable for a compilation that was loaded from a file or if this process cannot fork.
    """
    if isinstance(compilation, StockCompilation):
        return _judge_stock(compilation, kernel, text, part, seconds, limit)
    if not can_fork():
        raise NotRunnable("this process cannot be forked", todo="use Linux, before CUDA is used")
    try:
        attempt = edited_part(compilation, kernel, text, part)
    except Refused as refused:
        errors = (f"line {line}: {said}" if line else said for line, said in refused.errors)
        return JudgeVerdict(kernel, tuple(f"it does not compile: {each}" for each in errors))
    with judge_part(attempt, limit) as (verdict, judging):
        if not verdict.accepted or seconds is None:
            return verdict
        with tempfile.TemporaryDirectory(dir=shared_folder()) as folder:
            tree = Tree(judging.process.keeper)
            return timed(verdict, judging.reference, judging.process, judging.cases, seconds,
                         processes(judging.process, Path(folder), tree), ceilings)  # fmt: skip


def _judge_stock(
    compilation: StockCompilation, kernel: str, text: str, part: str, seconds: float | None,
    limit: float,
) -> JudgeVerdict:  # fmt: skip
    number, found = _stock_part(compilation, part)
    known = {each.name: each for each in found.generated}
    if kernel not in known:
        there = ", ".join(known)
        raise UnknownName(f"{part} has no kernel {kernel!r}", todo=f"there is {there}")
    old = str(known[kernel].code).rstrip("\n")
    if old not in found.text:
        what = f"the text of {kernel} does not appear in the program of stock"
        raise NotRunnable(what, todo="inspect the call again")
    program = found.text.replace(old, text.rstrip("\n")) + CALLS
    graph = _captured(compilation)[number]
    with Judge() as judge:
        verdict = judge.judge(
            graph.module, Candidate(program), [CaseArguments(tuple(graph.inputs), {})],
            fixed=True, seconds=seconds, limit=limit,
        )  # fmt: skip
    return replace(verdict, name=kernel)


def _stock_part(compilation: StockCompilation, part: str) -> tuple[int, StockPart]:
    """The forward of a graph; raises UnknownName and NotRunnable."""
    parts = {
        f"g{number}.{each.name}": (number, graph, each)
        for number, graph in enumerate(compilation.graphs)
        for each in graph.parts
    }
    if part not in parts:
        raise UnknownName(f"there is no part {part!r}", todo=f"there is {', '.join(parts)}")
    number, graph, found = parts[part]
    if graph.backward is not None:
        what = "a kernel of stock is judged only in a call without gradients"
        raise NotRunnable(what, todo="inspect the call inside torch.no_grad()")
    return number, found


@dataclass(frozen=True)
class _Graph:
    """A graph of TorchDynamo with its inputs in one call."""

    module: Callable[..., Any]
    inputs: Sequence[Any]


def _captured(compilation: StockCompilation) -> list[_Graph]:
    """The graphs of the call, in order, with their inputs; raises NotRunnable."""
    call, found = call_of(compilation), []

    def backend(module: Callable[..., Any], _: Any) -> Callable[..., Any]:
        def run(*args: Any) -> Any:
            found.append(_Graph(module, copies(args)))
            return module(*args)

        return run

    args, kwargs = copied_call(call.args, call.kwargs)
    with torch.set_grad_enabled(call.with_grad):
        torch.compile(call.fn, backend=backend)(*args, **kwargs)
    if len(found) < len(compilation.graphs):
        raise NotRunnable("the call has other graphs now", todo="inspect the call again")
    return found
