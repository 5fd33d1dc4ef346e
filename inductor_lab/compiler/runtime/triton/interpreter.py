"""Runs kernels in Triton's interpreter: the same text, on CPU tensors, with NumPy.

Six features are added to the interpreter:

-   Reductions and scans run on complete blocks, instead of element by element.
-   `libdevice` uses torch.
-   Conversions to bfloat16 round, instead of truncating, and `tl.dot` supports bfloat16.
-   Triton 3.6 supports bfloat16 constants, and all ones of unsigned integers.
-   Comparisons return bools, instead of the type of their operands.
-   Loaded indices are checked, so that a wrong index raises instead of reading out of bounds.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np
import torch
import triton.language as tl
from triton.runtime.errors import InterpreterError
from triton.runtime.interpreter import InterpretedFunction, TensorHandle, interpreter_builder

from inductor_lab.compiler.base.errors import IndexOutOfRange, OutOfBounds
from inductor_lab.compiler.codegen.kernel import Kernel
from inductor_lab.compiler.codegen.triton.function import device_copy, parts_of, undecorated
from inductor_lab.compiler.codegen.triton.kernel_module import bare_function
from inductor_lab.compiler.ir.ops_torch import OPERATIONS
from inductor_lab.compiler.runtime.check_bounds import checked_addresses, is_checked

LIBDEVICE_NAMES = {"nearbyint": "round"}
"""The operations that have another name in libdevice."""


class Interpreted:
    """A kernel for Triton's interpreter, `f[grid](*args)`, whatever TRITON_INTERPRET says."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        function = bare_function(kernel)
        for name, part in parts_of(function).items():
            function.__globals__[name] = InterpretedFunction(part)
        function.__globals__["lab"] = _interpreted_device()
        function.__globals__["libdevice"] = _Libdevice("libdevice")
        function.__globals__["range"] = _range
        self.function = InterpretedFunction(function)

    def __getitem__(self, grid: tuple[int, ...]) -> Callable[..., None]:
        def launch(*arguments: Any, **constants: Any) -> None:
            try:
                with np.errstate(all="ignore"), _repaired(), self.bounds(arguments):
                    self.function[grid](*map(_scalar, arguments), **constants)
            except InterpreterError as wrapped:
                if isinstance(wrapped.__cause__, IndexOutOfRange | OutOfBounds):
                    raise wrapped.__cause__ from None
                raise

        return launch

    def bounds(self, arguments: Sequence[Any]) -> contextlib.AbstractContextManager[None]:
        """Return the context that checks addresses, if it is requested."""
        if not is_checked(self.kernel):
            return contextlib.nullcontext()
        return checked_addresses(interpreter_builder, self.kernel, arguments)


def _scalar(argument: Any) -> Any:
    """Convert a bool to an int1 tensor, because the interpreter before Triton 3.7 does not."""
    if not isinstance(argument, bool):
        return argument
    return tl.tensor(TensorHandle(np.array([argument]), tl.int1), tl.int1)


@contextlib.contextmanager
def _repaired() -> Iterator[None]:
    """While a kernel runs, make the interpreter convert from and to bfloat16 as torch does."""
    own, own_binary = interpreter_builder.cast_impl, interpreter_builder.binary_op
    own_dot = interpreter_builder.create_dot

    def cast_impl(source: Any, wanted: Any) -> Any:
        before, after = source.dtype.scalar, wanted.scalar
        if tl.bfloat16 not in (before, after):
            return own(source, wanted)
        values = torch.from_numpy(np.ascontiguousarray(source.data))
        if before == tl.bfloat16:
            assert after == tl.float32, "Triton widens bfloat16 before it converts it"
            return TensorHandle(values.view(torch.bfloat16).float().numpy(), after)
        return TensorHandle(values.to(torch.bfloat16).view(torch.uint16).numpy(), after)

    def get_bf16(value: float) -> Any:
        return cast_impl(interpreter_builder.get_fp32(value), tl.bfloat16)

    def get_all_ones_value(wanted: Any) -> Any:
        return TensorHandle(~interpreter_builder.get_null_value(wanted).data, wanted.scalar)

    def binary_op(left: Any, right: Any, operation: Callable[..., Any]) -> Any:
        if left.dtype.scalar == tl.bfloat16:
            left, right = cast_impl(left, tl.float32), cast_impl(right, tl.float32)
        made = own_binary(left, right, operation)
        return TensorHandle(made.data, tl.int1) if made.data.dtype == np.bool_ else made

    def create_dot(left: Any, right: Any, *more: Any) -> Any:
        if left.dtype.scalar == tl.bfloat16:
            left, right = cast_impl(left, tl.float32), cast_impl(right, tl.float32)
        return own_dot(left, right, *more)

    repairs = (cast_impl, get_bf16, get_all_ones_value, binary_op, create_dot)
    for function in repairs:
        setattr(interpreter_builder, function.__name__, function)
    try:
        yield
    finally:
        for function in repairs:
            delattr(interpreter_builder, function.__name__)


