"""Levels of forward-mode gradients: graphs of torch.func begin and end one, and torch admits one in
a process, so a run that fails between them must not leave it on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from inductor_lab.compiler.torch_door.torch_names import optional

_enter = optional("torch._C._enter_dual_level")
_exit = optional("torch._C._exit_dual_level")


@contextmanager
def level_ends() -> Iterator[None]:
    """A level that the block begins ends with it, also if it fails."""
    before = _has_level()
    try:
        yield
    finally:
        if not before and _has_level():
            _exit(level=0)


def _has_level() -> bool:
    """Torch tells nobody but who wants another."""
    try:
        return _enter is None or bool(_exit(level=_enter()))
    except RuntimeError:
        return True
