"""The side that judges: call a candidate once, and copy its effects to tensors of this side."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from inductor_lab.compiler.torch_door.torch_api import pytree
from inductor_lab.debug.judge.cases import Arguments
from inductor_lab.debug.judge.guarded import Edge
from inductor_lab.debug.judge.serve_candidate import MARK
from inductor_lab.debug.untrusted.remote import Process, Stopped

SERVED = "inductor_lab.debug.judge.serve_candidate"
Results = Sequence[tuple[tuple[int, ...], torch.dtype]]


@dataclass(frozen=True)
class Layout:
    """Arguments without their values: tensors are places in numbered storages."""

    arguments: Any
    tensors: list[tuple[Any, ...]]
    storages: list[torch.Tensor]

    @staticmethod
    def of(args: Any) -> Layout:
        """`storages` are views of the arguments' memory, as bytes."""
        numbers: dict[int, int] = {}
        storages: list[torch.Tensor] = []
        tensors: list[tuple[Any, ...]] = []

        def mark(one: torch.Tensor) -> str:
            storage = one.untyped_storage()
            if storage._cdata not in numbers:
                numbers[storage._cdata] = len(storages)
                empty = torch.empty(0, dtype=torch.uint8, device=one.device)
                storages.append(empty.set_(storage))
            place = (numbers[storage._cdata], one.dtype, list(one.shape), list(one.stride()),
                     one.storage_offset())  # fmt: skip
            tensors.append(place)
            return f"{MARK}{len(tensors) - 1}"

        arguments = pytree.tree_map_only(torch.Tensor, mark, args)
        return Layout(arguments, tensors, storages)

    def request(self) -> dict[str, Any]:
        return {"arguments": self.arguments, "tensors": self.tensors}


@dataclass
class RemoteCall:
    """Calls the candidate, and notes what is not visible in its results.

    gradients  the seed of `Applied`
    shares   of the last call: the storage that each result shares; -1 for none
    placed   of the last call: for each result, whether elements of it share memory, and its device
    alone    whether the last call returned one tensor, not a container of it
    changed  whether a result of an earlier call has changed since it was returned
    """

    process: Process
    gpu: bool
    gradients: int | None = None
    results: Results = ()
    shares: list[int] = field(default_factory=list)
    placed: list[Any] = field(default_factory=list)
    alone: bool = False
    changed: bool = False
    _last: list[Any] = field(default_factory=list)

    def __call__(self, args: Arguments, edge: Edge, pattern: int) -> Any:
        layout = Layout.of(args)
        request = layout.request() | {
            "storages": [one.cpu() for one in layout.storages], "edge": edge, "pattern": pattern,
            "gpu": self.gpu, "gradients": self.gradients,
            "results": [(list(shape), dtype) for shape, dtype in self.results],
        }  # fmt: skip
        last, self._last = self._last, []  # if it raises, the next call has nothing to compare
        answer = self.process.run(f"{SERVED}:call", self.process.root, request)
        results, storages = _checked(answer, layout.storages)
        self.shares = [int(n) for n in answer["shares"] if isinstance(n, int)]
        self.placed = answer["placed"]
        self.alone = is_alone(results, self.gradients is not None)
        self._compare(last, answer["earlier"])
        self._last = [one for one in pytree.tree_leaves(results) if isinstance(one, torch.Tensor)]
        for own, other in zip(layout.storages, storages, strict=True):
            own.copy_(other)
        return results

    def _compare(self, last: list[Any], earlier: Any) -> None:
        now = [one for one in earlier if isinstance(one, torch.Tensor)] \
            if isinstance(earlier, list) else []  # fmt: skip
        if now and len(now) == len(last):
            same = all(a.shape == b.shape and same_bits(a, b)
                       for a, b in zip(now, last, strict=True))  # fmt: skip
            self.changed = self.changed or not same


def _checked(answer: Any, own: Sequence[torch.Tensor]) -> tuple[Any, list[torch.Tensor]]:
    """The results and storages of an answer; raises Stopped for another value."""
    fields = {"results", "storages", "shares", "earlier", "placed"}
    if not isinstance(answer, dict) or set(answer) != fields:
        raise Stopped("malformed")
    storages, shares = answer["storages"], answer["shares"]
    lists = all(isinstance(one, list) for one in (storages, shares, answer["placed"]))
    if not lists or len(storages) != len(own):
        raise Stopped("malformed")
    for one, mine in zip(storages, own, strict=True):
        if not isinstance(one, torch.Tensor) or one.dtype is not torch.uint8 \
                or one.shape != mine.shape:  # fmt: skip
            raise Stopped("malformed")
    return answer["results"], storages


def is_alone(returned: Any, gradients: bool) -> bool:
    """Is one tensor returned, not a container?  With gradients, they are the second value."""
    if gradients and isinstance(returned, list | tuple) and returned:
        returned = returned[0]
    return isinstance(returned, torch.Tensor)


def same_bits(first: torch.Tensor, second: torch.Tensor) -> bool:
    """Have two tensors the same dtype and bits?"""
    if first.dtype is not second.dtype or first.shape != second.shape:
        return False
    if first.device != second.device:
        first, second = first.cpu(), second.cpu()
    plain = (x.detach().resolve_conj().resolve_neg() for x in (first, second))
    contiguous = (x.contiguous() for x in plain)
    one, two = (x.as_strided((x.numel(),), (1,)).view(torch.uint8) for x in contiguous)
    return bool(torch.equal(one, two))


def names_of(function: Callable[..., Any], args: Arguments) -> list[str]:
    """A name for each tensor of the arguments: that of the parameter, where it is known."""
    try:
        parameters = list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        parameters = []
    positional, by_keyword = args
    named = [(parameters[n] if n < len(parameters) else f"argument {n}", one)
             for n, one in enumerate(positional)]  # fmt: skip
    found: list[str] = []
    for name, arg in [*named, *by_keyword.items()]:
        leaves = [leaf for leaf in pytree.tree_leaves(arg) if isinstance(leaf, torch.Tensor)]
        alone = isinstance(arg, torch.Tensor)
        found += [name if alone else f"{name}[{n}]" for n in range(len(leaves))]
    return found
