"""The least time of a model: its products at the best speed that any system reaches, and a copy.

The products (matrix products, convolutions, attention) are recorded while the model runs in eager
mode.  Each distinct one is then timed alone with torch, inductor_lab and OpenVINO (if it is
installed), with its weights as constants.  The floor is the sum of the best times, plus the bytes
of the model's own arguments and results at the speed of a copy.  No system has to reach it, because
a step between two products takes time too.
"""

from __future__ import annotations

import time
import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only

import inductor_lab as lab
from benchmarks.peers.systems import openvino_call
from benchmarks.peers.workloads import Work

aten = torch.ops.aten
PRODUCTS = (
    aten.mm.default, aten.addmm.default, aten.bmm.default, aten.convolution.default,
    aten._scaled_dot_product_flash_attention_for_cpu.default,
)  # fmt: skip
CALLS = 15
PAUSE = 0.05
"""Seconds."""
COPIED = 1 << 26


class _Recorder(TorchDispatchMode):
    """Counts the products by their operator and the shapes of their arguments."""

    def __init__(self, weights: set[int]) -> None:
        super().__init__()
        self.weights = weights
        self.found: Counter[Any] = Counter()
        self.examples: dict[Any, tuple[Any, Any, Any]] = {}

    def __torch_dispatch__(self, op: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if op in PRODUCTS:
            key = (op, str(tree_map_only(torch.Tensor, self._shown, (args, kwargs))))
            self.found[key] += 1
            self.examples.setdefault(key, (op, args, kwargs))
        return op(*args, **kwargs)

    def _shown(self, value: torch.Tensor) -> Any:
        return (*value.shape, *value.stride(), value.untyped_storage().data_ptr() in self.weights)


class _Product(torch.nn.Module):
    """One product, with its weights as constants."""

    def __init__(self, op: Any, args: Any, kwargs: Any, weights: set[int]) -> None:
        super().__init__()
        self.op, self.kwargs, self.given = op, kwargs, list(args)
        self.places = [n for n, value in enumerate(args) if isinstance(value, torch.Tensor)
                       and value.untyped_storage().data_ptr() not in weights]  # fmt: skip

    def forward(self, *values: torch.Tensor) -> Any:
        args = list(self.given)
        for place, value in zip(self.places, values, strict=True):
            args[place] = value
        found = self.op(*args, **self.kwargs)
        return found[0] if isinstance(found, tuple) else found


def floor_of(work: Work, threads: int) -> float:
    """Seconds."""
    torch.set_num_threads(threads)
    module, args = work.made()
    weights = {one.untyped_storage().data_ptr() for one in (*module.parameters(),
                                                            *module.buffers())}  # fmt: skip
    recorder = _Recorder(weights)
    with torch.no_grad(), recorder:
        result = module(*args)
    moved = sum(one.nbytes for one in tree_leaves((args, result)) if isinstance(one, torch.Tensor))
    seconds = moved / _copy_rate()
    for key, count in recorder.found.items():
        op, given, kwargs = recorder.examples[key]
        seconds += count * _best(_Product(op, given, kwargs, weights), work, threads)
    return seconds


def _best(product: _Product, work: Work, threads: int) -> float:
    """Seconds of one product with the best system."""
    values = tuple(product.given[place].clone() for place in product.places)
    torch._dynamo.reset()  # otherwise a further product is one with symbolic sizes
    ours = lab.compile(product)
    calls: list[Callable[[], Any]] = [lambda: product(*values), lambda: ours(*values)]
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        least = min(map(_timed, calls))
        other = _in_openvino(product, values, work, threads)
        return least if other is None else min(least, _timed(other))


def _in_openvino(
    product: _Product, values: tuple[torch.Tensor, ...], work: Work, threads: int
) -> Callable[[], Any] | None:
    """The product in OpenVINO; None if it is not installed or cannot convert it."""
    try:
        single = tree_map_only(torch.Tensor, torch.Tensor.float, values)
        product.given = tree_map_only(torch.Tensor, torch.Tensor.float, product.given)
        return openvino_call(product, single, work.dtype, threads)
    except Exception:
        return None


def _timed(call: Callable[[], Any]) -> float:
    """Seconds of the fastest call, after the threads of other systems have gone to sleep."""
    call()
    time.sleep(PAUSE)
    took = []
    for _ in range(CALLS):
        start = time.perf_counter()
        call()
        took.append(time.perf_counter() - start)
    return min(took)


def _copy_rate() -> float:
    """Bytes per second that a copy reads and writes."""
    source, target = (torch.ones(COPIED // 4) for _ in range(2))
    return 2 * COPIED / _timed(lambda: target.copy_(source))
