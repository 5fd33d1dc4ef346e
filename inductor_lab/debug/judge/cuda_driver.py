"""Memory of a GPU that two processes share, through the CUDA driver.

    judge: allocate → a file descriptor ── given to the process when it starts → candidate: map

The descriptor is all that the other process gets, so it works in a confined process: there is no
name that it must open.  The driver's library has the same interface in all versions of torch.
"""

from __future__ import annotations

import ctypes
import functools
import os
from dataclasses import dataclass
from typing import Any

from inductor_lab.compiler.base.errors import LabError

LIBRARY = "libcuda.so.1"
PINNED, ON_DEVICE, AS_FILE, READ_AND_WRITE = 1, 1, 1, 3
"""CU_MEM_ALLOCATION_TYPE_PINNED, CU_MEM_LOCATION_TYPE_DEVICE,
CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, CU_MEM_ACCESS_FLAGS_PROT_READWRITE."""


class CannotShare(LabError):
    """This machine cannot share memory of the GPU with another process."""


class _Allocation(ctypes.Structure):
    """CUmemAllocationProp."""

    _fields_ = (
        ("kind", ctypes.c_int), ("handles", ctypes.c_int),
        ("place", ctypes.c_int), ("device", ctypes.c_int),
        ("windows", ctypes.c_void_p), ("flags", ctypes.c_uint64),
    )  # fmt: skip


class _Access(ctypes.Structure):
    """CUmemAccessDesc."""

    _fields_ = (("place", ctypes.c_int), ("device", ctypes.c_int), ("flags", ctypes.c_int))


@functools.cache
def _driver() -> Any:
    try:
        return ctypes.CDLL(LIBRARY)
    except OSError as error:
        raise CannotShare(f"the CUDA driver is not here: {error}") from None


def _call(name: str, *arguments: Any) -> None:
    """Call a function of the driver; raises CannotShare with the name of its error."""
    status = getattr(_driver(), name)(*arguments)
    if status:
        text = ctypes.c_char_p()
        _driver().cuGetErrorName(status, ctypes.byref(text))
        said = text.value.decode() if text.value else f"error {status}"
        raise CannotShare(f"{name} failed: {said}")


def synchronize() -> None:
    """Wait for all work of this process on the current GPU.  Raises CannotShare if it failed."""
    _call("cuCtxSynchronize")


@dataclass(frozen=True)
class Mapped:
    """Bytes of a GPU's memory at an address of this process."""

    address: int
    nbytes: int

    def close(self) -> None:
        """Unmap them; the memory is freed when no process maps it."""
        synchronize()
        address, size = ctypes.c_uint64(self.address), ctypes.c_size_t(self.nbytes)
        _call("cuMemUnmap", address, size)
        _call("cuMemAddressFree", address, size)


def allocate(nbytes: int, device: int) -> tuple[Mapped, int]:
    """At least this much memory, and its file descriptor, which the caller closes.

    CUDA must have been used in this thread.  Raises CannotShare.
    """
    wanted = _Allocation(PINNED, AS_FILE, ON_DEVICE, device)
    unit, handle = ctypes.c_size_t(), ctypes.c_uint64()
    _call("cuMemGetAllocationGranularity", ctypes.byref(unit), ctypes.byref(wanted), 0)
    nbytes = -(-nbytes // unit.value) * unit.value
    _call("cuMemCreate", ctypes.byref(handle), ctypes.c_size_t(nbytes), ctypes.byref(wanted),
          ctypes.c_uint64(0))  # fmt: skip
    try:
        file = ctypes.c_int(-1)
        _call("cuMemExportToShareableHandle", ctypes.byref(file), handle, AS_FILE,
              ctypes.c_uint64(0))  # fmt: skip
        try:
            return _mapped(handle, nbytes, device), file.value
        except CannotShare:
            os.close(file.value)
            raise
    finally:
        _call("cuMemRelease", handle)


def map_file(file: int, nbytes: int, device: int) -> Mapped:
    """The memory of another process, with the size that it has.  Raises CannotShare."""
    handle = ctypes.c_uint64()
    _call("cuMemImportFromShareableHandle", ctypes.byref(handle), ctypes.c_void_p(file), AS_FILE)
    try:
        return _mapped(handle, nbytes, device)
    finally:
        _call("cuMemRelease", handle)


def _mapped(handle: ctypes.c_uint64, nbytes: int, device: int) -> Mapped:
    address, size, nothing = ctypes.c_uint64(), ctypes.c_size_t(nbytes), ctypes.c_uint64(0)
    _call("cuMemAddressReserve", ctypes.byref(address), size, ctypes.c_size_t(0), nothing, nothing)
    _call("cuMemMap", address, size, ctypes.c_size_t(0), handle, nothing)
    access = _Access(ON_DEVICE, device, READ_AND_WRITE)
    _call("cuMemSetAccess", address, size, ctypes.byref(access), ctypes.c_size_t(1))
    return Mapped(address.value, nbytes)
