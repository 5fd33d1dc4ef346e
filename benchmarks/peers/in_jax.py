"""Some of the kernels written in JAX, for XLA."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any


def _gelu(x: Any) -> Any:
    import jax

    return jax.nn.gelu(x, approximate=False)


def _softmax(x: Any) -> Any:
    import jax

    return jax.nn.softmax(x, axis=-1)


def _sin(x: Any) -> Any:
    import jax.numpy as jnp

    return jnp.sin((x + 1) * 2)


def _layer_norm_gelu(x: Any, w: Any, b: Any) -> Any:
    import jax

    centred = x - x.mean(-1, keepdims=True)
    scale = jax.lax.rsqrt((centred * centred).mean(-1, keepdims=True) + 1e-5)
    return _gelu(centred * scale * w + b)


def _rms_norm(x: Any, w: Any) -> Any:
    import jax

    return x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-6) * w


def _swiglu(a: Any, b: Any) -> Any:
    import jax

    return jax.nn.silu(a) * b


def _rotary(x: Any, cos: Any, sin: Any) -> Any:
    import jax.numpy as jnp

    half = x.shape[-1] // 2
    return x * cos + jnp.concatenate((-x[..., half:], x[..., :half]), -1) * sin


def _masked_attention(q: Any, k: Any, v: Any, hidden: Any) -> Any:
    import jax.numpy as jnp

    scores = jnp.where(hidden, -jnp.inf, q @ k.swapaxes(-1, -2) / 8.0)
    return _softmax(scores) @ v


def _linear_gelu_linear(x: Any, w: Any, v: Any) -> Any:
    return _gelu(x @ w.T) @ v.T


FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "((x+1)*2).sin(), 10 M": _sin,
    "add-add-mul-add (16384, 512)": lambda a, b, c, d, e: (a + b + c) * d + e,
    "softmax (4096, 4096)": _softmax,
    "layer norm + GELU (4096, 1024)": _layer_norm_gelu,
    "RMS norm (4096, 4096)": _rms_norm,
    "SwiGLU (4096, 4096)": _swiglu,
    "a + b.T (4096, 4096)": lambda a, b: a + b.T,
    "permute + copy (64, 256, 1024)": lambda x: x.transpose(2, 0, 1) * 1.5,
    "row sum (2048, 8192)": lambda x: x.sum(1),
    "column sum (2048, 8192)": lambda x: x.sum(0),
    "sum of squares, 16 M": lambda x: (x * x).sum(),
    "argmax of rows (4096, 1024)": lambda x: x.argmax(1),
    "cumsum of rows (4096, 1024)": lambda x: x.cumsum(1),
    "linear-GELU-linear (512, 768, 3072)": _linear_gelu_linear,
    "masked attention written out (4, 8, 512, 64)": _masked_attention,
    "max of rows (4096, 1024)": lambda x: x.max(1),
    "variance of rows (4096, 1024)": lambda x: x.var(1, ddof=1),
    "mean, 4 M": lambda x: x.mean(),
    "rotary (8, 512, 16, 64)": _rotary,
    "row sum (4096, 2048)": lambda x: x.sum(1),
}
