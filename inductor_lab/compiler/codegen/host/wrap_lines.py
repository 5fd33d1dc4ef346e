"""Lines of Python text that are not too long to read."""

from __future__ import annotations

import re
import textwrap

WIDTH = 100
GLUE = "\0"
WORD = re.compile(r"""'\w*'|"[\w:]*\"""")


def wrapped(text: str) -> list[str]:
    """Break a long line at spaces inside its brackets (never where there is a string that may hold
    any)."""
    if len(text) <= WIDTH or not set("\"'#").isdisjoint(WORD.sub("", text)):
        return [text]
    indent = " " * (len(text) - len(text.lstrip()))
    lines = textwrap.wrap(
        _glued(text),
        WIDTH,
        subsequent_indent=indent + "    ",
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [line.replace(GLUE, " ") for line in lines]


def _glued(text: str) -> str:
    """The text with spaces outside of brackets made unbreakable: Python ends a statement there."""
    depth, out = 0, []
    for character in text:
        depth += (character in "([{") - (character in ")]}")
        out.append(GLUE if character == " " and not depth else character)
    return "".join(out)
