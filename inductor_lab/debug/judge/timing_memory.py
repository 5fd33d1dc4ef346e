"""Memory that the judge and the process of a candidate share while calls are timed.

`HostMemory` is a file in main memory, and `DeviceMemory` is on a GPU:

                       HostMemory                          DeviceMemory
    inputs             written before the clock starts     written after the clock has started
    results            copied after each call              copied after all calls of a sample
    cold caches        lines are evicted (`clflush`)       a buffer larger than L2 is written

A process that is stopped does not run, but what it has started on a GPU goes on.  So on a GPU the
inputs appear only when the clock runs, and what it costs to write them is subtracted.
"""

from __future__ import annotations

import mmap
import os
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import torch

from inductor_lab.compiler.base.errors import LabError
from inductor_lab.debug.judge import cuda_driver
from inductor_lab.debug.judge.cold_memory import evictor

Span = tuple[int, int]
"""The first byte in the shared memory, and a number of bytes."""
EMPTY = 0x7F
"""The byte where results will be."""
PROBES, PROBED_BYTES = 30, 1 << 16
QUIET, IN_A_ROW = 2e-4, 3
"""The GPU is idle if so many probes in a row take at most so many seconds longer than the fastest.
The work of another process delays them by its time slice, about 2 ms."""
LONGEST_PROBE = 1e-3
"""If the fastest takes longer, another program uses the GPU."""
PATIENCE = 2.0
"""Seconds for the GPU to become idle."""
L2_TIMES = 4
"""So many times the size of the L2 cache is written to evict it."""
DEVICE_BYTES = 4 << 30


class NotQuiet(LabError):
    """Something else uses the GPU."""


class Filled(Protocol):
    """What a sample needs in the memory: where everything is, and the contents of the inputs."""

    @property
    def inputs(self) -> Sequence[tuple[Span, torch.Tensor]]: ...
    @property
    def outputs(self) -> Sequence[Span]: ...
    @property
    def earlier_inputs(self) -> Sequence[tuple[Span, torch.Tensor]]: ...
    @property
    def input_span(self) -> Span: ...
    @property
    def output_span(self) -> Span: ...
    @property
    def copied_span(self) -> Span: ...


class TimingMemory(Protocol):
    """Both kinds of memory.

    nbytes          its size
    batches         whether results are copied after all calls of a sample, not after each
    aligned         addresses of tensors are multiples of this
    most_calls      so many calls are timed at once
    long_enough     seconds of one sample; shorter calls are timed several at once
    can_be_cold     whether caches can be evicted
    """

    nbytes: int
    batches: bool
    aligned: int
    most_calls: int
    long_enough: float

    @property
    def can_be_cold(self) -> bool: ...
    def part(self, at: int, count: int) -> torch.Tensor:
        """Bytes of it, as a tensor with a storage of its own."""

    def wait(self) -> None:
        """Wait until work that this process has started is done."""

    def settle(self) -> None:
        """Wait until no other process uses the device; raises NotQuiet."""

    def before(self, plan: Filled, cold: bool) -> None:
        """Called by the judge before the clock starts."""

    def clear_results(self, plan: Filled) -> None:
        """Called by the judge after calls that are not timed; raises NotQuiet."""

    def start(self, plan: Filled, cold: bool) -> None:
        """Called when the clock runs."""

    def copied(self, plan: Filled, spans: Sequence[Span]) -> list[torch.Tensor]:
        """The judge's own copies of some parts, complete when this returns."""

    def close(self) -> None: ...


class HostMemory:
    """A file that both processes map."""

    batches, aligned, most_calls, long_enough = False, 64, 32, 4e-3
    most_bytes = 256 << 20

    def __init__(self, file: int, nbytes: int) -> None:
        self.memory, self.nbytes = mmap.mmap(file, nbytes), nbytes

    @staticmethod
    def made(folder: Path, nbytes: int) -> tuple[HostMemory, str]:
        """New memory, and the path of its file, which the caller removes."""
        handle, path = tempfile.mkstemp(dir=folder)
        with os.fdopen(handle, "r+b") as file:
            file.truncate(nbytes)
            return HostMemory(file.fileno(), nbytes), path

    @property
    def can_be_cold(self) -> bool:
        return evictor() is not None

    def part(self, at: int, count: int) -> torch.Tensor:
        if not count:
            return torch.empty(0, dtype=torch.uint8)
        return torch.frombuffer(self.memory, dtype=torch.uint8, count=count, offset=at)

    def wait(self) -> None:
        """A call on the CPU is complete when it returns."""

    def settle(self) -> None:
        """Other processes are stopped."""

    def before(self, plan: Filled, cold: bool) -> None:
        """Write the inputs, and a pattern where results will be; evict them."""
        for span, content in plan.inputs:
            self.part(*span).copy_(content)
        for span in plan.outputs:
            self.part(*span).fill_(EMPTY)
        evict = evictor() if cold else None
        if evict is not None:
            for span in (*(span for span, _ in plan.inputs), *plan.outputs):
                evict(self.part(*span))

    def clear_results(self, plan: Filled) -> None:
        """All calls are timed."""

    def start(self, plan: Filled, cold: bool) -> None:
        """Everything is there before the clock starts."""

    def copied(self, plan: Filled, spans: Sequence[Span]) -> list[torch.Tensor]:
        return [self.part(*span).clone() for span in spans]

    def close(self) -> None:
        """The mapping ends with its last tensor."""


