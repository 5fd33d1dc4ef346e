"""The command `inductor-lab course`: points, notebooks from sources, a course for nbgrader."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from inductor_lab.course.build import build, own_folder
from inductor_lab.course.language import LANGUAGES, language
from inductor_lab.course.nbgrader import export
from inductor_lab.course.scores import board


def command(arguments: Sequence[str]) -> str:
    """Do what is asked for; the text to print.  Raises LabError for what cannot be done."""
    given = _parser().parse_args(arguments)
    if given.what == "status":
        return str(board())
    if given.what == "build":
        return _told(build(given.folder), "notebooks written")
    return _told(export(given.folder, given.into, given.language), "files written")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="inductor-lab course", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="WHAT", dest="what")
    commands.add_parser("status", help="what was earned in the labs")
    made = commands.add_parser("build", help="write the notebooks from their sources")
    made.add_argument("--folder", type=Path, default=Path("notebooks"), help="of the sources")
    nbgrader = commands.add_parser("nbgrader", help="the labs as assignments")
    nbgrader.add_argument("--folder", type=Path, default=own_folder(), help="of the sources")
    nbgrader.add_argument("into", type=Path, metavar="FOLDER", help="of the course")
    nbgrader.add_argument("--language", choices=LANGUAGES, default=language())
    return parser


def _told(written: Sequence[Path], what: str) -> str:
    return "\n".join([*map(str, written), f"{len(written)} {what}"])
