"""The language of checks and questions is the explorer's (notebook/language.py): one switch, one
table.  A generated Chinese notebook says `course.speak("zh")` in its first cell."""

from __future__ import annotations

from typing import TypeAlias

from inductor_lab.notebook.language import LANGUAGES, VARIABLE, Language, language, say

__all__ = ["LANGUAGES", "VARIABLE", "Both", "Language", "language", "one_of", "say", "speak"]

Both: TypeAlias = str | tuple[str, str]
"""A text of a notebook, or the text in English and in Chinese."""


def one_of(text: Both) -> str:
    """The text in the language that is spoken."""
    return text if isinstance(text, str) else text[LANGUAGES.index(language())]


def speak(wanted: str) -> None:
    """Speak another language from now on; raises BadArguments for one that is not known."""
    language(wanted or "none")
