"""Compression of a document: repeated texts, lists and sets of keys are written once.

    [{"a": "sin", "b": ["cos"]}, {"a": "sin", "b": ["cos"]}]
    → {"shared": [["a", "b"], "sin", ["cos"]], "data": [["~:0", "~1", "~2"], ["~:0", "~1", "~2"]]}

`"~1"` refers to the value at index 1 (in base 36) of `shared`; an entry of `shared` refers only to
earlier entries.  Lists with these first elements are encoded values:

    "~:0"   an object; its keys are at index 0 of `shared`
    "~|"    a text, split into lines
    "~#"    a text, as a template and the numbers that replace each `~` in it
    "~*"    a list in run-length encoding: values, each with its repeat count

A text that begins with `~` is escaped with another `~`.  Objects are not shared, since the explorer
keeps state in them, except for objects that contain only texts, such as the attributes of a tree.
`javascript/pack.js` decodes it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import islice
from operator import eq
from typing import Any

LINES = "~|"
FORM = "~#"
NAMES = "~:"
RUNS = "~*"
MARK = 5
"""Bytes of JSON of one of these first elements, with its comma."""
NUMBER = re.compile(r"(?<!\d)(?:0|[1-9]\d{0,8})(?!\d)")
"""Integers in the notation of JSON."""
REFERENCE = 6
"""Approximate size of a reference with its comma, in bytes of JSON."""
LIST, SCALAR = 2, 3
"""The same of brackets, and of a number or a constant."""
SHORT = 18
"""Shorter texts are not encoded: a template with its numbers would not be shorter."""


def packed(document: Any) -> dict[str, Any]:
    """The document as `{"shared", "data"}`: JSON data, usually about half the size."""
    packer = _Packer()
    packer.count(document)
    packer.place_texts()
    return {"data": packer.made(document), "shared": packer.shared}


def unpacked(packed: dict[str, Any]) -> Any:
    """Decode a packed document, as `pack.js` does.

    >>> unpacked(packed({"a": ["~", 1, "long enough"], "b": "long enough"}))
    {'a': ['~', 1, 'long enough'], 'b': 'long enough'}
    """
    values: list[Any] = []

    def made(value: Any) -> Any:
        if isinstance(value, str):
            return value if value[:1] != "~" else value[1:] if value[1] == "~" else (
                values[int(value[1:], 36)])  # fmt: skip
        if isinstance(value, dict):
            return {name: made(inner) for name, inner in value.items()}
        if not isinstance(value, list):
            return value
        first = value[0] if value and isinstance(value[0], str) else ""
        if first == LINES:
            return "\n".join(map(made, value[1:]))
        if first == FORM:
            numbers = iter(value[2:])
            return re.sub("~", lambda _: str(next(numbers)), made(value[1]))
        if first.startswith(NAMES):
            return dict(zip(values[int(first[2:], 36)], map(made, value[1:]), strict=True))
        if first == RUNS:
            pairs = zip(value[1::2], value[2::2], strict=True)
            return [made(inner) for inner, times in pairs for _ in range(times)]
        return [made(inner) for inner in value]

    for shared in packed["shared"]:
        values.append(made(shared))
    return made(packed["data"])


class _Packer:
    """Gives equal values the same number, counts them, and shares those that save space.

    The number of a value is None if it contains an object.  `_seen` has the numbers of the lists
    and objects of the document, by `id`, so that a list that is shared already is not read again.
    """

    def __init__(self) -> None:
        self.shared: list[Any] = []
        self._places: dict[int | None, str] = {}
        self._numbers: dict[Any, int] = {}
        self._counts: Counter[int] = Counter()
        self._seen: dict[int, int | None] = {}

    def count(self, value: Any) -> int | None:
        """Count the occurrences of each text, list and set of keys; returns the value's number."""
        if isinstance(value, str):
            return self._counted_text(value)
        if isinstance(value, list):
            known = self._seen.get(id(value))
            if known is not None:  # later occurrences become references
                self._counts[known] += 1
                return known
            parts = value if _is_numbers(value) else [*map(self.count, value)]
        elif isinstance(value, dict):
            parts = [self._counted_names(value), *map(self.count, value.values())]
            if not _is_shared(value):
                return None
        else:
            return self._number(value)
        number = self._seen[id(value)] = self._number_of_parts(value, parts)
        if number is not None:
            self._counts[number] += 1
        return number

    def _counted_names(self, value: dict[str, Any]) -> int:
        number = self._number_of_parts([], [*map(self._counted_text, value)]) or 0
        self._counts[number] += 1
        return number

    def _counted_text(self, value: str) -> int:
        number = self._number(value)
        if not self._counts[number]:  # later occurrences become references
            for part in _parts(value):
                self.count(part)
        self._counts[number] += 1
        return number

    def place_texts(self) -> None:
        """Share the most frequent texts first, so that their references are the shortest."""
        texts = [key[1] for key in self._numbers if key[:1] == (str,)]
        for text in sorted(texts, key=lambda text: -self._counts[self._numbers[str, text]]):
            self.made(text)

    def made(self, value: Any) -> Any:
        """The encoded value, or a reference to it."""
        return self._made(value)[0]

    def _made(self, value: Any) -> tuple[Any, int]:
        """The encoded value, or a reference to it, and its size."""
        if isinstance(value, str):
            return self._shared(self._number(value), lambda: self._text(value))
        if isinstance(value, list):
            return self._shared(self._seen[id(value)], lambda: self._list(value))
        if isinstance(value, dict):
            if _is_shared(value):
                return self._shared(self._seen[id(value)], lambda: self._object(value))
            return self._object(value)
        return value, SCALAR

    def _shared(
        self, number: int | None, make: Callable[[], tuple[Any, int]]
    ) -> tuple[Any, int]:
        """A reference if that saves space, otherwise the value itself."""
        if number in self._places:
            return _reference(self._places[number])
        made, size = make()
        times = self._counts[number] if number is not None else 0
        if number is None or times * size <= size + times * REFERENCE:
            return made, size
        self._places[number] = _digits(len(self.shared))
        self.shared.append(made)
        return _reference(self._places[number])

    def _list(self, value: list[Any]) -> tuple[Any, int]:
        if _is_numbers(value):
            return _runs(value, value, LIST + (SCALAR + 1) * len(value))
        made, size = [], LIST
        for part in value:
            one, length = self._made(part)
            made.append(one)
            size += length + 1
        if not any(map(eq, made, islice(made, 1, None))):
            return made, size
        return _runs(made, [*map(self._known, value)], size)

    def _known(self, value: Any) -> int | None:
        """The number of a value that was counted."""
        if isinstance(value, list | dict):
            return self._seen.get(id(value))
        return self._number(value)

    def _text(self, value: str) -> tuple[Any, int]:
        """Encode a text by lines or by template if parts are shared; otherwise unchanged."""
        parts = [*map(self._made, _parts(value))]
        made, size = [part[0] for part in parts], LIST + sum(part[1] + 1 for part in parts)
        if "\n" in value:
            return [LINES, *made], size + MARK
        if made and made[0][:1] == "~" and made[0][1:2] != "~" and size + MARK < len(value):
            return [FORM, *made], size + MARK
        plain = f"~{value}" if value.startswith("~") else value
        return plain, len(plain) + 2

    def _object(self, value: dict[str, Any]) -> tuple[Any, int]:
        """Encode an object by a reference to its keys, if they are shared, and its values."""
        inside = [*map(self._made, value.values())]
        names = self._number_of_parts([], [*map(self._number, value)])
        place, _ = self._shared(names, lambda: self._list([*value]))
        size = LIST + sum(part[1] + 1 for part in inside)
        if isinstance(place, list):
            named = sum(self._made(name)[1] + 1 for name in value)
            made = {name: part[0] for name, part in zip(value, inside, strict=True)}
            return made, size + named
        key = f"{NAMES}{place[1:]}"
        return [key, *(part[0] for part in inside)], size + len(key) + 3

    def _number(self, value: Any) -> int:
        """A number that is equal for equal texts, numbers and constants of one type."""
        if type(value) is int and value >= 0:
            return ~value  # the many numbers of things need no table
        return self._numbers.setdefault((type(value), value), len(self._numbers) + 1)

    def _number_of_parts(self, value: Any, parts: Sequence[int | None]) -> int | None:
        """The same for a list or an object, by the numbers of its parts."""
        if None in parts:
            return None
        kind = "{}" if isinstance(value, dict) else "0" if parts is value else "[]"
        return self._numbers.setdefault((kind, *parts), len(self._numbers) + 1)


