"""An environment with a wheel and what it asks for, and nothing else.

The libraries are those of this Python, as links: so it takes seconds, and nothing is downloaded.
What the wheel forgets to ask for is not there.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import venv
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from zipfile import ZipFile

from packaging.requirements import Requirement

OURS = "inductor-lab"


@dataclass(frozen=True)
class Environment:
    """`python` of a virtual environment, and a folder to run it in."""

    python: Path
    folder: Path

    def run(self, *command: str, seconds: float = 300.0) -> str:
        """What a command of this environment prints, errors too; fails with that if it fails."""
        env = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "PYTEST"))}
        env["PATH"] = f"{self.python.parent}{os.pathsep}{env.get('PATH', '')}"
        done = subprocess.run(command, cwd=self.folder, env=env, timeout=seconds, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)  # fmt: skip
        assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout[-6000:]}"
        return done.stdout


def make(
    folder: Path, wheel: Path, extras: Iterable[str] = (), only: Iterable[str] | None = None
) -> Environment:
    """Install the wheel into a new environment below `folder`, with the libraries it asks for, or
    with `only` these and what they ask for."""
    venv.create(folder / "venv", with_pip=False, symlinks=True)
    python = folder / "venv" / "bin" / "python"
    site = next((folder / "venv" / "lib").glob("python3*")) / "site-packages"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-deps",
           "--no-index", "--no-compile", str(wheel)]  # fmt: skip
    subprocess.run(pip, check=True, capture_output=True)
    for found in needed(required_by(wheel) if only is None else list(only), extras):
        link(found, site)
    (folder / "elsewhere").mkdir()
    return Environment(python, folder / "elsewhere")


def required_by(wheel: Path) -> list[str]:
    """The lines of the wheel's own metadata."""
    with ZipFile(wheel) as held:
        (name,) = (n for n in held.namelist() if n.endswith(".dist-info/METADATA"))
        return re.findall(r"^Requires-Dist: (.*)$", held.read(name).decode(), re.MULTILINE)


def needed(requires: list[str], extras: Iterable[str]) -> list[Distribution]:
    """The installed distributions that the requirements lead to, each with its own."""
    found: dict[str, Distribution] = {}
    seen: set[tuple[str, str]] = set()
    waiting = [(OURS, extra) for extra in ("", *extras)]
    while waiting:
        name, extra = waiting.pop()
        if (name, extra) in seen:
            continue
        seen.add((name, extra))
        if name != OURS:
            try:
                found[name] = distribution(name)
            except PackageNotFoundError:  # what runs here does without it, too
                continue
        for line in requires if name == OURS else found[name].requires or ():
            wanted = Requirement(line)
            if wanted.marker is None or wanted.marker.evaluate({"extra": extra}):
                known = re.sub(r"[-_.]+", "-", wanted.name).lower()
                waiting += [(known, also) for also in ("", *wanted.extras)]
    return list(found.values())


def link(found: Distribution, site: Path) -> None:
    """All top-level files and folders of a distribution, as links in `site`."""
    for name in {path.parts[0] for path in found.files or ()} - {"..", "__pycache__"}:
        if not (site / name).exists():
            (site / name).symlink_to(Path(str(found.locate_file(name))))
