"""What a run of pytest did, as data: `pytest --record FILE` writes it, `tests/run.py` reads it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pytest

OUTCOMES = ("failed", "passed", "skipped", "xfailed", "xpassed", "error")


@dataclass
class Record:
    """`counts` by outcome; `seconds` of each test, with its fixtures; `left`: tests not taken."""

    counts: dict[str, int] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    left: list[str] = field(default_factory=list)

    def save(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(asdict(self)), encoding="utf-8")

    def without_failures(self) -> Record:
        """Where the failed tests have passed when they ran once more."""
        counts = Counter(self.counts)
        for name in ("failed", "error"):
            counts["passed"] += counts.pop(name, 0)
        return Record(dict(counts), [], self.seconds, self.left)

    @classmethod
    def load(cls, path: Path) -> Record:
        """An empty record where pytest wrote none: it could not begin, or was killed."""
        return cls(**json.loads(path.read_text(encoding="utf-8"))) if path.exists() else cls()


def record_of(stats: Mapping[str, list[Any]], left: Iterable[str]) -> Record:
    """From the reports that pytest's terminal reporter has kept."""
    seconds: Counter[str] = Counter()
    for found in stats.values():
        for report in found:
            if isinstance(report, pytest.TestReport):
                seconds[report.nodeid] += report.duration
    bad = [report.nodeid for name in ("failed", "error") for report in stats.get(name, ())]
    counts = {name: len(stats[name]) for name in OUTCOMES if stats.get(name)}
    rounded = {name: round(value, 3) for name, value in seconds.items()}
    return Record(counts, bad, rounded, sorted(left))


def closing_line(counts: Mapping[str, int], seconds: float) -> str:
    """The sum of several runs, in the form of pytest's closing line.

    >>> closing_line({"failed": 1, "passed": 20}, 2.5)
    '1 failed, 20 passed in 2.50s'
    """
    parts = [f"{counts[name]} {name}" for name in OUTCOMES if counts.get(name)]
    return f"{', '.join(parts) or 'no tests ran'} in {seconds:.2f}s"


class Recorder:
    """The plugin.  With pytest-xdist, workers choose the tests and the controller has the reports:
    a worker sends what it left out when it ends."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.left: set[str] = set()

    def pytest_deselected(self, items: list[pytest.Item]) -> None:
        self.left.update(item.nodeid for item in items)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        output = getattr(session.config, "workeroutput", None)
        if output is not None:
            output["left"] = sorted(self.left)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        self.left.update(getattr(node, "workeroutput", {}).get("left", ()))

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if self.path is not None:
            record_of(terminalreporter.stats, self.left).save(self.path)
