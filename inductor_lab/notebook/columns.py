"""Format tables as text that fits into a notebook."""

from __future__ import annotations

import textwrap
from unicodedata import east_asian_width

LINE = 88
"""Characters per line of text in a window that is 900 px wide."""


def folded(text: str) -> str:
    """Wrap long lines between words; a notebook would break them inside words.

    >>> print(folded("  why: " + "legal, " * 13))
      why: legal, legal, legal, legal, legal, legal, legal, legal, legal, legal, legal,
          legal, legal,
    """
    return "\n".join(_folded(line) if len(line) > LINE else line for line in text.split("\n"))


def last_column(before: str, text: str) -> str:
    """A row whose last column is wrapped if it is long.

    >>> print(last_column("lanes  7.84 ms  ", "vectorize innermost loops, " * 4))
    lanes  7.84 ms  vectorize innermost loops, vectorize innermost loops, vectorize
                    innermost loops, vectorize innermost loops,
    """
    return textwrap.fill(
        " ".join(text.split()), LINE, initial_indent=before, subsequent_indent=" " * len(before)
    )


def padded(text: str, width: int, *, right: bool = False) -> str:
    """Pad text to a column width; a Chinese character is two columns wide.

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
