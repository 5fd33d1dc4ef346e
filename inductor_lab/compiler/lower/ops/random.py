"""Random numbers: a seed from the device's own generator, then a counter-based generator.

    rand([4, 8])   →   buf0 = randint(-2**63, 2**63 - 1, [1])     an extern call: torch.manual_seed
    rand([4])          buf1[i0, i1] = philox_uniform(buf0[0], 8*i0 + i1)
                       buf2[i0] = philox_uniform(buf0[0], i0 + 32)

All draws of a graph use one seed: each starts its counter where the previous one ended.
So equal seeds give equal numbers in every run and for any loop order.  They differ from eager mode.

Inductor: `inductor_prims.py` (seed, random) and `lowering.py`, `inductor_random`.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import torch

from inductor_lab.compiler.base.errors import LeftToATen
from inductor_lab.compiler.ir.effects import BEYOND, RANDOM_SEED
from inductor_lab.compiler.ir.expr import Expr, Op
from inductor_lab.compiler.ir.index import ZERO, add_sizes, product
from inductor_lab.compiler.lower.builder import Builder, TensorMeta
from inductor_lab.compiler.lower.registry import lowers
from inductor_lab.compiler.lower.tensor import TensorValue, flatten, identity

aten = torch.ops.aten
GENERATORS = {"philox_uniform": torch.float32, "philox_normal": torch.float32}
"""The operations that generate numbers, and the dtype of these."""


def draw(build: Builder, name: str, generator: Any) -> Expr:
    """One random number for each element of the node's result; a user's generator is left to
    ATen."""
    if generator is not None:
        raise LeftToATen("user's generator")
    meta = build.result
    seed, first = build.randoms.get(meta.device) or (_seed(build, meta.device), 0)
    build.randoms[meta.device] = seed, add_sizes(first, product(meta.shape))
    place = build.position(flatten(identity(meta.shape), meta.shape) + first)
    number = Op(name, (build.load(seed, (ZERO,)), place), GENERATORS[name], build.origins)
    return _cleared_low_bits(build, number) if name == "philox_uniform" else number


def _seed(build: Builder, device: str) -> TensorValue:
    (seed,) = build.extern(
        "aten.randint.low",
        (-(2**63), 2**63 - 1, (1,)),
        {"dtype": torch.int64, "device": torch.device(device)},
        [TensorMeta((1,), (1,), torch.int64, device)],
        reason=RANDOM_SEED,
    )
    return seed


SIGNIFICANT_BITS = {torch.float16: 11, torch.bfloat16: 8}


def _cleared_low_bits(build: Builder, number: Expr) -> Expr:
    """Clear the bits of a uniform number that a 16-bit float cannot hold, so that it is not rounded
    up to 1."""
    bits = SIGNIFICANT_BITS.get(build.result.dtype)
    if bits is None:
        return number
    scaled = build.op("mul", number, build.const(2.0**bits, number.dtype))
    return build.op("mul", build.op("floor", scaled), build.const(2.0**-bits, number.dtype))


def _random(name: str, build: Builder, *given: Any, generator: Any = None, **_: Any) -> TensorValue:
    return build.pointwise(draw(build, name, generator))


lowers(aten.rand.default, aten.rand_like.default)(partial(_random, "philox_uniform"))
lowers(aten.randn.default, aten.randn_like.default)(partial(_random, "philox_normal"))


@lowers(aten.bernoulli.p)
def bernoulli(build: Builder, x: TensorValue, p: float = 0.5, generator: Any = None) -> TensorValue:
    """1 with probability p."""
    if isinstance(p, int | float) and not 0 <= p <= 1:
        raise LeftToATen(BEYOND)
    number = draw(build, "philox_uniform", generator)
    return build.pointwise(build.op("lt", number, build.const(p, number.dtype)))


@lowers(torch.ops.prims.normal.default)
def normal(
    build: Builder, shape: Any, *, mean: Any, std: Any, generator: Any = None, **_: Any
) -> TensorValue:
    """mean + std * a standard normal number."""
    number = draw(build, "philox_normal", generator)
    scaled = build.op("mul", number, build.const(std, number.dtype))
    return build.pointwise(build.op("add", scaled, build.const(mean, number.dtype)))
