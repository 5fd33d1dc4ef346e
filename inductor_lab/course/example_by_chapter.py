"""The running example of the course, `softmax(x @ w)`, as each chapter leaves it to the next one.

    example = course.running_example(5)     what chapter 4 made: its loops
    attend, x, w = example.attend, example.x, example.w

The stages are computed when they are asked for, so each notebook runs without the others.
"""

from __future__ import annotations

import html
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from inductor_lab.compiler.base.errors import BadArguments
from inductor_lab.course.language import say
from inductor_lab.course.printed import text_of


def attend(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x @ w, -1)


@dataclass(frozen=True)
class Example:
    """The function, its arguments, and what the chapter before made of it, with a sentence."""

    x: torch.Tensor
    w: torch.Tensor
    sentence: str
    product: Any

    attend = staticmethod(attend)

    def __str__(self) -> str:
        return f"{self.sentence}\n\n{text_of(self.product).strip()}"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        text = html.escape(text_of(self.product).strip())
        return f"<p>{html.escape(self.sentence)}</p><pre>{text}</pre>"


def running_example(chapter: int) -> Example:
    """What chapter `chapter` starts from.  Raises BadArguments for a chapter without one."""
    if chapter not in BEFORE:
        raise BadArguments(f"no chapter comes before chapter {chapter}", todo="give 2 to 13")
    noise = torch.Generator().manual_seed(0)
    x, w = torch.randn(64, 32, generator=noise), torch.randn(32, 64, generator=noise)
    return Example(x, w, *BEFORE[chapter](x, w))


Made = tuple[str, Any]
"""A sentence about what a chapter made, and the thing itself."""


def _part(x: torch.Tensor, w: torch.Tensor, **more: Any) -> Any:
    """The forward graph of the compilation."""
    return _compiled(x, w, **more).graphs[0].forward


def _compiled(x: torch.Tensor, w: torch.Tensor, **more: Any) -> Any:
    from inductor_lab import inspect

    return inspect(attend, x, w, **more)


def _captured(x: torch.Tensor, w: torch.Tensor) -> Made:
    graph = _compiled(x, w).capture.graphs[0]
    return say("Chapter 1 captured {n} operations of torch: a graph without Python.",
               n=_calls(graph)), graph  # fmt: skip


def _decomposed(x: torch.Tensor, w: torch.Tensor) -> Made:
    graph = _part(x, w).graph
    return say("Chapter 2 decomposed it into {n} ATen operators.", n=_calls(graph)), graph


def _calls(graph: Any) -> int:
    return sum(node.op.startswith("call") for node in graph.nodes)


def _divided(x: torch.Tensor, w: torch.Tensor) -> Made:
    partition = _compiled(x, w.clone().requires_grad_()).graphs[0].partition
    return say("Chapter 3 added the gradient, and chose what the forward saves for the backward: "
               "{b:,} bytes.", b=partition.cut_bytes), partition  # fmt: skip


def _lowered(x: torch.Tensor, w: torch.Tensor) -> Made:
    loops = _part(x, w).loops
    return say("Chapter 4 lowered the operators of the forward to {n} loop nests and a call of a "
               "library.", n=len(loops.nests)), loops  # fmt: skip


def _fused(x: torch.Tensor, w: torch.Tensor) -> Made:
    schedule = _part(x, w).schedule
    return say("Chapter 5 fused the loop nests: {a} kernels became {b}.",
               a=schedule.before.kernels, b=schedule.after.kernels), schedule  # fmt: skip


def _written(x: torch.Tensor, w: torch.Tensor) -> Made:
    return say("Chapter 6 wrote the fused nests as a kernel in C++."), _part(x, w).kernels[0]


def _for_gpu(x: torch.Tensor, w: torch.Tensor) -> Made:
    kernel = _part(x, w, target="cuda:90").kernels[0]
    return say("Chapter 7 wrote the same kernel for a GPU, in Triton."), kernel


def _placed(x: torch.Tensor, w: torch.Tensor) -> Made:
    memory = _part(x, w).schedule.memory
    return say("Chapter 8 planned where the buffers are in memory."), memory


def _dynamic(x: torch.Tensor, w: torch.Tensor) -> Made:
    loops = _part(x, w, options={"dynamic": True}).loops
    return say("Chapter 9 replaced the sizes by symbols: one program for all of them."), loops


def _verified(x: torch.Tensor, w: torch.Tensor) -> Made:
    from inductor_lab import blame

    sentence = say("Chapter 10 compared each stage with the one before it: differences are "
                   "rounding.")  # fmt: skip
    return sentence, blame(attend, x, w)


def _measured(x: torch.Tensor, w: torch.Tensor) -> Made:
    from inductor_lab import compile
    from inductor_lab.bench.timing import compare

    programs = {"eager": attend, "compiled": compile(attend, dynamic=False)}
    large = x.repeat(16, 1), w.repeat(1, 16)
    return say("Chapter 11 measured it and eager mode, interleaved and with intervals, here for "
               "{n} rows of {n} numbers.", n=16 * len(x)), \
        compare(programs, *large, seconds=0.5)  # fmt: skip


def _in_a_model(x: torch.Tensor, w: torch.Tensor) -> Made:
    from inductor_lab import inspect

    def head(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return torch.softmax(q @ k.mT * q.shape[-1] ** -0.5, -1) @ v

    part = inspect(head, x, w.mT.contiguous(), x).graphs[0].forward
    sentence = say("Chapter 12 found it in each layer of a model, between the products of "
                   "attention.")  # fmt: skip
    return sentence, part.schedule


BEFORE: dict[int, Callable[[torch.Tensor, torch.Tensor], Made]] = {
    2: _captured, 3: _decomposed, 4: _divided, 5: _lowered, 6: _fused, 7: _written, 8: _for_gpu,
    9: _placed, 10: _dynamic, 11: _verified, 12: _measured, 13: _in_a_model,
}  # fmt: skip
"""Chapter → what the chapter before it made."""
