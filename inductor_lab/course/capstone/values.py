"""Programs as plain data, on their way to a student's process and back, and what makes them legal.

What comes back was made by untrusted code.  It is rebuilt from data as values of the small
compiler, and verified before it runs: known operations, indices inside of buffers, small sizes.
"""

from __future__ import annotations

import dataclasses
import importlib
import math
from collections.abc import Iterable, Sequence
from typing import Any

import torch

from inductor_lab.course.language import say
from inductor_lab.mini.cpp import OPS, REDUCE
from inductor_lab.mini.fuse import Group, Schedule
from inductor_lab.mini.loops import Affine, Call, Const, Nest, Op, Program, View, parts

HOMES = {
    **dict.fromkeys("Affine Load Const Index Op Nest View Call Program".split(), "loops"),
    **dict.fromkeys(("Group", "Schedule"), "fuse"), "Planned": "memory", "MemoryPlan": "memory",
    "Kernels": "cpp",
}  # fmt: skip
"""Class → its file."""
aten = torch.ops.aten
TARGETS = {str(op): op for op in (aten.mm.default, aten.addmm.default)}
"""The operators that a program may call."""
MOST = 1 << 16
"""Points of a nest, and elements of a buffer."""


def to_data(value: Any) -> Any:
    """Tagged tuples for programs, groups and plans: ("@Affine", 0, (8, 1))."""
    name = type(value).__name__
    if name in HOMES:
        fields = getattr(value, "_fields", None) or [f.name for f in dataclasses.fields(value)]
        return (f"@{name}", *(to_data(getattr(value, field)) for field in fields))
    if isinstance(value, dict):
        return {key: to_data(each) for key, each in value.items()}
    if isinstance(value, tuple | list | frozenset):
        return type(value)(map(to_data, value))
    return ("@target", str(value)) if str(value) in TARGETS else value


def from_data(data: Any, package: str = "inductor_lab.mini") -> Any:
    """The values, with the classes of a package.  Raises ValueError for what cannot be one."""
    if isinstance(data, dict):
        return {key: from_data(each, package) for key, each in data.items()}
    if isinstance(data, tuple) and data and str(data[0]).startswith("@"):
        name, *fields = data
        if name == "@target" and fields[0] in TARGETS:
            return TARGETS[fields[0]]
        if name[1:] not in HOMES:
            raise ValueError(say("the program calls {f}, which the graph does not", f=data[-1]))
        kind = getattr(importlib.import_module(f"{package}.{HOMES[name[1:]]}"), name[1:])
        return kind(*(from_data(field, package) for field in fields))
    if isinstance(data, tuple | list | frozenset):
        return type(data)(from_data(each, package) for each in data)
    return data


def illegal(program: Any, inputs: Sequence[torch.Tensor]) -> str | None:
    """A sentence about the first thing that makes a program illegal; None if it may run."""
    if not isinstance(program, Program) or not all(isinstance(x, View) for x in program.outputs):
        return say("it is not a program whose outputs are tensors")
    if len(program.inputs) != len(inputs):
        return say("it has {a} inputs, the graph has {b}", a=len(program.inputs), b=len(inputs))
    for name, x in zip(program.inputs, inputs, strict=True):
        size = program.buffers[name].size if name in program.buffers else ()
        if size != tuple(x.shape):
            return say("input {n} has size {a} instead of {b}", n=name, a=size, b=tuple(x.shape))
    for view in program.buffers.values():
        if math.prod(view.size) > MOST or view.bytes > 8 * MOST or min(view.size, default=0) < 0:
            return say("buffer {b} has a wrong size", b=view)
    known = {*program.inputs, *program.constants}
    for step in program.steps:
        read = step.loads() if isinstance(step, Nest) else step.views()
        for each in read:
            if each.buffer not in known:
                return say("`{s}` reads {b}, which no earlier step writes", s=step, b=each.buffer)
        outs = (step.out,) if isinstance(step, Nest) else step.outs
        if known.intersection(outs) or not program.buffers.keys() >= set(outs):
            return say("`{s}` writes a buffer that is written twice, or is not declared", s=step)
        wrong = _illegal_nest(step, program) if isinstance(step, Nest) else None
        if wrong:
            return wrong
        known.update(outs)
    lost = [view for view in program.outputs if view.buffer not in known]
    return say("nothing writes the output {b}", b=lost[0]) if lost else None


