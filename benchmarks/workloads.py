"""What is measured on the CPU: name, function, arguments.  Sizes are those of real layers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F


@dataclass(frozen=True)
class Workload:
    """`make()` gives the arguments; with `gradient`, forward and backward are timed together."""

    name: str
    fn: Callable[..., Any]
    make: Callable[[], tuple[Any, ...]]
    gradient: bool = False


def _floats(*shape: int, grad: bool = False) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.randn(*shape, generator=generator).requires_grad_(grad)


def rms_norm(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * w


def layer_norm_gelu(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return F.gelu(F.layer_norm(x, (x.shape[-1],), w, b))


def cross_entropy(x: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return F.cross_entropy(x, target)


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return torch.softmax(q @ k.transpose(-1, -2) / 8.0, -1) @ v


def upsample(x: torch.Tensor) -> torch.Tensor:
    return F.interpolate(x, scale_factor=2.0, mode="bilinear")


def linear_gelu_linear(x: torch.Tensor, w: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return F.linear(F.gelu(F.linear(x, w)), v)


SINGLE: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "x + 1": lambda x: x + 1,
    "relu": torch.relu,
    "x ** 3": lambda x: x**3,
    "exp": torch.exp,
    "tan": torch.tan,
    "silu": F.silu,
    "gelu": F.gelu,
    "sum": torch.sum,
}
"""Nothing to fuse: the kernel and the call have to be as good as eager's."""

WORKLOADS = (
    Workload("sin of a scalar", lambda x: x.sin() + x.cos(), lambda: (_floats(1),)),
    Workload("sin²+cos², 1,000, fwd+bwd", lambda x: x.sin() ** 2 + x.cos() ** 2,
             lambda: (_floats(1000, grad=True),), gradient=True),
    Workload("sin²+cos², 4 M, fwd+bwd", lambda x: x.sin() ** 2 + x.cos() ** 2,
             lambda: (_floats(4_000_000, grad=True),), gradient=True),
    Workload("((x+1)*2).sin(), 10 M", lambda x: ((x + 1) * 2).sin(),
             lambda: (_floats(10_000_000),)),
    Workload("add-add-mul-add (16384, 512)", lambda a, b, c, d, e: (a + b + c) * d + e,
             lambda: tuple(_floats(16384, 512) for _ in range(5))),
    Workload("softmax (4096, 4096)", lambda x: torch.softmax(x, -1),
             lambda: (_floats(4096, 4096),)),
    Workload("layer norm + GELU (4096, 1024)", layer_norm_gelu,
             lambda: (_floats(4096, 1024), _floats(1024), _floats(1024))),
    Workload("layer norm (8192, 1024)", lambda x, w, b: F.layer_norm(x, (1024,), w, b),
             lambda: (_floats(8192, 1024), _floats(1024), _floats(1024))),
    Workload("RMS norm (4096, 4096)", rms_norm, lambda: (_floats(4096, 4096), _floats(4096))),
    Workload("cross entropy (4096, 8192), fwd+bwd", cross_entropy,
             lambda: (_floats(4096, 8192, grad=True), torch.arange(4096)), gradient=True),
    Workload("SwiGLU (4096, 4096)", lambda a, b: F.silu(a) * b,
             lambda: (_floats(4096, 4096), _floats(4096, 4096))),
    Workload("a + b.T (4096, 4096)", lambda a, b: a + b.t(),
             lambda: (_floats(4096, 4096), _floats(4096, 4096))),
    Workload("permute + copy (64, 256, 1024)", lambda x: x.permute(2, 0, 1).contiguous() * 1.5,
             lambda: (_floats(64, 256, 1024),)),
    Workload("row sum (2048, 8192)", lambda x: x.sum(1), lambda: (_floats(2048, 8192),)),
    Workload("column sum (2048, 8192)", lambda x: x.sum(0), lambda: (_floats(2048, 8192),)),
    Workload("sum of squares, 16 M", lambda x: (x * x).sum(), lambda: (_floats(16_000_000),)),
    Workload("mean, 4 M", lambda x: x.mean(), lambda: (_floats(4_000_000),)),
    Workload("max of rows (4096, 1024)", lambda x: x.amax(1), lambda: (_floats(4096, 1024),)),
    Workload("argmax of rows (4096, 1024)", lambda x: x.argmax(1), lambda: (_floats(4096, 1024),)),
    Workload("variance of rows (4096, 1024)", lambda x: x.var(1), lambda: (_floats(4096, 1024),)),
    Workload("cumsum of rows (4096, 1024)", lambda x: x.cumsum(1), lambda: (_floats(4096, 1024),)),
    Workload("max pool 2d (8, 64, 112, 112)", lambda x: F.max_pool2d(x, 3, 2, 1),
             lambda: (_floats(8, 64, 112, 112),)),
    Workload("upsample bilinear (4, 32, 128, 128) x2", upsample,
             lambda: (_floats(4, 32, 128, 128),)),
    Workload("scatter_add (1 M into 1,000)", lambda x, i: torch.zeros(1000).scatter_add(0, i, x),
             lambda: (_floats(1_000_000), torch.arange(1_000_000) % 1000)),
    Workload("linear-GELU-linear (512, 768, 3072)", linear_gelu_linear,
             lambda: (_floats(512, 768), _floats(3072, 768), _floats(768, 3072))),
    Workload("attention written out (8, 512, 64)", attention,
             lambda: tuple(_floats(8, 512, 64) for _ in range(3))),
    *(Workload(f"{name}, 4 M", fn, lambda: (_floats(4_000_000),)) for name, fn in SINGLE.items()),
    Workload("sum, 10 M", torch.sum, lambda: (_floats(10_000_000),)),
    Workload("x + 1, 4 M, float16", lambda x: x + 1, lambda: (_floats(4_000_000).half(),)),
    Workload("x * 2 + 1, 4 M, float16", lambda x: x * 2 + 1, lambda: (_floats(4_000_000).half(),)),
    Workload("x + 1, 4 M, bfloat16", lambda x: x + 1, lambda: (_floats(4_000_000).bfloat16(),)),
)  # fmt: skip
