"""Means and variances of rows that lose digits: outliers, offsets, very large and small numbers.

float64 decides: an error of ours is at most twice that of eager mode, or a few units in the last
place.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F

import inductor_lab as lab

ULP = 2.0**-23

Norm = Callable[[torch.Tensor], tuple[torch.Tensor, ...]]

NORMS: dict[str, Norm] = {
    "layer": lambda x: (F.layer_norm(x, x.shape[-1:]),),
    "group": lambda x: (F.group_norm(x[None], 2),),
    "instance": lambda x: (F.instance_norm(x[None]),),
    "batch": lambda x: (F.batch_norm(x.T[..., None], None, None, training=True),),
    "columns": lambda x: (F.batch_norm(x.T.contiguous(), None, None, training=True),),
    "image": lambda x: (
        F.batch_norm(
            x.view(4, 2, -1, 4).contiguous(memory_format=torch.channels_last),
            None,
            None,
            training=True,
        ),
    ),
    "var_mean": lambda x: torch.var_mean(x, -1),
    "std_mean": lambda x: torch.std_mean(x, -1),
    "std_mean of columns": lambda x: torch.std_mean(x.T.contiguous(), 0, correction=0),
    "std_mean of all": lambda x: torch.std_mean(x),
    "var": lambda x: (x.var(-1), x.T.contiguous().std(0)),
}


def changed(x: torch.Tensor, place: slice | int, to: float) -> torch.Tensor:
    x = x.clone()
    x[:, place] = to
    return x


ROWS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "plain": lambda x: x,
    "outlier first": lambda x: changed(x, 0, 1e4),
    "outlier last": lambda x: changed(x, -1, -1e4),
    "outliers at thirds": lambda x: changed(changed(x, 0, 1e4), x.shape[1] // 3, 2e4),
    "outliers in a block": lambda x: changed(x, slice(0, x.shape[1] // 16), 1e4),
    "outliers everywhere": lambda x: torch.tan(x * 1.5),
    "two modes": lambda x: torch.where(x > 0, x + 1e4, x),
    "offset": lambda x: x + 1e5,
    "tiny": lambda x: x * 1e-30,
}
LARGE: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "large": lambda x: x * 1e30,
    "a large outlier": lambda x: changed(x, 0, 1e30),
}
OF_STATISTICS = ("var_mean", "std_mean", "std_mean of columns", "std_mean of all", "var")


def numbers(rows: int = 8, columns: int = 768) -> torch.Tensor:
    return torch.rand(rows, columns, generator=torch.Generator().manual_seed(0)) * 2 - 1


def error(found: torch.Tensor, truth: torch.Tensor) -> float:
    """The largest error relative to the truth, or to one for normalized values."""
    least = 1.0 if found.numel() >= numbers().numel() else 0.0
    return float(((found.double() - truth).abs() / truth.abs().clamp_min(least)).max())


def check(norm: Norm, compiled: Norm, x: torch.Tensor) -> None:
    for ours, eager, truth in zip(compiled(x), norm(x), norm(x.double()), strict=True):
        if eager.isfinite().all():
            found, allowed = error(ours, truth), max(2 * error(eager, truth), 4 * ULP)
            assert found <= allowed, (found, allowed)


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("name", NORMS)
def test_moments_are_as_exact_as_in_eager_mode(name: str, dynamic: bool) -> None:
    compiled = lab.compile(NORMS[name], dynamic=dynamic)
    kinds = ROWS | (LARGE if name in OF_STATISTICS else {})
    for kind, change in kinds.items():
        try:
            check(NORMS[name], compiled, change(numbers()))
        except AssertionError as wrong:
            raise AssertionError(kind) from wrong


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("size", [1e19, 1e30, 8.5e37])
@pytest.mark.parametrize("name", [name for name in NORMS if name not in OF_STATISTICS])
def test_norms_of_numbers_whose_variance_exceeds_float32(
    name: str, size: float, dynamic: bool
) -> None:
    """Eager mode gives NaN for most of them."""
    x = numbers() * size
    (found,), (truth,) = lab.compile(NORMS[name], dynamic=dynamic)(x), NORMS[name](x.double())
    assert error(found, truth) <= 8 * ULP


@pytest.mark.parametrize("name", ["layer", "batch", "columns", "image", "var_mean"])
def test_moments_of_triton_are_exact_within_float32(name: str) -> None:
    """Sums are as wide as the data; no outlier costs digits."""
    compiled = lab.compile(NORMS[name], options={"language": "triton"})
    for kind in ("outlier first", "outlier last", "outliers in a block", "offset"):
        x = ROWS[kind](numbers(8, 64))
        for ours, truth in zip(compiled(x), NORMS[name](x.double()), strict=True):
            eager = NORMS[name](x)[0]
            least = 1.0 if eager.numel() == x.numel() else 0.0
            wrong = ((ours.double() - truth).abs() / truth.abs().clamp_min(least)).max()
            of_eager = ((eager.double() - NORMS[name](x.double())[0]).abs()).max()
            assert wrong <= max(2 * of_eager, 8 * ULP), kind


@pytest.mark.parametrize("kind", ROWS)
def test_moments_of_double(kind: str) -> None:
    """The second pass corrects the mean of the first."""
    x = ROWS[kind](numbers().double() + numbers().double().roll(1) * 2**-25)
    compiled = lab.compile(lambda x: torch.std_mean(x, -1))
    for ours, eager in zip(compiled(x), torch.std_mean(x, -1), strict=True):
        torch.testing.assert_close(ours, eager, rtol=1e-13, atol=x.abs().max().item() * 4e-16)


@pytest.mark.parametrize("dynamic", [False, True])
def test_moments_of_one_element(dynamic: bool) -> None:
    x = torch.tensor([[3.0], [1e30]])
    compiled = lab.compile(lambda x: torch.std_mean(x, -1, correction=0), dynamic=dynamic)
    deviation, mean = compiled(x)
    assert torch.equal(mean, x[:, 0]) and not deviation.count_nonzero()
    assert lab.compile(lambda x: torch.var_mean(x, -1))(x)[0].isnan().all()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_moments_of_half_precision(dtype: torch.dtype) -> None:
    x = changed(numbers(), 0, 1e4).to(dtype)
    compiled = lab.compile(NORMS["std_mean"])
    for ours, truth in zip(compiled(x), NORMS["std_mean"](x.double()), strict=True):
        torch.testing.assert_close(ours, truth.to(dtype), rtol=torch.finfo(dtype).eps, atol=0)
