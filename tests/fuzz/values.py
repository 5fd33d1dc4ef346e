"""What a random program has made so far: real tensors under names, made by running its lines.

Rounding may differ between compilers, so a line that amplifies rounding (`floor`, `<`, `argmax`, an
index) is drawn only for *exact* values: those that no order of additions can change.  A storage is
exact from birth until something inexact is written to it.
"""

from __future__ import annotations

import copy
import math
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch

GRID = 64
"""Exact floats are multiples of 1 / 64 ..."""
REACH = 2048.0
"""... below this, so that sums of hundreds of products are still exact in float32."""
LIMIT = 1e4
"""No value may be larger, so that errors stay small."""
MOST_ELEMENTS = 3000
ENOUGH = 3
"""Other calls in which nothing raises."""
REFUSALS = (
    RuntimeError, IndexError, ValueError, TypeError, AttributeError, AssertionError,
    ArithmeticError,
)  # fmt: skip
"""What torch raises for operands that do not fit."""
OUTSIDE = re.compile(
    r"(?!Dimension).*(out of (range|bounds|DATA)|valid range|Expected idx|Class values must)"
)
"""What eager's operators say of an index that is out of range, each in words of its own."""


def is_outside(refused: BaseException) -> bool:
    """Is it raised for an index in a tensor, which a compiler cannot know?"""
    return isinstance(refused, REFUSALS) and bool(OUTSIDE.match(str(refused)))


@dataclass
class Values:
    """The variables of a program being drawn."""

    lines: list[str] = field(default_factory=list)
    env: dict[str, Any] = field(
        default_factory=lambda: {"torch": torch, "F": torch.nn.functional, "math": math}
    )
    names: list[str] = field(default_factory=list)
    inexact: set[int] = field(default_factory=set)
    kept: list[torch.Tensor] = field(default_factory=list)
    parameters: set[int] = field(default_factory=set)
    """Storages to which a program writes without recording gradients."""
    others: list[dict[str, Any]] = field(default_factory=list)
    """The variables in other calls, those in which no line has raised."""
    raised: str = ""
    """The variable of the line that raises in the only call, if there is such a line."""

    def __getitem__(self, name: str) -> torch.Tensor:
        return self.env[name]

    def where(self, fits: Callable[[torch.Tensor], bool]) -> list[str]:
        """Names of the tensors that fit, the latest first (shrinking prefers what comes first)."""
        return [name for name in reversed(self.names) if fits(self.env[name])]

    def exact(self, tensor: torch.Tensor) -> bool:
        if _place(tensor) in self.inexact or tensor.dtype in (torch.bfloat16, torch.float16):
            return False
        if not tensor.is_floating_point():
            return True
        scaled = tensor.double() * GRID
        return bool((scaled == scaled.round()).all() and (tensor.abs() < REACH).all())

    def add(
        self, text: str, sources: tuple[str, ...], exactly: bool, may_raise: bool = False
    ) -> bool:
        """Append `name = text` if it runs and its result is tame, or it raises as it may."""
        name = f"v{len(self.lines)}"
        made = _made(text, self.env)
        if made is None:
            return may_raise and self._raises(f"{name} = {text}", name)
        elsewhere = [(env, _made(text, env)) for env in self.others]
        fit = [env for env, other in elsewhere if other is not None]
        if not self._enough(fit):
            return False
        self.others = fit
        for env, other in elsewhere:
            env[name] = other
        self.lines.append(f"{name} = {text}")
        self.env[name] = made
        self.names.append(name)
        self.kept.append(made)
        if not exactly or not all(self.exact(self[s]) for s in sources):
            if _place(made) not in {_place(self[s]) for s in sources}:
                self.inexact.add(_place(made))
        return True

    def write(
        self,
        text: str,
        target: str,
        sources: tuple[str, ...],
        may_raise: bool = False,
        overlapping: bool = False,
    ) -> bool:
        """Append a statement that writes to `target`, if it runs and does no harm, or may raise.

        What is left where elements share memory, torch does not say: such a target must be
        `overlapping` on purpose, and all elements of one place be given one value.
        """
        tensor = self[target]
        if overlaps(tensor) and not (overlapping and in_any_order(text, target, self.env)):
            return False
        storage, before = tensor.untyped_storage(), tensor.untyped_storage().clone()
        place = (tensor.storage_offset(), tensor.shape, tensor.stride())
        exactly = all(self.exact(self[s]) for s in sources)
        self.kept.append(tensor.detach())  # `x.data = y` drops a storage, and none gets its place
        written = partial(_written, text, target, overlapping=overlapping)
        elsewhere = [env for env in map(copied, self.others) if written(env)]
        if not self._enough(elsewhere) or not written(self.env):
            storage.resize_(before.nbytes())
            storage.copy_(before)
            with torch.no_grad():
                tensor.set_(storage, *place)
            return may_raise and self._raises(text, target)
        self.others = elsewhere
        recorded = storage._cdata not in self.parameters or ".data=" in text
        self.lines.append(text if recorded else f"with torch.no_grad(): {text}")
        if not exactly or not all(self.exact(self[s]) for s in (*sources, target)):
            self.inexact.add(_place(self[target]))
        return True

    def require(self, text: str) -> bool:
        """Append a statement that may raise and does nothing else."""
        fit = [env for env in self.others if _runs(text, env)]
        if not _runs(text, self.env) or not self._enough(fit):
            return False
        self.others = fit
        self.lines.append(text)
        return True

    def _raises(self, line: str, name: str) -> bool:
        """Append a line that raises for an index that is out of range; the program returns `name`,
        so that no compiler leaves it out."""
        if self.others:
            return False
        try:
            exec(line, copied(self.env))
        except REFUSALS as refused:
            if is_outside(refused):
                self.lines.append(line)
                self.raised = name
        return bool(self.raised)

    def _enough(self, fit: list[dict[str, Any]]) -> bool:
        """May a line raise in all calls but these?"""
        return len(fit) == len(self.others) or len(fit) >= ENOUGH


