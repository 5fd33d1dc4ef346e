"""The bank of duels: components with and without bugs, below `notebooks/source/duels`.

The bank belongs to instructors.  It is not installed, because it has the answers.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inductor_lab.compiler.base.errors import BadArguments, UnreadableFile
from inductor_lab.course.duels.components import COMPONENTS
from inductor_lab.course.language import language, say

FOLDER = Path("source", "duels")


@dataclass(frozen=True)
class Suspect:
    """One version of a component.

    why    what is wrong with it, in both languages; None if it is correct
    input  the text of an input that exposes it
    """

    name: str
    code: str
    why: tuple[str, str] | None = None
    input: str = ""


@dataclass(frozen=True)
class Topic:
    """A component: its promise to users, and its versions."""

    name: str
    function: str
    titles: tuple[str, str]
    texts: tuple[str, str]
    suspects: tuple[Suspect, ...]

    @property
    def title(self) -> str:
        return self.titles[language() == "zh"]

    @property
    def text(self) -> str:
        return self.texts[language() == "zh"]

    def of_kind(self, *, correct: bool) -> list[Suspect]:
        return [one for one in self.suspects if (one.why is None) == correct]


def bank(folder: Path) -> list[Topic]:
    """All topics; `folder` is `notebooks/`.  Raises BadArguments if the bank is not there."""
    paths = {name: folder / FOLDER / f"{name}.toml" for name in COMPONENTS}
    missing = [path for path in paths.values() if not path.exists()]
    if missing:
        raise BadArguments(
            say("there is no {f}", f=missing[0]),
            todo=say("unpack the instructors' archive, and name its notebooks/ with --folder"),
        )
    return [_topic(name, path) for name, path in paths.items()]


def _topic(name: str, path: Path) -> Topic:
    data = tomllib.loads(path.read_text(encoding="utf-8"))
    code = data["code"].lstrip()
    suspects = tuple(_suspect(code, entry, path) for entry in data["suspect"])
    texts = data["en"].strip(), data["zh"].strip()
    return Topic(name, data["function"], tuple(data["title"]), texts, suspects)


def _suspect(code: str, entry: dict[str, Any], path: Path) -> Suspect:
    for old, new in entry["edits"]:
        if code.count(old) != 1:
            what = f"{entry['name']}: {old!r} is in the code {code.count(old)} times"
            raise UnreadableFile(what, str(path))
        code = code.replace(old, new)
    why = entry.get("why")
    return Suspect(entry["name"], code, (why[0], why[1]) if why else None, entry.get("input", ""))
