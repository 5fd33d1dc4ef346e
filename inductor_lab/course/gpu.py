"""Run a student's Triton kernel in Triton's interpreter: record and check every access.

    trace = run_kernel(double, (3,), x, y, 10, BLOCK=4)
    trace.picture(0)         which program reads which element of the first argument

Needs Triton, but no GPU.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import astuple, dataclass, field
from typing import Any

import torch

from inductor_lab.compiler.base.errors import MissingPackage
from inductor_lab.course.language import say
from inductor_lab.course.pictures import Cell, Picture, cells

MOST_DRAWN = 64
"""Elements of a line of the picture."""


class Outside(Exception):
    """A kernel reads or writes outside of its tensors; `trace` has the accesses so far."""

    def __init__(self, text: str, trace: Trace) -> None:
        super().__init__(text)
        self.trace = trace


@dataclass(frozen=True)
class Access:
    """One load or store of one program: elements of an argument, and the number of masked lanes."""

    program: int
    writes: bool
    argument: int
    elements: tuple[int, ...]
    masked: int


@dataclass
class Trace:
    """All accesses of a launch, up to the first one out of bounds."""

    sizes: dict[int, int]
    accesses: list[Access] = field(default_factory=list)

    def picture(self, argument: int) -> Picture:
        """Each program's elements of one tensor; an element of two programs is crossed out."""
        size = min(self.sizes[argument], MOST_DRAWN)
        mine: dict[int, set[int]] = {}
        for access in self.accesses:
            if access.argument == argument:
                mine.setdefault(access.program, set()).update(access.elements)
        rows: list[tuple[str, list[Cell]]] = [("", [(str(n), "box") for n in range(size)])]
        for program, elements in sorted(mine.items()):
            others = set().union(*(e for p, e in mine.items() if p != program))
            line = [_cell(n in elements, n in others) for n in range(size)]
            rows.append((f"program {program}", line))
        title = say("elements of argument {n}, by program", n=argument)  # fmt: skip
        return cells(title, rows, [(say("accessed"), "input")])


def _cell(touched: bool, shared: bool) -> Cell:
    return "", ("wrong" if shared else "input") if touched else "box"


def run_kernel(
    kernel: Callable[..., Any], grid: tuple[int, ...], *arguments: Any, **constants: Any
) -> Trace:
    """Run a kernel (with or without `@triton.jit`) on CPU tensors, one program after the other.

    Raises Outside at the first access outside of a tensor, MissingPackage without Triton, and the
    exceptions of the kernel.
    """
    try:
        from triton.runtime.errors import InterpreterError
        from triton.runtime.interpreter import InterpretedFunction, interpreter_builder
    except ImportError:
        raise MissingPackage("triton", "triton") from None
    tensors = {n: one for n, one in enumerate(arguments) if isinstance(one, torch.Tensor)}
    trace = Trace({n: one.numel() for n, one in tensors.items()})
    function = InterpretedFunction(getattr(kernel, "fn", kernel))
    try:
        with _watched(interpreter_builder, tensors, trace), _functions_interpreted():
            function[grid](*arguments, **constants)
    except InterpreterError as wrapped:
        raise (wrapped.__cause__ or wrapped) from None
    return trace


def launched(
    kernel: Any, grid: tuple[int, ...], x: torch.Tensor, out: torch.Tensor,
    more: tuple[Any, ...], block: int,
) -> tuple[torch.Tensor, str, list[tuple[Any, ...]]]:  # fmt: skip
    """Run a kernel of an exercise: what it stored, where it left its tensors ("" if it did not),
    and its accesses as tuples."""
    outside = ""
    try:
        trace = run_kernel(kernel, grid, x, out, *more, BLOCK=block)
    except Outside as reason:
        trace, outside = reason.trace, str(reason)
    return out, outside, [astuple(access) for access in trace.accesses]


@contextlib.contextmanager
def _functions_interpreted() -> Iterator[None]:
    """While a kernel runs, functions of `triton.language` written in Triton (`tl.max`, `tl.sum`)
    are also interpreted; without this, Triton decides it once, when it is imported."""
    import triton.language as tl
    from triton.runtime.interpreter import InterpretedFunction
    from triton.runtime.jit import JITFunction

    places = (tl, tl.core, tl.math, tl.tensor, tl.core.tensor_descriptor_base)
    own = [(place, dict(vars(place))) for place in places]
    for name, one in own[0][1].items():
        if isinstance(one, JITFunction):
            setattr(tl, name, InterpretedFunction(one.fn))
    try:
        yield
    finally:  # Triton patches modules for a function inside a kernel, and does not restore them
        for place, members in own:
            for name, now in list(vars(place).items()):
                if name not in members:
                    delattr(place, name)
                elif now is not members[name]:
                    setattr(place, name, members[name])


@contextlib.contextmanager
def _watched(builder: Any, tensors: dict[int, torch.Tensor], trace: Trace) -> Iterator[None]:
    """While a kernel runs, record its accesses, and raise if one is out of bounds."""
    own = {name: getattr(builder, name) for name in _MASKS}

    def watched(name: str, mask_at: int) -> Callable[..., Any]:
        def access(*given: Any) -> Any:
            pointers, mask = given[0], given[mask_at].data.astype(bool)
            width = max(pointers.get_element_ty().primitive_bitwidth // 8, 1)
            wanted = sorted({int(a) for a in pointers.data[mask].ravel()})
            masked = int(mask.size - mask.sum())
            program = int(builder.grid_idx[0])
            _note(trace, tensors, wanted, width, (program, "store" in name, masked))
            return own[name](*given)

        return access

    for name, mask_at in _MASKS.items():
        setattr(builder, name, watched(name, mask_at))
    try:
        yield
    finally:
        for name in _MASKS:
            delattr(builder, name)


_MASKS = {"create_masked_load": 1, "create_masked_store": 2}
"""What all loads and stores of the interpreter go through, and where each has its mask."""


def _note(
    trace: Trace,
    tensors: dict[int, torch.Tensor],
    addresses: list[int],
    width: int,
    about: tuple[int, bool, int],
) -> None:
    if not addresses:
        return
    program, writes, masked = about
    start = {n: one.data_ptr() for n, one in tensors.items()}
    nearest = min(start, key=lambda n: _distance(addresses[0], start[n], tensors[n]))
    size = tensors[nearest].numel()
    elements = tuple((address - start[nearest]) // width for address in addresses)
    inside = tuple(e for e in elements if 0 <= e < size)
    trace.accesses.append(Access(program, writes, nearest, inside, masked))
    if len(inside) < len(elements):
        how = "writes" if writes else "reads"
        text = say(
            f"program {{p}} {how} element {{e}} of argument {{n}}, which has {{s}} elements: a "
            "mask is missing, or the address is wrong",
            p=program, e=next(e for e in elements if e not in inside), n=nearest, s=size,
        )  # fmt: skip
        raise Outside(text, trace)


def _distance(address: int, start: int, tensor: torch.Tensor) -> int:
    end = start + tensor.numel() * tensor.element_size()
    return 0 if start <= address < end else min(abs(address - start), abs(address - end) + 1)
