"""A fixed choice of torch's operators against eager; `make opinfo` checks all of them."""

from __future__ import annotations

import pytest

from tests.opinfo import database, judge
from tests.opinfo.check import AGREE, EAGER, TORCH, Settings, Verdict, verdicts
from tests.opinfo.table import Known, excused, known, table

SAMPLES = 5

FLOAT_OPS = """
    abs acos add addcdiv addcmul addmm all allclose amax any arange argmax argmin as_strided asin
    atan2 atanh baddbmm bernoulli broadcast_to bucketize cat cdist ceil chunk clamp clone
    constant_pad_nd copysign cos cov cross cummax cumprod cumsum diag diag_embed diagonal diff
    digamma dist div_floor_rounding div_no_rounding_mode div_trunc_rounding einsum empty_like eq
    erf erfc exp exp2 expand expm1 eye fft_rfft2 fill flip float_power floor fmax fmod frac frexp
    full_like gather ge heaviside hypot index_add index_copy index_fill index_put index_select
    isclose isnan kthvalue ldexp lerp lgamma linalg_norm linalg_solve linspace log log1p
    log_softmax logaddexp logcumsumexp logit logsumexp lt masked_fill masked_scatter masked_select
    masked_softmax matmul maximum max_reduction_with_dim mean median meshgrid_list_of_tensors
    min_binary mode movedim msort mul multinomial nan_to_num nanmean nansum native_batch_norm
    native_layer_norm nn_functional_adaptive_avg_pool2d nn_functional_avg_pool2d
    nn_functional_batch_norm nn_functional_bilinear nn_functional_binary_cross_entropy
    nn_functional_conv2d nn_functional_conv_transpose2d nn_functional_cosine_similarity
    nn_functional_cross_entropy nn_functional_dropout nn_functional_embedding
    nn_functional_embedding_bag nn_functional_gelu nn_functional_glu nn_functional_grid_sample
    nn_functional_group_norm nn_functional_hardswish nn_functional_huber_loss
    nn_functional_instance_norm nn_functional_interpolate_bilinear
    nn_functional_interpolate_nearest nn_functional_kl_div nn_functional_layer_norm
    nn_functional_linear nn_functional_max_pool2d nn_functional_mish nn_functional_nll_loss
    nn_functional_normalize nn_functional_pad_circular nn_functional_pad_reflect
    nn_functional_pixel_shuffle nn_functional_rms_norm
    nn_functional_scaled_dot_product_attention nn_functional_softplus nn_functional_unfold nonzero
    norm ones_like outer polygamma_polygamma_n_1 pow prod put qr quantile rand_like reciprocal
    remainder renorm repeat repeat_interleave roll rot90 round rsqrt scatter scatter_add
    scatter_reduce_amax searchsorted select_scatter sgn sigmoid sign sinc slice_scatter softmax
    sort split_with_sizes sqrt squeeze stack std sub sum take_along_dim tanh tile topk trace
    transpose trapezoid tril true_divide trunc unbind unfold unique unsqueeze var_mean vdot view
    where xlogy
""".split()

INTEGER_OPS = """
    add argmax bitwise_and bitwise_left_shift bitwise_not bitwise_right_shift clamp cumsum
    div_floor_rounding fmod gcd index_put mean neg pow prod remainder scatter_add sum where
""".split()


def problems(found: list[Verdict]) -> list[str]:
    """What is wrong, one line each."""
    fine = (AGREE, EAGER, TORCH)
    bad = [v for v in found if v.verdict not in fine and not excused(v, known())]
    return [f"sample {v.sample}: {v.verdict}: {v.detail}" for v in bad]


@pytest.mark.parametrize("name", FLOAT_OPS)
def test_float32(name: str) -> None:
    found = list(verdicts(name, Settings(samples=SAMPLES)))
    assert found, "no samples"
    assert problems(found) == []


@pytest.mark.parametrize("name", INTEGER_OPS)
def test_int64(name: str) -> None:
    found = list(verdicts(name, Settings(dtype="int64", samples=SAMPLES)))
    assert found, "no samples"
    assert problems(found) == []


def test_a_wrong_result_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.opinfo import roads

    def wrong(sample: database.Sample, *given: object) -> object:
        return lambda *tensors: sample.call(*tensors) + 1e-3

    monkeypatch.setattr(roads, "short", wrong)
    found = list(verdicts("amax", Settings(samples=2)))
    assert [v.verdict for v in found] == ["wrong", "wrong"]
    assert "amax" in table(found)


def test_a_known_difference_has_a_reason() -> None:
    names = set(database.names())
    for entry in known():
        assert entry.op in names, f"{entry.op} is not in torch's database"
        assert entry.reason, f"no reason for {entry.op}"
    one = Verdict("sin", "float16", 0, "wrong")
    assert excused(one, [Known("sin", "because", dtype="float16")])
    assert not excused(one, [Known("sin", "because", dtype="float32")])


def test_float64_decides_between_two_roundings() -> None:
    import torch

    eager, ours, exact = torch.tensor([1.001]), torch.tensor([1.0]), torch.tensor([1.0])
    assert judge.difference(ours, eager, {})
    assert judge.nearer(ours, eager, exact.double(), {})
    assert not judge.nearer(eager, ours, exact.double(), {})
