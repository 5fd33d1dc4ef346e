"""Programs compiled by the small compiler: results, all stages, gradients."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.testing import assert_close

from inductor_lab import mini
from inductor_lab.mini import pipeline
from inductor_lab.mini.fuse import Group
from inductor_lab.mini.loops import Call
from tests.mini.random_programs import checking_stages

x, y = torch.randn(33, 20), torch.randn(20, 33)
whole, flags = torch.arange(-330, 330).reshape(33, 20), x > 0
PROGRAMS: dict[str, Callable[[], Any]] = {
    "chain": lambda: ((x + 1).relu() * 2 - x.exp()).sigmoid(),
    "broadcast": lambda: x + y[:1, :20] * x[:, :1],
    "transpose": lambda: x + y.t(),
    "transposed result": lambda: (x.t() + 1, x.t().contiguous()),
    "slices": lambda: x[1:, ::2] + x[:-1, 1::2],
    "reshape": lambda: (x * 2).view(11, 60).sum(1) + (x + 1).reshape(-1)[:11],
    "reshape of a reshape": lambda: ((x * 2).view(660) + 1).view(3, 11, 20).relu(),
    "flip": lambda: (x + 1).flip(0, 1) * 2 + (x - 1).flip(1),
    "rows": lambda: x - x.mean(1, keepdim=True),
    "columns": lambda: x / x.sum(0),
    "everything": lambda: ((x * 2).sum(), x.amax(), x.prod(), whole.sum(), flags.any()),
    "all and any": lambda: (flags.all(), flags.any(1), flags.all(0), (x > 9).any()),
    "softmax": lambda: (x.softmax(-1), x.log_softmax(0)),
    "layer norm": lambda: F.layer_norm(x, (20,), y[:, 0], y[:, 1]),
    "variance": lambda: (x.var(1), x.std(0), torch.var_mean(x)),
    "integers": lambda: (whole * 3 + 1, whole.abs(), whole & 7, whole // 3, whole % 7, -whole),
    "small integers": lambda: (whole.to(torch.int8) * 3, whole.to(torch.uint8) + 200),
    "booleans": lambda: (flags & (x < 1), ~flags, flags.sum(1), torch.where(flags, x, 0.5)),
    "double": lambda: (x.double() + 1).softmax(1),
    "bfloat16 runs in ATen": lambda: (x.bfloat16() * 1.1 + 1, x.bfloat16().sum(1)),
    "float16 runs in ATen": lambda: x.half() * 2 + 1,
    "complex numbers run in ATen": lambda: torch.complex(x, x).abs() + 1,
    "arange": lambda: (torch.arange(20) + whole, torch.arange(20.0) * 2, torch.full((3,), 2.5)),
    "mask": lambda: x.masked_fill(torch.ones(33, 20).tril().bool(), float("-inf")),
    "product": lambda: (x + 1) @ (y + 1) + 2,
    "library": lambda: (torch.cat([x, x + 1]), x.sort(1).values, x[whole[17] % 5], x.cumsum(0)),
    "views of library results": lambda: (x @ y).t()[1:].split(7)[1] + 1,
    "scalars": lambda: x.sum() * 2 + x.mean() - x[3, 4],
    "no elements": lambda: (x[:0] + 1, x[:0].sum(0), x[:0].sum()),
    "nan": lambda: ((x / 0 * 0).amax(1), (x / 0 * 0).maximum(x), x.log().clamp(-1, 1)),
    "used twice": lambda: ((x + 1) * (x + 1)).exp() + (x + 1).exp().sum(1, keepdim=True),
    "a result that is read": lambda: (x.exp(), x.exp() + 1, x.exp().sum(1)),
    "a view as a result": lambda: ((x + 1).t(), x[1:], x),
}  # fmt: skip


@pytest.fixture
def stages_are_checked(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Each call runs all stages of the graph and compares them."""
    monkeypatch.setattr(pipeline, "compile_graph", checking_stages)
    yield


@pytest.mark.usefixtures("stages_are_checked")
@pytest.mark.parametrize("name", PROGRAMS)
def test_all_stages_compute_what_eager_mode_computes(name: str) -> None:
    torch.compiler.reset()
    program = PROGRAMS[name]
    ours, eager = torch.compile(program, backend=mini.inductor_lab_mini)(), program()
    assert_close(ours, eager, rtol=1e-5, atol=1e-5, equal_nan=True)


def test_torch_compile_knows_it_by_name() -> None:
    torch.compiler.reset()
    ours = torch.compile(lambda x: x.exp() + 1, backend="inductor_lab_mini")(x)
    assert_close(ours, x.exp() + 1)


def test_arguments_are_written() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        x[3] = 1
        x.add_(2)
        view = x[:, 1]
        view.mul_(3)
        return view.sum()

    torch.compiler.reset()
    ours, eager = x.clone(), x.clone()
    result = torch.compile(program, backend=mini.inductor_lab_mini)(ours)
    assert_close((result, ours), (program(eager), eager))


