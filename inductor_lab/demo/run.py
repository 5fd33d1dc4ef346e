"""Compile, run and check one program; what was found is an `Outcome`."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

import inductor_lab as lab
from inductor_lab.bench.timing import compare
from inductor_lab.demo.programs import Program, small_gpt2


@dataclass(frozen=True)
class Outcome:
    """What the demo prints for one program: times in milliseconds, `error` over 1 + |eager|."""

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
    eager, fast = _job(fn, args, program), _job(compilation.compiled, args, program)
    error, note = _difference(eager(), fast()), ""
    if program.name == "gpt2":
        error, note = compare_training(steps=10)
    timings = compare({"eager": eager, "compiled": fast}, seconds=1.0)
    path = None
    if reports is not None:
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


def _job(
    fn: Callable[..., Any], args: tuple[Any, ...], program: Program
) -> Callable[[], list[Any]]:
    """What is timed and compared: the call, and the gradient where the program has one."""
    model = getattr(fn, "model", None) or getattr(
        getattr(fn, "_torchdynamo_orig_callable", None), "model", None
    )
    wanted = [a for a in args if isinstance(a, torch.Tensor) and a.requires_grad]
    wanted += list(model.parameters()) if model is not None else []

    def job() -> list[Any]:
        result = fn(*args)
        if not program.gradient:
            return [result]
        return [result.detach(), *torch.autograd.grad(result.sum(), wanted)]

    return job


def _difference(expected: list[Any], found: list[Any]) -> float:
    """The largest |found - expected| / (1 + |expected|); inf where shapes or dtypes differ."""
    worst = 0.0
    for a, b in zip(expected, found, strict=True):
        if type(a) is not type(b) or a.dtype != b.dtype or a.shape != b.shape:
            return float("inf")
        left, right = (torch.as_tensor(np.asarray(v.detach() if isinstance(v, torch.Tensor) else v))
                       .double() for v in (a, b))  # fmt: skip
        gap = ((left - right).abs() / (1 + left.abs())).max().item() if left.numel() else 0.0
        worst = max(worst, gap if gap == gap else float("inf"))
    return worst
