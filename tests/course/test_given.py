"""A user's phases in the real pipeline: legal results run, others are refused with a reason."""

from __future__ import annotations

import pytest
import torch

import inductor_lab as lab
from inductor_lab.compiler.base.errors import BadArguments, Refused


def attend(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return torch.softmax((x @ w) * 0.5, -1)


def training(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.dropout((x @ w).sin().exp(), 0.5).sum()


def crossed(x: torch.Tensor) -> torch.Tensor:
    return x.sum(0)[:, None] + x.sum(1)


def inputs(grad: bool = False) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randn(8, 4), torch.randn(4, 8, requires_grad=grad)


def schedule_of(function, args, mine):
    with lab.override(schedule=mine):
        found = lab.inspect(function, *args)
    torch.testing.assert_close(found.result, function(*args))
    return found.graphs[0].forward.schedule


def test_one_kernel_per_nest() -> None:
    args = inputs()
    schedule = schedule_of(attend, args, lambda program: [[n.buffer] for n in program.nests])
    assert schedule.after.kernels == schedule.before.kernels == 7 and schedule.saved == 0


def test_all_in_one_kernel() -> None:
    args = inputs()
    schedule = schedule_of(attend, args, lambda program: [[n.buffer for n in program.nests]])
    assert schedule.after.kernels == 2
    assert schedule.after == lab.inspect(attend, *args).graphs[0].forward.schedule.after


def test_a_pointwise_nest_may_be_computed_in_several_kernels() -> None:
    def two(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = x + 1
        return y.sum(0), y * 2

    apart = schedule_of(two, (torch.randn(8, 4),), lambda p: [["buf0", "buf1"], ["buf0", "buf2"]])
    assert [sorted(group.inlined) for group in apart.groups] == [["buf0"], ["buf0"]]


@pytest.mark.parametrize("mine, said", [
    (lambda p: [["buf1"]], "no group computes buf2, buf3, buf4, buf5, buf6"),
    (lambda p: 3, "a list of groups of buffers, not 3"), (lambda p: "buf1", "not 'buf1'"),
    (lambda p: [["buf9"]], "unknown loop nest: buf9"),
    (lambda p: [["buf0"]], "unknown loop nest: buf0"),
    (lambda p: [[["buf1"], 3]], "unknown loop nest: 3, ['buf1']"),
    (lambda p: [None], "unknown loop nest: None"),
    (lambda p: [[n.buffer for n in p.nests]] * 2, "two groups contain buf1, buf2, buf3"),
    (lambda p: [[n.buffer for n in p.nests], ["buf2"]], "contain buf2: one of them is redundant"),
])  # fmt: skip
def test_an_invalid_schedule_is_refused(mine, said: str) -> None:
    with pytest.raises(Refused) as refused:
        schedule_of(attend, inputs(), mine)
    assert said in str(refused.value)


def test_an_illegal_kernel_is_refused_with_the_rule_that_forbids_it() -> None:
    with pytest.raises(Refused) as refused:
        schedule_of(crossed, (torch.randn(8, 8),), lambda p: [[n.buffer for n in p.nests]])
    assert "buf0, buf1, buf2 cannot be one kernel" in str(refused.value)
    assert "same_iteration_space: the kernel of buf" in str(refused.value)


def partition_of(mine):
    x, w = inputs(grad=True)
    with lab.override(partition=mine):
        found = lab.inspect(training, x, w)
        found.result.backward()
    assert torch.isfinite(w.grad).all() and w.grad.abs().max() > 0
    return found.graphs[0].partition


def test_a_users_partitioner() -> None:
    all_needed = partition_of(lambda values: [v.name for v in values if v.needed])
    random = partition_of(
        lambda values: [v.name for v in values if v.op.endswith("rand_like.default")]
    )
    assert random.cut_bytes < all_needed.cut_bytes
    assert any(value.is_input for value in random.saved), "inputs are added"
    assert {r.op for r in random.recomputed} >= {"torch.ops.aten.exp.default"}
    assert "chosen by the user's partitioner" in str(all_needed)


@pytest.mark.parametrize("mine, said", [
    (lambda values: [], "rand_like.default, which cannot be recomputed"),
    (lambda values: ["nothing"], "['nothing'] are not values of the forward"),
])  # fmt: skip
def test_a_cut_that_does_not_separate_is_refused(mine, said: str) -> None:
    with pytest.raises(Refused) as refused:
        partition_of(mine)
    assert said in str(refused.value)


def test_a_replaced_phase_is_restored_and_its_name_checked() -> None:
    args = inputs()
    schedule_of(attend, args, lambda program: [[n.buffer] for n in program.nests])
    assert lab.inspect(attend, *args).after.kernels == 2
    with pytest.raises(BadArguments, match="no phase 'frobnicate'"), lab.override(frobnicate=print):
        pass
    fast = torch.compile(attend, backend="inductor_lab")
    with pytest.raises(Exception, match="Refused"), lab.override(schedule=lambda program: []):
        fast(*args)
    torch.testing.assert_close(fast(*args), attend(*args))
