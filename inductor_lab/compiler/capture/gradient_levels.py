"""Levels of forward-mode gradients.

Graphs of torch.func enter and exit such a level.  torch allows one level per process, so a run that
fails in between must exit it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from inductor_lab.compiler.torch_door.torch_names import optional

_enter = optional("torch._C._enter_dual_level")
_exit = optional("torch._C._exit_dual_level")


@contextmanager
def level_ends() -> Iterator[None]:
    """Exit a level that the block has entered, also if the block fails."""
    before = _has_level()
    try:
        yield
    finally:
        if not before and _has_level():
            _exit(level=0)


def _has_level() -> bool:
    """torch has no query for the current level, except trying to enter another one."""
    try:
        return _enter is None or bool(_exit(level=_enter()))
    except RuntimeError:
        return True
