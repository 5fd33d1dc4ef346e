"""The page about a class: exercises, their misconceptions, counterexamples, and predictions.

No script: a link to a counterexample makes it fill the page (`:target`).  Names of students are
closed at first, so that the page can be projected.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from inductor_lab.compiler.base.display import write_text
from inductor_lab.notebook.language import language, say
from inductor_lab.widgets.page import lesson_style, page

if TYPE_CHECKING:
    from inductor_lab.course.glance import Class, Misconception
    from inductor_lab.course.predictions import Prediction, Tally

_STYLE = """
.glance table { border-collapse: collapse; margin: 8px 0 16px; }
.glance th, .glance td { text-align: left; padding: 3px 14px 3px 0; vertical-align: top; }
.glance tr > * { border-bottom: 1px solid var(--line); }
.glance meter { width: 12em; height: 1em; }
.glance .number { text-align: right; font-variant-numeric: tabular-nums; }
.glance summary { white-space: nowrap; }
.glance h3 { font-size: 15px; margin: 16px 0 4px; }
.glance h2 { font-size: 18px; margin: 24px 0 6px; }
.glance pre { font: 13px/1.5 var(--mono); white-space: pre-wrap; overflow-wrap: anywhere;
  background: var(--panel); border: 1px solid var(--line); border-radius: 6px; padding: 8px 12px;
  margin: 4px 0; }
.glance .close { display: none; }
.glance .case:target { position: fixed; inset: 0; z-index: 1; overflow: auto; padding: 5vh 6vw;
  background: var(--bg); }
.glance .case:target pre { font-size: 28px; }
.glance .case:target .close { display: inline; font-size: 20px; }
.glance .case:target .open { display: none; }
"""


def write_glance(found: Class, path: Path) -> Path:
    """Write the page; raises CannotWrite."""
    from inductor_lab.course.exercise import exercises

    titles = {name: exercises()[name].title[language() == "zh"] for name in found.exercises}
    possible = sum(exercises()[name].points for name in found.exercises)
    parts = [*_head(found, possible), *_summary(found, titles)]
    for name in found.exercises:
        parts += _exercise(found, name, titles[name])
    parts += _predictions(found.predictions)
    parts += _students(found)
    body = f'<div class="lesson glance"><main>{"".join(parts)}</main></div>'
    title = say("{lab}: the class at a glance", lab=found.lab)
    text = page(title, body, lesson_style(), _STYLE, scripts="'none'")
    return write_text(path, text, "page about a class")


def _head(found: Class, possible: int) -> Iterator[str]:
    half = median(map(found.points, found.students))
    yield f"<header><h1>{escape(say('{lab}: the class at a glance', lab=found.lab))}</h1>"
    words = say("{n} students; median {m:g} of {p} points",
                n=len(found.students), m=half, p=possible)  # fmt: skip
    yield f"<p>{escape(words)}</p></header>"


def _summary(found: Class, titles: dict[str, str]) -> Iterator[str]:
    heads = "".join(f"<th>{escape(head)}</th>" for head in (
        say("exercise"), say("all points"), "", say("most frequent reason")))  # fmt: skip
    yield f"<table><thead><tr>{heads}</tr></thead><tbody>"
    for name, title in titles.items():
        right, count = found.right(name), len(found.of(name))
        wrong = found.misconceptions(name)
        most = escape(str(wrong[0])) if wrong else ""
        label = escape(say("right: {s}", s=f"{right}/{count}"))
        yield (
            f'<tr><td><a href="#exercise-{name}">{escape(f"{name} {title}")}</a></td>'
            f'<td class="number">{right}/{count}</td>'
            f'<td><meter value="{right}" max="{count}" aria-label="{label}"></meter></td>'
            f"<td>{most}</td></tr>"
        )
    yield "</tbody></table>"


def _exercise(found: Class, name: str, title: str) -> Iterator[str]:
    wrong = found.misconceptions(name)
    if not wrong:
        return
    yield f'<section id="exercise-{name}"><h2>{escape(f"{name} {title}")}</h2>'
    for number, one in enumerate(wrong):
        yield _misconception(one, f"{name}-{number}", name)
    yield "</section>"


def _misconception(one: Misconception, identity: str, exercise: str) -> str:
    smallest = one.smallest
    text = "\n".join(filter(None, (smallest.case, smallest.message)))
    names = ", ".join(answer.student for answer in one.answers)
    count = say("{n} students", n=len(one.answers))
    return (
        f'<div class="case" id="case-{identity}"><pre>{escape(text)}</pre>'
        f'<a class="open" href="#case-{identity}">{escape(say("show large"))}</a>'
        f'<a class="close" href="#exercise-{exercise}">{escape(say("close"))}</a>'
        f"<details><summary>{escape(count)}</summary>{escape(names)}</details></div>"
    )


def _predictions(found: Sequence[Prediction]) -> Iterator[str]:
    """A table of the questions, then the wrong guesses of each with their explanations."""
    if not found:
        return
    yield f'<section id="predictions"><h2>{escape(say("Predictions of the tutorial"))}</h2>'
    heads = "".join(f"<th>{escape(head)}</th>" for head in (
        say("question"), say("right guesses"), "", say("most frequent wrong guess")))  # fmt: skip
    yield f"<table><thead><tr>{heads}</tr></thead><tbody>"
    for one in found:
        most = _guess(one.wrong[0]) if one.wrong else ""
        share = f"{one.right}/{one.made}"
        label = escape(say("{s} guessed right", s=share))
        yield (
            f'<tr><td><a href="#question-{one.question.name}">{escape(_asked(one))}</a></td>'
            f'<td class="number">{share}</td>'
            f'<td><meter value="{one.right}" max="{one.made}" aria-label="{label}"></meter></td>'
            f"<td>{most}</td></tr>"
        )
    yield "</tbody></table>"
    yield from map(_prediction, found)
    yield "</section>"


def _asked(one: Prediction) -> str:
    return f"{one.question.name} {one.question.spoken_label}"


def _guess(tally: Tally) -> str:
    return f"{len(tally.students)} × <code>{escape(tally.text)}</code>"


def _with_code(text: str) -> str:
    """Markdown's code as HTML."""
    return re.sub("`([^`]*)`", r"<code>\1</code>", escape(text))