def _illegal_nest(nest: Nest, program: Program) -> str | None:
    if math.prod(nest.sizes) > MOST or not 0 <= nest.kept <= len(nest.sizes):
        return say("`{s}` has too many points", s=nest)
    if bool(nest.reduce) != (nest.kept < len(nest.sizes)) or nest.reduce not in (*REDUCE, ""):
        return say("`{s}`: reduced axes and the reduction do not fit", s=nest)
    for each in parts(nest.body):
        if isinstance(each, Op) and each.name not in (*OPS, "cast"):
            return say("there is no operation {n}", n=each.name)
        if isinstance(each, Const) and not isinstance(each.value, int | float):
            return say("{v} is not a number", v=each.value)
    accesses = [(load.buffer, load.at, nest.sizes) for load in nest.loads()]
    accesses.append((nest.out, Affine(nest.store.offset, nest.store.coefs[: nest.kept]),
                     nest.shape))  # fmt: skip
    for buffer, at, sizes in accesses:
        if len(at.coefs) != len(sizes):
            return say("`{s}`: index {i} has {a} axes instead of {b}", s=nest, i=at,
                       a=len(at.coefs), b=len(sizes))  # fmt: skip
        view = program.buffers[buffer]
        low, high = at.bounds(sizes)
        if 0 not in sizes and not 0 <= low <= high < view.bytes // view.dtype.itemsize:
            return say("`{s}` accesses elements {l} to {h} of {b}, which has {n}", s=nest, l=low,
                       h=high, b=buffer, n=view.bytes // view.dtype.itemsize)  # fmt: skip
    store = accesses[-1][1]
    if len(set(elements(store, nest.shape))) < math.prod(nest.shape):
        return say("several points of `{s}` write the same element", s=nest)
    return None


def elements(at: Affine, sizes: Sequence[int]) -> list[int]:
    """The values of an index at all points of axes with these sizes."""
    found = [at.offset]
    for coef, size in zip(at.coefs, sizes, strict=True):
        found = [start + coef * k for start in found for k in range(size)]
    return found


def difference(found: Sequence[Any], wanted: Sequence[torch.Tensor]) -> str | None:
    """A sentence about the first element that differs; None if all agree."""
    if len(found) != len(wanted):
        return say("{a} results instead of {b}", a=len(found), b=len(wanted))
    for number, (mine, right) in enumerate(zip(found, wanted, strict=True)):
        if not isinstance(mine, torch.Tensor) or mine.shape != right.shape:
            shape = tuple(getattr(mine, "shape", ()))
            return say("result {n} has size {a}, eager mode has {b}", n=number, a=shape,
                       b=tuple(right.shape))  # fmt: skip
        mine = mine.detach().to(right.dtype)
        wrong = ~torch.isclose(mine, right, rtol=1e-9, atol=1e-9, equal_nan=True)
        if wrong.any():
            at = tuple(wrong.nonzero()[0].tolist())
            return say("result {n} at {i} is {a:.6g}; eager mode computes {b:.6g}", n=number, i=at,
                       a=mine[at].item(), b=right[at].item())  # fmt: skip
    return None


def traffic(program: Program, items: Iterable[Group | Call | Nest]) -> int:
    """The bytes that nests and kernels read and write; a local buffer costs nothing."""
    total = 0
    for item in items:
        nests = () if isinstance(item, Call) else item.steps if isinstance(item, Group) else (item,)
        local = item.local if isinstance(item, Group) else frozenset()
        made = {nest.out for nest in nests}
        read = {load.buffer for nest in nests for load in nest.loads()}
        total += sum(program.buffers[name].bytes for name in (read | made) - local)
    return total


def kernels(schedule: Schedule) -> int:
    return sum(isinstance(item, Group) for item in schedule.items)


def operations(program: Program) -> int:
    """Operations of all points of all nests."""
    return sum(math.prod(step.sizes) * sum(isinstance(e, Op) for e in parts(step.body))
               for step in program.steps if isinstance(step, Nest))  # fmt: skip
