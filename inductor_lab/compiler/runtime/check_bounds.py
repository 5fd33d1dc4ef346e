"""`options={"check_bounds": True}`: check that kernels access only elements of their buffers.

A C++ kernel takes pointers that know the length of their buffer (`lab_checked.h`) instead of
addresses.  Otherwise its text is the same.  Triton's interpreter checks the addresses.  The first
access out of bounds is reported, with the kernel, the buffer and the line.
"""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch

from inductor_lab.compiler.base.errors import OutOfBounds
from inductor_lab.compiler.codegen.kernel import Kernel
from inductor_lab.compiler.ir.expr import NO_ORIGINS, Load, Origins
from inductor_lab.compiler.runtime.toolchain.shared_library import place_of


class Fault(ctypes.Structure):
    """The first access out of bounds: `lab_fault` in `lab_checked.h`."""

    _fields_ = [(name, ctypes.c_int64) for name in ("found", "number", "index", "length")]


class Pointer(ctypes.Structure):
    """`lab_checked` in `lab_checked.h`."""

    _fields_ = [
        ("start", ctypes.c_void_p),
        ("first", ctypes.c_int64),
        ("length", ctypes.c_int64),
        ("fault", ctypes.POINTER(Fault)),
        ("number", ctypes.c_int64),
    ]


def is_checked(kernel: Kernel) -> bool:
    return any(parameter.checked for parameter in kernel.parameters)


def extent(tensor: torch.Tensor) -> int:
    """Return the number of elements in memory from the first to the last element of a tensor."""
    if tensor.numel() == 0:
        return 0
    pairs = zip(tensor.shape, tensor.stride(), strict=True)
    return 1 + sum((size - 1) * stride for size, stride in pairs)


def checked_function(
    function: Any, twins: Sequence[Kernel], traces: Mapping[str, str]
) -> Callable[..., int]:
    """Return a C++ kernel as a function of tensors and sizes, which raises OutOfBounds."""
    parameters = twins[0].parameters
    types = [Pointer if p.checked else ctypes.c_int64 for p in parameters]
    function.argtypes = types

    def call(*arguments: Any) -> int:
        fault = Fault()
        given = [
            Pointer(one.data_ptr(), 0, extent(one), ctypes.pointer(fault), number)
            if isinstance(one, torch.Tensor)
            else one
            for number, one in enumerate(arguments)
        ]
        status = int(function(*given))
        if fault.found:
            raise error(twins, fault.number, fault.index, fault.length, traces)
        return status

    return call


def error(
    twins: Sequence[Kernel], number: int, index: int, length: int, traces: Mapping[str, str]
) -> OutOfBounds:
    """Return the error for an access; `number` is the number of the parameter."""
    named = [(twin, str(twin.parameters[number].buffer)) for twin in twins]
    place = place_of(NO_ORIGINS.union(*(users(twin, name) for twin, name in named)), traces)
    names = ", ".join(dict.fromkeys(name for _, name in named))
    return OutOfBounds(twins[0].name, names, index, length, place)


def users(kernel: Kernel, buffer: str) -> Origins:
    """Return the nodes for which a kernel reads or writes a buffer."""
    found = NO_ORIGINS
    parts = kernel.group.combined or (kernel.group,)
    for nest in (n for part in parts for n in (*part.nests, *part.inlined.values())):
        if nest.buffer == buffer:
            found |= nest.origins
        nodes = (node for root in nest.roots for node in root.walk())
        loads = (node for node in nodes if isinstance(node, Load) and node.buffer == buffer)
        found = found.union(*(load.origins or nest.origins for load in loads))
    return found


# ---- Triton's interpreter ----


@contextlib.contextmanager
def checked_addresses(builder: Any, kernel: Kernel, arguments: Sequence[Any]) -> Iterator[None]:
    """While an interpreted kernel runs, check that unmasked addresses are in its tensors."""
    spans = [
        (one.data_ptr(), extent(one) * one.element_size(), number)
        for number, one in enumerate(arguments)
        if isinstance(one, torch.Tensor)
    ]
    own = {name: getattr(builder, name) for name in ACCESSES}

    def guarded(name: str, mask_at: int) -> Callable[..., Any]:
        def access(*given: Any) -> Any:
            pointers = given[1] if name == "create_atomic_rmw" else given[0]
            width = max(pointers.get_element_ty().primitive_bitwidth // 8, 1)
            addresses = pointers.data[given[mask_at].data & (pointers.data >= 0)]
            inside = addresses != addresses
            for start, nbytes, _ in spans:
                inside |= (addresses >= start) & (addresses + width <= start + nbytes)
            if not inside.all():
                outside = int(addresses[~inside][0])
                raise _interpreted_error(kernel, outside, spans, width)
            return own[name](*given)

        return access

    for name, mask_at in ACCESSES.items():
        setattr(builder, name, guarded(name, mask_at))
    try:
        yield
    finally:
        for name in ACCESSES:
            delattr(builder, name)


ACCESSES = {"create_masked_load": 1, "create_masked_store": 2, "create_atomic_rmw": 3}
"""The functions of the interpreter for memory accesses, with the position of the mask argument."""


def _interpreted_error(
    kernel: Kernel, address: int, spans: Sequence[tuple[int, int, int]], width: int
) -> OutOfBounds:
    """Return the error.  It names the buffer that is nearest to the address."""
    start, nbytes, number = min(
        spans, key=lambda span: min(abs(address - span[0]), abs(address - span[0] - span[1]))
    )
    return error([kernel], number, (address - start) // width, nbytes // width, {})
