"""What is compiled while a program runs: when, why again, and how long its call was held.

    with lab.recompiles() as seen:
        for batch in batches:
            fast(batch)
    print(seen)

```
2 compiled in 3.20 s, which took 1.05 s; 1 again
  when     took  what
0.00 s  667.8 ms  0/0 f
0.89 s  386.9 ms  0/1 f again: tensor 'x' size mismatch at index 0. expected 4, actual 5 (of 0/0)
```
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import CodeType

from inductor_lab import torch_api, torch_logs
from inductor_lab.bench.roofline import duration
from inductor_lab.capture import events
from inductor_lab.capture.result import Recompile
from inductor_lab.display import Shown

WHOLE = "entire_frame_compile"
"""The phase of TorchDynamo's that holds all others of one compilation."""


@dataclass(frozen=True)
class Compiled:
    """One compilation of one stretch of Python.

    compile_id   TorchDynamo's: `0/1` is the second one of its first frame
    function     its name
    when         seconds since the block began
    seconds      for which TorchDynamo held the call
    reasons      the guards that failed, one for each version that was there; none the first time
    """

    compile_id: str
    function: str
    when: float
    seconds: float
    reasons: tuple[Recompile, ...] = ()

    @property
    def again(self) -> bool:
        """Was there code that could not be used?"""
        return bool(self.reasons)

    def __str__(self) -> str:
        head = f"{self.when:6.2f} s {duration(self.seconds):>9}  {self.compile_id} {self.function}"
        why = [str(r).partition(": ")[2] for r in self.reasons]
        return "\n".join([f"{head} again: {why[0]}" if why else head,
                          *(f"{'':20}and: {reason}" for reason in why[1:])])  # fmt: skip


@dataclass(eq=False)
class Recompiles(Shown):
    """Every compilation of a block so far, in order, whoever's backend it is for."""

    began: float = field(default_factory=time.time)
    ended: float | None = None
    _heard: list[events.Event] = field(default_factory=list)
    _code: dict[str, CodeType] = field(default_factory=dict)

    @property
    def compiled(self) -> tuple[Compiled, ...]:
        """In the order in which they began."""
        by_id: dict[str, list[events.Event]] = {}
        for event in self._heard:
            by_id.setdefault(event.compile_id, []).append(event)
        found = (self._compiled(name, heard) for name, heard in by_id.items() if name)
        return tuple(sorted(filter(None, found), key=lambda each: each.when))

    def _compiled(self, compile_id: str, heard: list[events.Event]) -> Compiled | None:
        whole = [phase for phase in events.phases(heard) if phase.name == WHOLE]
        if not whole:
            return None
        code = self._code.get(compile_id)
        files = {each.co_filename for each in self._code.values()}
        reasons = events.Reader(files).recompiles(heard)
        return Compiled(compile_id, code.co_name if code else "", whole[0].start - self.began,
                        sum(phase.seconds for phase in whole), tuple(reasons))  # fmt: skip

    @property
    def seconds(self) -> float:
        """Of the block, until now if it still runs."""
        return (self.ended or time.time()) - self.began

    def __repr__(self) -> str:
        found = self.compiled
        took = duration(sum(each.seconds for each in found))
        again = sum(each.again for each in found)
        return f"{len(found)} compiled in {self.seconds:.2f} s, which took {took}; {again} again"

    def __str__(self) -> str:
        found = self.compiled
        head = [f"{'when':>8} {'took':>9}  what"] if found else []
        return "\n".join([repr(self), *head, *map(str, found)])


class _Listener(logging.Handler):
    def __init__(self, seen: Recompiles) -> None:
        super().__init__(logging.DEBUG)
        self.seen = seen

    def emit(self, record: logging.LogRecord) -> None:
        metadata: Mapping[str, object] = getattr(record, "metadata", None) or {}
        event = events.Event(metadata, getattr(record, "payload", None))
        if "chromium_event" in metadata or event.is_artifact("recompile_reasons"):
            self.seen._heard.append(event)


@contextmanager
def recompiles() -> Iterator[Recompiles]:
    """Watch what TorchDynamo compiles in the block, of all threads and for all backends.

    Code that is there already stays; a call that finds it leaves no trace.  C++ kernels of ours may
    be compiled beside Python, so a first call can take longer than TorchDynamo held it.
    """
    seen = Recompiles()

    def keep(original: CodeType, _: CodeType) -> None:
        seen._code[torch_api.compile_id()] = original

    hook = torch_logs.on_bytecode(keep)
    try:
        with torch_logs.traces_to(_Listener(seen)):
            yield seen
    finally:
        hook.remove()
        seen.ended = time.time()
