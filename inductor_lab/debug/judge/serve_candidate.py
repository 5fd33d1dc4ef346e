"""The side of the candidate: it is called, and its results are sent.  Nothing is decided here.

`begin` makes the candidate from its text.  `call` is for correctness: inputs and results are bytes
of the messages.  `timed_calls` is for speed: inputs and results are in memory that both processes
share (timing_memory.py).
"""

from __future__ import annotations

import ctypes
import gc
import linecache
import os
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import torch

from inductor_lab.compiler.runtime.toolchain.find_compiler import find_toolchain
from inductor_lab.compiler.runtime.toolchain.shared_library import LIBRARY, SOURCE
from inductor_lab.compiler.torch_door.torch_api import pytree
from inductor_lab.debug.judge.applied import Applied
from inductor_lab.debug.judge.cuda_driver import CannotShare
from inductor_lab.debug.judge.guarded import Guarded, fill_gpu_memory, fill_new_memory
from inductor_lab.debug.judge.timing_memory import DeviceMemory, HostMemory, TimingMemory

FILE = "<candidate>"
CLASSES: dict[str, type] = {}
"""No class but plain values comes back."""
HELD = 1 << 16
"""Elements of results that are kept until the next call."""
GPU_POISON = 64 << 20


def begin(argument: dict[str, Any]) -> Any:
    """The candidate; raises what its text raises, and NameError without the function."""
    if argument["threads"]:
        torch.set_num_threads(argument["threads"])
    if argument["gpu"]:
        _start_gpu()
    if argument.get("memory"):
        _share_device(argument["files"][0], argument["memory"])
    candidate = argument["candidate"]
    if candidate["language"] == "cpp":
        return CppFunction(candidate["text"], candidate["name"])
    text, name = candidate["text"], candidate["name"]
    linecache.cache[FILE] = (len(text), None, text.splitlines(keepends=True), FILE)
    names: dict[str, Any] = {"__name__": "candidate"}
    exec(compile(text, FILE, "exec"), names)
    if name not in names:
        raise NameError(f"the text does not define {name}")
    return names[name]


def _share_device(file: int, nbytes: int) -> None:
    """Map memory of the GPU that the judge has made."""
    try:
        _SHARED.memory = DeviceMemory.opened(file, nbytes)
    except CannotShare as error:
        _SHARED.refused = str(error)
    os.close(file)
    gc.freeze()  # collections during timed calls pass over what is here already


class NoGpu(Exception):
    """The GPU cannot be used in this process, which may be confined."""


def _start_gpu() -> None:
    try:
        torch.zeros(1, device="cuda").cpu()
    except RuntimeError as error:
        raise NoGpu(f"the process of the candidate cannot use the GPU: {error}") from None


