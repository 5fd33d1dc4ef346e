"""What a cell of the course prints, in lines that fit into a notebook, in its language."""

from __future__ import annotations

import re
from functools import lru_cache

from inductor_lab.course.language import language, one_of
from inductor_lab.notebook.columns import folded
from inductor_lab.notebook.language import translate

_LATIN = re.compile("[A-Za-z]")
_APART = re.compile(": +|; |  +")


def show(*things: object) -> None:
    """`print`, each thing in lines of its own; a long line goes on below itself at a word.

    A pair of texts is one in English and in Chinese.  What the compiler says in an object's text
    is told in Chinese where that is spoken; names and code stay as they are.
    """
    print("\n".join(folded(_text(thing)) for thing in things))


def _text(thing: object) -> str:
    match thing:
        case (str() as english, str() as chinese):
            return one_of((english, chinese))
    lines = str(thing).split("\n")
    return "\n".join(map(_told, lines) if language() == "zh" else lines)


def _told(line: str) -> str:
    """A line with its indentation; code and names have no Chinese and stay as they are."""
    inside = line.lstrip(" ")
    return line[: len(line) - len(inside)] + _least_english(inside) if inside else line


@lru_cache(maxsize=1024)
def _least_english(text: str) -> str:
    """Sentences stand alone, in a column, or behind colons and semicolons, which they may have
    themselves: of all readings the one that leaves least in English."""
    readings = [translate(text)]
    for apart in _APART.finditer(text):
        before, after = text[: apart.start()], text[apart.end() :]
        readings.append(translate(before) + apart[0] + _least_english(after))
    return min(readings, key=lambda reading: len(_LATIN.findall(reading)))
