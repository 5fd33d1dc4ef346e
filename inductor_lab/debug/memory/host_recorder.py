"""Marks of compiled code: before each line of a host program.

Python's tracing hook sees only the frames of host programs.  What a forward returns after the
user's results is saved for its backward.
"""

from __future__ import annotations

import linecache
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any

import torch

from inductor_lab.debug.memory.marks import Fact, Marks, address_of, tensors_in
from inductor_lab.debug.memory.parts import HostPart


class HostRecorder:
    """Records the host programs that run in one step."""

    def __init__(
        self, marks: Marks, parts: Sequence[HostPart], pooled: Callable[[], dict[int, bool]]
    ) -> None:
        self.marks, self.parts, self.pooled = marks, parts, pooled
        self.backward_seen = False
        self._by_file: dict[str, HostPart | None] = {p.file: p for p in parts if p.file}

    def trace(self, frame: FrameType, event: str, argument: Any) -> Any:
        """The global trace function: only frames of host programs are traced."""
        code = frame.f_code
        if code.co_name != "call":
            return None
        if code.co_filename not in self._by_file:
            self._by_file[code.co_filename] = self._part_with_text(code.co_filename)
        part = self._by_file[code.co_filename]
        if part is None:
            return None
        if part.direction == "backward":
            self.backward_seen = True
        if self.marks.phase != part.direction:
            self.marks.phase = part.direction

        def in_part(inner: FrameType, event: str, value: Any) -> Any:
            if event == "line":
                self._line(part, inner)
            elif event == "return":
                self._returned(part, inner, value)
            return in_part

        return in_part

    def _part_with_text(self, file: str) -> HostPart | None:
        """The part whose text is in a file."""
        text = "".join(linecache.getlines(file)).strip()
        return next((p for p in self.parts if not p.file and text and p.text.strip() == text), None)

    def _line(self, part: HostPart, frame: FrameType) -> None:
        line = frame.f_lineno
        target = _target(part.text.split("\n")[line - 1])
        nodes = part.nodes_of(target) or part.steps.get(line, frozenset())
        number = self.marks.add(f"{part.name} line {line}", part.place(nodes),
                                value=part.last_of(nodes) or target)  # fmt: skip
        if number == self.marks.look_at:
            self._look(part, frame)

    def _look(self, part: HostPart, frame: FrameType) -> None:
        for name, value in list(frame.f_locals.items()):
            if isinstance(value, torch.Tensor):
                self._know("buffer", part, name, value)
        for address, is_free in self.pooled().items():
            if is_free:
                self.marks.facts.append(Fact(self.marks.last, address, "pool"))

    def _know(self, role: Any, part: HostPart, name: str, value: Any, why: str = "") -> None:
        place = part.place(part.nodes_of(name))
        for tensor in tensors_in(value):
            node = part.last_of(part.nodes_of(name))
            self.marks.facts.append(
                Fact(self.marks.last, address_of(tensor), role, node or name, why, place)
            )

    def _returned(self, part: HostPart, frame: FrameType, values: Any) -> None:
        if part.direction != "forward" or not isinstance(values, tuple | list):
            return
        self.marks.add(f"{part.name} returns")
        names = {address_of(v): name for name, v in frame.f_locals.items()
                 if isinstance(v, torch.Tensor)}  # fmt: skip
        for value in values[part.outputs :]:
            if isinstance(value, torch.Tensor) and address_of(value) in names:
                name = names[address_of(value)]
                self._know("saved", part, name, value, part.reason(name))


def _target(line: str) -> str:
    """The variable that a line assigns; "" if there is none."""
    target, equals, _ = line.strip().partition(" = ")
    return target if equals and target.isidentifier() else ""


@contextmanager
def recording_hosts(recorder: HostRecorder) -> Iterator[HostRecorder]:
    """Trace the host programs that this thread runs in the block."""
    before = sys.gettrace()
    sys.settrace(recorder.trace)
    try:
        yield recorder
    finally:
        sys.settrace(before)


def no_pool() -> dict[int, bool]:
    """No memory is pooled."""
    return {}