class StagedMemory:
    """Inputs are staged in the judge's own memory, and appear in one copy when the clock runs.

    A subclass has `part`, `wait`, `settle` and `evict`.
    """

    batches, aligned, most_calls, long_enough = True, 256, 128, 20e-3
    nbytes: int
    _staged = _copy = torch.empty(0, dtype=torch.uint8)

    @property
    def can_be_cold(self) -> bool:
        return True

    def part(self, at: int, count: int) -> torch.Tensor:
        raise NotImplementedError

    def wait(self) -> None:
        raise NotImplementedError

    def settle(self) -> None:
        """Wait until no other process uses the device; raises NotQuiet."""
        raise NotImplementedError

    def evict(self) -> None:
        """Evict the caches of the device."""
        raise NotImplementedError

    def before(self, plan: Filled, cold: bool) -> None:
        """Stage the inputs, write earlier ones, and wait until the device is idle."""
        first, count = plan.input_span
        device = self.part(0, 1).device
        self._staged = _sized(self._staged, count, device)
        self._copy = _sized(self._copy, plan.copied_span[1], device)
        for (at, length), content in plan.inputs:
            self._staged[at - first : at - first + length].copy_(content)
        for span, content in plan.earlier_inputs:
            self.part(*span).copy_(content)
        if cold:
            self.evict()  # allocates its buffer
        self.wait()
        self.settle()

    def clear_results(self, plan: Filled) -> None:
        """Write a pattern where results will be, and wait until the device is idle."""
        self.part(*plan.output_span).fill_(EMPTY)
        self.wait()
        self.settle()

    def start(self, plan: Filled, cold: bool) -> None:
        """Write the inputs; nothing that an earlier call has left can have seen them."""
        self.part(*plan.input_span).copy_(self._staged)
        if cold:
            self.evict()
        self.wait()

    def copied(self, plan: Filled, spans: Sequence[Span]) -> list[torch.Tensor]:
        first, _ = plan.copied_span
        self._copy.copy_(self.part(*plan.copied_span))
        self.wait()
        return [self._copy[at - first : at - first + count] for at, count in spans]

    def close(self) -> None:
        """Free the judge's copies."""
        self._staged = self._copy = torch.empty(0, dtype=torch.uint8)


def _sized(old: torch.Tensor, count: int, device: torch.device) -> torch.Tensor:
    """Memory of this size: the old one, if it has this size."""
    if old.numel() == count and old.device == device:
        return old
    return torch.empty(count, dtype=torch.uint8, device=device)


class Probe:
    """Measures whether another process uses the current GPU.  Raises NotQuiet if one does now."""

    def __init__(self) -> None:
        self.probed = torch.zeros(PROBED_BYTES, dtype=torch.uint8, device="cuda")
        self.fastest = min(self._seconds() for _ in range(PROBES))
        if self.fastest > LONGEST_PROBE:
            raise NotQuiet("another program uses the GPU")
        self.settle()

    def settle(self) -> None:
        """Wait until the GPU is idle; raises NotQuiet."""
        end, quick = time.perf_counter() + PATIENCE, 0
        while quick < IN_A_ROW:
            quick = quick + 1 if self._seconds() < self.fastest + QUIET else 0
            if not quick and time.perf_counter() > end:
                raise NotQuiet("something else works on the GPU")

    def _seconds(self) -> float:
        start = time.perf_counter()
        self.probed.fill_(1)
        cuda_driver.synchronize()
        return time.perf_counter() - start


class DeviceMemory(StagedMemory):
    """Memory of the current GPU, which must have been used in this thread."""

    def __init__(self, mapped: cuda_driver.Mapped, probe: Probe | None = None) -> None:
        self.mapped, self.nbytes, self.probe = mapped, mapped.nbytes, probe
        self._synchronize = cuda_driver.synchronize

    @staticmethod
    def made(nbytes: int, probe: Probe) -> tuple[DeviceMemory, int]:
        """New memory, and its file descriptor, which the caller closes.  Raises CannotShare."""
        mapped, file = cuda_driver.allocate(nbytes, torch.cuda.current_device())
        return DeviceMemory(mapped, probe), file

    @staticmethod
    def opened(file: int, nbytes: int) -> DeviceMemory:
        """The memory behind a file descriptor of another process.  Raises CannotShare."""
        return DeviceMemory(cuda_driver.map_file(file, nbytes, torch.cuda.current_device()))

    def part(self, at: int, count: int) -> torch.Tensor:
        if not count:
            return torch.empty(0, dtype=torch.uint8, device="cuda")
        return torch.as_tensor(_Bytes(self.mapped.address + at, count), device="cuda")

    def wait(self) -> None:
        self._synchronize()

    def settle(self) -> None:
        if self.probe is not None:
            self.probe.settle()

    def evict(self) -> None:
        _evicting_buffer().add_(1)

    def close(self) -> None:
        super().close()
        self.mapped.close()


class _Bytes:
    """Memory at an address, for `torch.as_tensor`."""

    def __init__(self, address: int, count: int) -> None:
        self.__cuda_array_interface__: dict[str, Any] = {
            "shape": (count,), "typestr": "|u1", "data": (address, False), "version": 2,
        }  # fmt: skip


_BUFFERS: list[torch.Tensor] = []


def _evicting_buffer() -> torch.Tensor:
    if not _BUFFERS:
        size = torch.cuda.get_device_properties(torch.cuda.current_device()).L2_cache_size
        _BUFFERS.append(torch.zeros(L2_TIMES * size, dtype=torch.uint8, device="cuda"))
    return _BUFFERS[0]


def device_bytes() -> int:
    """So many bytes of the GPU may be shared with each process."""
    free, _ = torch.cuda.mem_get_info()
    return min(DEVICE_BYTES, int(free) // 16)
