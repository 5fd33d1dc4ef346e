"""Initializes GPU libraries in a thread while kernels are compiled.

cuBLAS and attention libraries load their code at the first call, which takes 0.1 to 0.2 s for each
dtype.  Therefore a thread calls each kind of matrix product and attention in a graph once, with
small tensors.  The first call of the graph then does not wait for this.

    aten.mm.default of (4096, 768) and (768, 50257) bfloat16      (16, 16) and (16, 16) bfloat16

These calls draw no random numbers.  Their errors are ignored, because the real call reports them.
Attention with a mask is not called: its kernels read masks in aligned words, and the rows of a
small mask may not be aligned.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from typing import Any

import torch

from inductor_lab.compiler.ir.index import Size
from inductor_lab.compiler.ir.interpret import find_operator
from inductor_lab.compiler.ir.matmul_ops import MATMULS
from inductor_lab.compiler.ir.program import BufferView, ExternCall, LoopProgram, Step
from inductor_lab.compiler.runtime.toolchain.background_compile import BackgroundValue

ATTENTION = "aten._scaled_dot_product_"
SIDE = 16
"""The rows and columns of a small product: full words for every dtype."""
MOST_ELEMENTS = 1 << 20
"""The limit for a small tensor.  Attention keeps its lengths, because they select the kernel."""


@dataclass(frozen=True)
class Small:
    """A tensor of zeros."""

    size: tuple[int, ...]
    dtype: torch.dtype
    device: str

    def tensor(self) -> torch.Tensor:
        return torch.zeros(self.size, dtype=self.dtype, device=self.device)


Kind = tuple[str, tuple[Any, ...]]
"""An operator, and small arguments for it."""

_BEGUN: set[Kind] = set()


def warm_up_libraries(program: LoopProgram) -> list[Callable[[], None]]:
    """Call new kinds of operators in a thread; return the functions that wait for these calls."""
    new = {kind for step in program.steps for kind in _kinds(step, program)} - _BEGUN
    _BEGUN.update(new)
    return [BackgroundValue(lambda: _use(new)).wait] if new else []


def _use(kinds: set[Kind]) -> None:
    """Call operators with small arguments, and ignore errors."""
    for op, args in kinds:
        with suppress(Exception), torch.no_grad():
            find_operator(op)(*(x.tensor() if isinstance(x, Small) else x for x in args))


def _kinds(step: Step, program: LoopProgram) -> Iterator[Kind]:
    """Yield the small call for a step if it is a matrix product or attention on a GPU."""
    if not isinstance(step, ExternCall):
        return
    is_product = step.op in MATMULS
    devices = {program.buffers[view.buffer].device for view in step.views}
    if "cpu" in devices or not (is_product or step.op.startswith(ATTENTION)):
        return
    names = [argument.name for argument in find_operator(step.op)._schema.arguments]
    named = dict(zip(names, step.args, strict=False))
    if named.get("attn_bias") is not None:
        return
    args: list[Any] = []
    for name, given in named.items():
        if isinstance(given, BufferView):
            buffer = program.buffers[given.buffer]
            size = tuple(_small(given.layout.size, is_product))
            args.append(Small(size, buffer.dtype, buffer.device))
        else:
            args.append(0.0 if name == "dropout_p" else given)
    sizes = [x.size for x in args if isinstance(x, Small)]
    fixed = all(isinstance(n, int) for n in chain(*sizes))
    if fixed and max(map(math.prod, sizes), default=0) <= MOST_ELEMENTS:
        yield step.op, tuple(args)


def _small(size: Sequence[Size], is_product: bool) -> Iterator[Size]:
    """Reduce all sizes of a matrix product, or only the batch and the heads of attention."""
    for place, n in enumerate(size):
        if is_product:
            yield min(n, SIDE) if isinstance(n, int) else SIDE
        else:
            yield 1 if place < 2 and len(size) > 2 else n
