"""Tables as text that fit into a notebook."""

from __future__ import annotations

import textwrap
from unicodedata import east_asian_width

LINE = 88
"""Letters of a line of text in a window that is 900 px wide."""


def folded(text: str) -> str:
    """Text whose long lines go on below themselves at a word; a notebook breaks them inside of one.

    >>> print(folded("  why: " + "legal, " * 13))
      why: legal, legal, legal, legal, legal, legal, legal, legal, legal, legal, legal,
          legal, legal,
    """
    return "\n".join(_folded(line) if len(line) > LINE else line for line in text.split("\n"))


def last_column(before: str, text: str) -> str:
    """A row whose last column goes on below itself where it is long.

    >>> print(last_column("lanes  7.84 ms  ", "vectorize innermost loops, " * 4))
    lanes  7.84 ms  vectorize innermost loops, vectorize innermost loops, vectorize
                    innermost loops, vectorize innermost loops,
    """
    return textwrap.fill(
        " ".join(text.split()), LINE, initial_indent=before, subsequent_indent=" " * len(before)
    )


def padded(text: str, width: int, *, right: bool = False) -> str:
    """Text in a column: a Chinese letter is as wide as two others.

    >>> padded("我们", 6) + "|", padded("ours", 6, right=True) + "|"
    ('我们  |', '  ours|')
    """
    wide = sum(east_asian_width(letter) in "WF" for letter in text)
    room = " " * max(0, width - len(text) - wide)
    return room + text if right else text + room


def _folded(line: str) -> str:
    inside = " " * (len(line) - len(line.lstrip()) + 4)
    return textwrap.fill(
        line, LINE, subsequent_indent=inside, break_long_words=False, break_on_hyphens=False
    )
