"""Lab 4: a lowering of a student's in the compiler."""

from __future__ import annotations

from typing import Any, get_args

import torch

from inductor_lab.api.backend import inspect
from inductor_lab.api.override import override
from inductor_lab.compiler.base.errors import Refused
from inductor_lab.compiler.ir.expr import Expr
from inductor_lab.compiler.lower.ops.pointwise import elementwise
from inductor_lab.compiler.lower.promote import TO_FLOAT


class Builder:
    """What a lowering builds its body with: `op("add", x, y)` is an expression."""

    def __init__(self, op: Any) -> None:
        self.op = op


def body_of(compute: Any, op: Any, x: Any) -> Any:
    """The expression that a lowering builds of x."""
    return compute(Builder(op), x)


def sigmoid_by(compute: Any, x: torch.Tensor) -> Any:
    """`torch.sigmoid(x)` compiled with `compute(build, x)` as the lowering's body."""

    def body(build: Any, given: Any) -> Any:
        value = compute(build, given)
        if not isinstance(value, get_args(Expr)):
            raise Refused(f"a body is an expression, made by build.op, not {value!r}")
        return value

    def lowering(build: Any, given: Any) -> Any:
        return elementwise(build, TO_FLOAT, body, given)

    with override(lowering={torch.ops.aten.sigmoid.default: lowering}):
        return inspect(lambda given: torch.sigmoid(given) * 2, x)
