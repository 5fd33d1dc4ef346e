"""The command `inductor-lab course`: points, notebooks, nbgrader, lessons, leagues, duels, ..."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from inductor_lab.compiler.base.display import draw, write_errors
from inductor_lab.course import question_bank
from inductor_lab.course.build import build, instructor_archive, own_folder
from inductor_lab.course.language import LANGUAGES, language
from inductor_lab.course.lesson import pairs, read_lesson
from inductor_lab.course.nbgrader import export
from inductor_lab.course.question_bank import FORMATS
from inductor_lab.course.scores import board
from inductor_lab.course.times import LIMIT, times


def command(arguments: Sequence[str]) -> str:
    """Run the requested command; returns the text to print.  Raises LabError if it fails."""
    given = _parser().parse_args(arguments)
    if given.what == "status":
        return str(board())
    if given.what == "build":
        return _report(build(given.folder), "notebooks written")
    if given.what == "times":
        found = times(given.folder, given.names, print)
        slow = sum(cell.seconds > LIMIT for each in found for cell in each.cells)
        return f"{sum(len(each.cells) for each in found)} cells, {slow} over {LIMIT:.0f} s"
    if given.what == "instructor":
        return str(instructor_archive(given.folder, given.output))
    if given.what == "bundle":
        return _bundle(given)
    if given.what == "slides":
        return _slides(given)
    if given.what in ("start", "check"):
        return _capstone(given)
    if given.what == "glance":
        return _glance(given)
    if given.what == "league":
        return _league(given)
    if given.what == "questions":
        return _questions(given)
    if given.what == "duel":
        return _duel(given)
    written = export(given.folder, given.into, given.language, given.exercises)
    return _report(written, "files written")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="inductor-lab course", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="WHAT", dest="what")
    commands.add_parser("status", help="what was earned in the labs")
    made = commands.add_parser("build", help="write the notebooks from their sources")
    made.add_argument("--folder", type=Path, default=Path("notebooks"), help="of the sources")
    timed = commands.add_parser("times", help="how long each cell of each tutorial takes")
    timed.add_argument("names", nargs="*", metavar="NAME", help="only these: 01, 05_fusion")
    timed.add_argument("--folder", type=Path, default=own_folder(), help="of the sources")
    nbgrader = commands.add_parser("nbgrader", help="the labs as assignments")
    nbgrader.add_argument("--folder", type=Path, default=own_folder(), help="of the sources")
    nbgrader.add_argument("into", type=Path, metavar="FOLDER", help="of the course")
    nbgrader.add_argument("--exercises", type=Path, nargs="*", default=[], metavar="FILE.py",
                          help="with your own exercises")  # fmt: skip
    nbgrader.add_argument("--language", choices=LANGUAGES, default=language())
    teachers = commands.add_parser("instructor", help="solutions and sources, as an archive")
    teachers.add_argument("--folder", type=Path, default=own_folder(), help="of the sources")
    teachers.add_argument("-o", "--output", type=Path, default=Path("instructor.tar.gz"))
    bundle = commands.add_parser("bundle", help="a notebook that was run, as one HTML file")
    bundle.add_argument("notebook", type=Path, help="with its outputs")
    bundle.add_argument("-o", "--output", type=Path, default=Path("lesson.html"))
    bundle.add_argument("--against", type=Path, metavar="NOTEBOOK", help="the teacher's run of it")
    bundle.add_argument("--language", choices=LANGUAGES, default=language())
    shown = commands.add_parser("slides", help="a notebook that was run, as slides")
    shown.add_argument("notebook", type=Path, help="with its outputs")
    shown.add_argument("-o", "--output", type=Path, default=Path("slides.html"))
    shown.add_argument("--reveal", metavar="ADDRESS", help="a folder with reveal.js 4: the page "
                       "contains it, and needs no network")  # fmt: skip
    begun = commands.add_parser("start", help="a repository for the capstone: your own compiler")
    begun.add_argument("project", choices=["capstone"])
    begun.add_argument("folder", type=Path, nargs="?", default=Path("capstone"), metavar="FOLDER")
    begun.add_argument("--language", choices=LANGUAGES, default=language())
    checked = commands.add_parser("check", help="points for the steps of the capstone")
    checked.add_argument("project", choices=["capstone"])
    checked.add_argument("words", nargs="*", metavar="STEP, FOLDER", help="5; substitute; default: "
                         "all steps of the repository in this folder")  # fmt: skip
    checked.add_argument("--secret", type=Path, metavar="FILE", help="grade with hidden cases")
    checked.add_argument("--refuse-copies", action="store_true", help="of inductor_lab.mini")
    checked.add_argument("--language", choices=LANGUAGES, default=language())
    _for_bank(commands)
    _for_classes(commands)
    return parser


def _for_bank(commands: Any) -> None:
    bank = commands.add_parser("questions", help="the tutorials' questions, as a list or an exam")
    bank.add_argument("names", nargs="*", metavar="CHAPTER", help="5, or one question: 5.3")
    bank.add_argument("--topic", default="", metavar="WORD", help="in the section or the question")
    bank.add_argument("--difficulty", type=int, nargs="*", default=[], choices=[1, 2, 3])
    bank.add_argument("--format", choices=FORMATS, default="list", help="gift: for Moodle")
    bank.add_argument("--answers", action="store_true", help="and explanations, for instructors")
    bank.add_argument("--record", action="store_true", help="run the tutorials for the answers")
    bank.add_argument("-o", "--output", type=Path, help="write a file")
    bank.add_argument("--folder", type=Path, default=own_folder(), help="of the sources")
    bank.add_argument("--language", choices=LANGUAGES, default=language())


def _for_classes(commands: Any) -> None:
    """The commands that compare or judge the students of a class."""
    glance = commands.add_parser("glance", help="what a class got wrong in a lab, as a page")
    glance.add_argument("folder", type=Path, help="of the nbgrader course, after autograde")
    glance.add_argument("lab", help="the assignment: 05_fusion")
    glance.add_argument("-o", "--output", type=Path, default=Path("glance.html"))
    glance.add_argument("--folder", dest="sources", type=Path, default=own_folder(),
                        help="of the sources, which have the questions")  # fmt: skip
    glance.add_argument("--language", choices=LANGUAGES, default=language())
    league = commands.add_parser("league", help="rank what a class submitted by bytes and kernels")
    league.add_argument("name", help="scheduler, partitioner, memory or tiles")
    league.add_argument("folder", type=Path, help="with a Python file for each team")
    league.add_argument("--secret", type=Path, metavar="FILE", help="rank on hidden cases")
    league.add_argument("--language", choices=LANGUAGES, default=language())
    duel = commands.add_parser("duel", help="find the input that exposes a bug, or say \"correct\"")
    duel.add_argument("action", choices=["start", "check"])
    duel.add_argument("into", type=Path, metavar="FOLDER", help="with a folder for each student")
    duel.add_argument("students", nargs="*", metavar="STUDENT", help="to start: their names")
    duel.add_argument("--secret", type=Path, metavar="FILE", help="draw the components from it")
    duel.add_argument("--solutions", action="store_true", help="print them below each answer")
    duel.add_argument("--folder", type=Path, default=own_folder(), help="of the sources")
    duel.add_argument("--language", choices=LANGUAGES, default=language())


def _glance(given: argparse.Namespace) -> str:
    from inductor_lab.course.glance import read_class

    language(given.language)
    found = read_class(given.folder, given.lab, given.sources)
    return f"{found}\n{draw('class_at_a_glance', found, given.output)}"


def _league(given: argparse.Namespace) -> str:
    from inductor_lab.course.capstone.command import secret_of
    from inductor_lab.course.league import league, table

    language(given.language)
    return table(given.name, league(given.name, given.folder, *secret_of(given.secret)))


def _questions(given: argparse.Namespace) -> str:
    language(given.language)
    if given.record:
        chapters = [int(name) for name in given.names]
        return _report(question_bank.record(given.folder, chapters), "files written")
    every = question_bank.questions(given.folder)
    found = question_bank.chosen(every, given.names, given.topic, given.difficulty)
    text = question_bank.written(found, given.format, answers=given.answers)
    if given.output is None:
        return text
    with write_errors(given.output, "questions"):
        given.output.write_text(text, encoding="utf-8")
    return _report([given.output], "files written")


def _duel(given: argparse.Namespace) -> str:
    from inductor_lab.course.capstone.command import secret_of
    from inductor_lab.course.duels import duel

    language(given.language)
    secret, _ = secret_of(given.secret)
    if given.action == "start":
        return _report(duel.give(given.into, given.students or ["me"], secret, given.folder),
                       "folders written")  # fmt: skip
    return duel.table(duel.check(given.into, secret, given.folder), solutions=given.solutions)


def _capstone(given: argparse.Namespace) -> str:
    """Start a repository, or check its steps; each verdict is printed when it is there."""
    from inductor_lab.course.capstone import command

    language(given.language)
    if given.what == "start":
        return command.started(given.folder)
    return command.checked(given.words, given.secret, given.refuse_copies, print)


def _slides(given: argparse.Namespace) -> str:
    from inductor_lab.course.slides import REVEAL, slides

    return str(slides(given.notebook, given.output, given.reveal or REVEAL))


def _bundle(given: argparse.Namespace) -> str:
    language(given.language)
    own = read_lesson(given.notebook)
    if given.against is None:
        return str(draw("lesson", own, given.output))
    found = pairs(own, read_lesson(given.against))
    path = draw("lesson_difference", own, found, given.output)
    edited, differ = sum(pair.changed for pair in found), sum(pair.differs for pair in found)
    return f"{path}: {edited} of {len(found)} cells changed, the outputs of {differ} differ"


def _report(written: Sequence[Path], what: str) -> str:
    return "\n".join([*map(str, written), f"{len(written)} {what}"])
