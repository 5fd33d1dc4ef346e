"""How a fault is put into the compiler, and out of it again.

A fault is on inside of a `with` block and nowhere else: no option, no environment variable and no
other function switches one on, and a block that is forgotten ends with its generator.  While one
is on, nothing is taken from the caches on disk or put there; before and after, TorchDynamo forgets
what it has compiled, so no code with a fault in it outlives the block.
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
"""The faults that are on, outermost first: a script that shows one has to switch it on too."""


@dataclass(frozen=True)
class Seeded:
    """One kind of fault.  `with fault():` puts it into the compiler.

    what     what is wrong
    stage    where blame finds it
    shows    what it does to a call
    example  a small function that meets it
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
    """Register a generator function, which patches, yields and takes back, as a fault."""

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
    """The function that a module has under a name now, which may be that of another fault."""
    function: Callable[..., Any] = getattr(module, name)
    return function


@contextmanager
def replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    """Another attribute for a while."""
    kept = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, kept)


@contextmanager
def entries(table: Mapping[Any, Any], new: Mapping[Any, Any]) -> Iterator[None]:
    """Other entries in a table for a while."""
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
    """All of them at once."""
    with ExitStack() as stack:
        for patch in patches:
            stack.enter_context(patch)
        yield


@contextmanager
def threads(least: int) -> Iterator[None]:
    """At least so many threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(max(before, least))
    try:
        yield
    finally:
        torch.set_num_threads(before)
