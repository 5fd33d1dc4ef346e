"""Operators that are formulas: activations, their gradients, and a few fused arithmetic ones.

Eager mode has one kernel for each, so each is one nest here.  A formula is a Python expression of
`Term`s, whose operators build expressions:

    silu(x) = x / (1 + exp(-x))

Inductor: `decomposition.py` and `lowering.py` decompose most of these.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from inductor_lab.compiler.ir.expr import Expr
from inductor_lab.compiler.lower.builder import Builder
from inductor_lab.compiler.lower.promote import KEEP, computation_dtype, operand
from inductor_lab.compiler.lower.registry import lowers
from inductor_lab.compiler.lower.tensor import TensorValue, identity

aten = torch.ops.aten


def _operator(name: str, *, reverse: bool = False) -> Callable[[Term, Any], Term]:
    """The Python operator of a term and another term or number."""

    def apply(term: Term, other: Any) -> Term:
        first = Term(term.build, term._expr(other)) if reverse else term
        return first.apply(name, term if reverse else other)

    return apply


@dataclass(frozen=True, eq=False, slots=True)
class Term:
    """An expression with Python operators; numbers get its dtype."""

    build: Builder
    expr: Expr

    def apply(self, name: str, *others: Any) -> Term:
        """The operation `name` of this and other terms or numbers."""
        return Term(self.build, self.build.op(name, self.expr, *map(self._expr, others)))

    def _expr(self, other: Any) -> Expr:
        if isinstance(other, Term):
            return other.expr
        return self.build.const(other, self.expr.dtype)

    def __mul__(self, other: Any) -> Term:
        return self if isinstance(other, int | float) and other == 1 else self.apply("mul", other)

    __add__, __radd__ = _operator("add"), _operator("add", reverse=True)
    __sub__, __rsub__ = _operator("sub"), _operator("sub", reverse=True)
    __rmul__ = _operator("mul", reverse=True)
    __truediv__ = _operator("truediv")
    __gt__, __ge__ = _operator("gt"), _operator("ge")
    __lt__, __le__ = _operator("lt"), _operator("le")
    __or__ = _operator("logical_or")

    def clamp(self, low: Any, high: Any) -> Term:
        """The term limited to `low` ... `high`."""
        return self.apply("maximum", low).apply("minimum", high)


def where(test: Term, one: Any, other: Any) -> Term:
    """`one` if the test is true, otherwise `other`; at least one of the two is a term."""
    like = one if isinstance(one, Term) else other
    chosen = (like._expr(one), like._expr(other))
    return Term(test.build, test.build.op("where", test.expr, *chosen))


def exp(x: Term) -> Term:
    return x.apply("exp")


def sigmoid(x: Term) -> Term:
    return x.apply("sigmoid")


def tanh(x: Term) -> Term:
    return x.apply("tanh")


Formula = Callable[..., Term]


def formula(*operators: Any) -> Callable[[Formula], Formula]:
    """Register a formula: tensors become terms of their common dtype; other arguments are
    unchanged."""

    def register(define: Formula) -> Formula:
        lowers(*operators)(partial(_evaluate, define))
        return define

    return register


def _evaluate(define: Formula, build: Builder, *args: Any, **kwargs: Any) -> TensorValue:
    at = identity(build.result.shape)
    fakes = [node.meta["val"] for node in build.node.all_input_nodes]
    tensors = [fake for fake in fakes if isinstance(fake, torch.Tensor)]
    dtype = computation_dtype(tensors, KEEP)

    def term(given: Any) -> Any:
        if isinstance(given, TensorValue):
            return Term(build, operand(build, given, at, dtype))
        return given

    result = define(*map(term, args), **{name: term(value) for name, value in kwargs.items()})
    return build.pointwise(result.expr)


# ---- activations -----------------------------------------------------------------------------

SQRT_HALF = math.sqrt(0.5)
SQRT_2_OVER_PI = math.sqrt(2 / math.pi)
CUBIC = 0.044715


@formula(aten.gelu.default)
def gelu(x: Term, approximate: str = "none") -> Term:
    """X times the normal distribution function at x, or its approximation by tanh."""
    if approximate == "none":
        return x * 0.5 * ((x * SQRT_HALF).apply("erf") + 1)
    return x * 0.5 * (tanh((x + x * x * x * CUBIC) * SQRT_2_OVER_PI) + 1)


@formula(aten.gelu_backward.default)
def gelu_backward(grad: Term, x: Term, approximate: str = "none") -> Term:
    """grad * (cdf(x) + x * pdf(x))."""
    if approximate == "none":
        cdf = ((x * SQRT_HALF).apply("erf") + 1) * 0.5
        pdf = exp(x * x * -0.5) * (SQRT_2_OVER_PI / 2)
        return grad * (cdf + x * pdf)
    inner = tanh((x + x * x * x * CUBIC) * SQRT_2_OVER_PI)
    slope = (1 - inner * inner) * ((x * x * (3 * CUBIC) + 1) * SQRT_2_OVER_PI)
    return grad * ((inner + 1) * 0.5 + x * 0.5 * slope)


@formula(aten.silu.default)
def silu(x: Term) -> Term:
    """x * sigmoid(x)."""
    return x / (exp(x.apply("neg")) + 1)


@formula(aten.silu_backward.default)
def silu_backward(grad: Term, x: Term) -> Term:
    s = sigmoid(x)
    return grad * s * (x * (1 - s) + 1)


@formula(aten.sigmoid_backward.default)
def sigmoid_backward(grad: Term, y: Term) -> Term:
    return grad * ((1 - y) * y)


@formula(aten.tanh_backward.default)
def tanh_backward(grad: Term, y: Term) -> Term:
    return grad * (1 - y * y)


@formula(aten.threshold.default)
def threshold(x: Term, limit: Any, value: Any) -> Term:
    return where(x <= limit, value, x)


@formula(aten.threshold_backward.default)
def threshold_backward(grad: Term, x: Term, limit: Any) -> Term:
    return where(x <= limit, 0, grad)


@formula(aten.hardtanh.default)
def hardtanh(x: Term, low: Any = -1, high: Any = 1) -> Term:
    return x.clamp(low, high)


@formula(aten.hardtanh_backward.default)
def hardtanh_backward(grad: Term, x: Term, low: Any, high: Any) -> Term:
    return where(x > low, where(x < high, grad, 0), 0)  # NaN has no gradient, as in eager


@formula(aten.leaky_relu.default)
def leaky_relu(x: Term, slope: Any = 0.01) -> Term:
    return where(x > 0, x, x * slope)


@formula(aten.leaky_relu_backward.default)
def leaky_relu_backward(grad: Term, x: Term, slope: Any, is_result: bool) -> Term:
    return where(x > 0, grad, grad * slope)


@formula(aten.elu.default)
def elu(x: Term, alpha: Any = 1, scale: Any = 1, input_scale: Any = 1) -> Term:
    return where(x > 0, x * scale, (x * input_scale).apply("expm1") * (alpha * scale))


@formula(aten.elu_backward.default)
def elu_backward(
    grad: Term, alpha: Any, scale: Any, input_scale: Any, is_result: bool, x: Term
) -> Term:
    """If `is_result`, `x` is the result of elu instead of its input."""
    if is_result:
        below = grad * input_scale * (x + alpha * scale)
    else:
        below = grad * (input_scale * alpha * scale) * exp(x * input_scale)
    return where(x > 0, grad * scale, below)


@formula(aten.hardsigmoid.default)
def hardsigmoid(x: Term) -> Term:
    return (x + 3).clamp(0, 6) / 6


@formula(aten.hardsigmoid_backward.default)
def hardsigmoid_backward(grad: Term, x: Term) -> Term:
    return where(x > -3, where(x < 3, grad * (1 / 6), 0), 0)


@formula(aten.hardswish.default)
def hardswish(x: Term) -> Term:
    return x * (x + 3).clamp(0, 6) / 6


@formula(aten.hardswish_backward.default)
def hardswish_backward(grad: Term, x: Term) -> Term:
    return where(x <= -3, 0, where(x >= 3, grad, grad * (x / 3 + 0.5)))


@formula(aten.softplus.default)
def softplus(x: Term, beta: Any = 1, limit: Any = 20) -> Term:
    """log(1 + exp(beta*x)) / beta; x itself where both are equal."""
    scaled = x * beta
    return where(scaled > limit, x, exp(scaled).apply("log1p") / beta)


@formula(aten.softplus_backward.default)
def softplus_backward(grad: Term, x: Term, beta: Any, limit: Any) -> Term:
    scaled = x * beta
    z = exp(scaled)
    return where(scaled > limit, grad, grad * z / (z + 1))


# ---- arithmetic ------------------------------------------------------------------------------


@formula(aten.addcmul.default)
def addcmul(x: Term, a: Term, b: Term, *, value: float | Term = 1) -> Term:
    return x + a * value * b


@formula(aten.addcdiv.default)
def addcdiv(x: Term, a: Term, b: Term, *, value: float | Term = 1) -> Term:
    return x + a * value / b


@formula(aten.lerp.Scalar)
def lerp_by_number(x: Term, y: Term, weight: Any) -> Term:
    """x + weight * (y - x), computed from the nearer end as in eager mode."""
    if not isinstance(weight, int | float):
        return lerp(x, y, Term(x.build, x.build.const(weight, x.expr.dtype)))
    if abs(weight) < 0.5:
        return x + (y - x) * weight
    return y - (y - x) * (1 - weight)


@formula(aten.lerp.Tensor)
def lerp(x: Term, y: Term, weight: Term) -> Term:
    near = weight.apply("abs") < 0.5
    return where(near, x + weight * (y - x), y - (y - x) * (1 - weight))
