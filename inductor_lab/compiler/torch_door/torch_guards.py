"""The guards that fail when TorchDynamo compiles a function again: part of the interface to torch's
private names.

Torch reports the first guard of each version that fails.  Here all guards of each version are
evaluated, with torch's own guard objects.
"""

from __future__ import annotations

from inductor_lab.compiler.torch_door.failed_guard import FailedGuard
from inductor_lab.compiler.torch_door.torch_names import missing, optional

# isort: split
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from types import FrameType
from typing import Any

import torch

_reporting = optional("torch._dynamo.guards.get_and_maybe_log_recompilation_reasons")
_Relational = optional("torch._C._dynamo.guards.RelationalGuard")
_LOCAL = re.compile(r"L\[['\"](\w+)['\"]\]")
_SIZES = re.compile(r"\bsize=\[(?P<sizes>[^\]]*)\]")
_SIZE_MISMATCH = re.compile(r"size mismatch at index (?P<index>\d+)\.")
_SIZED = re.compile(r"(?P<source>[LG]\[[^ ]*?)\.(?:size|stride|storage_offset)\(\)")
MOST_LETTERS = 60
"""Longer values are cut."""


def failed_guards() -> tuple[FailedGuard, ...]:
    """All failed guards of all versions, while torch reports `recompile_reasons`; else ().

    Torch gives a listener only the first failed guard.  The versions and the local variables of the
    call are read from the frame of the reporting function.
    """
    if missing("all failed guards"):
        return ()
    frame: FrameType | None = sys._getframe()
    while frame is not None and frame.f_code is not _reporting.__code__:
        frame = frame.f_back
    if frame is None:
        return ()
    entries, called = frame.f_locals.get("cache_entries"), frame.f_locals.get("frame")
    if called is None:
        return ()
    found: list[FailedGuard] = []
    for entry in entries or ():
        with suppress(AttributeError, TypeError):  # the code was invalidated: it has no guards
            found += _Version(entry, called.f_locals).failed()
    return tuple(found)


