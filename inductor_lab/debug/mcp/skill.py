"""`inductor-lab skill DIR`: a SKILL.md that teaches an agent to use the command line."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from inductor_lab.compiler.base.display import write_errors, write_text

NAME = "SKILL.md"


def skill_text() -> str:
    """The text of the skill."""
    return resources.files(__package__).joinpath(NAME).read_text(encoding="utf-8")


def write_skill(folder: Path) -> Path:
    """Write the skill to a folder, which is created; raises CannotWrite."""
    path = folder / NAME
    with write_errors(path, "skill"):
        folder.mkdir(parents=True, exist_ok=True)
    return write_text(path, skill_text(), "skill")
