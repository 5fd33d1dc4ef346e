"""Correct programs in three precisions: differences are reported as rounding, never as errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import inductor_lab as lab
from inductor_lab.debug.compare.precision import judge

F = torch.nn.functional
Program = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]

PROGRAMS: dict[str, Program] = {
    "softmax": lambda x, y: torch.softmax(x * 3, -1) @ y.t(),
    "norm": lambda x, y: F.layer_norm(x + y, (x.shape[-1],)),
    "cancel": lambda x, y: (x * 100 + y) - x * 100,
    "variance": lambda x, y: (x + 30).var(-1) + y.mean(-1),
    "gelu": lambda x, y: F.gelu(x) * torch.sigmoid(y),
    "long sum": lambda x, y: (x.repeat(40, 3) * 0.01).sum() + y.sum(0),
    "powers": lambda x, y: (x.abs() + 0.1) ** 2.5 / (y.abs() + 0.01).sqrt(),
    "loss": lambda x, y: F.mse_loss(x.tanh(), y.sin()),
    "scan": lambda x, y: x.cumsum(-1) * y,
    "choice": lambda x, y: torch.where(x > y, x.exp(), y.log1p().nan_to_num(0.5)),
}
PRECISIONS = (torch.float16, torch.bfloat16, torch.float32)


@pytest.mark.parametrize("dtype", PRECISIONS, ids=lambda dtype: str(dtype).split(".")[1])
@pytest.mark.parametrize("name", PROGRAMS)
def test_differences_of_a_correct_program_are_rounding(name: str, dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(4)
    x, y = (torch.randn(37, 65, generator=generator).to(dtype) for _ in range(2))
    found = lab.blame(PROGRAMS[name], x, y)
    assert found.fault is None, str(found)
    assert found.verdict in ("rounding", "right")
    said = "rounding" if found.verdict == "rounding" else "the bits that eager computes"
    assert said in found.summary


def test_differences_of_correct_gradients_are_rounding() -> None:
    x = torch.randn(16, 33, generator=torch.Generator().manual_seed(1)).requires_grad_()
    w = torch.randn(20, 33, generator=torch.Generator().manual_seed(2)).requires_grad_()

    def loss(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(F.linear(x, w).relu(), torch.arange(16))

    found = lab.blame(loss, x, w)
    assert found.fault is None and found.verdict == "rounding"
    assert set(found.results) == {"result 0", "gradient of x", "gradient of w"}


def test_a_gradient_that_is_zero_has_no_ulp() -> None:
    """The gradient of a sum of softmax is 0, so all that is left is rounding."""
    x = torch.randn(64, generator=torch.Generator().manual_seed(0)).requires_grad_()
    found = lab.blame(lambda x: torch.softmax(x, 0).sum() + x.relu().sum() * 0, x)
    gradient = found.results["gradient of x"]
    assert found.fault is None and gradient.right
    assert gradient.ulp < 1e4 and gradient.eager_ulp < 1e4
    assert all(row.ulp is None or row.ulp < 1e4 for row in found.stages)


def test_differences_of_cancelled_digits_are_reported_as_numbers() -> None:
    truth, spread = torch.tensor([0.0, 1.0]).double(), torch.tensor([2e-9, 1e-8]).double()
    ours, eager = torch.tensor([1e-9, 1.0]), torch.tensor([0.0, 1.0])
    found = judge(ours, eager, truth, spread)
    assert str(found) == "rounding: 1e-09 from float64 where digits cancel, eager 0"
    assert found.in_ulp is None
    both = judge(torch.tensor([1e-9, 1.0 + 2**-22]), eager, truth, spread)
    assert str(both) == ("rounding: 2 ULP from float64, eager 0; "
                         "1e-09 from float64 where digits cancel, eager 0")  # fmt: skip
    assert both.in_ulp == 2.0
    assert not judge(torch.tensor([1e-6, 1.0]), eager, truth, spread).right


def test_writes_to_arguments_are_compared() -> None:
    def step(state: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        state.mul_(0.9).add_(x, alpha=0.1)
        return state.sqrt()

    found = lab.blame(step, torch.rand(40), torch.rand(40))
    assert found.fault is None
    assert "state after the call" in found.results


def test_random_results_are_not_compared_with_eager() -> None:
    def noisy(x: torch.Tensor) -> torch.Tensor:
        return F.dropout(x, 0.5) * 2 + torch.rand_like(x)

    found = lab.blame(noisy, torch.ones(50, 7))
    assert found.fault is None
    assert any("random" in note for note in found.notes)


def test_rewrites_do_not_change_random_numbers() -> None:
    def noisy(x: torch.Tensor) -> torch.Tensor:
        return F.dropout(x.sin(), 0.3) * x.sin()

    found = lab.blame(noisy, torch.randn(50, 7))
    assert found.fault is None, found
    stages = {row.stage: row.verdict for row in found.stages}
    assert stages["rewrite: common_subexpressions"] == "right"


def test_each_of_several_graphs_is_blamed() -> None:
    def broken(x: torch.Tensor) -> torch.Tensor:
        y = x.sin()
        print(end="")
        torch._dynamo.graph_break()
        return torch.neg(y.to(torch.uint8)) + 1

    with lab.faults.wrong_neg():
        found = lab.blame(broken, torch.full((30,), 9.0))
    assert found.fault is None  # sin is 0.4, so the byte is 0
    with lab.faults.wrong_neg():
        found = lab.blame(lambda x: broken(x * 0 + 1.5) + broken(x) * 0, torch.ones(3))
    assert found.fault is None


def test_the_first_nan_is_located() -> None:
    def normalized(x: torch.Tensor) -> torch.Tensor:
        scale = x.abs().amax(-1, keepdim=True)
        y = x / scale
        return y * 2

    x = torch.randn(4, 8)
    x[2] = 0
    found = lab.blame(normalized, x)
    assert found.fault is None
    (born,) = [b for b in found.births if b.stage == "eager"]
    assert born.what == "NaN" and born.in_float64
    assert born.span is not None and born.span.code == "y = x / scale"


def test_a_float16_overflow_is_distinguished_from_an_infinity() -> None:
    def large(x: torch.Tensor) -> torch.Tensor:
        y = x * x
        return y + 1

    found = lab.blame(large, torch.full((5,), 300.0).half())
    assert found.fault is None
    assert [(b.what, b.in_float64) for b in found.births] == [("inf", False)]


def doubled(x: torch.Tensor) -> torch.Tensor:
    y = x * 1
    y.register_hook(lambda gradient: gradient * 2)
    return y.sin()


@pytest.mark.parametrize(
    "transformed",
    [
        torch.func.grad(lambda v: (v**3).sum()),
        torch.func.vmap(torch.func.grad(lambda v: v.sin() * v)),
        torch.func.hessian(lambda v: (v.sin() * v).sum()),
        torch.func.jacfwd(torch.tanh),
        lambda x: torch.func.jvp(torch.sin, (x,), (x,)),
    ],
    ids=["grad", "vmap", "hessian", "jacfwd", "jvp"],
)
def test_functions_in_transforms_are_compared(transformed: Callable[..., Any]) -> None:
    found = lab.blame(transformed, torch.linspace(-1, 1, 6))
    assert found.verdict in ("right", "rounding") and len(found.stages) > 5


def test_a_hook_on_a_value_is_compared() -> None:
    found = lab.blame(doubled, torch.linspace(-1, 1, 6).requires_grad_())
    assert found.verdict in ("right", "rounding") and "gradient of x" in found.results


def test_new_tensors_without_a_dtype_are_float64_in_the_reference() -> None:
    def sampled(x: torch.Tensor, steps: torch.Tensor) -> torch.Tensor:
        grid = torch.zeros(2, 4, 4, 2) + (steps / 3).mean()
        return torch.nn.functional.grid_sample(x, grid, align_corners=False).softmax(-1)

    torch.manual_seed(0)
    found = lab.blame(sampled, torch.randn(2, 3, 8, 8), torch.arange(3))
    assert found.verdict in ("right", "rounding") and not found.notes
    assert torch.get_default_dtype() is torch.float32
