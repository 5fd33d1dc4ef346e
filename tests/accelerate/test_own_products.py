"""Our own library for products with packed weights computes what float64 says."""

from __future__ import annotations

import pytest
import torch

from inductor_lab.compiler import accelerators
from inductor_lab.compiler.accelerate import evict, own_convolutions, own_products, step_runs
from inductor_lab.compiler.accelerate.own_products import functions_for, multiply, pack
from inductor_lab.compiler.base.options import Options
from inductor_lab.compiler.runtime.toolchain.background_compile import wait_for_all

pytestmark = pytest.mark.skipif(
    not own_products.knows(torch.float32), reason="this machine has no vectors that it knows"
)
DTYPES = [dtype for dtype in own_products.KINDS if own_products.knows(dtype)]
SIZES = [(1, 64, 1), (1, 1, 7), (3, 65, 33), (6, 64, 384), (7, 128, 385), (131, 100, 769),
         (128, 768, 768), (133, 63, 2), (300, 192, 1100), (5, 3000, 40)]  # fmt: skip


def exact(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
    product = x.double() @ weight.double().t()
    return product if bias is None else product + bias


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_values(sizes: tuple[int, int, int], threads: int, dtype: torch.dtype) -> None:
    m, n, k = sizes
    torch.manual_seed(m)
    x, weight, bias = (torch.randn(size).to(dtype) for size in ((m, k), (n, k), (n,)))
    rounding = 2e-7 * k**0.5 if dtype is torch.float32 else 4e-3
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        packed = pack(weight, m)
        for added in (bias, None):
            found = multiply(x, packed, weight, added)
            expected = exact(x, weight, added)
            assert found.shape == (m, n) and found.dtype == dtype and found.is_contiguous()
            assert (found - expected).abs().max() <= rounding * expected.abs().max() + 1e-6
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("layout", ["rows of a wider matrix", "transposed", "every second column"])
def test_layouts_of_the_left_matrix(layout: str) -> None:
    torch.manual_seed(0)
    x = {
        "rows of a wider matrix": torch.randn(50, 200)[:, 7:107],
        "transposed": torch.randn(100, 50).t(),
        "every second column": torch.randn(50, 200)[:, ::2],
    }[layout]
    weight = torch.randn(70, 100)
    found = multiply(x, pack(weight, 50), weight, None)
    torch.testing.assert_close(found.double(), exact(x, weight, None), rtol=1e-5, atol=1e-5)


def test_a_long_sum_is_as_exact_as_that_of_the_library() -> None:
    torch.manual_seed(0)
    x, weight = torch.randn(40, 4096), torch.randn(64, 4096)
    ours, library = multiply(x, pack(weight, 40), weight, None), x @ weight.t()
    errors = [(found - exact(x, weight, None)).abs().mean() for found in (ours, library)]
    assert errors[0] < 2 * errors[1]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_special_values_stay_in_their_row_and_column(dtype: torch.dtype) -> None:
    """Panels are padded with zeros: an infinity must not meet them."""
    x, weight = torch.ones(9, 31, dtype=dtype), torch.ones(66, 31, dtype=dtype)
    x[2, 3], x[5, 0], weight[65, 7] = float("inf"), float("nan"), -float("inf")
    found = multiply(x, pack(weight, 9), weight, None)
    assert torch.equal(found.isnan(), (x @ weight.t()).isnan())
    assert torch.equal(found.isinf(), (x @ weight.t()).isinf())


def test_other_dtypes_are_left_to_other_libraries() -> None:
    assert not any(map(own_products.knows, (torch.float64, torch.float16, torch.int32)))


def test_a_thread_compiles_ahead_what_large_weights_need(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accelerators, "_STARTED", set())
    large, small = (torch.nn.Parameter(torch.empty(n, n)) for n in (256, 8))
    images, constant = torch.nn.Parameter(torch.empty(64, 64, 3, 3)), torch.empty(256, 256)
    product = {functions_for, evict._function, step_runs._runner}

    def asked(*inputs: torch.Tensor, **options: object) -> set[object]:
        accelerators._STARTED.clear()
        accelerators.work_ahead(inputs, Options(**options))
        return {function for function, _ in accelerators._STARTED}

    with torch.no_grad():
        assert asked(large) == product
        assert asked(images) == product | {own_convolutions.function}
        assert not asked(small, constant)
        assert not asked(large, matmul="aten")
        assert asked(large, accelerators_off=("step_runs",)) == product - {step_runs._runner}
    assert not asked(large)
    wait_for_all()
