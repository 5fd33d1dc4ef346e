"""Predict, then reveal: a guess first, then the answer, which comes from the real compile.

course.predict("kernels of softmax", guess=2, truth=c.after.kernels)
"""

from __future__ import annotations

import html
from dataclasses import dataclass
from typing import Any

from inductor_lab.course.language import both, language
from inductor_lab.course.scores import record


@dataclass(frozen=True)
class Revealed:
    """A guess beside the truth; without a guess the truth is folded away."""

    question: str
    guess: Any
    truth: Any

    @property
    def right(self) -> bool:
        return self.guess is not None and type(self.truth)(self.guess) == self.truth

    def __str__(self) -> str:
        if self.guess is None:
            return both(
                f"{self.question}: set guess first, then run this cell again",
                f"{self.question}：请先填写 guess，再运行本单元格",
            )
        mark = "✓" if self.right else "✗"
        return both(
            f"{mark} {self.question}: you said {self.guess}, it is {self.truth}",
            f"{mark} {self.question}：你猜的是 {self.guess}，实际是 {self.truth}",
        )

    __repr__ = __str__

    def _repr_html_(self) -> str:
        text = html.escape(str(self))
        if self.guess is not None:
            return f"<b>{text}</b>"
        fold = both("or look at the answer", "或者直接看答案")
        answer = html.escape(str(self.truth))
        return f"{text}<details><summary>{fold}</summary>{answer}</details>"


def predict(question: str | tuple[str, str], guess: Any, truth: Any) -> Revealed:
    """Compare a guess with the truth; None is no guess.

    The question may be given in English and Chinese.  Guesses are kept where the board is.
    """
    en, zh = question if isinstance(question, tuple) else (question, question)
    found = Revealed(zh if language() == "zh" else en, guess, truth)
    if guess is not None:
        record(f"? {en}", int(found.right), 1)
    return found
