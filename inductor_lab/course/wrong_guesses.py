"""Explanations of plausible wrong guesses, from the table `wrong_guesses.toml`.

The table is not in the notebooks, because a question must not show which answers are wrong.
"""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Any

from inductor_lab.course.language import LANGUAGES, language

TABLE = Path(__file__).with_suffix(".toml")
CHINESE = "zh"
OTHER = "other"
"""Stands for any wrong guess without its own explanation."""


@cache
def table() -> dict[str, dict[str, Any]]:
    """Label in English → guess → the explanation in both languages; "zh" → the Chinese label."""
    with TABLE.open("rb") as file:
        return tomllib.load(file)


@cache
def _english_labels() -> dict[str, str]:
    return {entry[CHINESE]: label for label, entry in table().items()}


def own_label(label: str) -> str:
    """The label of a question in the current language, from the English one."""
    chinese = table().get(label, {}).get(CHINESE, label)
    return label if language() == "en" else str(chinese)


def explanations(label: str) -> dict[str, str]:
    """Wrong guess → its explanation, in the current language; empty for an unknown question.

    `label` is the one of `course.predict`, in English or in Chinese.
    """
    entry = table().get(_english_labels().get(label, label), {})
    spoken = LANGUAGES.index(language())
    return {guess: texts[spoken] for guess, texts in entry.items() if guess != CHINESE}


def explanation(label: str, guess: Any) -> str:
    """Why this guess is wrong; "" if there is no explanation."""
    known = explanations(label)
    own = (text for expected, text in known.items() if _equal(guess, expected))
    return next(own, known.get(OTHER, ""))


def _equal(guess: Any, expected: str) -> bool:
    if not isinstance(guess, bool):
        try:
            return float(guess) == float(expected)
        except (TypeError, ValueError):  # one of them is a text
            pass
    return str(guess).strip().lower() == expected.lower()
