"""Exercises of a teacher, in a Python file outside of the package.

    course.own_exercises("strides.py")      in a notebook, next to the file
    inductor-lab course nbgrader FOLDER --exercises strides.py

An nbgrader course has copies: FOLDER/exercises, for the judge, and one next to each lab that uses
the file, for the students' own checks.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

from inductor_lab.compiler.base.errors import BadArguments, UnreadableFile
from inductor_lab.course.exercise import EXERCISES, exercises

FOLDER = "exercises"
"""In a course of nbgrader."""


def own_exercises(path: str | Path) -> list[str]:
    """Register the exercises of a file, and return their names.  Calling it again replaces them.

    Raises UnreadableFile if the file cannot be run, BadArguments if it has no exercise, or one
    whose name is taken.
    """
    exercises()  # those of the package come first: their names are taken
    file = Path(path).resolve()
    name = f"inductor_lab_own_{file.stem}"
    for known in of_module(name):
        del EXERCISES[known]
    module = ModuleType(name)
    module.__file__ = str(file)
    sys.modules[name] = module
    try:  # not imported: the bytecode of an earlier text could be used
        exec(compile(file.read_bytes(), file, "exec"), module.__dict__)
    except BadArguments:
        raise
    except Exception as problem:
        what = f"it cannot be run: {type(problem).__name__}: {problem}"
        raise UnreadableFile(what, str(path), "docs/extending.md has an example") from problem
    found = of_module(name)
    if not found:
        raise BadArguments(f"{path} has no exercise", todo="docs/extending.md has an example")
    return found


def of_module(module: str) -> list[str]:
    """The names of the exercises that a module defines."""
    return [name for name, one in EXERCISES.items() if type(one).__module__ == module]


def of_course(course: Path) -> None:
    """Register the exercises of an nbgrader course."""
    for path in sorted((course / FOLDER).glob("*.py")):
        own_exercises(path)
