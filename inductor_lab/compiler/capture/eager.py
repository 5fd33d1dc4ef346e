"""The cost of a captured graph in eager mode: every operator call that reaches a kernel, counted.

The graph runs on fake tensors, forward and, if something requires a gradient, backward.  Nothing is
computed, and no user data is accessed.  Operators count as autograd sees them, so softmax is one
call and layer norm is one; a view is none.

    softmax(x @ w)      eager: mm, _softmax      ours, before fusion: mm, max, sub, exp, sum, div
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, suppress
from functools import partial
from typing import Any

import torch

from inductor_lab.compiler.base.thread_state import ThreadState
from inductor_lab.compiler.capture.eager_cost import EagerCost
from inductor_lab.compiler.capture.gradient_levels import level_ends
from inductor_lab.compiler.torch_door import torch_api
from inductor_lab.compiler.torch_door.torch_api import TorchDispatchMode, pytree


def snapshot_input(given: Any) -> Any:
    """An input as it is before the call, which may write to it and reshape it (`x.t_()`).

    Parameters are kept themselves.  With a second tensor in its memory a weight cannot be packed,
    and tools would time other library calls than those of the program.
    """
    if type(given) is torch.nn.Parameter:
        return given
    if isinstance(given, torch.Tensor):
        return given.detach().requires_grad_(given.requires_grad)
    return torch_api.size_hint(given) if isinstance(given, torch.SymInt) else given


def eager_cost(module: torch.fx.GraphModule, inputs: Sequence[Any]) -> EagerCost | None:
    """The cost in eager mode; None if it depends on the data of tensors."""

    def count(hooked: bool) -> EagerCost:
        with torch_api.fake_mode(), level_ends():
            return _counted(module, [_fake(value) for value in inputs], hooked)

    for hooked in (True, False):
        # If the graph fails, settings that it has changed (autocast, gradient mode) are settings
        # of this thread and end with it.
        with ThreadPoolExecutor(1) as thread, suppress(Exception):
            return thread.submit(ThreadState.now().run, partial(count, hooked)).result()
    # Fake tensors do not support everything (sizes that depend on data, operators without a fake
    # implementation).  Then there is no cost, and the compilation continues.
    return None


def _fake(value: Any) -> Any:
    if isinstance(value, torch.SymInt):
        return torch_api.size_hint(value)
    if not isinstance(value, torch.Tensor):
        return value
    size, stride = (list(map(torch_api.size_hint, ns)) for ns in (value.shape, value.stride()))
    made = torch.empty_strided(size, stride, dtype=value.dtype, device=value.device)
    return made.requires_grad_(value.requires_grad)


def _counted(module: torch.fx.GraphModule, given: Sequence[Any], hooked: bool) -> EagerCost:
    """If `hooked`, hooks report what autograd keeps.  Transforms of torch.func do not allow hooks;
    there the saved tensors are read from autograd's nodes at the end."""
    tensors = [value for value in given if isinstance(value, torch.Tensor)]
    kept: dict[int, torch.UntypedStorage] = {}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        kept[storage._cdata] = storage
        return tensor

    counts = _Counts()
    hooks = torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor)
    wanted = any(value.requires_grad for value in tensors)  # otherwise nothing is kept
    with hooks if hooked and wanted else nullcontext(), counts:
        run = _OnFakes(module)
        results = pytree.tree_leaves(run.run(*given))
    tensors += [made for made in run.made.values() if isinstance(made, torch.Tensor)]
    leaves = [tensor for tensor in tensors if tensor.requires_grad]
    ends = [r for r in results if isinstance(r, torch.Tensor) and r.requires_grad]
    for value in () if hooked else _saved_tensors([end.grad_fn for end in ends]):
        keep(value)
    seeds = [torch.empty_like(end) for end in ends]
    if ends and leaves:
        with counts:
            torch.autograd.grad(ends, leaves, seeds, allow_unused=True)
    alive = {tensor.untyped_storage()._cdata for tensor in tensors}
    return EagerCost(
        calls=tuple(counts.calls.items()),
        bytes_read=counts.read,
        bytes_written=counts.written,
        kept=sum(storage.nbytes() for storage in kept.values()),
        kept_inputs=sum(s.nbytes() for place, s in kept.items() if place in alive),
    )


def _saved_tensors(waiting: list[Any]) -> Iterator[torch.Tensor]:
    """The tensors that autograd nodes and their predecessors keep."""
    seen: set[Any] = {None}
    while waiting:
        node = waiting.pop()
        if node in seen:
            continue
        seen.add(node)
        waiting += [before for before, _ in node.next_functions]
        saved = [getattr(node, name) for name in dir(node) if name.startswith("_saved_")]
        yield from (v for v in pytree.tree_leaves(saved) if isinstance(v, torch.Tensor))


class _OnFakes(torch.fx.Interpreter):
    """Runs a graph with fake versions of its own tensors (an optimizer's state, constants)."""

    def __init__(self, module: torch.fx.GraphModule) -> None:
        super().__init__(module, garbage_collect_values=False)
        self.made: dict[str, Any] = {}

    def get_attr(self, target: Any, args: Any, kwargs: Any) -> Any:
        if target not in self.made:
            self.made[target] = _fake(super().get_attr(target, args, kwargs))
        return self.made[target]


ALLOCATIONS = ("empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "detach")


class _Counts(TorchDispatchMode):
    """Counts every operator below autograd."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.calls: Counter[str] = Counter()
        self.read = self.written = 0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        results = func(*args, **(kwargs or {}))
        name = func.overloadpacket.__name__
        if func.namespace == "prim" or func.is_view or name in ALLOCATIONS:
            return results
        self.calls[name] += 1
        self.read += _nbytes((args, kwargs))
        self.written += _nbytes(results)
        return results


def _nbytes(values: Any) -> int:
    """Bytes of all elements of all tensors, each tensor once."""
    tensors = {id(v): v for v in pytree.tree_leaves(values) if isinstance(v, torch.Tensor)}
    return sum(t.numel() * t.element_size() for t in tensors.values())