@cache
def _interpreted_device() -> ModuleType:
    """Return `device_functions` as plain functions."""
    module = device_copy("interpreted")
    for name, value in list(vars(module).items()):
        if hasattr(value, "fn"):
            setattr(module, name, undecorated(value))
    for name, value in (
        ("tl", _Language("tl")),
        ("libdevice", _Libdevice("libdevice")),
        ("check_index", _check_index),
    ):
        setattr(module, name, value)
    return module


class _Language(ModuleType):
    """`triton.language` with a faster `reduce` and `associative_scan`."""

    def __getattr__(self, name: str) -> Any:
        return getattr(tl, name)

    def reduce(self, blocks: Any, axis: int, combine: Callable[..., Any], keep_dims: bool) -> Any:
        """Combine even and odd lanes until one is left.  This keeps the order of the elements."""
        assert axis == 1 and keep_dims, "kernels reduce rows of a block"
        parts = blocks if isinstance(blocks, tuple) else (blocks,)
        while parts[0].handle.data.shape[1] > 1:
            even = [_lanes(part, slice(0, None, 2)) for part in parts]
            odd = [_lanes(part, slice(1, None, 2)) for part in parts]
            combined = combine(*even, *odd)
            parts = combined if isinstance(combined, tuple) else (combined,)
        return parts if isinstance(blocks, tuple) else parts[0]


    def associative_scan(self, blocks: Any, axis: int, combine: Callable[..., Any]) -> Any:
        """Combine each lane with the lane 1, 2, 4, … before it."""
        assert axis == 1, "kernels scan rows of a block"
        parts = blocks if isinstance(blocks, tuple) else (blocks,)
        step, width = 1, parts[0].handle.data.shape[1]
        while step < width:
            earlier = [_block(np.roll(part.handle.data, step, 1), part.dtype) for part in parts]
            combined = combine(*earlier, *parts)
            combined = combined if isinstance(combined, tuple) else (combined,)
            for old, new in zip(parts, combined, strict=True):
                new.handle.data[:, :step] = old.handle.data[:, :step]
            parts, step = combined, step * 2
        return tuple(parts) if isinstance(blocks, tuple) else parts[0]


def _lanes(block: Any, lanes: slice) -> Any:
    return _block(block.handle.data[:, lanes], block.dtype)


def _block(data: np.ndarray, dtype: Any) -> Any:
    return tl.tensor(TensorHandle(data, dtype), tl.block_type(dtype, list(data.shape)))


class _Libdevice(ModuleType):
    """The functions of libdevice, computed by torch."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        operation = OPERATIONS[LIBDEVICE_NAMES.get(name, name)]

        def function(*operands: Any) -> Any:
            first = next(o for o in operands if isinstance(o, tl.tensor))
            values = [_as_torch(o, first) for o in operands]
            data = operation(values[0].dtype, *values).numpy()
            if any(isinstance(o, tl.tensor) and o.type.is_block() for o in operands):
                return _block(data, first.dtype)
            return tl.tensor(TensorHandle(data, first.dtype), first.dtype)

        return function


def _as_torch(operand: Any, like: Any) -> torch.Tensor:
    if isinstance(operand, tl.tensor):
        return torch.from_numpy(np.ascontiguousarray(operand.handle.data))
    return torch.from_numpy(np.full((1,), operand, like.handle.data.dtype))


def _range(*bounds: Any) -> range:
    """Return Python's range; a bound can be a Triton scalar."""
    return range(*(b.handle.data.item() if isinstance(b, tl.tensor) else b for b in bounds))


def _check_index(index: Any, size: Any, mask: Any) -> None:
    where = mask.handle.data if isinstance(mask, tl.tensor) else mask
    length = size.handle.data if isinstance(size, tl.tensor) else size
    position = index.handle.data if isinstance(index, tl.tensor) else index
    if np.any(((position < 0) | (position >= length)) & where):
        raise IndexOutOfRange(
            f"a loaded index is out of range in a dimension of size {length}"
        )