class CppFunction:
    """A function of a library that is compiled here."""

    def __init__(self, text: str, name: str) -> None:
        Path(SOURCE).write_text(text, encoding="utf-8")
        attempt = find_toolchain().compile(Path(SOURCE).resolve(), Path(LIBRARY).resolve())
        if attempt.status:
            raise SyntaxError(attempt.output[:2000])
        self.function = getattr(ctypes.CDLL(str(Path(LIBRARY).resolve())), name)
        self.function.restype = None
        self.results: Sequence[tuple[Any, torch.dtype]] = ()
        self.takes: list[tuple[torch.dtype, int]] = []

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function on contiguous tensors, with dtypes and numbers of axes as in the first
        call; raises ValueError for others."""
        tensors = [leaf for leaf in pytree.tree_leaves((args, kwargs))
                   if isinstance(leaf, torch.Tensor)]  # fmt: skip
        if not all(one.is_contiguous() for one in tensors):
            raise ValueError("a C++ candidate takes contiguous tensors")
        self.takes = self.takes or [(one.dtype, one.dim()) for one in tensors]
        if self.takes != [(one.dtype, one.dim()) for one in tensors]:
            raise ValueError("a C++ candidate takes the dtypes and axes of the first case")
        made = [torch.empty(shape, dtype=dtype) for shape, dtype in self.results]
        sizes = [length for one in tensors for length in one.shape]
        passed = (ctypes.c_int64 * max(len(sizes), 1))(*sizes)
        self.function(*(ctypes.c_void_p(one.data_ptr()) for one in (*tensors, *made)), passed)
        return made[0] if len(made) == 1 else tuple(made)


_GUARDED = Guarded()
_EARLIER: list[Any] = []


def call(function: Any, request: dict[str, Any]) -> dict[str, Any]:
    """Call it once: results, the storages afterwards, and what it returned the time before.

    shares   for each result, the number of the storage that it shares; -1 for memory of its own
    placed   for each result, whether some of its elements are one element of memory, and its device
    earlier  the results of the call before, as they are now; None if they are too large
    """
    fill_new_memory(request["pattern"])
    if request["gpu"]:
        fill_gpu_memory(request["pattern"], GPU_POISON)
    place = _on_gpu if request["gpu"] else _GUARDED.place
    storages = [place(n, one, request["edge"]) for n, one in enumerate(request["storages"])]
    arguments = arguments_of(request, storages)
    if isinstance(function, CppFunction):
        function.results = request["results"]
    returned = Applied(function, request["gradients"])(*arguments)
    leaves = pytree.tree_leaves(returned)
    owners = {one.untyped_storage()._cdata: n for n, one in enumerate(storages)}
    shares = [owners.get(one.untyped_storage()._cdata, -1) if _is_plain(one) else -1
              for one in leaves]  # fmt: skip
    placed = [placed_of(one) for one in leaves]
    earlier = [_sent(one) for one in _EARLIER]
    small = sum(one.numel() for one in leaves if _is_plain(one)) <= HELD
    _EARLIER[:] = leaves if small and max(shares, default=-1) < 0 else []
    return {
        "results": _plain_containers(returned),
        "storages": [_sent(one) for one in storages], "shares": shares, "earlier": earlier,
        "placed": placed,
    }  # fmt: skip


def _on_gpu(number: int, content: torch.Tensor, edge: str) -> torch.Tensor:
    return content.cuda()


def _is_plain(value: Any) -> bool:
    return type(value) in (torch.Tensor, torch.nn.Parameter) and value.layout is torch.strided


def _plain_containers(value: Any) -> Any:
    """A result as data; named tuples become tuples."""
    if isinstance(value, torch.Tensor):
        return _sent(value)
    if isinstance(value, tuple):
        return tuple(map(_plain_containers, value))
    if isinstance(value, list):
        return [*map(_plain_containers, value)]
    if isinstance(value, dict):
        return {name: _plain_containers(one) for name, one in value.items()}
    return value


def placed_of(one: Any) -> tuple[bool, str]:
    """Has an axis of several elements the stride 0?  And the type of the device."""
    if not _is_plain(one):
        return False, ""
    expanded = any(s == 0 and n > 1 for n, s in zip(one.shape, one.stride(), strict=True))
    return expanded, one.device.type


def _sent(value: Any) -> Any:
    """Plain tensors as data; of another class, such as one that computes later, only the name."""
    if type(value) not in (torch.Tensor, torch.nn.Parameter):
        return type(value).__name__
    return value.detach().cpu()


MARK = "\0tensor "
"""In the arguments of a request, this and a number stand for a tensor."""


def arguments_of(request: dict[str, Any], storages: Sequence[torch.Tensor]) -> Any:
    """The arguments, with tensors on these storages."""
    tensors = [_tensor(storages[storage], *layout) for storage, *layout in request["tensors"]]

    def filled(leaf: Any) -> Any:
        marked = isinstance(leaf, str) and leaf.startswith(MARK)
        return tensors[int(leaf.removeprefix(MARK))] if marked else leaf

    return pytree.tree_map(filled, request["arguments"])


def _tensor(
    storage: torch.Tensor, dtype: torch.dtype, shape: Any, stride: Any, offset: int
) -> torch.Tensor:
    made = torch.empty(0, dtype=dtype, device=storage.device)
    return made.set_(storage.untyped_storage(), offset, tuple(shape), tuple(stride))


class Shared:
    """The memory that both processes have, and the calls that are prepared.

    refused  why there is no memory; "" if there is, or if the judge has given none
    """

    def __init__(self, memory: TimingMemory | None = None) -> None:
        self.memory, self.refused = memory, ""
        self.prepared: list[tuple[Any, list[torch.Tensor]]] = []
        self.nothing: Nothing | None = None

    def prepare(self, request: dict[str, Any]) -> None:
        """Make the arguments of the next calls, and the tensors that the results are copied to."""
        memory = self.memory
        assert memory is not None, "the judge shares its memory first"
        self.prepared = []
        for place in request["calls"]:
            storages = [memory.part(at, count) for at, count in place["storages"]]
            targets = [memory.part(*span).view(dtype).view(shape) for span, (shape, dtype)
                       in zip(place["results"], request["results"], strict=True)]  # fmt: skip
            self.prepared.append((arguments_of(request, storages), targets))

    def timed_calls(self, function: Any, request: dict[str, Any]) -> list[Any]:
        """Call it for each prepared call; see the function."""
        memory, layouts, waiting = self.memory, [], []
        assert memory is not None, "the judge shares its memory first"
        if request["calls"]:
            self.prepare(request)
        applied = Applied(function, request["gradients"])
        if isinstance(function, CppFunction):
            function.results = request["results"]
        for number, (arguments, targets) in enumerate(self.prepared, 1):
            returned = applied(*arguments)
            found = [one for one in pytree.tree_leaves(returned) if isinstance(one, torch.Tensor)]
            layouts.append([(result.dtype, tuple(result.shape)) for result in found])
            waiting.append(zip(found, targets, strict=False))
            if memory.batches and number < len(self.prepared):
                continue
            memory.wait()
            with torch.no_grad():
                for result, target in chain.from_iterable(waiting):
                    if (result.dtype, result.shape) == (target.dtype, target.shape):
                        target.copy_(result)
            waiting.clear()
        memory.wait()
        return layouts

    def timed_nothing(self, request: dict[str, Any]) -> list[Any]:
        """The same calls of a function that computes nothing."""
        if self.nothing is None or self.nothing.of != request["results"]:
            assert self.memory is not None, "the judge shares its memory first"
            self.nothing = Nothing(request["results"], self.memory.part(0, 1).device)
        return self.timed_calls(self.nothing, request | {"gradients": None})


class Nothing:
    """Returns ready results: what is timed is everything but a function."""

    def __init__(self, results: Sequence[tuple[Any, torch.dtype]], device: torch.device) -> None:
        self.of = results
        self.results = tuple(torch.ones(shape, dtype=dtype, device=device)
                             for shape, dtype in results)  # fmt: skip

    def __call__(self, *_: Any, **__: Any) -> Any:
        return self.results


_SHARED = Shared()


def share(path: str) -> None:
    """Map the file of the judge into memory."""
    with open(path, "r+b") as file:
        _SHARED.memory = HostMemory(file.fileno(), os.path.getsize(path))


def refusal() -> str:
    """Why this process could not map the memory of the judge; "" if it could."""
    return _SHARED.refused


def prepare(request: dict[str, Any]) -> None:
    """Prepare the next calls, whose inputs are not there yet."""
    _SHARED.prepare(request)


def timed_calls(function: Any, request: dict[str, Any]) -> list[Any]:
    """Call it for each set of inputs, and copy the results to where the judge reads them.

    The calls are those of the request, or else those that are prepared.  Returns the dtype and
    shape of each result.
    """
    return _SHARED.timed_calls(function, request)


def timed_nothing(request: dict[str, Any]) -> list[Any]:
    """The same calls of a function that computes nothing."""
    return _SHARED.timed_nothing(request)
