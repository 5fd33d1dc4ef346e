"""The `run` method of every stage of every program computes the result of eager mode."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.testing import assert_close

import inductor_lab as lab
from inductor_lab.bench.demo.programs import PROGRAMS
from tests.end_to_end.functions import CASES

SMALL_PROGRAMS = {program.name: program for program in PROGRAMS[:5]}


def results(value: Any) -> list[Any]:
    if isinstance(value, tuple | list):
        return list(value)
    return [value]


def check(found: Any, expected: Any, stage: str, tolerance: float) -> None:
    pairs = list(zip(results(found), results(expected), strict=False))
    assert pairs, f"{stage} returned nothing"
    for a, b in pairs:
        a, b = torch.as_tensor(a), torch.as_tensor(b)
        assert_close(a, b, rtol=tolerance, atol=tolerance, msg=lambda m: f"{stage}: {m}")


def check_all_stages(c: lab.Compilation, expected: Any, tolerance: float = 1e-4) -> None:
    assert len(c.graphs) == 1 and not c.capture.breaks
    graph = c.graphs[0]
    tensors = graph.inputs
    check(c.result, expected, "executable", tolerance)
    check(c.capture.graphs[0].run(*tensors), expected, "captured graph", tolerance)
    for stage in ("loops", "schedule"):
        check(getattr(graph.forward, stage).run(*tensors), expected, stage, tolerance)
    if graph.joint is not None:
        ones = [torch.ones_like(torch.as_tensor(r)) for r in results(expected)]
        check(graph.joint.run(*tensors, *ones), expected, "joint graph", tolerance)


@pytest.mark.parametrize("name", CASES)
def test_small_function(name: str) -> None:
    torch.manual_seed(0)
    fn, make = CASES[name]
    args = make()
    c = lab.inspect(fn, *args)
    check_all_stages(c, fn(*args))


@pytest.mark.parametrize("name", CASES)
def test_gradients(name: str) -> None:
    torch.manual_seed(0)
    fn, make = CASES[name]
    args = tuple(
        a.requires_grad_() if a.is_floating_point() and a.dtype != torch.bfloat16 else a
        for a in make()
    )
    wanted = [a for a in args if a.requires_grad]
    expected = [r for r in results(fn(*args)) if r.requires_grad]
    if not expected:
        pytest.skip("nothing here has a gradient")
    c = lab.inspect(fn, *args)
    found = [r for r in results(c.result) if r.requires_grad]
    grads = []
    for outputs in (expected, found):
        weights = [torch.arange(r.numel()).reshape(r.shape).to(r.dtype).cos() for r in outputs]
        grads.append(torch.autograd.grad(outputs, wanted, weights, allow_unused=True))
    for a, b in zip(*grads, strict=True):
        assert_close(b, a, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", SMALL_PROGRAMS)
def test_program_stages(name: str) -> None:
    program = SMALL_PROGRAMS[name]
    fn, args = program.make()
    c = lab.inspect(fn, *args)
    check_all_stages(c, fn(*args), program.tolerance)


def test_backward_stages_of_trig() -> None:
    """The gradient of sin² + cos² is zero everywhere, in every stage of the backward graph."""
    fn, (x,) = SMALL_PROGRAMS["trig"].make()
    graph = lab.inspect(fn, x).graphs[0]
    assert graph.backward is not None and graph.partition is not None
    saved = graph.forward.loops.run(x)[1:]
    for stage in ("loops", "schedule"):
        (grad,) = getattr(graph.backward, stage).run(*saved, torch.ones(1000))
        assert_close(grad, torch.zeros(1000), atol=1e-6, rtol=0)
    *_, joint_grad = graph.joint.run(x, torch.ones(1000))
    assert_close(joint_grad, torch.zeros(1000), atol=1e-6, rtol=0)


@pytest.mark.parametrize("name", ["trig", "uint8", "add_mul", "scale_sin"])
def test_the_first_four_programs_call_no_library(name: str) -> None:
    fn, args = SMALL_PROGRAMS[name].make()
    coverage = lab.inspect(fn, *args).coverage
    assert coverage.share == 1.0, str(coverage)


def test_fusion_reduces_three_kernels_and_six_passes_to_one_and_two() -> None:
    fn, args = SMALL_PROGRAMS["scale_sin"].make()
    c = lab.inspect(fn, *args)
    assert (c.before.kernels, c.before.passes) == (3, 6)
    assert (c.after.kernels, c.after.passes) == (1, 2)
    assert round(c.saved, 3) == 0.667
