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
from typing import Any

LINES = "~|"
FORM = "~#"
NAMES = "~:"
RUNS = "~*"
NUMBER = re.compile(r"(?<!\d)(?:0|[1-9]\d{0,8})(?!\d)")
"""Integers in the notation of JSON."""
REFERENCE = 6
"""Approximate size of a reference with its comma, in bytes of JSON."""
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
    """Gives equal values the same number, counts them, and shares those that save space."""

    def __init__(self) -> None:
        self.shared: list[Any] = []
        self._places: dict[int | None, str] = {}
        self._numbers: dict[Any, int] = {}
        self._counts: Counter[int] = Counter()

    def count(self, value: Any) -> int | None:
        """Count the occurrences of each text, list and set of keys.

        Returns the value's number; None if it contains an object.
        """
        if isinstance(value, dict):
            parts = [self.count(list(value)), *map(self.count, value.values())]
            if not _is_shared(value):
                return None
            number = self._number(value, parts)
            self._counts[number or 0] += 1
            return number
        if isinstance(value, str):
            number = self._number(value, [])
            if not self._counts[number or 0]:  # later occurrences become references
                for part in _parts(value):
                    self.count(part)
        else:
            number = self._number(value, [self.count(part) for part in _parts(value)])
        if number is not None and isinstance(value, str | list):
            self._counts[number] += 1
        return number

    def place_texts(self) -> None:
        """Share the most frequent texts first, so that their references are the shortest."""
        texts = [key[1] for key in self._numbers if key[:1] == (str,)]
        for text in sorted(texts, key=lambda text: -self._counts[self._numbers[str, text]]):
            self.made(text)

    def made(self, value: Any) -> Any:
        """The encoded value, or a reference to it."""
        return self._made(value)[1]

    def _made(self, value: Any) -> tuple[int | None, Any]:
        """The value's number, and the encoded value."""
        if isinstance(value, dict):
            if not _is_shared(value):
                return None, self._object(value)
            inner = [self._made(list(value))[0], *(self._made(v)[0] for v in value.values())]
            number = self._number(value, inner)
            if number in self._places:
                return number, f"~{self._places[number]}"
            return number, self._placed(number, self._object(value))
        if isinstance(value, str):
            number = self._number(value, [])
            if number in self._places:
                return number, f"~{self._places[number]}"
        parts = [self._made(part) for part in _parts(value)]
        number = self._number(value, [part[0] for part in parts])
        if number in self._places:
            return number, f"~{self._places[number]}"
        made: Any = [part[1] for part in parts]
        if isinstance(value, str):
            made = self._text(value, made)
        elif isinstance(value, list):
            made = _runs(made, [part[0] for part in parts])
        else:
            return number, value
        return number, self._placed(number, made)

    def _placed(self, number: int | None, made: Any) -> Any:
        """A reference if that saves space, otherwise the value itself."""
        times, size = self._counts[number or 0], _size(made)
        if number is None or times * size <= size + times * REFERENCE:
            return made
        self._places[number] = _digits(len(self.shared))
        self.shared.append(made)
        return f"~{self._places[number]}"

    def _text(self, value: str, made: list[Any]) -> Any:
        """Encode a text by lines or by template if parts are shared; otherwise unchanged."""
        if "\n" in value:
            return [LINES, *made]
        by_form = [FORM, *made]
        if made and made[0][:1] == "~" and made[0][1:2] != "~" and _size(by_form) < len(value):
            return by_form
        return f"~{value}" if value.startswith("~") else value

    def _object(self, value: dict[str, Any]) -> Any:
        """Encode an object by a reference to its keys, if they are shared, and its values."""
        names = list(value)
        inside = [self.made(inner) for inner in value.values()]
        place = self.made(names)
        if isinstance(place, list):
            return dict(zip(names, inside, strict=True))
        return [f"{NAMES}{place[1:]}", *inside]

    def _number(self, value: Any, parts: list[int | None]) -> int | None:
        """A number that is equal for equal values of one type; None if it contains an object."""
        if type(value) is int and value >= 0:
            return ~value  # the many numbers of things need no table
        if isinstance(value, list | dict):
            if None in parts:
                return None
            key: Any = ("{}" if isinstance(value, dict) else "[]", *parts)
        else:
            key = (type(value), value)
        return self._numbers.setdefault(key, len(self._numbers) + 1)


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


def _runs(made: list[Any], numbers: list[int | None]) -> list[Any]:
    """Run-length encode a list if that saves space; equal parts have equal `numbers`."""
    found: list[Any] = [RUNS]
    for at, (part, number) in enumerate(zip(made, numbers, strict=True)):
        if at and number is not None and number == numbers[at - 1]:
            found[-1] += 1
        else:
            found += [part, 1]
    return found if 2 * len(found) < len(made) else made


def _size(made: Any) -> int:
    """Approximate size in bytes of JSON."""
    if isinstance(made, list):
        return 2 + sum(_size(inner) + 1 for inner in made)
    if isinstance(made, dict):
        return 2 + sum(_size(name) + _size(inner) + 2 for name, inner in made.items())
    return len(made) + 2 if isinstance(made, str) else 3