def _made(text: str, env: dict[str, Any]) -> torch.Tensor | None:
    """The value of an expression, if it has one that is tame."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made = eval(text, env)
    except REFUSALS:
        return None
    return made if isinstance(made, torch.Tensor) and _tame(made) else None


def _runs(text: str, env: dict[str, Any]) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exec(text, env)
    except REFUSALS:
        return False
    return True


def _written(text: str, target: str, env: dict[str, Any], overlapping: bool) -> bool:
    apart = overlapping or not overlaps(env[target])
    return apart and _runs(text, env) and _tame(env[target])


def in_any_order(text: str, target: str, env: dict[str, Any]) -> bool:
    """Does a write give the elements of one place one value, whichever is written first?"""
    there = copied(env)
    own = {**copied(env), target: env[target].detach().contiguous().clone()}
    both = _runs(text, there) and _runs(text, own)
    return both and torch.equal(there[target], own[target])


def copied(env: dict[str, Any]) -> dict[str, Any]:
    """Variables with memory of their own, shared among them as before."""
    tensors = {n: value.detach() for n, value in env.items() if isinstance(value, torch.Tensor)}
    return {**env, **copy.deepcopy(tensors)}


def _place(tensor: torch.Tensor) -> int:
    """The storage itself: its address changes where a statement resizes it, and is used again."""
    return int(tensor.untyped_storage()._cdata)


def overlaps(tensor: torch.Tensor) -> bool:
    """Do two elements share memory?"""
    places = torch.arange(len(tensor.untyped_storage()) // tensor.itemsize)
    seen = places.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())
    return len(seen.unique()) < tensor.numel()


def _tame(tensor: torch.Tensor) -> bool:
    if tensor.numel() > MOST_ELEMENTS or tensor.dim() > 4 or tensor.dtype.is_complex:
        return False
    if not tensor.is_floating_point():
        return True
    return bool(tensor.isfinite().all()) and (
        tensor.numel() == 0 or float(tensor.abs().max()) < LIMIT
    )
