"""The workloads: kernels, an optimizer step, NumPy code.  Sizes are those of real layers.

Models are in `models.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import torch
import torch.nn.functional as F

from inductor_lab.bench.demo.programs import PROGRAMS

Function: TypeAlias = Callable[..., Any]
Built: TypeAlias = tuple[Function, tuple[Any, ...]]


@dataclass(frozen=True)
class Workload:
    """`build()` returns a function and its arguments, the same ones each time.

    gradient   forward and backward are timed together
    streams    it should be memory-bound: it is compared with a copy of as many bytes
    tolerance  larger than that of its dtype, if eager itself is less accurate
    """

    name: str
    build: Callable[[], Built]
    kind: Literal["kernel", "operator", "model", "training"] = "kernel"
    gradient: bool = False
    streams: bool = False
    tolerance: float = 0.0


def kernel(
    name: str,
    fn: Function,
    make: Callable[[], tuple[Any, ...]],
    gradient: bool = False,
    streams: bool = False,
) -> Workload:
    """Register a function that needs no `build`."""
    return Workload(name, lambda: (fn, make()), "kernel", gradient, streams)


def operator(*given: Any, **more: Any) -> Workload:
    """A `kernel` workload of the kind "operator"."""
    return replace(kernel(*given, **more), kind="operator")


def _floats(*shape: int, grad: bool = False) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.randn(*shape, generator=generator).requires_grad_(grad)


def _weights(outputs: int, inputs: int) -> torch.Tensor:
    """Weights of a linear layer, scaled so that inputs and outputs have the same variance."""
    return _floats(outputs, inputs) / inputs**0.5


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


def masked_attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, hidden: torch.Tensor
) -> torch.Tensor:
    scores = (q @ k.transpose(-1, -2) / 8.0).masked_fill(hidden, float("-inf"))
    return torch.softmax(scores, -1) @ v


def _masked_attention_arguments() -> tuple[torch.Tensor, ...]:
    later = torch.ones(512, 512, dtype=torch.bool).triu(1)
    return (*(_floats(4, 8, 512, 64) for _ in range(3)), later)


def int8_linear(x: torch.Tensor, w: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    return x @ (w.float() * scale).t()


def _int8_arguments() -> tuple[torch.Tensor, ...]:
    w = (_floats(4096, 4096) * 40).clamp(-127, 127).to(torch.int8)
    return _floats(32, 4096), w, torch.full((4096, 1), 0.01)


def int4_row(x: torch.Tensor, pairs: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    """A row times 4-bit weights, two in a byte; each group of 128 weights has a scale."""
    nibbles = torch.stack((pairs & 15, pairs >> 4), -1).reshape(len(pairs), -1, 128)
    return x @ ((nibbles.float() - 8) * scale).reshape(len(pairs), -1).t()


def _int4_arguments() -> tuple[torch.Tensor, ...]:
    pairs = (_floats(4096, 2048) * 40 + 128).clamp(0, 255).to(torch.uint8)
    return _floats(1, 4096), pairs, torch.full((4096, 32, 1), 0.01)


def adam_step() -> Built:
    """An Adam step over the 148 tensors (3 M elements) of a transformer with 12 layers."""
    width, layers = 128, 12
    block = [(3 * width, width), (3 * width,), (width, width), (width,), (4 * width, width),
             (4 * width,), (width, 4 * width), (width,), *[(width,)] * 4]  # fmt: skip
    shapes = [*block * layers, (5000, width), (512, width), (width,), (width,)]
    parameters = [torch.nn.Parameter(_floats(*shape)) for shape in shapes]
    for parameter in parameters:
        parameter.grad = 0.1 * _floats(*parameter.shape)
    optimizer = torch.optim.Adam(parameters, lr=1e-3)

    def step() -> list[torch.Tensor]:
        optimizer.step()
        return parameters

    return step, ()


def numpy_function() -> Built:
    return next(program for program in PROGRAMS if program.name == "numpy").make()


OF_DOUBLES: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "sin": torch.sin,
    "tanh": torch.tanh,
    "erf": torch.erf,
    "x ** 1.5": lambda x: x**1.5,
    "x % 0.7": lambda x: x % 0.7,
}
"""Functions in the precision that NumPy has."""

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

SHORT_ROWS: dict[str, tuple[int, Callable[[torch.Tensor], torch.Tensor]]] = {
    "softmax": (13, lambda x: torch.softmax(x, -1)),
    "log_softmax": (10, lambda x: torch.log_softmax(x, -1)),
    "argmax": (10, lambda x: x.argmax(-1)),
    "max": (7, lambda x: x.amax(-1)),
    "norm": (3, lambda x: x.norm(dim=-1)),
    "layer norm": (24, lambda x: F.layer_norm(x, (24,))),
}
"""Rows of few elements, and what is done with each: classes, vectors, small heads."""

KERNELS = (
    kernel("sin + cos of a scalar", lambda x: x.sin() + x.cos(), lambda: (_floats(1),)),
    kernel("sin²+cos², 1,000, fwd+bwd", lambda x: x.sin() ** 2 + x.cos() ** 2,
           lambda: (_floats(1000, grad=True),), gradient=True),
    kernel("sin²+cos², 4 M, fwd+bwd", lambda x: x.sin() ** 2 + x.cos() ** 2,
           lambda: (_floats(4_000_000, grad=True),), gradient=True),
    kernel("((x+1)*2).sin(), 10 M", lambda x: ((x + 1) * 2).sin(),
           lambda: (_floats(10_000_000),), streams=True),
    kernel("add-add-mul-add (16384, 512)", lambda a, b, c, d, e: (a + b + c) * d + e,
           lambda: tuple(_floats(16384, 512) for _ in range(5)), streams=True),
    kernel("softmax (4096, 4096)", lambda x: torch.softmax(x, -1),
           lambda: (_floats(4096, 4096),), streams=True),
    kernel("layer norm + GELU (4096, 1024)", layer_norm_gelu,
           lambda: (_floats(4096, 1024), _floats(1024), _floats(1024))),
    kernel("layer norm (2048, 1024), fwd+bwd", lambda x, w, b: F.layer_norm(x, (1024,), w, b),
           lambda: (_floats(2048, 1024, grad=True), _floats(1024, grad=True),
                    _floats(1024, grad=True)), gradient=True),
    kernel("bias + ReLU (2048, 3072), fwd+bwd", lambda x, b: F.relu(x + b),
           lambda: (_floats(2048, 3072, grad=True), _floats(3072, grad=True)), gradient=True),
    kernel("RMS norm (4096, 4096)", rms_norm,
           lambda: (_floats(4096, 4096), _floats(4096)), streams=True),
    kernel("cross entropy (4096, 8192), fwd+bwd", cross_entropy,
           lambda: (_floats(4096, 8192, grad=True), torch.arange(4096)), gradient=True),
    kernel("SwiGLU (4096, 4096)", lambda a, b: F.silu(a) * b,
           lambda: (_floats(4096, 4096), _floats(4096, 4096)), streams=True),
    kernel("a + b.T (4096, 4096)", lambda a, b: a + b.t(),
           lambda: (_floats(4096, 4096), _floats(4096, 4096)), streams=True),
    kernel("permute + copy (64, 256, 1024)", lambda x: x.permute(2, 0, 1).contiguous() * 1.5,
           lambda: (_floats(64, 256, 1024),), streams=True),
    kernel("row sum (2048, 8192)", lambda x: x.sum(1),
           lambda: (_floats(2048, 8192),), streams=True),
    kernel("column sum (2048, 8192)", lambda x: x.sum(0),
           lambda: (_floats(2048, 8192),), streams=True),
    kernel("sum of squares, 16 M", lambda x: (x * x).sum(),
           lambda: (_floats(16_000_000),), streams=True),
    kernel("argmax of rows (4096, 1024)", lambda x: x.argmax(1), lambda: (_floats(4096, 1024),)),
    kernel("cumsum of rows (4096, 1024)", lambda x: x.cumsum(1), lambda: (_floats(4096, 1024),)),
    kernel("max pool 2d (8, 64, 112, 112)", lambda x: F.max_pool2d(x, 3, 2, 1),
           lambda: (_floats(8, 64, 112, 112),)),
    kernel("upsample bilinear (4, 32, 128, 128) x2", upsample,
           lambda: (_floats(4, 32, 128, 128),)),
    kernel("linear-GELU-linear (512, 768, 3072)", linear_gelu_linear,
           lambda: (_floats(512, 768), _weights(3072, 768), _weights(768, 3072))),
    kernel("masked attention written out (4, 8, 512, 64)", masked_attention,
           _masked_attention_arguments),
    kernel("int8 dequantize + matmul (32, 4096, 4096)", int8_linear, _int8_arguments),
    Workload("Adam step, 148 tensors", adam_step),
    Workload("NumPy function (1024, 640)", numpy_function, tolerance=1e-3),
)  # fmt: skip
"""Those that the project's aims are stated for."""

