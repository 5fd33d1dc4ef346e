"""Why the compilations of a trace log happened: all failed guards, and why caches had no entry.

Torch logs the first failed guard of each version.  The others follow from what the log has: the
guards of the version, and the tensors and numbers that the new compilation saw.  Nothing in a log
is executed; a condition that cannot be decided is left out.
"""

from __future__ import annotations

import ast
import json
import operator
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from inductor_lab.compiler.capture.capture import Guard, Recompile, readable_source
from inductor_lab.compiler.capture.events import Event
from inductor_lab.stock.trace_index import kind_of

_EQUAL = re.compile(r"(?P<source>[LG]\[.*\S) == (?P<value>\S.*)")
_TENSOR = re.compile(
    r"check_tensor\((?P<source>.*?), \w+, DispatchKeySet\([^)]*\), torch\.(?P<dtype>\w+), "
    r".*?size=\[(?P<size>[^\]]*)\]"
)
_SIZE = re.compile(r"([LG]\[[^ ()]*?)\.size\(\)\[(\d+)\]")
_VALUE = re.compile(r"(?P<dtype>\w+)\[(?P<size>[\d, ]*)\]")
_LONGEST = 400
"""Characters of a condition that is decided."""


def all_failed(
    found: Sequence[Recompile],
    guards_of: Callable[[str], Iterable[Guard]],
    seen: Mapping[str, str],
) -> Iterator[Recompile]:
    """The logged failed guards, each followed by the other failed guards of the same version.

    `guards_of(compile_id)` are the guards of a version, and `seen` is what the new compilation saw
    (`causes.seen_values`).
    """
    for logged in found:
        yield logged
        known = {_plain(each.reason) for each in found if each.failed == logged.failed}
        for guard in guards_of(logged.failed):
            for source, reason in _failures(guard, seen):
                if _plain(reason) not in known:
                    known.add(_plain(reason))
                    yield Recompile(logged.compile_id, logged.failed, reason, guard.span,
                                    guard.kind, source, seen.get(source, ""))  # fmt: skip


def _plain(reason: str) -> str:
    return readable_source(reason)


