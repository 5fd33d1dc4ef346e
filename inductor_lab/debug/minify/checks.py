"""Checks of a candidate: how it fails, as one word that shrinking must preserve."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import torch
from torch.fx import GraphModule

from inductor_lab.compiler.torch_door import torch_api
from inductor_lab.debug.blame.float64_reference import Reference
from inductor_lab.debug.compare.compare_results import first_wrong
from inductor_lab.debug.compare.values import call, copies
from inductor_lab.debug.isolate import Ended, Tell, Work
from inductor_lab.debug.minify.candidate import Candidate

Check: TypeAlias = Callable[[Callable[..., Any], Sequence[Any]], Any]
"""`check(function, inputs)`: does it fail?  Returns a word for the failure; false values pass."""

CALLS = 3
"""Number of calls of compiled code: results that differ between calls are a failure too."""


VARIES = "not deterministic"
"""The word for results that differ between calls."""


class Fails:
    """The default check: does the code compiled by a backend agree with eager mode?

    The word is "wrong", "NaN", ..., "not deterministic", or two of them.
    """

    def __init__(self, backend: Any) -> None:
        self.backend = backend

    def __call__(self, candidate: Candidate) -> str:
        module, names = candidate.module, [n.name for n in _inputs(candidate.module)]

        def run(function: Callable[..., Any]) -> Any:
            return call(function, copies(candidate.inputs), names, candidate.with_grad)

        try:
            expected = Reference.of(module, candidate.inputs, names, candidate.with_grad)
        except Exception:
            return ""  # eager mode must be able to run it
        torch_api.reset()
        with torch_api.fresh_compile({}):
            compiled = torch.compile(module, backend=self.backend, dynamic=False)
            try:
                outcomes = [run(compiled) for _ in range(CALLS)]
            except torch_api.BackendCompilerFailed as failed:
                raise failed.inner_exception from failed
            except Exception:
                torch_api.reset()
                try:
                    run(torch.compile(module, backend="eager", dynamic=False))
                except Exception:
                    return ""  # TorchDynamo cannot recapture this graph, with any backend
                raise
        varies = not all(_same(outcomes[0], other) for other in outcomes[1:])
        for got in outcomes:
            wrong = first_wrong(expected.judge(got))
            if wrong is not None:
                return f"{wrong[1].kind}, {VARIES}" if varies else wrong[1].kind
        return VARIES if varies else ""


def _same(first: Any, second: Any) -> bool:
    return all(
        torch.equal(value.nan_to_num(), second[name].nan_to_num())
        for name, value in first.items() if isinstance(value, torch.Tensor)
    )  # fmt: skip


def _inputs(module: GraphModule) -> list[torch.fx.Node]:
    return module.graph.find_nodes(op="placeholder")


def slower_than_eager(times: float, calls: int = 5) -> Check:
    """A check for `lab.minify`: is our compiled code `times` times slower than eager mode?"""
    from inductor_lab.api.backend import compile

    def check(function: Callable[..., Any], inputs: Sequence[Any]) -> bool:
        def seconds(run: Callable[..., Any]) -> float:
            run(*inputs)
            took = []
            for _ in range(calls):
                start = time.perf_counter()
                run(*inputs)
                took.append(time.perf_counter() - start)
            return min(took)

        compiled = compile(function, options={"cache": False})
        return seconds(compiled) > times * seconds(function)

    return check


def work_of(candidate: Candidate, check: Check | None, fails: Fails) -> Work:
    """The check of one candidate, to be run isolated."""

    def work(tell: Tell) -> Any:
        if check is None:
            return fails(candidate)
        with torch.set_grad_enabled(candidate.with_grad):
            said = check(candidate.module, copies(candidate.inputs))
        return said if isinstance(said, str) else bool(said)

    return work


def symptom(ended: Ended) -> tuple[str, str]:
    """How a check ended, in a form that is comparable between candidates; ("", "") is a pass."""
    if ended.how == "returned":
        said = ended.value
        return ("fails", str(said)) if said else ("", "")
    return ended.how, ended.kind
