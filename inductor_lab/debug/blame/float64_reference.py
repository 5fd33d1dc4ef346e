"""The expected results of a captured graph: run by torch, in float64, and perturbed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx import GraphModule

from inductor_lab.debug.blame.run_graphs import SHAKES, runner
from inductor_lab.debug.blame.stages import spread_of
from inductor_lab.debug.compare.compare_results import judge_all
from inductor_lab.debug.compare.precision import Judged
from inductor_lab.debug.compare.values import Outcome, call, copies, widened


@dataclass(frozen=True)
class Reference:
    """`exact` is None if the graph does not run in float64; `why` is the reason."""

    eager: Outcome
    exact: Outcome | None
    spread: Mapping[str, torch.Tensor]
    why: str = ""

    @staticmethod
    def of(
        module: GraphModule, inputs: Sequence[Any], names: Sequence[str], with_grad: bool
    ) -> Reference:
        """Run the graph with torch: unchanged, in float64, and several times perturbed."""
        eager = call(runner(module), copies(inputs), names, with_grad)
        try:
            exact = call(runner(module, wide=True), widened(inputs), names, with_grad)
            shaken = [
                call(runner(module, wide=True, shaken=seed), widened(inputs), names, with_grad)
                for seed in range(1, SHAKES + 1)
            ]
        except (RuntimeError, NotImplementedError, TypeError) as error:
            return Reference(eager, None, {}, str(error).split("\n")[0])
        return Reference(eager, exact, spread_of(shaken, exact))

    def judge(self, got: Outcome) -> dict[str, Judged]:
        """The verdict about each result of another call."""
        return judge_all(got, self.eager, self.exact, self.spread)