class _Version:
    """One compiled version of a function, and the local variables of a call."""

    def __init__(self, entry: Any, values: Mapping[str, Any]) -> None:
        self.compile_id = str(entry.compile_id)
        self.values = values
        self.manager = entry.guard_manager
        self.globals = self.manager.global_scope
        self.root_failed = False
        self.names = {"L": values, "G": self.globals["G"], **self.manager.closure_vars}

    def failed(self) -> list[FailedGuard]:
        found = list(dict.fromkeys(self._below(self.manager.root, ())))
        if not found:
            first = self.manager.check_verbose(self.values)
            if not first.result:
                texts = [str(text) for text in first.verbose_code_parts]
                false = [text for text in texts if self._is_false(text)] or texts[:1]
                found = [self._guard("", "", text, _stack(first)) for text in false]
        return found

    def _below(self, manager: Any, above: tuple[str, ...]) -> Iterator[FailedGuard]:
        """The failed guards of a manager; of those that it contains only if all of its hold."""
        source = manager.get_source()
        known, value = self._value(source)
        if not known:
            return
        path, report, failed = (*above, source), None, False
        for leaf in manager.get_leaf_guards():
            if isinstance(leaf, _Relational):
                yield from self._conditions(leaf)
            elif not _holds(leaf, value):
                report = report or self._alone(path)
                yield from self._of_leaf(leaf, source, value, report, first=not failed)
                failed = True
        if failed and above:  # the guards of the root are about torch's state
            return
        self.root_failed |= failed
        for child in manager.get_child_managers():
            yield from self._below(child, path)
        if not above and hasattr(manager, "get_epilogue_lambda_guards"):
            for leaf in manager.get_epilogue_lambda_guards():
                yield from self._conditions(leaf)

    def _of_leaf(
        self, leaf: Any, source: str, value: Any, report: Any, first: bool
    ) -> Iterator[FailedGuard]:
        """A failed guard in words; `report` is torch's about the first one of this source."""
        texts = [str(text) for text in leaf.verbose_code_parts()]
        words = [str(text) for text in report.verbose_code_parts] if report and first else []
        kind = type(leaf).__name__
        comment = texts[0].partition("  # ")[2]
        if kind == "TENSOR_MATCH":
            texts = list(_mismatches(texts[0], words, source, value)) or texts
        elif len(texts) > 1:
            texts = [text for text in texts if self._is_false(text)] or texts[:1]
        elif len(words) == 1:
            texts = words
        for text in texts:
            shown = text if "  # " in text or not comment else f"{text}  # {comment}"
            yield self._guard(kind, source, shown, _stack(report))

    def _alone(self, path: tuple[str, ...]) -> Any:
        """Torch's report about the guards of the last source of `path` only; None if they hold.

        It is the only place where torch keeps the stack of a guard.
        """
        if self.root_failed:  # torch would report that
            return None
        clone = self.manager.root.clone_manager(lambda manager: manager.get_source() in path)
        report = clone.check_verbose(self.values) if clone is not None else None
        return None if report is None or report.result else report

    def _conditions(self, leaf: Any) -> Iterator[FailedGuard]:
        """False conditions of a guard about several objects, such as symbolic sizes."""
        for text in map(str, leaf.verbose_code_parts()):
            if self._is_false(text):
                about = _SIZED.search(text)
                source = about["source"] if about else ""
                yield self._guard(type(leaf).__name__, source, text, ())

    def _guard(self, kind: str, source: str, text: str, stack: Any) -> FailedGuard:
        value = self._value(source)[1] if source else None
        source = source if source not in ("L", "G") else ""
        shown = short(value) if source else ""
        return FailedGuard(self.compile_id, kind, source, _LOCAL.sub(r"\1", text), shown, stack)

    def _value(self, source: str) -> tuple[bool, Any]:
        """Is the object known, and which is it?"""
        if not source:
            return True, None
        try:
            return True, eval(source, self.globals, self.names)
        except Exception:  # an attribute or key of an earlier call is missing in this one
            return False, None

    def _is_false(self, text: str) -> bool:
        try:
            return eval(text.partition("#")[0].strip(), self.globals, self.names) is False
        except Exception:  # a description and not an expression
            return False


def short(value: Any) -> str:
    """A value in a few letters; a tensor as `float32[4, 3]`."""
    if isinstance(value, torch.Tensor):
        return f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}"
    if value is None or isinstance(value, bool | int | float | complex | str | torch.dtype):
        text = repr(value)
        return text if len(text) <= MOST_LETTERS else f"{text[:MOST_LETTERS]}..."
    return f"<{type(value).__name__}>"


def _stack(report: Any) -> tuple[tuple[str, int, str, str], ...]:
    frames = getattr(report, "user_stack", None) or ()
    return tuple((f.filename, int(f.lineno or 0), f.name, f.line or "") for f in frames)


def _mismatches(
    guard: str, message: list[str], source: str, value: object
) -> Iterator[str]:
    """Torch's message about a tensor, and the same for each further size that differs."""
    yield from message
    at = _SIZE_MISMATCH.search(message[0]) if message else None
    sizes = _SIZES.search(guard)
    if sizes is None or not isinstance(value, torch.Tensor):
        return
    expected = [size.strip() for size in sizes["sizes"].split(",") if size.strip()]
    if len(expected) != value.dim():
        return
    for index, (was, now) in enumerate(zip(expected, value.shape, strict=True)):
        if index > (int(at["index"]) if at else -1) and was not in ("None", str(now)):
            yield f"tensor '{source}' size mismatch at index {index}. expected {was}, actual {now}"


def _holds(leaf: Any, value: Any) -> bool:
    """Does a guard hold?  One that raises does not: torch compiles anew then."""
    try:
        return bool(leaf(value))
    except Exception:
        return False
