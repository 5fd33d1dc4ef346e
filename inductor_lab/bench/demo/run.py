"""Compile, run and check one program; the result is an `Outcome`."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

import inductor_lab as lab
from inductor_lab.bench.demo.programs import Program, small_gpt2
from inductor_lab.bench.jobs import Job, difference
from inductor_lab.bench.timing import compare
from inductor_lab.compiler.base.display import write_errors


@dataclass(frozen=True)
class Outcome:
    """The results for one program: times in milliseconds, `error` relative to 1 + |eager|."""

    program: Program
    compilation: lab.Compilation
    eager_ms: float
    compiled_ms: float
    error: float
    report: Path | None
    note: str = ""

    @property
    def passed(self) -> bool:
        return self.error <= self.program.tolerance


def run_program(
    program: Program, reports: Path | None, observer: lab.Observer | None = None
) -> Outcome:
    """Inspect the program, compare its results with eager, time both, write its report."""
    fn, args = program.make()
    compilation = lab.inspect(fn, *args, observer=observer)
    assert compilation.compiled is not None, "an inspected function can be called"
    eager, fast = (Job(f, args, {}, program.gradient) for f in (fn, compilation.compiled))
    error, note = difference(eager(), fast()), ""
    if program.name == "gpt2":
        error, note = compare_training(steps=10)
    timings = compare({"eager": eager, "compiled": fast}, seconds=1.0)
    path = None
    if reports is not None:
        with write_errors(reports, "reports"):
            reports.mkdir(parents=True, exist_ok=True)
        path = compilation.report(reports / f"{program.name}.html")
    return Outcome(
        program,
        compilation,
        timings.median_ms("eager"),
        timings.median_ms("compiled"),
        error,
        path,
        note,
    )


def compare_training(steps: int) -> tuple[float, str]:
    """Train two equal models with AdamW, eager and compiled.

    Returns the largest relative difference of their losses (inf if they do not go down) and a note.
    """
    reference, tokens = small_gpt2()
    model = copy.deepcopy(reference)
    expected = _train(reference, reference, tokens, steps)
    found = _train(model, lab.compile(model), tokens, steps)
    error = max(abs(a - b) / abs(a) for a, b in zip(expected, found, strict=True))
    down = found[-1] < found[0]
    return error if down else float("inf"), f"loss {found[0]:.4f} -> {found[-1]:.4f}"


def _train(
    model: torch.nn.Module, call: Callable[..., Any], tokens: torch.Tensor, steps: int
) -> list[float]:
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = call(tokens, labels=tokens).loss
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    return losses
