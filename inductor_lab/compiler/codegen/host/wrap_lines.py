"""Wraps long lines of Python text."""

from __future__ import annotations

import re
import textwrap

WIDTH = 100
GLUE = "\0"
WORD = re.compile(r"""'\w*'|"[\w:]*\"""")


def wrapped(text: str) -> list[str]:
    """Break a long line at spaces inside brackets.

    A line is not broken if it has a string or comment that could contain spaces.
    """
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
    """Make spaces outside brackets unbreakable, because a line break there ends a statement."""
    depth, out = 0, []
    for character in text:
        depth += (character in "([{") - (character in ")]}")
        out.append(GLUE if character == " " and not depth else character)
    return "".join(out)
