"""Tests the models of `tests/models` on a GPU: `python -m tests.gpu.models`.

Each model runs in float32, float16 and bfloat16, in eval mode and for one training step, in its own
process.  The errors of outputs, gradients and buffers against float64 must be about as small as in
eager mode.  A gradient that is zero in exact arithmetic has no correct digits.
"""

from __future__ import annotations

import argparse
import copy
import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

import inductor_lab as lab
from tests.models.compare import tensors
from tests.processes import STOPPED, Clock, Lost, gpu_server, in_parallel, messages, server

DTYPES = ("float32", "float16", "bfloat16")
ROUNDING = {"float32": 2e-5, "float16": 4e-3, "bfloat16": 2e-2}
"""The tolerance relative to the largest value of a tensor."""
SLACK = 3.0
"""The tolerance as a multiple of the error of eager mode."""
SMALL = 1e-3
"""A gradient smaller than this fraction of the largest one is compared with the largest."""


@dataclass(frozen=True)
class Case:
    model: str
    dtype: str
    training: bool
    device: str

    def __str__(self) -> str:
        return f"{self.model} {self.dtype} {'training' if self.training else 'eval'}"


@dataclass(frozen=True)
class Finding:
    """`agree`, `wrong`, `raises`, `crash` or `hang`, with the tensor that has the largest error."""

    case: Case
    verdict: str
    detail: str = ""
    seconds: float = 0.0


def check(case: Case) -> Finding:
    start = time.perf_counter()
    try:
        detail = _differences(case)
    except Exception as error:
        said = f"{type(error).__name__}: {' '.join(str(error).split())[:400]}"
        return Finding(case, "raises", said, time.perf_counter() - start)
    return Finding(case, "wrong" if detail else "agree", detail, time.perf_counter() - start)


def _differences(case: Case) -> str:
    from tests.models.library import MODELS

    torch.manual_seed(0)
    model, inputs = MODELS[case.model]()
    model = model.to(case.device).train(case.training)
    dtype = getattr(torch, case.dtype)
    exact = in_float64(model, inputs, case)
    eager = outcome(copy.deepcopy(model).to(dtype), inputs, dtype, case)
    found = outcome(model.to(dtype), inputs, dtype, case, lab.compile)
    return "; ".join(compared(found, eager, exact, ROUNDING[case.dtype]))


Outcome = dict[str, torch.Tensor]


def in_float64(model: torch.nn.Module, inputs: Mapping[str, torch.Tensor], case: Case) -> Outcome:
    """Compute in float32 if the library does not support float64 (grouped products of experts)."""
    try:
        return outcome(copy.deepcopy(model).double(), inputs, torch.float64, case)
    except RuntimeError:
        return outcome(copy.deepcopy(model), inputs, torch.float32, case)


def outcome(
    model: torch.nn.Module,
    inputs: Mapping[str, torch.Tensor],
    dtype: torch.dtype,
    case: Case,
    compiled: Callable[[Any], Any] = lambda model: model,
) -> Outcome:
    """Return every output by name, and in training every gradient and buffer."""
    given = {
        name: value.to(case.device, dtype if value.is_floating_point() else None)
        for name, value in inputs.items()
    }
    with torch.set_grad_enabled(case.training):
        results = tensors(compiled(model)(**given))
    found = {f"output {number}": result.detach() for number, result in enumerate(results)}
    if not case.training:
        return found
    loss_of(results).backward()
    parameters = model.named_parameters()
    found |= {f"gradient of {name}": p.grad for name, p in parameters if p.grad is not None}
    return found | {f"buffer {name}": buffer for name, buffer in model.named_buffers()}


def loss_of(results: Sequence[torch.Tensor]) -> torch.Tensor:
    """Return a loss with a different weight for each element, exact in every dtype."""
    parts = []
    for result in results:
        weights = torch.arange(result.numel(), device=result.device).reshape(result.shape) * 7 % 17
        parts.append((result.double() * ((weights - 8) / 8).double()).sum())
    return torch.stack(parts).sum()


def compared(found: Outcome, eager: Outcome, exact: Outcome, rounding: float) -> Iterator[str]:
    """Yield tensors whose error against float64 is larger than eager's error and rounding allow."""
    if found.keys() != exact.keys():
        yield f"other tensors: {sorted(found.keys() ^ exact.keys())[:5]}"
        return
    largest = max((float(t.abs().max()) for n, t in exact.items() if "gradient" in n), default=0.0)
    for name, right in exact.items():
        ours, theirs = found[name], eager[name]
        if (ours.shape, ours.dtype) != (theirs.shape, theirs.dtype):
            yield f"{name} is {ours.dtype}{list(ours.shape)}"
        elif right.numel() and right.is_floating_point():
            scale = max(float(right.abs().max()), SMALL * largest if "gradient" in name else 0.0)
            error = float((ours.double() - right).abs().max())
            usual = float((theirs.double() - right).abs().max())
            if not (error <= SLACK * usual + rounding * scale or (error != error != usual)):
                yield f"{name} is off by {error:.2g} (eager by {usual:.2g}, of {scale:.2g})"
        elif not torch.equal(ours.to(right.dtype), right):
            yield f"{name} differs"


# ---- the command -----------------------------------------------------------------------------


def _work(send: Callable[[Any], None], case: Case) -> None:
    send(check(case))


def run(context: Any, case: Case, limit: float, clock: Clock) -> Finding:
    for message in messages(context, _work, (case,), limit, clock):
        match message:
            case Finding():
                return message
            case Lost(how, why):
                return Finding(case, how, why)
    raise AssertionError(f"{case}: nothing came of it")


def main(given: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="tests.gpu.models", description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="only these models")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--dtypes", nargs="+", default=DTYPES, choices=DTYPES)
    parser.add_argument("--jobs", type=int, default=12)
    parser.add_argument("--minutes", type=float, default=0.0, help="stop after so long")
    parser.add_argument("--limit", type=float, default=120.0, help="seconds for one case")
    parser.add_argument("--summary", type=Path, help="also write all findings there, as JSON")
    arguments = parser.parse_args(given)
    warm = "tests.gpu.warm"
    context = gpu_server(warm) if arguments.device == "cuda" else server(warm)
    from tests.models.library import MODELS

    cases = [
        Case(name, dtype, training, arguments.device)
        for dtype in arguments.dtypes
        for training in (False, True)
        for name in arguments.names or MODELS
    ]
    clock, found = Clock(arguments.minutes), []

    def do(case: Case) -> tuple[Finding, tuple[()]]:
        return run(context, case, arguments.limit, clock), ()

    for finding in in_parallel(do, cases, arguments.jobs, clock):
        found.append(finding)
        line = f"{finding.seconds:6.1f} s  {finding.case}: {finding.verdict} {finding.detail[:300]}"
        print(line, flush=True)
        if arguments.summary:
            arguments.summary.write_text(json.dumps([asdict(one) for one in found], indent=1))
    sums = Counter(finding.verdict for finding in found)
    print(", ".join(f"{count} {verdict}" for verdict, count in sums.items()), "of", len(cases))
    return int(any(finding.verdict not in ("agree", STOPPED) for finding in found))


if __name__ == "__main__":
    sys.exit(main())
