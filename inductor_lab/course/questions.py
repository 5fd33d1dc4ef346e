"""Predict, then reveal: a guess first, then the answer, which comes from the real compile.

course.predict("kernels of softmax", guess=2, truth=c.after.kernels)

A plausible wrong guess is explained (`wrong_guesses.toml`).
"""

from __future__ import annotations

import html
import re
from dataclasses import dataclass
from typing import Any

from inductor_lab.course.language import Both, one_of, say
from inductor_lab.course.scores import Guess, record_guess
from inductor_lab.course.wrong_guesses import explanation


@dataclass(frozen=True)
class Revealed:
    """A guess next to the truth; without a guess the truth is collapsed."""

    question: str
    guess: Any
    truth: Any

    @property
    def right(self) -> bool:
        if isinstance(self.truth, bool) or isinstance(self.guess, bool):
            return str(self.guess).strip().lower() == str(self.truth).lower()
        if isinstance(self.truth, int | float):
            try:
                return float(self.guess) == self.truth
            except (TypeError, ValueError):  # a text instead of a number
                return False
        return bool(self.guess == self.truth)

    @property
    def explanation(self) -> str:
        """Why the guess is wrong; "" if it is right or has no explanation."""
        return "" if self.guess is None or self.right else explanation(self.question, self.guess)

    def __str__(self) -> str:
        return "\n".join(filter(None, (self._verdict(), self.explanation)))

    def _verdict(self) -> str:
        if self.guess is None:
            return say(
                "{question}: set guess first, then run this cell again",
                question=self.question,
            )
        mark = "✓" if self.right else "✗"
        return say(
            "{mark} {question}: you said {guess}, it is {truth}",
            mark=mark,
            question=self.question,
            guess=self.guess,
            truth=self.truth,
        )

    __repr__ = __str__

    def _repr_html_(self) -> str:
        text = html.escape(self._verdict())
        if self.guess is not None:
            why = re.sub("`([^`]*)`", r"<code>\1</code>", html.escape(self.explanation))
            return f"<b>{text}</b>" + (f"<div>{why}</div>" if why else "")
        fold = say("or look at the answer")
        answer = html.escape(str(self.truth))
        return f"{text}<details><summary>{fold}</summary>{answer}</details>"


def predict(question: Both, guess: Any, truth: Any) -> Revealed:
    """Compare a guess with the truth; None means no guess.

    The question may be given in English and Chinese.  The first guess is kept in the board's file.
    """
    found = Revealed(one_of(question), guess, truth)
    if guess is not None:
        english = question if isinstance(question, str) else question[0]
        record_guess(Guess(english, str(guess), found.right))
    return found
