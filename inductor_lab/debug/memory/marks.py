"""The marks of a run, and what was known of addresses at each of them."""

from __future__ import annotations

import contextlib
import linecache
import os
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, Literal

import torch

from inductor_lab.compiler.capture.fx_graph import Span
from inductor_lab.compiler.capture.span import outside_torch, shown_file
from inductor_lab.compiler.torch_door.torch_api import pytree
from inductor_lab.debug.memory.allocations import emit_mark

Phase = Literal["forward", "backward", "update"]
Role = Literal["made", "saved", "variable", "checkpoint", "output", "gradient", "buffer", "pool"]
_OF_PYTHON = (contextlib.__file__, threading.__file__)
"""Files of Python that call the user's code."""
OURS = os.path.dirname(os.path.dirname(os.path.dirname(__file__))) + os.sep
_CHECKPOINT = os.path.join("torch", "utils", "checkpoint.py")


@dataclass(frozen=True)
class Mark:
    """What runs after a mark.

    what   an operator, or a line of a host program
    place  the user's line
    node   the node of autograd that runs, in a backward
    again  a checkpoint computes it a second time
    value  of a line of a host program: the FX node whose value it computes
    """

    phase: Phase
    what: str
    place: Span | None = None
    node: str = ""
    again: bool = False
    value: str = ""


@dataclass
class Fact:
    """The memory at an address belongs to something, as seen at a mark, until a later mark.

    name  of a variable or buffer; why: the node or rule that saves it
    """

    mark: int
    address: int
    role: Role
    name: str = ""
    why: str = ""
    place: Span | None = None
    until: int | None = None
    lines: tuple[tuple[str, int], ...] = ()


@dataclass
class Marks:
    """The marks of one run and its facts.  At mark `look_at` the recorder looks at variables."""

    look_at: int = -1
    marks: list[Mark] = field(default_factory=list)
    facts: list[Fact] = field(default_factory=list)
    phase: Phase = "forward"

    def add(self, what: str, place: Span | None = None, node: str = "", again: bool = False,
            value: str = "") -> int:  # fmt: skip
        """Emit a mark; returns its number."""
        self.marks.append(Mark(self.phase, what, place, node, again, value))
        emit_mark(len(self.marks) - 1)
        return len(self.marks) - 1

    @property
    def last(self) -> int:
        return len(self.marks) - 1

    def know(self, role: Role, value: Any, name: str = "", why: str = "",
             place: Span | None = None) -> None:  # fmt: skip
        """Record that the tensors in a value have a role, from the last mark on."""
        for tensor in tensors_in(value):
            self.facts.append(Fact(self.last, address_of(tensor), role, name, why, place))


def tensors_in(value: Any) -> Iterator[torch.Tensor]:
    """The tensors in a value with memory of their own; those in a sparse tensor."""
    for leaf in pytree.tree_leaves(value):
        if isinstance(leaf, torch.Tensor):
            yield from _strided(leaf)


def _strided(tensor: torch.Tensor) -> Iterator[torch.Tensor]:
    if tensor.layout is torch.strided:
        inner = getattr(tensor, "__tensor_flatten__", None)
        if inner is not None and type(tensor) is not torch.Tensor:
            for name in inner()[0]:
                yield from _strided(getattr(tensor, name))
        elif not tensor.is_meta:
            yield tensor
    elif tensor.layout is torch.sparse_coo:
        yield from (tensor._indices(), tensor._values())
    elif tensor.layout in (torch.sparse_csr, torch.sparse_bsr):
        yield from (tensor.crow_indices(), tensor.col_indices(), tensor.values())


def address_of(tensor: torch.Tensor) -> int:
    """The address of a tensor's storage: the same for all its views."""
    try:
        return tensor.untyped_storage().data_ptr()
    except (RuntimeError, NotImplementedError):  # a tensor without a storage
        return 0


def user_frames(frame: FrameType | None = None) -> Iterator[FrameType]:
    """The frames of the user's code, innermost first."""
    frame = frame or sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        ours = file.startswith(OURS) or file.startswith("<frozen") or not outside_torch(file)
        if not ours and file not in _OF_PYTHON:
            yield frame
        frame = frame.f_back


def in_checkpoint(frame: FrameType | None) -> FrameType | None:
    """The innermost frame of `torch.utils.checkpoint`."""
    while frame is not None:
        if frame.f_code.co_filename.endswith(_CHECKPOINT):
            return frame
        frame = frame.f_back
    return None


def place_of(frame: FrameType | None) -> Span | None:
    """The user's line that runs in a frame."""
    if frame is None:
        return None
    return span_at(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)


def span_at(file: str, line: int, function: str = "") -> Span:
    code = linecache.getline(file, line).strip()
    return Span(shown_file(file), line, function=function, code=code)
