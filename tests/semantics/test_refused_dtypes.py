"""If eager mode rejects a dtype, a compiled function raises the same error."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F

import inductor_lab as lab
from inductor_lab.compiler.rewrite.decompose.eager_dtype_checks import table
from tests.semantics.compare import assert_same, wave

INTS, BOOLS, IMAGE = torch.arange(6), wave(6) > 0, torch.arange(32).view(1, 2, 4, 4)


def after_a_product(x: torch.Tensor) -> torch.Tensor:
    """The operator is neither the first nor the last of its graph."""
    return F.softmax(x * 2, 0) + 1


OF_FLOATS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "frac": torch.frac,
    "softmax": lambda x: F.softmax(x, 0),
    "softmax between others": after_a_product,
    "log_softmax": lambda x: F.log_softmax(x, 0),
    "logaddexp": lambda x: torch.logaddexp(x, x),
    "lerp": lambda x: torch.lerp(x, x, 0.5),
    "round": lambda x: x.round(decimals=1),
    "silu": F.silu,
    "mish": F.mish,
    "glu": lambda x: F.glu(x, 0),
    "celu": F.celu,
    "hardswish": F.hardswish,
    "hardsigmoid": F.hardsigmoid,
    "softplus": F.softplus,
    "logsigmoid": F.logsigmoid,
    "huber_loss": lambda x: F.huber_loss(x, x * 2),
    "smooth_l1_loss": lambda x: F.smooth_l1_loss(x, x * 2),
    "var": torch.var,
    "std": lambda x: x.std(0, correction=0),
}


def refused_alike(function: Callable[..., object], given: torch.Tensor) -> None:
    with pytest.raises((RuntimeError, NotImplementedError)) as theirs:
        function(given)
    with pytest.raises(type(theirs.value)) as ours:
        lab.compile(function)(given)
    assert str(theirs.value) == str(ours.value)


@pytest.mark.parametrize("name", OF_FLOATS)
def test_operators_on_floats_reject_ints(name: str) -> None:
    refused_alike(OF_FLOATS[name], INTS)


@pytest.mark.parametrize("name", ["silu", "softplus", "lerp"])
def test_operators_on_floats_reject_empty_int_tensors(name: str) -> None:
    refused_alike(OF_FLOATS[name], INTS[:0])


def test_a_scan_rejects_a_zero_dimensional_int() -> None:
    refused_alike(lambda x: x.logcumsumexp(0), INTS[0])


@pytest.mark.parametrize("function", [
    lambda x: F.adaptive_avg_pool2d(x, 2),
    lambda x: F.adaptive_max_pool2d(x, 2),
    lambda x: F.unfold(x, 2),
    lambda x: F.prelu(x, x[0, 0, 0, :1]),
])  # fmt: skip
def test_operators_on_float_images_reject_ints(function) -> None:
    refused_alike(function, IMAGE)


@pytest.mark.parametrize("function", [
    torch.abs,
    torch.ceil,
    torch.round,
    torch.relu,
    lambda x: x.clamp(False, True),
    lambda x: x % x,
    lambda x: torch.fmod(x, x),
    lambda x: x**x,
    lambda x: torch.div(x, x, rounding_mode="trunc"),
    lambda x: torch.dot(x, x),
    lambda x: x.argmax(),
    lambda x: F.threshold(x, 0, 1),
    lambda x: 1 - x,
    lambda x: x - 1.5,
    lambda x: x.float() - x,
    lambda x: x.float() - True,
    lambda x: True - x.float(),
])  # fmt: skip
def test_operators_on_numbers_reject_bools(function) -> None:
    refused_alike(function, BOOLS)


@pytest.mark.parametrize("function", [
    lambda x, y: x.index_add(0, INTS[:3], y[:3]),
    lambda x, y: x.index_put((INTS[:6],), y),
    lambda x, y: F.cross_entropy(x.view(2, 3), INTS[:2], y[:3]),
    lambda x, y: F.layer_norm(x, (6,), y),
    lambda x, y: torch.heaviside(x, y),
])  # fmt: skip
def test_operators_on_one_dtype_reject_two(function) -> None:
    narrow = wave(6)
    refused_alike(lambda x: function(x, x.double()), narrow)
    wide = narrow.double()
    assert_same(lab.compile(function)(wide, wide), function(wide, wide))


@pytest.mark.parametrize("function, given", [
    (lambda x: x.new_full((2,), -0.5), IMAGE.to(torch.uint8)),
    (lambda x: x.masked_fill(x > 0, torch.tensor(1e6)), wave(6).half()),
    (lambda x: torch.cdist(x, x), wave(6).half().view(2, 3)),
])  # fmt: skip
def test_numbers_that_a_dtype_cannot_hold_are_rejected(function, given: torch.Tensor) -> None:
    refused_alike(function, given)


@pytest.mark.parametrize("function, given", [
    (lambda x: x.clamp(0, 1) + x % 2 + x**2, BOOLS),
    (lambda x: F.interpolate(x, scale_factor=2), IMAGE.to(torch.uint8)),
    (lambda x: (x.round(), x.abs(), x.argmax(), F.relu(x), x - 1), INTS),
    (lambda x: torch.logaddexp(x, x.float()), INTS),
    (lambda x: F.nll_loss(F.log_softmax(x.float(), 0), x[2]), INTS),
])  # fmt: skip
def test_accepted_dtypes_have_a_result(function, given: torch.Tensor) -> None:
    assert_same(lab.compile(function)(given), function(given))


HALF, WIDE = wave(6).half(), torch.arange(6).to(torch.uint32)


@pytest.mark.parametrize("function, given", [
    (lambda x: torch.hypot(x, x), INTS),
    (lambda x: F.gelu(x), INTS),
    (lambda x: x & x, HALF),
    (lambda x: torch.cdist(x, x), wave(6).bfloat16().view(2, 3)),
    (lambda x: x << x, BOOLS),
    (lambda x: x + x, WIDE),
    (lambda x: F.avg_pool2d(x, 2), IMAGE.int()),
    (lambda x: torch.searchsorted(x, x), BOOLS),
    (lambda x: torch.add(x, x, alpha=1.5), INTS),
])  # fmt: skip
def test_the_check_runs_the_eager_kernel(function, given: torch.Tensor) -> None:
    with pytest.raises((RuntimeError, NotImplementedError)):
        function(given)
    with pytest.raises((RuntimeError, NotImplementedError)) as ours:
        lab.compile(function)(given)
    assert "Cache" not in type(ours.value).__name__


def test_the_table_rejects_no_operator_of_floats_for_floats() -> None:
    """A row from calls that fail for another reason would leave the operator to ATen."""
    assert [name for name, row in table().items() if {*"fd"} & {*row.alone}] == []
