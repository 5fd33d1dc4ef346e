"""The input of passes over loop programs, besides the program."""

from __future__ import annotations

from dataclasses import dataclass

from inductor_lab.compiler.base.options import Options
from inductor_lab.compiler.lower.builder import Builder


@dataclass(frozen=True)
class ProgramFacts:
    """The facts of passes over loop programs: the options, and the builder of the program."""

    options: Options
    build: Builder
