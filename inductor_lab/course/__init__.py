"""The course: exercises with checks, questions, a board, and phases that a student replaces.

    course.check("1.1", stack_machine)     points, or a counterexample in a sentence
    course.predict("kernels", 2, c.after.kernels)
    course.board()                         the points earned so far
    course.own_exercises("strides.py")     exercises of a teacher
    course.running_example(5)              what chapter 4 made of softmax(x @ w)

docs/course.md explains how the notebooks are generated.
"""

from typing import Any

from inductor_lab.course.checking import Verdict, check
from inductor_lab.course.exercise import Exercise, exercises
from inductor_lab.course.language import speak
from inductor_lab.course.measured import Recorded, clear_maximum, slowdown_intervals, slowdowns
from inductor_lab.course.order import watch
from inductor_lab.course.own_exercises import own_exercises
from inductor_lab.course.pictures import bars, cells
from inductor_lab.course.printed import show
from inductor_lab.course.questions import Revealed, predict
from inductor_lab.course.scores import Board, board

__all__ = [
    "EXERCISES",
    "Board",
    "Exercise",
    "Recorded",
    "Revealed",
    "Verdict",
    "bars",
    "board",
    "cells",
    "check",
    "clear_maximum",
    "exercises",
    "own_exercises",
    "predict",
    "running_example",
    "show",
    "slowdown_intervals",
    "slowdowns",
    "speak",
]

watch()


def __getattr__(name: str) -> Any:
    """`EXERCISES` are there once somebody asks: the labs import the whole compiler."""
    if name == "EXERCISES":
        return exercises()
    if name == "running_example":  # it needs torch
        from inductor_lab.course.example_by_chapter import running_example

        return running_example
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
