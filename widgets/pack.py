"""A document with each repeated text, list and set of names written once: what a page holds.

    [{"a": "sin", "b": ["cos"]}, {"a": "sin", "b": ["cos"]}]
    → {"shared": [["a", "b"], "sin", ["cos"]], "data": [["~:0", "~1", "~2"], ["~:0", "~1", "~2"]]}

`"~1"` stands for the value at that place of `shared` (in base 36), which names only values before
it.  A list that begins with `"~:0"` is an object with the names that stand there, one with `"~|"` a
text, by its lines, one with `"~#"` a text, by its form and the numbers that stand for each `~` of
it, one with `"~*"` a list of values, each with how often it follows itself.  A text that begins
with `~` gets another one in front.  Objects are made anew each time, since the explorer
keeps its state in them; but for those that hold nothing but texts, as attributes of a tree's
elements do.  `javascript/pack.js` reads it.
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
"""Those that are written as JSON writes them."""
REFERENCE = 6
"""About so many bytes of JSON are a reference with its comma."""
SHORT = 18
"""Shorter texts stand as they are: a form with its numbers would be no shorter."""


def packed(document: Any) -> dict[str, Any]:
    """The document as `{"shared", "data"}`: JSON data, mostly half as large."""
    packer = _Packer()
    packer.count(document)
    packer.place_texts()
    return {"data": packer.made(document), "shared": packer.shared}


def unpacked(packed: dict[str, Any]) -> Any:
    """The document again, as `pack.js` makes it.

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
    """Numbers equal values alike, counts them, and writes those that pay once."""

    def __init__(self) -> None:
        self.shared: list[Any] = []
        self._places: dict[int | None, str] = {}
        self._numbers: dict[Any, int] = {}
        self._counts: Counter[int] = Counter()

    def count(self, value: Any) -> int | None:
        """Note each text, list and set of names, every time that it stands somewhere.

        Returns the value's number; None if an object is inside.
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
            if not self._counts[number or 0]:  # where it stands again, a reference will
                for part in _parts(value):
                    self.count(part)
        else:
            number = self._number(value, [self.count(part) for part in _parts(value)])
        if number is not None and isinstance(value, str | list):
            self._counts[number] += 1
        return number

    def place_texts(self) -> None:
        """Those that stand in most places first: their references are the shortest."""
        texts = [key[1] for key in self._numbers if key[:1] == (str,)]
        for text in sorted(texts, key=lambda text: -self._counts[self._numbers[str, text]]):
            self.made(text)

    def made(self, value: Any) -> Any:
        """The value with references in it, or the reference to it."""
        return self._made(value)[1]

    def _made(self, value: Any) -> tuple[int | None, Any]:
        """The value's number, too."""
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
        """A reference where that is shorter, the value itself elsewhere."""
        times, size = self._counts[number or 0], _size(made)
        if number is None or times * size <= size + times * REFERENCE:
            return made
        self._places[number] = _digits(len(self.shared))
        self.shared.append(made)
        return f"~{self._places[number]}"

    def _text(self, value: str, made: list[Any]) -> Any:
        """By its lines or its form, if others have the same, or as it is."""
        if "\n" in value:
            return [LINES, *made]
        by_form = [FORM, *made]
        if made and made[0][:1] == "~" and made[0][1:2] != "~" and _size(by_form) < len(value):
            return by_form
        return f"~{value}" if value.startswith("~") else value

    def _object(self, value: dict[str, Any]) -> Any:
        """By its names' place and its values, if others have the same names."""
        names = list(value)
        inside = [self.made(inner) for inner in value.values()]
        place = self.made(names)
        if isinstance(place, list):
            return dict(zip(names, inside, strict=True))
        return [f"{NAMES}{place[1:]}", *inside]

    def _number(self, value: Any, parts: list[int | None]) -> int | None:
        """Equal for equal values of one type; None if an object is inside."""
        if type(value) is int and value >= 0:
            return ~value  # no table is needed for the many numbers of things
        if isinstance(value, list | dict):
            if None in parts:
                return None
            key: Any = ("{}" if isinstance(value, dict) else "[]", *parts)
        else:
            key = (type(value), value)
        return self._numbers.setdefault(key, len(self._numbers) + 1)


def _is_shared(value: dict[str, Any]) -> bool:
    """Attributes of an element in a tree: texts only. A page keeps its own things in others."""
    return all(isinstance(inner, str) for inner in value.values())


def _digits(number: int) -> str:
    """In base 36, as `parseInt` reads it: `_digits(71)` is `1z`."""
    more, last = divmod(number, 36)
    return (_digits(more) if more else "") + "0123456789abcdefghijklmnopqrstuvwxyz"[last]


def _parts(value: Any) -> list[Any]:
    """What a list holds; the lines of a text of several; the form of a line, and its numbers."""
    if isinstance(value, list):
        return value
    if not isinstance(value, str):
        return []
    if "\n" in value:
        return value.split("\n")
    numbers = NUMBER.findall(value) if len(value) > SHORT and "~" not in value else []
    return [NUMBER.sub("~", value), *map(int, numbers)] if numbers else []


def _runs(made: list[Any], numbers: list[int | None]) -> list[Any]:
    """The list by its runs, if they are long enough to pay; `numbers` say which parts are equal."""
    found: list[Any] = [RUNS]
    for at, (part, number) in enumerate(zip(made, numbers, strict=True)):
        if at and number is not None and number == numbers[at - 1]:
            found[-1] += 1
        else:
            found += [part, 1]
    return found if 2 * len(found) < len(made) else made


def _size(made: Any) -> int:
    """About how many bytes of JSON that is."""
    if isinstance(made, list):
        return 2 + sum(_size(inner) + 1 for inner in made)
    if isinstance(made, dict):
        return 2 + sum(_size(name) + _size(inner) + 2 for name, inner in made.items())
    return len(made) + 2 if isinstance(made, str) else 3
