"""What has passed, and when: `History` for the sources as they are now, `Memory` across commits."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path

from platformdirs import user_cache_path

from tests.runner.changes import git
from tests.runner.parts import ROOT, Part


def kept_folder() -> Path:
    """What `.ci/run` keeps between commits, where the machine lives on."""
    named = os.environ.get("INDUCTOR_LAB_TEST_MEMORY")
    return Path(named) if named else user_cache_path("inductor_lab_tests")


@dataclass(frozen=True)
class Done:
    passed: bool
    seconds: float
    cpu: float


def fingerprint() -> str:
    """Of all sources: two checkouts with the same files have the same."""
    names = git("ls-files", "--cached", "--others", "--exclude-standard")
    digest = hashlib.sha256()
    for name in sorted(set(names)):
        path = ROOT / name
        if path.is_file():
            digest.update(f"{name}\0".encode() + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


@dataclass
class History:
    """Runs for one state of the sources, in `build/checked`: `make check` goes on from there."""

    path: Path
    runs: dict[str, Done] = field(default_factory=dict)

    @classmethod
    def open(cls, build: Path) -> History:
        path = build / "checked" / f"{fingerprint()}.json"
        if not path.exists():
            return cls(path)
        found = json.loads(path.read_text(encoding="utf-8"))
        return cls(path, {name: Done(**one) for name, one in found.items()})

    def passed(self, name: str) -> bool:
        return name in self.runs and self.runs[name].passed

    def add(self, name: str, run: Done) -> None:
        self.runs[name] = run
        write(self.path, {name: asdict(one) for name, one in self.runs.items()})


@dataclass
class Memory:
    """Runs of earlier commits, in the user's cache directory: how long each part took, and for how
    many runs of `.ci/run` it has not run.  A lost file costs nothing but the better order."""

    path: Path
    commit: str = ""
    seconds: dict[str, float] = field(default_factory=dict)
    missed: dict[str, int] = field(default_factory=dict)

    @classmethod
    def open(cls) -> Memory:
        path = kept_folder() / "parts.json"
        try:
            return cls(path, **json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            return cls(path)

    def expected(self, part: Part) -> float:
        """Seconds that a part will take."""
        return self.seconds.get(part.name, 60 * part.minutes)

    def add(self, name: str, run: Done) -> None:
        self.seconds[name] = max(run.seconds, 0 if run.passed else self.seconds.get(name, 0))
        self.missed[name] = 0
        self.save()

    def finish(self, skipped: list[str]) -> None:
        for name in skipped:
            self.missed[name] = self.missed.get(name, 0) + 1
        self.commit = "".join(git("rev-parse", "HEAD"))
        self.save()

    def save(self) -> None:
        """Where nothing can be kept, nothing is."""
        try:
            found = {"commit": self.commit, "seconds": self.seconds, "missed": self.missed}
            write(self.path, found)
        except OSError:
            pass


def write(path: Path, found: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_suffix(f".{os.getpid()}")
    new.write_text(json.dumps(found, indent=1), encoding="utf-8")
    new.replace(path)