def _prediction(one: Prediction) -> str:
    rows = "".join(
        f'<tr><td class="number">{len(tally.students)}</td>'
        f"<td><code>{escape(tally.text)}</code></td><td>{'✓' if tally.right else '✗'}</td>"
        f"<td>{_with_code(tally.explanation)}</td>"
        f"<td><details><summary>{escape(say('students'))}</summary>"
        f"{escape(', '.join(tally.students))}</details></td></tr>"
        for tally in one.tallies
    )
    heads = (say("students"), say("guess"), "", say("why it is wrong"), "")
    head = "".join(f"<th>{escape(text)}</th>" for text in heads)
    return (
        f'<section id="question-{one.question.name}"><h3>{escape(_asked(one))}</h3>'
        f"<p>{escape(one.question.topic)} ({escape(one.where)})</p>"
        f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></section>"
    )


def _students(found: Class) -> Iterator[str]:
    heads = "".join(f"<th>{escape(name)}</th>" for name in found.exercises)
    words = (say("student"), say("sum"), say("predictions"))
    first, last, guesses = (f"<th>{escape(word)}</th>" for word in words)
    yield f"<details><summary>{escape(say('points of each student'))}</summary><table>"
    yield f"<thead><tr>{first}{heads}{last}{guesses}</tr></thead><tbody>"
    points = {(answer.student, answer.exercise): answer.points for answer in found.answers}
    for student in found.students:
        cells = "".join(f'<td class="number">{points.get((student, name), "")}</td>'
                        for name in found.exercises)  # fmt: skip
        yield f"<tr><td>{escape(student)}</td>{cells}"
        yield f'<td class="number">{found.points(student)}</td>'
        yield f'<td class="number">{found.guesses(student)}</td></tr>'
    yield "</tbody></table></details>"
