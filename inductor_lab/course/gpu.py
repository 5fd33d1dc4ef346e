"""Run a student's Triton kernel in Triton's interpreter: record and check every access.

    trace = run_kernel(double, (3,), x, y, 10, BLOCK=4)
    trace.picture(0)         which program reads which element of the first argument
    print(trace)             how often the elements of each argument are loaded and stored
    trace.races()            accesses of two programs to one element, in no order

    print(descend(double, x, y, 10, BLOCK=4)["ptx"])      what Triton makes of it for a GPU

Needs Triton, but no GPU.
"""

from __future__ import annotations

import contextlib
import linecache
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from typing import Any

import torch

from inductor_lab.compiler.base.errors import MissingPackage
from inductor_lab.course.language import say
from inductor_lab.course.pictures import Cell, Picture, cells
from inductor_lab.course.races import Access, Race, races

MOST_DRAWN = 64
"""Elements of a line of the picture."""


class Outside(Exception):
    """A kernel reads or writes outside of its tensors; `trace` has the accesses so far."""

    def __init__(self, text: str, trace: Trace) -> None:
        super().__init__(text)
        self.trace = trace


@dataclass
class Trace:
    """All accesses of a launch, up to the first one out of bounds."""

    sizes: dict[int, int]
    accesses: list[Access] = field(default_factory=list)

    def races(self) -> list[Race]:
        """Each element that two programs access in no order, with the first such pair."""
        return list(races(self.accesses))

    def times(self, argument: int, *, stored: bool = False) -> float:
        """How often an element of a tensor is loaded (or stored), on average."""
        count = sum(len(each.elements) for each in self.accesses
                    if each.argument == argument and each.writes == stored)  # fmt: skip
        return count / max(self.sizes[argument], 1)

    def __str__(self) -> str:
        return "\n".join(
            say("argument {n}: elements: {s}; loads per element: {a:.2f}; stores: {b:.2f}",
                n=n, s=size, a=self.times(n), b=self.times(n, stored=True))
            for n, size in self.sizes.items()
        )  # fmt: skip

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
    kernel: Callable[..., Any], grid: tuple[int, ...], *arguments: Any, backwards: bool = False,
    **constants: Any,
) -> Trace:  # fmt: skip
    """Run a kernel (with or without `@triton.jit`) on CPU tensors, one program after the other.

    With `backwards` the last program runs first.  On a GPU they run at the same time, in any order.

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
    file = function.rewrite().__code__.co_filename
    watched = _Watched(interpreter_builder, tensors, trace, file)
    order = _last_first(interpreter_builder) if backwards else contextlib.nullcontext()
    try:
        with watched.all(), order, _functions_interpreted():
            function[grid](*arguments, **constants)
    except InterpreterError as wrapped:
        raise (wrapped.__cause__ or wrapped) from None
    return trace


def launched(
    kernel: Any, grid: tuple[int, ...], tensors: Sequence[torch.Tensor], out: torch.Tensor,
    more: tuple[Any, ...], constants: Mapping[str, int], backwards: bool = False,
) -> tuple[torch.Tensor, str, list[tuple[Any, ...]]]:  # fmt: skip
    """Run a kernel of an exercise: what it stored, where it left its tensors ("" if it did not),
    and its accesses as tuples."""
    outside = ""
    try:
        trace = run_kernel(kernel, grid, *tensors, out, *more, backwards=backwards, **constants)
    except Outside as reason:
        trace, outside = reason.trace, str(reason)
    return out, outside, [astuple(access) for access in trace.accesses]


def descend(
    kernel: Any, *arguments: Any, target: int = 90, **constants: Any
) -> dict[str, str | bytes]:
    """Compile a kernel for an NVIDIA GPU, which need not be here: the result of each stage.

    `target` is the compute capability times 10.  The stages are "ttir" (blocks), "ttgir" (threads),
    "llir" (LLVM), "ptx", "cubin" (bytes).  Raises MissingPackage without Triton.
    """
    try:
        import triton
        from triton.backends.compiler import GPUTarget
        from triton.compiler import ASTSource
        from triton.runtime.jit import JITFunction, mangle_type
    except ImportError:
        raise MissingPackage("triton", "triton") from None
    function = kernel if isinstance(kernel, JITFunction) else triton.jit(kernel)
    names = [name for name in function.arg_names if name not in constants]
    signature = {name: mangle_type(one) for name, one in zip(names, arguments, strict=True)}
    signature |= dict.fromkeys(constants, "constexpr")
    ordered = {name: signature[name] for name in function.arg_names}
    source = ASTSource(function, ordered, constants)
    compiled = triton.compile(source, target=GPUTarget("cuda", target, 32),
                              options={"enable_fp_fusion": True})  # fmt: skip
    return {stage: compiled.asm[stage] for stage in ("ttir", "ttgir", "llir", "ptx", "cubin")}


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
def _last_first(builder: Any) -> Iterator[None]:
    """While a kernel runs, the last program of the grid is the first one that runs."""
    own = builder.set_grid_idx

    def set_grid_idx(*place: int) -> None:
        own(*(size - 1 - at for at, size in zip(place, builder.grid_dim, strict=True)))

    builder.set_grid_idx = set_grid_idx
    try:
        yield
    finally:
        del builder.set_grid_idx


@dataclass(frozen=True)
class _Operation:
    """An operation of the interpreter: where its arguments are."""

    writes: bool
    pointers: int
    mask: int | None = None
    order: int | None = None


_OPERATIONS = {
    "create_masked_load": _Operation(False, 0, 1),
    "create_masked_store": _Operation(True, 0, 2),
    "create_atomic_rmw": _Operation(True, 1, 3, 4),
    "create_atomic_cas": _Operation(True, 0, None, 3),
}
"""What all accesses of the interpreter go through."""


@dataclass
class _Watched:
    """Records the accesses of a kernel, and raises for one that is out of bounds."""

    builder: Any
    tensors: Mapping[int, torch.Tensor]
    trace: Trace
    file: str

    @contextlib.contextmanager
    def all(self) -> Iterator[None]:
        """While a kernel runs."""
        own = {name: getattr(self.builder, name) for name in _OPERATIONS}
        for name, operation in _OPERATIONS.items():
            setattr(self.builder, name, self._watched(own[name], operation))
        try:
            yield
        finally:
            for name in _OPERATIONS:
                delattr(self.builder, name)

    def _watched(self, own: Callable[..., Any], operation: _Operation) -> Callable[..., Any]:
        def access(*given: Any) -> Any:
            pointers = given[operation.pointers]
            live, masked = pointers.data, 0
            if operation.mask is not None:
                mask = given[operation.mask].data.astype(bool)
                live, masked = live[mask], int(mask.size - mask.sum())
            width = max(pointers.get_element_ty().primitive_bitwidth // 8, 1)
            order = "" if operation.order is None else _order(given[operation.order])
            addresses = sorted({int(address) for address in live.ravel()})
            self._note(addresses, width, operation.writes, masked, order)
            return own(*given)

        return access

    def _note(
        self, addresses: list[int], width: int, writes: bool, masked: int, order: str
    ) -> None:
        if not addresses:
            return
        start = {n: one.data_ptr() for n, one in self.tensors.items()}
        nearest = min(start, key=lambda n: _distance(addresses[0], start[n], self.tensors[n]))
        size = self.tensors[nearest].numel()
        elements = tuple((address - start[nearest]) // width for address in addresses)
        inside = tuple(e for e in elements if 0 <= e < size)
        (x, y, z), (_, height, depth) = self.builder.grid_idx, self.builder.grid_dim
        program, line = (x * height + y) * depth + z, self._line()
        self.trace.accesses.append(Access(program, writes, nearest, inside, masked, order, line))
        if len(inside) < len(elements):
            how = "writes" if writes else "reads"
            text = say(
                f"program {{p}} {how} element {{e}} of argument {{n}}, which has {{s}} elements: a "
                "mask is missing, or the address is wrong",
                p=program, e=next(e for e in elements if e not in inside), n=nearest, s=size,
            )  # fmt: skip
            raise Outside(f"{text}\n    {line}" if line else text, self.trace)

    def _line(self) -> str:
        """The line of the kernel that runs now; "" if its text is not known."""
        frame = sys._getframe(1)
        while frame is not None and frame.f_code.co_filename != self.file:
            frame = frame.f_back  # type: ignore[assignment]
        return linecache.getline(self.file, frame.f_lineno).strip() if frame is not None else ""


def _order(semantics: Any) -> str:
    """`MEM_SEMANTIC.ACQUIRE_RELEASE` → `"acquire_release"`."""
    return str(semantics).rpartition(".")[2].lower()


def _distance(address: int, start: int, tensor: torch.Tensor) -> int:
    end = start + tensor.numel() * tensor.element_size()
    return 0 if start <= address < end else min(abs(address - start), abs(address - end) + 1)
