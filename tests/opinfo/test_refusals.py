"""A fixed choice of torch's operators in dtypes that eager refuses."""

from __future__ import annotations

import pytest
import torch

from tests.opinfo.choice import FLOAT_OPS
from tests.opinfo.refusals import answered

REFUSED = """
    matmul bernoulli index_add index_copy index_reduce_amax index_put put heaviside cross cdist
    index_fill full_like nn_functional_mse_loss nn_functional_nll_loss native_layer_norm
    nn_functional_avg_pool3d nn_functional_batch_norm nn_functional_group_norm normal_number_mean
    nn_functional_binary_cross_entropy nn_functional_binary_cross_entropy_with_logits
    special_log_ndtr max_pool2d_with_indices_backward searchsorted
""".split()
"""Operators whose refusals were once answered."""

OTHERS = sorted({*FLOAT_OPS[::4]} - {*REFUSED})
LEFT = {
    "addcdiv": "Integer division with addcdiv",  # of bools: none in sight of what refuses it
    "ldexp": '"ldexp_cpu_exp" not implemented',
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [*REFUSED, *OTHERS])
def test_dtypes_that_eager_refuses_are_refused(name: str) -> None:
    left = LEFT.get(name, "none")
    complexes = "complex64"
    found = [line for line in answered(name) if left not in line and complexes not in line]
    assert found == []


def test_operators_that_torch_decomposes_are_refused_too() -> None:
    """Its tracer makes formulas of `upsample_nearest2d`, which have an answer for integers."""
    assert torch._C.DispatchKey.Autograd in torch.ops.aten.upsample_nearest2d.default.py_kernels
    found = list(answered("nn_functional_upsample_nearest"))
    assert any(line.startswith("all int64: ") for line in found)
