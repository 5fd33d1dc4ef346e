"""The course: exercises with checks, questions, a board, and phases that a student replaces.

    course.check("1.1", stack_machine)     points, or a sentence with the smallest counterexample
    course.predict("kernels", 2, c.after.kernels)
    course.board()                         the points earned so far

docs/course.md explains how the notebooks are generated.
"""

from inductor_lab.course import labs
from inductor_lab.course.checking import Verdict, check
from inductor_lab.course.exercise import EXERCISES, Exercise
from inductor_lab.course.language import speak
from inductor_lab.course.order import watch
from inductor_lab.course.pictures import bars, cells
from inductor_lab.course.printed import show
from inductor_lab.course.questions import Revealed, predict
from inductor_lab.course.scores import Board, board

__all__ = [
    "EXERCISES",
    "Board",
    "Exercise",
    "Revealed",
    "Verdict",
    "bars",
    "board",
    "cells",
    "check",
    "labs",
    "predict",
    "show",
    "speak",
]

watch()
