"""Record which compiled code each call runs.

When TorchDynamo has compiled a function, a call that notes its compile id is added at the start of
the bytecode:

```
RESUME                 RESUME
LOAD_FAST x      →     LOAD_CONST <note of 0/1>; CALL; POP_TOP
...                    LOAD_FAST x
                       ...
```
So calls that reuse compiled code are recorded too, for every backend.
"""

from __future__ import annotations

import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from types import CodeType, FrameType
from typing import Any

import torch

from inductor_lab.compiler.torch_door.torch_names import missing, optional

_CODE = "torch._dynamo.bytecode_transformation."
_add_push_null = optional(_CODE + "add_push_null")
_call_function = optional(_CODE + "create_call_function")
_instruction = optional(_CODE + "create_instruction")
_load_const = optional(_CODE + "create_load_const")
_transform = optional(_CODE + "transform_code_object")
CAN_NOTE = not missing("which code serves a call")
MOST_RUNS = 200_000
"""At most this many runs of compiled code are stored; later runs are only counted."""


@dataclass(frozen=True)
class Call:
    """One call from user code into compiled code.

    number    its number in the block, starting with 1
    when      seconds since the start of the block
    served    the compile ids of the code that it ran, in order: several if there are graph breaks
    compiled  the compile ids that were compiled in this call
    """

    number: int
    when: float
    served: tuple[str, ...]
    compiled: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Run:
    when: float
    compile_id: str
    thread: int
    inside: bool


@dataclass(eq=False)
class Served:
    """The recorded runs, in order; `changed` is called after each run."""

    changed: Callable[[], None] | None = None
    left_out: int = 0
    _runs: list[_Run] = field(default_factory=list)
    _codes: set[CodeType] = field(default_factory=set)
    _over: bool = False

    def noting(self, compile_id: str, code: CodeType) -> CodeType | None:
        """The same code with a note at its start; None if this torch cannot rewrite code."""
        if not CAN_NOTE:
            return None

        here = weakref.ref(self)  # compiled code outlives the block

        def note() -> None:
            served = here()
            if served is not None:
                served._note(compile_id, sys._getframe())

        noted = _beginning_with(torch.compiler.disable(note), code)
        self._codes.add(noted)
        return noted

    def _note(self, compile_id: str, frame: FrameType) -> None:
        if self._over:
            return
        inside = sum(above.f_code in self._codes for above in _above(frame)) > 1
        if len(self._runs) < MOST_RUNS:
            thread = threading.get_ident()
            self._runs.append(_Run(time.time(), compile_id, thread, inside))
        else:
            self.left_out += not inside
        if self.changed is not None:
            self.changed()

    def close(self) -> None:
        """Stop recording; compiled code that continues to exist notes nothing."""
        self._over, self.changed = True, None

    def calls(self, began: float) -> tuple[Call, ...]:
        """Group runs into calls: a run inside another run belongs to the same call."""
        found: list[list[_Run]] = []
        open_call: dict[int, list[_Run]] = {}
        for run in tuple(self._runs):
            if not run.inside or run.thread not in open_call:
                open_call[run.thread] = []
                found.append(open_call[run.thread])
            open_call[run.thread].append(run)
        seen: set[str] = set()
        calls = []
        for number, runs in enumerate(found, 1):
            served = tuple(run.compile_id for run in runs)
            compiled = tuple(name for name in dict.fromkeys(served) if name not in seen)
            seen.update(served)
            calls.append(Call(number, runs[0].when - began, served, compiled))
        return tuple(calls)


def stretches(calls: Sequence[Call]) -> Iterator[tuple[int, int, tuple[str, ...]]]:
    """`(first, last, compile ids)` of consecutive calls that ran the same code."""
    for served, run in groupby(calls, key=lambda call: call.served):
        same = list(run)
        yield same[0].number, same[-1].number, served


def _above(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def _beginning_with(note: Callable[[], None], code: CodeType) -> CodeType:
    def change(instructions: list[Any], _options: dict[str, Any]) -> None:
        start = next(n for n, each in enumerate(instructions) if each.opname == "RESUME") + 1
        instructions[start:start] = [
            *_add_push_null(_load_const(note, checked=False)),
            *_call_function(0, False),
            _instruction("POP_TOP"),
        ]

    rewritten: CodeType = _transform(code, change)[0]
    return rewritten
