"""`mode="reduce-overhead"`: record all launches of a call as a CUDA graph, and replay it.

A recording reads its inputs and writes its results at fixed addresses.  Therefore it is replayed
only for inputs at the same addresses, and only if the results of its last replay have been freed.
Otherwise a second recording is used.  An input whose address keeps changing is copied to a buffer
of the recording.

Inductor: `cudagraph_trees.py`.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from sys import getrefcount
from typing import Any

import torch

from inductor_lab.compiler.base.errors import NothingToChange, NotReplayed
from inductor_lab.compiler.base.options import Options
from inductor_lab.compiler.ir.program import LoopProgram
from inductor_lab.compiler.runtime.cuda_graph_reasons import devices_of, not_requested, why_not
from inductor_lab.compiler.torch_door.torch_api import mark_boxed, reinterpret, storage_references

Call = Callable[[list[Any]], tuple[Any, ...]]
WARM_CALLS = 1
"""Calls before the first recording, in which libraries are initialized and kernels are loaded."""
MOST_RECORDINGS = 3
"""The maximum per graph, sizes and stream.  Each recording has its own memory."""
MOST_ADDRESSES = 3
"""An input that has had more addresses is copied."""


def with_cuda_graphs(call: Call, program: LoopProgram, options: Options) -> Call:
    """Return `call`, with CUDA graphs if the options request them and the program allows them."""
    if not_requested(devices_of(program), options.mode):
        return call
    if reason := why_not(program):
        warn_unused(f"{program.name} is launched without a CUDA graph: {reason}")
        return call
    written = frozenset(program.inputs.index(write.input) for write in program.writes)
    recordings: dict[tuple[Any, ...], Recordings] = {}

    def replayed(args: list[Any]) -> tuple[Any, ...]:
        if torch.cuda.is_current_stream_capturing():
            return call(args)
        numbers = [arg for arg in args if not isinstance(arg, torch.Tensor)]
        stream = torch.cuda.current_stream().cuda_stream
        key = (stream, torch.is_inference_mode_enabled(), *numbers)
        if key not in recordings:
            required = options.require_cuda_graphs
            recordings[key] = Recordings(call, program.name, written, required)
        return recordings[key](args)

    return mark_boxed(replayed)


def check_required(program: LoopProgram, options: Options) -> None:
    """Raise NotReplayed if the options require CUDA graphs and this program has none."""
    if options.require_cuda_graphs:
        reason = not_requested(devices_of(program), options.mode) or why_not(program)
        if reason:
            raise NotReplayed(f"{program.name} is not replayed as a CUDA graph", todo=reason)


def warn_unused(reason: str) -> None:
    warnings.warn(f'mode="reduce-overhead": {reason}', NothingToChange, stacklevel=2)


@dataclass
class Recordings:
    """The recordings of one graph for given sizes on one stream; `written` inputs are not copied.

    required  raise NotReplayed for a call after the first ones that is not replayed
    seen     the addresses that each input tensor has had
    moving   the positions of the inputs that are copied
    """

    call: Call
    name: str
    written: frozenset[int]
    required: bool = False
    calls: int = 0
    seen: dict[int, set[int]] = field(default_factory=dict)
    moving: set[int] = field(default_factory=set)
    made: list[Recording] = field(default_factory=list)
    given_up: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, args: list[Any]) -> tuple[Any, ...]:
        with self.lock:
            found = None if self.given_up else self._found(args)
            if found is not None:
                return found.replay(args)
        return self.call(args)

    def _found(self, args: Sequence[Any]) -> Recording | None:
        """Return a matching recording, or create one; None if the call must run normally."""
        places = [n for n, arg in enumerate(args) if isinstance(arg, torch.Tensor)]
        addresses = {n: 0 if n in self.moving else args[n].data_ptr() for n in places}
        fitting = [one for one in self.made if one.addresses == addresses]
        for one in fitting:
            if one.is_free():
                return one
        self.calls += 1
        if self._notice(addresses):
            return None
        if self.calls <= WARM_CALLS:
            return None
        if len(self.made) >= MOST_RECORDINGS:
            if self.required:
                self._give_up(f"the results of all {MOST_RECORDINGS} recordings are still in use")
            return None
        try:
            self.made.append(record(self.call, args, addresses))
        except Exception as problem:
            self._give_up(str(problem).splitlines()[0])
            return None
        return self.made[-1]

    def _notice(self, addresses: dict[int, int]) -> bool:
        """Record the addresses of inputs.  Has one of them changed too often?"""
        before = len(self.moving)
        for n, address in addresses.items():
            self.seen.setdefault(n, set()).add(address)
            if len(self.seen[n]) > MOST_ADDRESSES:
                self.moving.add(n)
        if len(self.moving) == before:
            return False
        self.made.clear()
        if self.moving & self.written:
            self._give_up("the address of an input that it writes to changes")
        return True

    def _give_up(self, reason: str) -> None:
        self.given_up = True
        self.made.clear()
        if self.required:
            raise NotReplayed(f"{self.name} is not replayed as a CUDA graph", todo=reason)
        warn_unused(f"{self.name} is launched without a CUDA graph: {reason}")


@dataclass(frozen=True)
class Alias:
    """A result that is an input, or (if `size` is set) a view of an input."""

    input: int
    size: tuple[int, ...] | None = None
    stride: tuple[int, ...] = ()
    offset: int = 0

    def of(self, args: Sequence[Any]) -> torch.Tensor:
        given: torch.Tensor = args[self.input]
        if self.size is None:
            return given
        return reinterpret(given, self.size, self.stride, self.offset)


@dataclass
class Recording:
    """One CUDA graph.

    addresses   the required address of each input tensor; 0 for an input that is copied
    copies      the buffers for copied inputs
    results     tensors of the recording, aliases of inputs, and numbers
    """

    graph: torch.cuda.CUDAGraph
    addresses: dict[int, int]
    copies: dict[int, torch.Tensor]
    results: list[Any]

    def __post_init__(self) -> None:
        tensors = [r for r in self.results if isinstance(r, torch.Tensor)]
        own = {t.untyped_storage()._cdata: t.untyped_storage() for t in tensors}
        self.storages = list(own.values())
        del tensors, own
        self.unused_counts = self.reference_counts()

    def reference_counts(self) -> list[int]:
        """Return the number of references to each storage of the results, in C++ and in Python."""
        return [storage_references(s._cdata) + getrefcount(s) for s in self.storages]

    def is_free(self) -> bool:
        """Have all results of the last replay been freed?"""
        return self.reference_counts() == self.unused_counts

    def replay(self, args: list[Any]) -> tuple[Any, ...]:
        for n, copy in self.copies.items():
            copy.copy_(args[n])
        self.graph.replay()
        found = tuple(_given(result, args) for result in self.results)
        args.clear()
        return found


def record(call: Call, args: Sequence[Any], addresses: dict[int, int]) -> Recording:
    """Record a call without running it.

    Raises ValueError if an input cannot be copied, and CUDA's error if the call synchronizes.
    """
    copies = {n: torch.empty_like(args[n]) for n, address in addresses.items() if not address}
    if any(copy.stride() != args[n].stride() for n, copy in copies.items()):
        raise ValueError("an input that must be copied has gaps or overlaps")
    given = [copies.get(n, arg) for n, arg in enumerate(args)]
    stream, graph = torch.cuda.current_stream(), torch.cuda.CUDAGraph()
    try:
        with torch.cuda.graph(graph, capture_error_mode="thread_local"):
            results = call(list(given))
    finally:
        torch.cuda.set_stream(stream)
    inputs = {given[n].untyped_storage()._cdata: n for n in addresses}
    return Recording(graph, addresses, copies, [_kept(r, given, inputs) for r in results])


def _kept(result: Any, given: Sequence[Any], inputs: dict[int, int]) -> Any:
    """Return what a recording stores for a result; `inputs` maps storages to input positions."""
    if not isinstance(result, torch.Tensor):
        return result
    same = next((n for n, arg in enumerate(given) if arg is result), None)
    if same is not None:
        return Alias(same)
    source = inputs.get(result.untyped_storage()._cdata)
    if source is None:
        return result
    if result.dtype != given[source].dtype:
        raise ValueError("a result is a view of an input with another dtype")
    offset = result.storage_offset() - given[source].storage_offset()
    return Alias(source, tuple(result.shape), result.stride(), offset)


def _given(result: Any, args: Sequence[Any]) -> Any:
    """Return a stored result as a new tensor over the same memory."""
    if isinstance(result, Alias):
        return result.of(args)
    return result.detach() if isinstance(result, torch.Tensor) else result
