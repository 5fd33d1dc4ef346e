"""Choices of ops: what the tests check, and a hundred that stand for all (for slow roads)."""

from __future__ import annotations

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

REPRESENTATIVE = """
    abs add addcmul addmm amax aminmax any arange argmax argmin as_strided asin atan2 bernoulli
    bitwise_and bucketize cat ceil clamp clone complex constant_pad_nd copysign cos count_nonzero
    cummax cumprod cumsum diag_embed diagonal diff div_floor_rounding einsum erf erfinv exp expand
    eye flip float_power floor_divide fmod frac gather ge heaviside hypot index_add index_put
    index_select isnan lerp lgamma linspace log_softmax logcumsumexp logsumexp masked_fill mean
    median nan_to_num native_layer_norm new_full
    nn_functional_adaptive_avg_pool2d nn_functional_avg_pool2d nn_functional_batch_norm
    nn_functional_conv2d nn_functional_cross_entropy nn_functional_embedding nn_functional_gelu
    nn_functional_group_norm nn_functional_huber_loss nn_functional_interpolate_bilinear
    nn_functional_interpolate_nearest nn_functional_linear nn_functional_max_pool2d
    nn_functional_nll_loss nn_functional_pad_reflect nn_functional_rms_norm
    nn_functional_scaled_dot_product_attention nn_functional_softplus norm prod remainder roll round
    scatter_add scatter_reduce_amax searchsorted sgn sigmoid sin slice_scatter softmax sort
    split_with_sizes std sub sum take_along_dim tanh tril unfold var_mean where xlogy
""".split()
