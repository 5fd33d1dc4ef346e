"""The language of checks and questions, which is the language of the explorer
(notebook/language.py).  The first cell of a generated Chinese notebook calls `course.speak("zh")`.
"""

from __future__ import annotations

from typing import TypeAlias

from inductor_lab.notebook.language import LANGUAGES, VARIABLE, Language, language, say

__all__ = ["LANGUAGES", "VARIABLE", "Both", "Language", "language", "one_of", "say", "speak"]

Both: TypeAlias = str | tuple[str, str]
"""A text of a notebook, or the text in English and in Chinese."""


def one_of(text: Both) -> str:
    """The text in the current language."""
    return text if isinstance(text, str) else text[LANGUAGES.index(language())]


def speak(wanted: str) -> None:
    """Set the language; raises BadArguments if it is unknown."""
    language(wanted or "none")
