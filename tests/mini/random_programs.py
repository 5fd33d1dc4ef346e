"""Check the small compiler on random programs: results, gradients, and all stages of each graph."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch

from inductor_lab.mini import pipeline
from inductor_lab.mini.pipeline import Part, compile_graph, inductor_lab_mini
from tests.fuzz.check import TORCHS_OWN, check_calls, found_with, others
from tests.fuzz.eager import Wrong, is_comparable, known
from tests.fuzz.jumps import jumps
from tests.fuzz.program import Program
from tests.fuzz.run import draw
from tests.fuzz.shrink import failure, shrunk

ROUNDING = {torch.float64: 1e-9, torch.float32: 1e-4, torch.bfloat16: 0.1, torch.float16: 0.02}


def checking_stages(graph: torch.fx.GraphModule, kind: str) -> Part:
    """A compiled graph whose stages run too in each call, and are compared."""
    part = compile_graph(graph, kind)

    def run(*args: Any) -> Any:
        results = {name: stage(*map(copied, args)) for name, stage in part.stages().items()}
        dtypes = {buffer.dtype for buffer in part.program.buffers.values()}
        rounding = max(ROUNDING.get(dtype, 0.0) for dtype in (*dtypes, torch.bool))
        for name, found in results.items():
            compare(name, found, results["program"], rounding)
        return part.host.run(*args)

    return replace(part, host=part.host._replace(run=run))


def copied(value: Any) -> Any:
    """A tensor of the same values and layout, in memory of its own."""
    if not isinstance(value, torch.Tensor) or 0 in value.shape:
        return value
    extent = 1 + sum((n - 1) * s for n, s in zip(value.shape, value.stride(), strict=True))
    flat = value.detach().as_strided((extent,), (1,)).clone()
    return flat.as_strided(value.shape, value.stride())


def compare(
    stage: str, found: Sequence[Any], expected: Sequence[Any], rounding: float
) -> None:
    """Whole numbers are equal, floats differ by a rounding of the least precise dtype."""
    for a, b in zip(found, expected, strict=True):
        if not isinstance(b, torch.Tensor):
            assert a == b
            continue
        assert (a.shape, a.dtype) == (b.shape, b.dtype), stage
        if stage != "graph" and b.numel():
            assert a.stride() == b.stride(), stage
        if not b.dtype.is_floating_point:
            assert torch.equal(a, b), stage
            continue
        finite = b[b.isfinite()]
        scale = 1 + float(finite.abs().max()) if finite.numel() else 1.0
        room = rounding * scale
        assert torch.allclose(a.double(), b.double(), 0, room, equal_nan=True), f"{stage}: {a} {b}"


def check(program: Program, *, gradients: bool = False, sizes: bool = False) -> None:
    """Raise Wrong unless the compiled program and all its stages agree with eager mode.

    A program passes if `aot_eager`, which compiles nothing, is wrong too, or if its results jump
    where values differ by a rounding.
    """
    if gradients:
        program = program.with_copies()
    try:
        calls = [known(program, gradients)]
    except RuntimeError:
        return
    if sizes:
        calls += others(program, calls[0])
    if not all(is_comparable(call, gradients) for call in calls):
        return
    torch.compiler.reset()
    compiled = torch.compile(
        program.function(), backend=inductor_lab_mini, dynamic=sizes or None
    )
    try:
        check_calls("mini", compiled, calls, gradients)
    except Exception as wrong:
        known_to_torch = any(words in str(wrong) for words in TORCHS_OWN)
        found = partial(found_with, calls=calls, gradients=gradients, dynamic=sizes or None)
        if known_to_torch or found("aot_eager") is not None:
            return
        if isinstance(wrong, Wrong) and any(jumps(call, gradients) for call in calls):
            return
        raise


def check_random(
    count: int, seed: int, way: str = "default", stages: bool = True, **options: bool
) -> int:
    """Check programs drawn from a seed; the first that fails is made as short as it still fails.

    Returns how many programs were checked.
    """
    checked = 0
    run = partial(check, **options)

    def use(program: Program) -> None:
        nonlocal checked
        checked += 1
        why = failure(run, program)
        if why is not None:
            smallest, why = shrunk(run, program, why)
            raise Wrong(f"seed {seed}: {why}\n{smallest}")

    pipeline.compile_graph = checking_stages if stages else compile_graph
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            draw(count, seed, use, way)
    finally:
        pipeline.compile_graph = compile_graph
    return checked