def _is_numbers(value: list[Any]) -> bool:
    """Has a list only integers?  There are many of them: the things of each line."""
    return set(map(type, value)) == {int}


def _is_shared(value: dict[str, Any]) -> bool:
    """Is it an object with only texts, such as attributes of a tree?"""
    return all(isinstance(inner, str) for inner in value.values())


def _digits(number: int) -> str:
    """In base 36, as `parseInt` reads it: `_digits(71)` is `1z`."""
    more, last = divmod(number, 36)
    return (_digits(more) if more else "") + "0123456789abcdefghijklmnopqrstuvwxyz"[last]


def _parts(value: Any) -> list[Any]:
    """The elements of a list; the lines of a text; the template of a line and its numbers."""
    if isinstance(value, list):
        return value
    if not isinstance(value, str):
        return []
    if "\n" in value:
        return value.split("\n")
    numbers = NUMBER.findall(value) if len(value) > SHORT and "~" not in value else []
    return [NUMBER.sub("~", value), *map(int, numbers)] if numbers else []


def _runs(made: list[Any], numbers: Sequence[int | None], size: int) -> tuple[list[Any], int]:
    """Run-length encode a list if that saves space, and its size; equal parts have equal
    `numbers`."""
    found: list[Any] = [RUNS]
    for at, (part, number) in enumerate(zip(made, numbers, strict=True)):
        if at and number is not None and number == numbers[at - 1]:
            found[-1] += 1
        else:
            found += [part, 1]
    return (found, _size(found)) if 2 * len(found) < len(made) else (made, size)


def _reference(place: str) -> tuple[str, int]:
    return f"~{place}", len(place) + 3


def _size(made: Any) -> int:
    """Approximate size in bytes of JSON."""
    if isinstance(made, list):
        return LIST + sum(_size(inner) + 1 for inner in made)
    if isinstance(made, dict):
        return LIST + sum(_size(name) + _size(inner) + 2 for name, inner in made.items())
    return len(made) + 2 if isinstance(made, str) else SCALAR
