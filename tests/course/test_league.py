"""Leagues: hidden cases, counts that every machine repeats, and submissions that cheat or break."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from inductor_lab import course
from inductor_lab.compiler.base.errors import BadArguments
from inductor_lab.course.command import command
from inductor_lab.course.league import LEAGUES, league
from inductor_lab.debug.untrusted.confine import confinable

pytestmark = pytest.mark.skipif(not confinable(), reason="no Landlock on this machine")
SOURCES = Path(__file__).parents[2] / "notebooks" / "source"
FIRST_FIT = """
def place(lives, nbytes):
    found = {}
    for name in sorted(lives, key=lambda name: -nbytes[name]):
        first, last = lives[name]
        taken = sorted((found[o], found[o] + nbytes[o]) for o in found
                       if lives[o][0] <= last and first <= lives[o][1])
        at = 0
        for begin, end in taken:
            if at + nbytes[name] <= begin:
                break
            at = max(at, end)
        found[name] = at
    return found
"""
ONE_AFTER_THE_OTHER = """
def place(lives, nbytes):
    found, at = {}, 0
    for name in lives:
        found[name], at = at, at + nbytes[name]
    return found
"""
EVERY_NEST_ALONE = "def schedule(program):\n    return [[nest.buffer] for nest in program.nests]\n"
SAVES_ALL = "def partition(values):\n    return [v.name for v in values if v.needed]\n"
TEAMS = {
    "memory": {
        "first_fit": FIRST_FIT, "wasteful": ONE_AFTER_THE_OTHER,
        "all_at_0": "def place(lives, nbytes):\n    return dict.fromkeys(lives, 0)\n",
        "claims": "def place(lives, nbytes):\n    return {name: -1 for name in lives}\n",
        "raises": "def place(lives, nbytes):\n    return lives['nothing']\n",
        "ends": "import os\ndef place(lives, nbytes):\n    os._exit(0)\n",
        "another_name": "def put(lives, nbytes):\n    return {}\n",
    },
    "scheduler": {"alone": EVERY_NEST_ALONE,
                  "together": EVERY_NEST_ALONE.replace("[[nest.buffer] for nest in program.nests]",
                                                       "[[n.buffer for n in program.nests]]")},
    "partitioner": {"all": SAVES_ALL},
    "tiles": {"squares": "def tile_sizes(rows, columns, lines, line):\n    return line, line\n",
              "rows": "def tile_sizes(rows, columns, lines, line):\n    return 1, columns\n"},
}  # fmt: skip


def solution(lab: str) -> str:
    """The cells of the course's own solutions, and what they import."""
    text = (SOURCES / f"{lab}.md").read_text(encoding="utf-8")
    cells = re.findall(r"```python solution\n(.*?)```", text, re.DOTALL)
    imports = re.findall(r"^(?:from|import) [^\n(]+$", text, re.MULTILINE)
    return "\n".join(["import torch", *imports, *cells])


def written(folder: Path, name: str) -> Path:
    for team, text in TEAMS[name].items():
        (folder / f"{team}.py").write_text(text, encoding="utf-8")
    return folder


@pytest.fixture(autouse=True)
def english() -> None:
    course.speak("en")


def test_the_memory_league(tmp_path: Path) -> None:
    found = league("memory", written(tmp_path, "memory"), "a secret")
    assert [one.team for one in found[:2]] == ["first_fit", "wasteful"]
    assert 0 < found[0].score[0] < found[1].score[0]
    assert league("memory", tmp_path, "a secret") == found
    assert league("memory", tmp_path, "another")[0].score != found[0].score
    wrong = {one.team: one.wrong for one in found[2:]}
    assert "overlap, and both are alive in step" in wrong["all_at_0"]
    assert "has no offset" in wrong["claims"] and "KeyError" in wrong["raises"]
    assert "its process ended" in wrong["ends"]
    assert "'place' is not defined" in wrong["another_name"]


def test_the_other_leagues(tmp_path: Path) -> None:
    labs = {"scheduler": "05_fusion", "tiles": "06_cpp", "partitioner": "03_gradients"}
    for name, lab in labs.items():
        folder = tmp_path / name
        folder.mkdir()
        (folder / "course.py").write_text(solution(f"lab_{lab}"), encoding="utf-8")
        found = league(name, written(folder, name), "a secret")
        teams = {one.team: one for one in found}
        assert not teams["course"].wrong and found[0].team != "alone", found
        assert len(found[0].score) == len(LEAGUES[name].counts) and found[0].score[0] > 0
    legal = league("scheduler", tmp_path / "scheduler", "a secret")
    assert {one.team: bool(one.wrong) for one in legal} == {
        "course": False, "alone": False, "together": True,
    }  # fmt: skip


def test_the_command(tmp_path: Path) -> None:
    (tmp_path / "secret_seed").write_text("42")
    teams = tmp_path / "teams"
    teams.mkdir()
    written(teams, "tiles")
    said = command(["league", "tiles", str(teams), "--secret", str(tmp_path / "secret_seed")])
    assert said.splitlines()[0].split() == ["rank", "team", "cache", "misses"]
    assert said.splitlines()[1].split()[:2] == ["1", "squares"]
    with pytest.raises(BadArguments, match="tilse"):
        league("tilse", teams, "")
    with pytest.raises(BadArguments, match="no Python file"):
        league("tiles", tmp_path, "")