@pytest.mark.parametrize("dynamic", [None, True])
def test_other_sizes_compile_another_version(dynamic: bool | None) -> None:
    def program(x: torch.Tensor, n: int) -> torch.Tensor:
        return (x * n).softmax(-1).view(-1)[x.shape[0] :]

    torch.compiler.reset()
    compiled = torch.compile(program, backend=mini.inductor_lab_mini, dynamic=dynamic)
    for rows, n in ((4, 2), (5, 3), (7, 3), (4, 2)):
        given = torch.randn(rows, 6, requires_grad=True)
        ours, eager = compiled(given, n), program(given, n)
        assert_close(ours, eager)
        along = torch.randn_like(eager)
        (a,), (b,) = (torch.autograd.grad(each, given, along) for each in (ours, eager))
        assert_close(a, b)


def test_rows_become_one_kernel() -> None:
    part = mini.inspect(lambda x: F.layer_norm(x.softmax(-1), (20,)), x)[0].parts[0]
    (item,) = part.schedule.items
    assert isinstance(item, Group) and item.sizes == (33,)
    assert part.plan.total == 0


def test_a_chain_becomes_one_nest() -> None:
    c = mini.inspect(lambda x, y: (((x + 1) * y.t()).relu() - x).tanh(), x, y)
    part = c[0].parts[0]
    assert len(part.program.steps) == 5
    assert len(part.fused.steps) == 1
    assert c[0].partition is None


def test_memory_is_reused() -> None:
    weights = [torch.randn(64, 64) for _ in range(6)]

    def program(x: torch.Tensor) -> torch.Tensor:
        for weight in weights:
            x = (x @ weight).relu()
        return x

    part = mini.inspect(program, torch.randn(64, 64))[0].parts[0]
    planned = part.plan.places.values()
    assert len(planned) == 5
    assert part.plan.total == max(each.end - each.start for each in planned)
    assert sum(isinstance(item, Call) for item in part.schedule.items) == 6


def test_reasons_are_kept() -> None:
    part = mini.inspect(lambda x: x.exp().softmax(1), x)[0].parts[0]
    assert "it is expensive, and read more than once" in part.reasons.values()


def train(model: nn.Module, loss: Callable[[nn.Module], torch.Tensor]) -> list[torch.Tensor]:
    value = loss(model)
    return [value, *torch.autograd.grad(value, list(model.parameters()))]


@pytest.mark.usefixtures("stages_are_checked")
def test_a_training_step_of_an_mlp() -> None:
    torch.compiler.reset()
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(20, 64), nn.GELU(), nn.LayerNorm(64), nn.Linear(64, 10))
    labels = torch.randint(0, 10, (33,))

    def loss(model: nn.Module) -> torch.Tensor:
        return F.cross_entropy(model(x), labels)

    compiled = torch.compile(loss, backend=mini.inductor_lab_mini)
    assert_close(train(model, compiled), train(model, loss), rtol=1e-4, atol=1e-6)


def test_the_partition_runs_as_the_joint_graph() -> None:
    given = x.clone().requires_grad_()
    c = mini.inspect(lambda x: F.layer_norm(x.tanh(), (20,)).softmax(1), given)
    partition = c[0].partition
    assert partition is not None
    nodes = partition.joint.graph.find_nodes(op="placeholder")
    inputs = [torch.randn(node.meta["val"].shape) for node in nodes]
    expected = partition.joint(inputs[:1], inputs[1:])
    leaves = torch.utils._pytree.tree_leaves(expected)
    for a, b in zip(partition.run(*inputs), leaves, strict=True):
        assert_close(a, b)


def test_gpt2_forward_and_backward() -> None:
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.compiler.reset()
    torch.manual_seed(0)
    size = {"n_layer": 1, "n_head": 2, "n_embd": 16, "vocab_size": 20, "n_positions": 16}
    still = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
    model = GPT2LMHeadModel(GPT2Config(**size, **still))
    ids = torch.randint(0, 20, (2, 8))

    def loss(model: nn.Module) -> torch.Tensor:
        return model(ids, labels=ids).loss

    compiled = torch.compile(loss, backend=mini.inductor_lab_mini)
    assert_close(train(model, compiled), train(model, loss), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name, better", [("amax", ">"), ("amin", "<")])
def test_a_maximum_keeps_nan_by_a_flag(name: str, better: str) -> None:
    """Both are vector instructions; a maximum that propagates NaN would take twice as long."""
    x = torch.randn(6, 70)
    x[1, 3], x[2], x[3] = math.nan, -math.inf, math.inf
    part = mini.inspect(lambda x: getattr(x, name)(1), x)[0].parts[0]
    text = str(part.kernels)
    assert f"reduction({name[1:]}: t1) reduction(|: t2)" in text
    assert f"t3 {better} t1 ? t3 : t1" in text
    for value in (x, x.double(), (x.nan_to_num() * 1e9).long(), x > 0):
        torch.compiler.reset()
        ours = torch.compile(lambda x: getattr(x, name)(1), backend=mini.inductor_lab_mini)(value)
        assert_close(ours, getattr(value, name)(1), equal_nan=True, rtol=0, atol=0)
