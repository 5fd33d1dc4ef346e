"""`inductor-lab course start capstone` and `inductor-lab course check capstone`."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from inductor_lab.compiler.base.display import write_errors
from inductor_lab.compiler.base.errors import BadArguments, UnreadableFile
from inductor_lab.course.capstone.check import check
from inductor_lab.course.capstone.readme import pages
from inductor_lab.course.capstone.repository import (
    FILES,
    INIT,
    PACKAGE,
    starter,
    step_named,
)
from inductor_lab.course.language import say
from inductor_lab.course.scores import points_text


def started(folder: Path) -> str:
    """Write the starters and the pages, and commit them where there is git; returns the text to
    print.  Raises BadArguments if the folder exists."""
    if folder.exists():
        raise BadArguments(say("{f} already exists", f=folder), todo=say("name another folder"))
    texts = {f"{PACKAGE}/{file}.py": starter(file) for file in FILES}
    texts |= {f"{PACKAGE}/__init__.py": INIT, ".gitignore": "__pycache__/\n", **pages()}
    for name, text in texts.items():
        with write_errors(folder / name, "repository"):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")
    if shutil.which("git"):
        author = ("-c", "user.name=inductor-lab", "-c", "user.email=capstone@localhost")
        for command in (["init", "-q"], ["add", "."], [*author, "commit", "-qm", "The starters"]):
            subprocess.run(["git", *command], cwd=folder, check=False, capture_output=True)
    return say("{n} files written; begin with {f}", n=len(texts), f=folder / "README.md")


def checked(words: Sequence[str], secret: Path | None, refuse_copies: bool,
            show: Callable[[object], None]) -> str:  # fmt: skip
    """Check the given steps of a repository, or all; returns the points as a text."""
    folders = [Path(word) for word in words if Path(word, PACKAGE).is_dir()]
    if len(folders) > 1:
        raise BadArguments(say("name one folder"))
    wanted = [step_named(word) for word in words if not Path(word, PACKAGE).is_dir()]
    folder = folders[0] if folders else Path()
    points = possible = 0
    seed, hidden = secret_of(secret)
    for verdict in check(folder, wanted, seed, hidden, refuse_copies):
        show(verdict)
        points += verdict.points
        possible += verdict.possible
    return points_text(points, possible)


def secret_of(secret: Path | None) -> tuple[str, tuple[Path, ...]]:
    """The text of a file with a secret, "" without a file, and the folders to hide for it.  Raises
    UnreadableFile."""
    if secret is None:
        return "", ()
    try:
        text = secret.read_text(encoding="ascii").strip() or _no_secret(secret)
    except OSError as error:
        raise UnreadableFile(str(error), str(secret), "inductor-lab course nbgrader") from error
    return text, (secret.resolve().parent,)


def _no_secret(path: Path) -> str:
    raise UnreadableFile(say("the file is empty"), str(path))
