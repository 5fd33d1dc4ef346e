"""Overlapping windows share column results, and compute the same results as without sharing."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import pytest
import torch
import torch.nn.functional as F

import inductor_lab as lab

Function: TypeAlias = Callable[..., torch.Tensor]


def pool(kernel: Any, stride: Any = 1, padding: Any = 0, **more: Any) -> Function:
    return lambda x: F.max_pool2d(x, kernel, stride, padding, **more)


SHARED: dict[str, Function] = {
    "every place": pool(3),
    "every second place": pool(3, 2),
    "with a border": pool(3, 2, 1),
    "up to the last": pool(3, 2, 1, ceil_mode=True),
    "at each place, with a border": pool(3, 1, 1),
    "two, with a border": lambda x: F.max_pool2d(x, 5, 1, 2) - F.max_pool2d(-x, (3, 5), 1, (1, 2)),
    "two by two": pool(2),
    "two rows": pool((2, 3)),
    "of what is computed": lambda x: F.max_pool2d(torch.relu(x) * 2 + 1, 3, 2, 1),
    "and then more": lambda x: F.max_pool2d(x, 3, 2).exp() + 1,
    "of what is put together": lambda x: F.max_pool2d(
        x + torch.cat([*[x[..., :6]] * 7, x[..., :1]], -1), 3, 1
    ),
    "but for what is also read by itself": lambda x: F.max_pool2d(x, 3, 1) + x[..., 2:, 2:],
    "the least": lambda x: torch.minimum(
        torch.minimum(x[..., :-1, :-1], x[..., :-1, 1:]),
        torch.minimum(x[..., 1:, :-1], x[..., 1:, 1:]),
    ),
}
ALONE: dict[str, Function] = {
    "adjacent": pool(2, 2),
    "one row": pool((1, 3)),
    "one column": pool((3, 1)),
    "with gaps": pool(3, 1, 0, dilation=2),
    "short": lambda x: F.max_pool2d(x[..., :12], 3, 1),
    "of what is masked": lambda x: F.max_pool2d(torch.cat([x[:, :, :20], x[:, :, :21]], 2), 2, 1),
    "under a condition in another": lambda x: F.max_pool2d(F.pad(x, (0, 0, 2, 0)), 3, 1, 1),
    "a mean": lambda x: F.avg_pool2d(x, 3, 1),
}


def image(*shape: int) -> torch.Tensor:
    """An input with NaN and infinities."""
    found = torch.randn(*shape, generator=torch.Generator().manual_seed(0))
    found[0, 0, 3, 5] = torch.nan
    found[0, 1, 7] = -torch.inf
    found[0, 1, 8:, 20] = torch.inf
    return found


def text_of(function: Function, x: torch.Tensor) -> str:
    """The kernels of a function, after comparing its result with eager mode."""
    torch.compiler.reset()
    c = lab.inspect(function, x)
    torch.testing.assert_close(c.result, function(x), equal_nan=True)
    return "\n".join(str(kernel.code) for kernel in c.graphs[0].forward.kernels)


@pytest.mark.parametrize("name", SHARED)
def test_columns_are_shared(name: str) -> None:
    text = text_of(SHARED[name], image(8, 10, 41, 43))
    assert "row0[j0] = lab_m" in text, text
    assert "2 * i2" not in text.replace("row0[2 * i2", ""), text


@pytest.mark.parametrize("name", ALONE)
def test_other_windows_are_not_shared(name: str) -> None:
    assert "row0" not in text_of(ALONE[name], image(8, 10, 41, 43))


def blurred(x: torch.Tensor) -> torch.Tensor:
    weights = [0.06, 0.24, 0.4, 0.24, 0.06]
    along = sum(w * x[..., k : x.shape[-1] - 4 + k] for k, w in enumerate(weights))
    down = [w * along[..., k : x.shape[-2] - 4 + k, :] for k, w in enumerate(weights)]
    return torch.stack(down).sum(0)


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("size", [(41, 43), (5, 300), (64, 64)])
def test_the_input_of_a_window_is_stored_completely(size: tuple[int, int], dynamic: bool) -> None:
    """Before, half of the sum was stored and read at five places, and the rest was recomputed
    there. A blur in two directions takes half the time if the complete sum is stored."""
    x = torch.randn(2, 3, *size)[..., 1:, 1:] if size[0] > 5 else torch.randn(2, 3, *size)
    torch.compiler.reset()
    torch.testing.assert_close(lab.compile(blurred, dynamic=dynamic)(x), blurred(x))
    c = lab.inspect(blurred, x)
    first, *_ = c.graphs[0].forward.schedule.groups
    assert len(first.stored) == 1, c.graphs[0].forward.schedule


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16, torch.int32])
@pytest.mark.parametrize("columns", [40, 300])
def test_dtypes(columns: int, dtype: torch.dtype) -> None:
    x = image(64, 2, 20, columns).nan_to_num(0.5).clamp(-99, 99).to(dtype)
    assert "row0[" in text_of(pool(3, 2, 1), x)


def test_two_windows_in_one_loop() -> None:
    """Each window has a separate row."""

    def function(x: torch.Tensor) -> torch.Tensor:
        return F.max_pool2d(x[0], 3, 2, 1) - F.max_pool2d(x[1], 3, 2, 1)

    x = torch.stack((image(8, 10, 40, 40), image(8, 10, 40, 40) * 2))
    text = text_of(function, x)
    assert "row0[j0] = lab_m" in text and "row1[j0] = lab_m" in text, text


def test_gradients() -> None:
    """The positions of the maxima come from the same loop."""
    x = image(8, 10, 40, 40).nan_to_num().requires_grad_()
    run = torch.compile(
        partial(F.max_pool2d, kernel_size=3, stride=2, padding=1), backend="inductor_lab"
    )
    expected = F.max_pool2d(x, 3, 2, 1)
    weights = torch.randn_like(expected)
    found, wanted = (torch.autograd.grad(y, x, weights)[0] for y in (run(x), expected))
    torch.testing.assert_close(found, wanted)
