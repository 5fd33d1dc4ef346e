"""Marks of a run in eager mode: before each operator, its name, the user's line and the node.

Autograd's hooks for saved tensors report what is saved and for how long.  The node that saves a
tensor is the node that unpacks it.
"""

from __future__ import annotations

import sys
import warnings
import weakref
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from types import FrameType
from typing import Any

import torch

from inductor_lab.compiler.capture.fx_graph import Span
from inductor_lab.compiler.capture.span import innermost
from inductor_lab.compiler.torch_door import torch_api
from inductor_lab.compiler.torch_door.torch_api import TorchDispatchMode
from inductor_lab.debug.memory.marks import (
    Fact,
    Marks,
    address_of,
    in_checkpoint,
    place_of,
    tensors_in,
    user_frames,
)

MOST_LINES = 12
"""The number of the user's frames that are kept for a saved tensor."""


class _Saved:
    """What autograd keeps instead of a saved tensor."""

    __slots__ = ("__weakref__", "fact", "tensor")

    def __init__(self, tensor: torch.Tensor, fact: Fact) -> None:
        self.tensor, self.fact = tensor, fact


class EagerRecorder(TorchDispatchMode):
    """Records one step; `backward_seen` says whether a backward ran in it."""

    def __init__(self, marks: Marks) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.marks = marks
        self.backward_seen = False
        self._kept_by_checkpoint: set[int] = set()
        self._places: dict[Any, Span | None] = {}

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        if func.namespace == "profiler":  # a mark
            return func(*args, **(kwargs or {}))
        frame = next(user_frames(sys._getframe(1)), None)
        inside = in_checkpoint(sys._getframe(1))
        node = torch_api.current_autograd_node()
        self._enter_phase(node)
        if node is None:
            place = place_of(frame)
        else:
            place = place_of(frame) if inside is not None else self._place_of_node(node)
        again = inside is not None and node is not None
        name = node.name() if node is not None else ""
        number = self.marks.add(str(func), place, name, again)
        if inside is not None and node is None:
            self._look_at_checkpoint(inside)
        if number == self.marks.look_at:
            self._look_at_variables()
        result = func(*args, **(kwargs or {}))
        self._made(number, result)
        return result

    def _made(self, number: int, result: Any) -> None:
        for tensor in tensors_in(result):
            self.marks.facts.append(Fact(number + 1, address_of(tensor), "made"))

    def _enter_phase(self, node: Any) -> None:
        if node is not None:
            self.backward_seen = True
            self.marks.phase = "backward"
        elif self.backward_seen:
            self.marks.phase = "update"

    def _place_of_node(self, node: Any) -> Span | None:
        """The user's line that created a node; anomaly mode keeps its stack trace."""
        lines = node.metadata.get("traceback_")
        return innermost("".join(lines)) if lines else None

    def _look_at_variables(self) -> None:
        """The tensors in local variables of the user's functions."""
        for frame in user_frames(sys._getframe(1)):
            if frame.f_code.co_name == "<module>":
                break
            for name, value in list(frame.f_locals.items()):
                line = ((frame.f_code.co_filename, frame.f_lineno),)
                for tensor in _tensors_of(value):
                    self.marks.facts.append(
                        Fact(self.marks.last, address_of(tensor), "variable", name, lines=line)
                    )

    def _look_at_checkpoint(self, frame: FrameType) -> None:
        """The arguments that a checkpoint keeps to compute its function a second time."""
        at: FrameType | None = frame
        while at is not None and in_checkpoint(at) is at:
            if id(at) not in self._kept_by_checkpoint:
                self._kept_by_checkpoint.add(id(at))
                given = at.f_locals.get("args", ())
                for tensor in tensors_in([v for v in given] if isinstance(given, tuple) else ()):
                    self.marks.facts.append(Fact(self.marks.last, address_of(tensor), "checkpoint"))
            at = at.f_back

    # ---- saved tensors ------------------------------------------------------------------------

    def pack(self, tensor: torch.Tensor) -> Any:
        frames = list(user_frames(sys._getframe(1)))
        lines = tuple((f.f_code.co_filename, f.f_lineno) for f in frames[:MOST_LINES])
        number = self.marks.add("save", place_of(frames[0] if frames else None))
        fact = Fact(number, address_of(tensor), "saved", place=self.marks.marks[number].place,
                    lines=lines)  # fmt: skip
        self.marks.facts.append(fact)
        saved = _Saved(tensor, fact)
        weakref.finalize(saved, self._released, fact)
        return saved

    def unpack(self, saved: Any) -> torch.Tensor:
        node = torch_api.current_autograd_node()
        if node is not None:
            saved.fact.why = f"by {node.name()}"
            saved.fact.place = self._place_of_node(node) or saved.fact.place
        tensor: torch.Tensor = saved.tensor
        return tensor

    def _released(self, fact: Fact) -> None:
        fact.until = self.marks.last


def _tensors_of(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor | list | tuple | dict):
        with suppress(Exception):
            yield from list(tensors_in(value))


@contextmanager
def recording_eager(marks: Marks) -> Iterator[EagerRecorder]:
    """Record the operators that run in the block."""
    recorder = EagerRecorder(marks)
    with ExitStack() as stack:
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        stack.enter_context(torch.autograd.set_detect_anomaly(True, check_nan=False))
        stack.enter_context(recorder)
        hooks = torch.autograd.graph.saved_tensors_hooks(recorder.pack, recorder.unpack)
        stack.enter_context(hooks)
        yield recorder
