"""One training step: the call, and the backward of its result.

If a result requires a gradient and the function runs no backward itself, the backward runs with
gradients of 1.  `State` has what exists before the step: arguments, parameters, gradients.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from inductor_lab.compiler.torch_door.torch_api import pytree
from inductor_lab.debug.compare.state import tensors_reached
from inductor_lab.debug.memory.marks import Marks, address_of, tensors_in
from inductor_lab.debug.memory.step_memory import Kind

_ROUND = 512
"""The allocator of a GPU rounds sizes up to a multiple of this."""


@dataclass(frozen=True)
class Owned:
    """Memory that exists before the step."""

    name: str
    kind: Kind
    address: int
    nbytes: int


@dataclass(frozen=True)
class State:
    """What a call can reach: the memory of each storage once, and the tensors that get gradients.

    It has no reference to a gradient, which the step may free.
    """

    owned: tuple[Owned, ...]
    leaves: tuple[tuple[str, torch.Tensor], ...]
    device: torch.device

    @staticmethod
    def of(fn: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> State:
        reached = list(_reached(fn, args, kwargs))
        tensors = [(name, part) for name, tensor in reached for part in tensors_in(tensor)]
        gpus = [part.device for _, part in tensors if part.device.type == "cuda"]
        device = gpus[0] if gpus else torch.device("cpu")
        found: dict[int, Owned] = {}
        for name, part in tensors:
            if part.device.type == device.type and address_of(part):
                owned = Owned(name, _kind(name, part), address_of(part), _nbytes(part))
                found.setdefault(owned.address, owned)
        leaves = tuple((n, t) for n, t in reached if t.is_leaf and t.requires_grad)
        return State(tuple(found.values()), leaves, device)


def _kind(name: str, tensor: torch.Tensor) -> Kind:
    if name.endswith(".grad"):
        return "gradient"
    return "parameter" if isinstance(tensor, torch.nn.Parameter) else "argument"


def _nbytes(tensor: torch.Tensor) -> int:
    nbytes = tensor.untyped_storage().nbytes()
    return -(-nbytes // _ROUND) * _ROUND if tensor.device.type == "cuda" else nbytes


def _reached(
    fn: Any, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Iterator[tuple[str, torch.Tensor]]:
    names = _parameters(fn)
    for number, value in enumerate(args):
        name = names[number] if number < len(names) else f"args[{number}]"
        yield from ((f"{name}{step}", tensor) for step, tensor in tensors_reached([value]))
    for name, value in kwargs.items():
        yield from ((f"{name}{step}", tensor) for step, tensor in tensors_reached([value]))
    yield from ((step.removeprefix("."), tensor) for step, tensor in tensors_reached([fn]))


def _parameters(fn: Any) -> list[str]:
    called = fn.forward if isinstance(fn, torch.nn.Module) else fn
    try:
        known = inspect.signature(called).parameters.values()
    except (TypeError, ValueError):
        return []
    return [p.name for p in known if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]


def run_step(
    marks: Marks, call: Callable[[], Any], state: State, ran_backward: Callable[[], bool]
) -> tuple[Any, bool]:
    """Run one step; returns its result, and whether the call ran a backward itself.

    There are marks at its begin, before its backward and at its end.
    """
    marks.add("call")
    result = call()
    ran = ran_backward()
    if not ran and _ends(result):
        marks.phase = "backward"
        marks.add("backward")
        run_backward(result)
    marks.add("end")
    marks.know("output", result)
    for name, leaf in state.leaves:
        marks.know("gradient", leaf.grad, name)
    return result, ran


def run_backward(result: Any) -> None:
    """The backward of all results that require a gradient, with gradients of 1."""
    ends = _ends(result)
    if ends:
        torch.autograd.backward(ends, [torch.ones_like(end) for end in ends])


def _ends(result: Any) -> list[torch.Tensor]:
    return [leaf for leaf in pytree.tree_leaves(result)
            if isinstance(leaf, torch.Tensor) and leaf.requires_grad and leaf.grad_fn is not None]
