"""Keep float32 between the operations of a kernel instead of rounding to float16 or bfloat16.

    buf0 = bf16(mul(f32(x), 1.1))               buf0 = mul(f32(x), 1.1)          inlined
    buf1 = bf16(sin(f32(buf0)))          →      buf1 = bf16(sin(buf0))           stored

This applies only to inlined values; stored values are rounded.  It is off by default: a value is
rounded after every operation, as in eager mode.

Inductor: `config.emulate_precision_casts`, with the opposite default.
"""

from __future__ import annotations

from dataclasses import replace

from inductor_lab.compiler.ir.expr import Expr, Load, Op, map_expr
from inductor_lab.compiler.ir.program import Pointwise
from inductor_lab.compiler.schedule.schedule import Group, Schedule
from inductor_lab.compiler.torch_door.torch_types import torch

LOW = (torch.float16, torch.bfloat16)


def keep_precision(schedule: Schedule) -> Schedule:
    """The schedule, with kernels that round only the values that they store."""
    steps = (_group(step) if isinstance(step, Group) else step for step in schedule.steps)
    return replace(schedule, steps=tuple(steps))


def _group(group: Group) -> Group:
    if group.combined:
        parts = tuple(map(_group, group.combined))
        nests = tuple(nest for part in parts for nest in part.nests)
        inlined = {name: nest for part in parts for name, nest in part.inlined.items()}
        return replace(group, combined=parts, nests=nests, inlined=inlined)
    wide = {name: nest for name, nest in group.inlined.items() if _exact(nest) is not None}
    if not wide:
        return group

    def rebuild(node: Expr) -> Expr:
        match node:
            case Op("convert", (Load(buffer, index, _, origins),), torch.float32) if buffer in wide:
                return Load(buffer, index, torch.float32, origins)
            case Load(buffer, index, dtype, origins) if buffer in wide:
                kept = Load(buffer, index, torch.float32, origins)
                return Op("convert", (kept,), dtype, origins)
        return map_expr(node, rebuild, lambda index: index)

    return replace(
        group,
        nests=tuple(replace(nest, body=rebuild(nest.body)) for nest in group.nests),
        inlined={
            name: replace(nest, body=rebuild(_exact(nest) or nest.body))
            for name, nest in group.inlined.items()
        },
    )


def _exact(nest: Pointwise) -> Expr | None:
    """The float32 value that a nest rounds, if rounding is its last operation."""
    match nest.body:
        case Op("convert", (value,), dtype) if dtype in LOW and value.dtype == torch.float32:
            return value
    return None