def _failures(guard: Guard, seen: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """`(source, reason)` of what is false in a guard."""
    tensor, equal = _TENSOR.match(guard.code), _EQUAL.fullmatch(guard.code)
    if guard.kind == "TENSOR_MATCH" and tensor:
        value = _VALUE.fullmatch(seen.get(tensor["source"], ""))
        if value:
            yield from ((tensor["source"], each) for each in _tensor_failures(tensor, value))
    elif guard.kind in ("EQUALS_MATCH", "TRUE_MATCH", "FALSE_MATCH") and equal:
        if seen.get(equal["source"], equal["value"]) != equal["value"].strip():
            yield equal["source"], guard.code
    elif _SIZE.search(guard.code):
        if decided(guard.code, seen) is False:
            about = _SIZE.search(guard.code)
            yield (about[1] if about else ""), guard.code


def _tensor_failures(guard: re.Match[str], value: re.Match[str]) -> Iterator[str]:
    name = f"tensor '{guard['source']}'"
    if guard["dtype"] != value["dtype"]:
        yield f"{name} dtype mismatch. expected {guard['dtype']}, actual {value['dtype']}"
    expected, actual = (
        [part.strip() for part in text.split(",") if part.strip()]
        for text in (guard["size"], value["size"])
    )
    if len(expected) != len(actual):
        yield f"{name} rank mismatch. expected {len(expected)}, actual {len(actual)}"
        return
    for index, (was, now) in enumerate(zip(expected, actual, strict=True)):
        if was not in ("None", now):
            yield f"{name} size mismatch at index {index}. expected {was}, actual {now}"


# ---- conditions on sizes, without `eval` ------------------------------------------------------

_OPERATORS: Mapping[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Lt: operator.lt,
    ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge, ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}  # fmt: skip


def decided(condition: str, seen: Mapping[str, str]) -> bool | None:
    """Is a condition on sizes true for these tensors?  None if that is unknown.

    >>> decided("2 <= L['x'].size()[0]", {"L['x']": "float32[1, 3]"})
    False
    """
    if len(condition) > _LONGEST:
        return None
    try:
        text = _SIZE.sub(lambda size: str(_size(seen[size[1]], int(size[2]))), condition)
        value = _value(ast.parse(text, mode="eval").body)
    except (KeyError, IndexError, ValueError, SyntaxError, ArithmeticError, RecursionError):
        return None
    return value if isinstance(value, bool) else None


def _size(value: str, dim: int) -> int:
    found = _VALUE.fullmatch(value)
    if found is None:
        raise ValueError(value)
    return int(found["size"].split(",")[dim])


def _value(node: ast.expr) -> int | bool:
    match node:
        case ast.Constant(value=int(value)):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return -_value(inner)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            result: int = _OPERATORS[type(op)](_value(left), _value(right))
            return result
        case ast.Compare(left=left, ops=ops, comparators=others):
            values = [_value(each) for each in (left, *others)]
            if all(type(each) in _OPERATORS for each in ops):
                pairs = zip(ops, values, values[1:], strict=False)
                return all(_OPERATORS[type(op)](first, second) for op, first, second in pairs)
        case ast.BoolOp(op=ast.And(), values=parts):
            return all([_value(each) for each in parts])
        case ast.BoolOp(op=ast.Or(), values=parts):
            return any([_value(each) for each in parts])
    raise ValueError(ast.dump(node))


# ---- caches ------------------------------------------------------------------------------------

CACHE_ENTRIES = tuple(
    f"{cache}_cache_{answer}"
    for cache in ("fx_graph", "aotautograd")
    for answer in ("miss", "bypass")
)
"""The kinds of trace entries that have a reason."""


MOST_EARLIER = 32
"""Earlier entries that a key is compared with: a log may have thousands, with large keys."""


class CacheReasons:
    """Why stock's caches had no entry: the parts of the key that differ from the nearest of the
    last `MOST_EARLIER` entries."""

    def __init__(self) -> None:
        self._earlier: dict[str, deque[tuple[str, Mapping[str, str]]]] = {}
        self._first: dict[tuple[str, int], str] = {}

    def reasons(self, heard: Iterable[Event]) -> Iterator[str]:
        """One sentence for each miss and bypass, in order."""
        for event in heard:
            kind = kind_of(event.metadata)
            cache, _, answer = kind.partition("_cache_")
            known = _json(event.payload)
            if answer == "bypass":
                yield f"{cache}: bypassed: {known.get('cache_bypass_reason') or 'no reason given'}"
            elif answer == "miss":
                yield f"{cache}: {self._missing(cache, event.compile_id, known)}"

    def _missing(self, cache: str, compile_id: str, known: Mapping[str, Any]) -> str:
        parts = dict(_component(each) for each in known.get("components") or ())
        if not parts:
            return "missed: torch did not log the parts of its key"
        earlier = self._earlier.setdefault(cache, deque(maxlen=MOST_EARLIER))
        key = cache, hash(frozenset(parts.items()))
        same = self._first.setdefault(key, compile_id)
        if same != compile_id:
            return f"missed, with the key of {same}: its entry was not stored, or removed"
        nearest: tuple[int, str, list[str]] | None = None
        for other, before in earlier:
            names = sorted(n for n in parts.keys() | before.keys() if parts.get(n) != before.get(n))
            if nearest is None or len(names) < nearest[0]:
                nearest = len(names), other, names
        earlier.append((compile_id, parts))
        if nearest is None:
            return "missed: the log has no earlier entry to compare with"
        if not nearest[0]:
            return f"missed, with the key of {nearest[1]}: its entry was not stored, or removed"
        shown = ", ".join(nearest[2][:4]) + ", ..." * (len(nearest[2]) > 4)
        return f"missed: differs from {nearest[1]} in {shown}"


def _component(text: object) -> tuple[str, str]:
    """`[hash] name: value` → name and hash."""
    digest, _, rest = str(text).partition("] ")
    return rest.partition(": ")[0], digest


def _json(payload: object) -> dict[str, Any]:
    try:
        found = json.loads(str(payload))
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
