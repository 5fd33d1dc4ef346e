"""Patch a fault into the compiler, and remove it.

A fault is active only inside a `with` block: no option, environment variable or other function
enables one.  While a fault is active, the caches on disk are neither read nor written.  TorchDynamo
is reset before and after the block, so no faulty code remains.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Literal, TypeAlias

import torch

from inductor_lab.compiler import accelerators
from inductor_lab.compiler.torch_door import torch_api
from inductor_lab.debug.faults.examples import Example

Patch: TypeAlias = Callable[[], AbstractContextManager[None]]
Shows = Literal["wrong", "raises", "crashes", "hangs", "race", "not deterministic", "stale"]

CATALOGUE: dict[str, Seeded] = {}
"""Every fault by name."""

ACTIVE: list[str] = []
"""The active faults, outermost first: a script that reproduces one must enable it too."""


@dataclass(frozen=True)
class Seeded:
    """One kind of fault.  `with fault():` patches it into the compiler.

    what     what is wrong
    stage    the stage in which blame finds it
    shows    its effect on a call
    example  a small function that it affects
    """

    name: str
    what: str
    stage: str
    shows: Shows
    example: Callable[[], Example]
    patch: Patch

    def __call__(self) -> AbstractContextManager[Seeded]:
        return _seeded(self)

    def __repr__(self) -> str:
        return f"Seeded({self.name}: {self.what}; {self.shows}, in {self.stage})"


def seeds(
    stage: str, example: Callable[[], Example], shows: Shows = "wrong"
) -> Callable[[Callable[[], Iterator[None]]], Seeded]:
    """Register a generator function as a fault: it patches, yields, and restores."""

    def register(patching: Callable[[], Iterator[None]]) -> Seeded:
        name, what = patching.__name__, " ".join((patching.__doc__ or "").split())
        if name in CATALOGUE:
            raise ValueError(f"two faults are named {name}")
        fault = Seeded(name, what, stage, shows, example, contextmanager(patching))
        CATALOGUE[name] = fault
        return fault

    return register


@contextmanager
def _seeded(fault: Seeded) -> Iterator[Seeded]:
    torch_api.reset()
    ACTIVE.append(fault.name)
    try:
        with replaced(accelerators, "warm_key", lambda *facts: ""), fault.patch():
            yield fault
    finally:
        ACTIVE.remove(fault.name)
        torch_api.reset()


def now_in(module: ModuleType, name: str) -> Callable[..., Any]:
    """The current function of this name in a module, which another fault may have replaced."""
    function: Callable[..., Any] = getattr(module, name)
    return function


@contextmanager
def replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    """Replace an attribute while the block runs."""
    kept = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, kept)


@contextmanager
def entries(table: Mapping[Any, Any], new: Mapping[Any, Any]) -> Iterator[None]:
    """Replace entries of a table while the block runs."""
    patched: dict[Any, Any] = table  # type: ignore[assignment]
    kept = dict(patched)
    patched.update(new)
    try:
        yield
    finally:
        patched.clear()
        patched.update(kept)


@contextmanager
def several(*patches: AbstractContextManager[None]) -> Iterator[None]:
    """Apply several patches."""
    with ExitStack() as stack:
        for patch in patches:
            stack.enter_context(patch)
        yield


@contextmanager
def threads(least: int) -> Iterator[None]:
    """Use at least this many threads while the block runs."""
    before = torch.get_num_threads()
    torch.set_num_threads(max(before, least))
    try:
        yield
    finally:
        torch.set_num_threads(before)
