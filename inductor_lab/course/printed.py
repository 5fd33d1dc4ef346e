"""Print in the notebook's language, in lines that fit into a notebook."""

from __future__ import annotations

import re
from functools import lru_cache

from inductor_lab.course.language import language, one_of
from inductor_lab.notebook.columns import folded
from inductor_lab.notebook.language import translate

_LATIN = re.compile("[A-Za-z]")
_APART = re.compile(": +|; |  +")


def show(*things: object) -> None:
    """Print each object on separate lines; long lines are wrapped at words.

    A pair of texts is a text in English and in Chinese.  The compiler's text of an object is
    translated if the language is Chinese; names and code are not.
    """
    print("\n".join(folded(text_of(thing)) for thing in things))


def text_of(thing: object) -> str:
    """Its text in the notebook's language."""
    match thing:
        case (str() as english, str() as chinese):
            return one_of((english, chinese))
    lines = str(thing).split("\n")
    return "\n".join(map(_printed_line, lines) if language() == "zh" else lines)


def _printed_line(line: str) -> str:
    """The translated line with its indentation; code and names are not translated."""
    inside = line.lstrip(" ")
    return line[: len(line) - len(inside)] + _least_english(inside) if inside else line


@lru_cache(maxsize=1024)
def _least_english(text: str) -> str:
    """The translation that leaves the least text in English.

    A sentence may be a line, a column, or a part after a colon or a semicolon; but it may also
    contain colons and semicolons.
    """
    readings = [translate(text)]
    for apart in _APART.finditer(text):
        before, after = text[: apart.start()], text[apart.end() :]
        readings.append(translate(before) + apart[0] + _least_english(after))
    return min(readings, key=lambda reading: len(_LATIN.findall(reading)))
