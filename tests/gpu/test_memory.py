"""`lab.memory` on a GPU: its peaks are those of the statistics of torch's allocator."""

from __future__ import annotations

import gc
from typing import Any

import pytest
import torch
from torch import nn

import inductor_lab as lab
from inductor_lab.debug.memory.run_step import run_backward
from inductor_lab.debug.memory.runs import Step
from tests.debug.training_steps import BY_NAME

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU"),
]
WHO = ["eager", "stock", "inductor_lab"]


def on_gpu(name: str) -> tuple[Any, tuple[Any, ...]]:
    torch.manual_seed(0)
    fn, args = BY_NAME[name].make()
    moved = [a.detach().cuda().requires_grad_(a.requires_grad) for a in args]
    if isinstance(fn, nn.Module):
        fn = fn.cuda()
    return fn, tuple(moved)


def peak_increase(who: str, fn: Any, args: tuple[Any, ...]) -> int:
    """By how many bytes a later call increases the memory that torch has allocated."""
    kept = Step(fn, args, {}).kept()
    call = fn if who == "eager" else lab.inspect(fn, *args, compiler=who).compiled
    run_backward(call(*args))
    kept.put_back()
    gc.collect()
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    result = call(*args)
    run_backward(result)
    torch.cuda.synchronize()
    increase = torch.cuda.max_memory_allocated() - before
    kept.put_back()
    return increase


@pytest.mark.parametrize("who", WHO)
@pytest.mark.parametrize("name", ["softmax_chain", "long_chain", "attention", "blocks"])
def test_the_peak_is_that_of_the_allocator(name: str, who: str) -> None:
    fn, args = on_gpu(name)
    found = lab.memory(fn, *args, compilers=[who], suggest=False)
    run = found[who]
    assert found.device.startswith("cuda") and not run.failure
    expected = run.base_bytes + peak_increase(who, fn, args)
    assert abs(run.peak_bytes - expected) < 0.05 * expected
    assert sum(holder.nbytes for holder in run.holders) == run.peak_bytes


def test_state_is_unchanged_without_a_fork() -> None:
    fn, args = on_gpu("blocks")
    before = {name: value.clone() for name, value in fn.state_dict().items()}
    random = torch.cuda.get_rng_state()
    lab.memory(fn, *args, compilers=["eager", "inductor_lab"], suggest=False)
    for name, value in fn.state_dict().items():
        assert torch.equal(value, before[name]), name
    assert all(parameter.grad is None for parameter in fn.parameters())
    assert torch.equal(torch.cuda.get_rng_state(), random)


def test_the_largest_tensor_is_named() -> None:
    fn, args = on_gpu("softmax_chain")
    run = lab.memory(fn, *args, compilers=["eager"], suggest=False)["eager"]
    saved = [holder for holder in run.holders if holder.kind == "saved" and not holder.before]
    assert {holder.why for holder in saved} >= {"by SoftmaxBackward0", "by TanhBackward0"}
    assert all(holder.place is not None for holder in saved)