OPERATORS = (
    operator("layer norm (8192, 1024)", lambda x, w, b: F.layer_norm(x, (1024,), w, b),
             lambda: (_floats(8192, 1024), _floats(1024), _floats(1024)), streams=True),
    operator("mean, 4 M", lambda x: x.mean(), lambda: (_floats(4_000_000),), streams=True),
    operator("max of rows (4096, 1024)", lambda x: x.amax(1),
             lambda: (_floats(4096, 1024),), streams=True),
    operator("variance of rows (4096, 1024)", lambda x: x.var(1), lambda: (_floats(4096, 1024),)),
    operator("scatter_add (1 M into 1,000)", lambda x, i: x.new_zeros(1000).scatter_add(0, i, x),
             lambda: (_floats(1_000_000), torch.arange(1_000_000) % 1000)),
    operator("attention written out (8, 512, 64)", attention,
             lambda: tuple(_floats(8, 512, 64) for _ in range(3))),
    operator("int4 dequantize + matmul (1, 4096, 4096)", int4_row, _int4_arguments),
    operator("pad, reflect (8, 64, 112, 112)", lambda x: F.pad(x, (1, 1, 1, 1), "reflect"),
             lambda: (_floats(8, 64, 112, 112),)),
    operator("pad, replicate (8, 64, 112, 112)", lambda x: F.pad(x, (1, 1, 1, 1), "replicate"),
             lambda: (_floats(8, 64, 112, 112),)),
    *(operator(f"{name}, 4 M", fn, lambda: (_floats(4_000_000),), streams=name != "tan")
      for name, fn in SINGLE.items()),
    operator("sum, 10 M", torch.sum, lambda: (_floats(10_000_000),), streams=True),
    operator("x + 1, 4 M, float16", lambda x: x + 1, lambda: (_floats(4_000_000).half(),)),
    operator("x * 2 + 1, 4 M, float16", lambda x: x * 2 + 1, lambda: (_floats(4_000_000).half(),)),
    operator("x + 1, 4 M, bfloat16", lambda x: x + 1, lambda: (_floats(4_000_000).bfloat16(),),
             streams=True),
    *(operator(f"{name} of short rows (50000, {width})", fn, lambda n=width: (_floats(50_000, n),))
      for name, (width, fn) in SHORT_ROWS.items()),
    operator("products of 4 x 4 matrices (50000)", torch.bmm,
             lambda: (_floats(50_000, 4, 4), _floats(50_000, 4, 4))),
    operator("logcumsumexp of rows (4096, 1024)", lambda x: x.logcumsumexp(1),
             lambda: (_floats(4096, 1024),)),
    operator("x % y, 1 M", torch.remainder, lambda: (_floats(1_000_000), _floats(1_000_000) + 9)),
    operator("floor_divide, 1 M", torch.floor_divide,
             lambda: (_floats(1_000_000), _floats(1_000_000) + 9)),
    *(operator(f"{name}, 1 M, float64", fn, lambda: (_floats(1_000_000).double().abs(),))
      for name, fn in OF_DOUBLES.items()),
)  # fmt: skip
"""Others, nearly all of them one operator: what an aim for many operators in one does not show."""
