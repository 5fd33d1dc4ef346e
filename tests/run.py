"""Run the checks of the project: `make test`, `make check` and `.ci/run` call this.

    python -m tests.run test                     ruff, mypy and the tests that must be quick
    python -m tests.run check [PART ...]         every test, part by part; goes on where it stopped
    python -m tests.run ci --minutes 50          `test`, then parts of `check` while time is left
    python -m tests.run parts                    the parts, and how long they took

tests/runner/left_out.toml says which tests `test` leaves to `check`; tests/runner/parts.py names
the parts.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tests.fresh import KEPT
from tests.runner.history import Done, History, Memory, kept_folder
from tests.runner.order import in_order
from tests.runner.parts import PARTS, ROOT, Part, named
from tests.runner.record import Record, closing_line

BUILD = ROOT / "build"
SLOW_SECONDS = 20.0
PARTS_MINUTES = 35.0


@dataclass(frozen=True)
class Outcome:
    """One command: its exit status, what pytest recorded, seconds of the clock and of the CPUs.

    `repeated`: tests that have only passed when they ran once more.
    """

    name: str
    status: int
    seconds: float
    cpu: float
    record: Record
    in_time: bool = True
    repeated: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        return self.status == 0 and self.in_time

    @property
    def failed(self) -> bool:
        return self.status != 0 and (self.in_time or bool(self.record.failed))

    @property
    def verdict(self) -> str:
        if self.failed:
            return "FAILED"
        return "passed" if self.in_time else "not finished"


class Command:
    """A process, started at once, with its seconds of the CPUs (those of its children too)."""

    def __init__(self, name: str, command: Sequence[str], log: Path | None = None) -> None:
        self.name, self.log = name, log
        self.begin = time.monotonic()
        output = log.open("wb") if log else None
        errors = subprocess.STDOUT if log else None
        self.process = subprocess.Popen(
            command, cwd=ROOT, env=environment(), stdout=output, stderr=errors
        )

    def finish(self, record: Path | None = None, limit: float | None = None) -> Outcome:
        """Wait; after `limit` seconds interrupt it as Ctrl-C does."""
        before, in_time = children_seconds(), True
        try:
            status = self.process.wait(limit)
        except subprocess.TimeoutExpired:
            in_time = False
            self.process.send_signal(2)
            status = self.process.wait()
        seconds, cpu = time.monotonic() - self.begin, children_seconds() - before
        found = Record.load(record) if record else Record()
        return Outcome(self.name, status, seconds, cpu, found, in_time)


def children_seconds() -> float:
    times = os.times()
    return times.children_user + times.children_system


def environment() -> dict[str, str]:
    """Python keeps bytecode: dozens of tests start processes that import our sources."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {"OMP_WAIT_POLICY": "passive", **kept}


def run_tests(
    name: str,
    take: str,
    paths: Sequence[str],
    jobs: int,
    limit: float | None = None,
    dist: str = "worksteal",
) -> Outcome:
    record = BUILD / "records" / f"{name}.json"
    record.unlink(missing_ok=True)
    options = ["-n", str(jobs), f"--dist={dist}", f"--take={take}", f"--record={record}"]
    print(f"\n== {name}: pytest {' '.join(options)} {' '.join(paths)}", flush=True)
    command = Command(name, [sys.executable, "-m", "pytest", *options, *paths])
    return without_tests(command.finish(record, limit), take)


def run_part(part: Part, take: str, jobs: int, limit: float | None = None) -> Outcome:
    dist = "loadfile" if part.by_file else "worksteal"
    first = run_tests(part.name, take, part.paths, jobs, limit, dist)
    if not (part.twice and first.in_time and first.record.failed):
        return first
    files = sorted({name.partition("::")[0] for name in first.record.failed})
    again = run_tests(f"{part.name}, again", "all", files, 1, dist=dist)
    seconds, cpu = first.seconds + again.seconds, first.cpu + again.cpu
    if not again.passed:
        return replace(first, seconds=seconds, cpu=cpu)
    return Outcome(first.name, 0, seconds, cpu, first.record.without_failures(),
                   repeated=tuple(first.record.failed))  # fmt: skip


def without_tests(outcome: Outcome, take: str) -> Outcome:
    """A part of which `make test` leaves nothing out has passed; pytest's status for it is 5."""
    nothing = take == "rest" and outcome.status == 5
    return replace(outcome, status=0) if nothing else outcome


def start_lint() -> list[Command]:
    """ruff and mypy, next to the tests; what they print goes to build/records."""
    link = ROOT / ".mypy" / "inductor_lab" / "widgets"  # mypy finds widgets/ by its package name
    link.parent.mkdir(parents=True, exist_ok=True)
    if not link.is_symlink():
        link.symlink_to(Path("..", "..", "widgets"), target_is_directory=True)
    folder = BUILD / "records"
    folder.mkdir(parents=True, exist_ok=True)
    commands = {"ruff": ["ruff", "check", "."], "mypy": ["mypy"]}
    return [
        Command(name, [sys.executable, "-m", *command], folder / f"{name}.txt")
        for name, command in commands.items()
    ]


def finish_lint(commands: list[Command]) -> list[Outcome]:
    outcomes = [command.finish() for command in commands]
    for command, outcome in zip(commands, outcomes, strict=True):
        if outcome.failed and command.log:
            print(f"\n== {command.name}\n{command.log.read_text(encoding='utf-8')}")
    return outcomes


def quick(jobs: int) -> list[Outcome]:
    """What `make test` runs."""
    lint = start_lint()
    tests = run_tests("test", "quick", (), jobs)
    return [*finish_lint(lint), tests]


def table(outcomes: Sequence[Outcome]) -> str:
    lines = [f"{'':16}{'tests':>8}{'failed':>8}{'minutes':>9}{'CPU min':>9}"]
    for one in outcomes:
        tests = sum(one.record.counts.values())
        failed = len(one.record.failed)
        times = f"{one.seconds / 60:9.1f}{one.cpu / 60:9.1f}"
        lines.append(f"{one.name:16}{tests or '':>8}{failed or '':>8}{times}  {one.verdict}")
    return "\n".join(lines)


def report(outcomes: Sequence[Outcome], begin: float) -> int:
    """The table, failed tests, and the closing line; the exit status."""
    print(f"\n{table(outcomes)}")
    for one in outcomes:
        for name in one.record.failed:
            print(f"FAILED {name}")
        for name in one.repeated:
            print(f"passed only when it ran once more: {name}")
    counts: Counter[str] = Counter()
    for one in outcomes:
        counts.update(one.record.counts)
    broken = [one.name for one in outcomes if one.failed and not one.record.failed]
    if broken:
        print(f"failed: {', '.join(broken)}")
    print(closing_line(counts, time.monotonic() - begin))
    return int(any(one.failed for one in outcomes))


def not_run(record: Record) -> str:
    """What `make test` has not run, by part, and how to run it."""
    files = [name.partition("::")[0] for name in record.left]
    counts = {part.name: sum(map(part.holds, files)) for part in PARTS}
    parts = ", ".join(f"{name} {count}" for name, count in counts.items() if count)
    return (
        f"\nNot run: {len(files)} tests, which `make check` runs ({parts}).\n"
        'All of them: make check.  Some: make check PARTS="codegen browser".'
    )


def too_slow(record: Record) -> str:
    slow = {name: s for name, s in record.seconds.items() if s > SLOW_SECONDS}
    lines = [f"{s:6.1f} s  {name}" for name, s in sorted(slow.items(), key=lambda item: -item[1])]
    head = "\nSlow tests of `make test` (make them faster, or list them in left_out.toml):\n"
    return head + "\n".join(lines) if lines else ""


def command_test(given: argparse.Namespace) -> int:
    begin = time.monotonic()
    if given.paths:
        outcomes = [*finish_lint(start_lint()), run_tests("some", "all", given.paths, given.jobs)]
        return report(outcomes, begin)
    outcomes = quick(given.jobs)
    History.open(BUILD).add("test", done(*outcomes))
    print(too_slow(outcomes[-1].record))
    print(not_run(outcomes[-1].record))
    return report(outcomes, begin)


def command_check(given: argparse.Namespace) -> int:
    """Parts that have passed for these very sources are not run again."""
    begin, outcomes = time.monotonic(), []
    parts, history = named(given.parts), History.open(BUILD)
    if not given.parts and not history.passed("test"):
        outcomes = quick(given.jobs)
        history.add("test", done(*outcomes))
    take = "rest" if outcomes or history.passed("test") else "all"
    for part in parts:
        if history.passed(part.name) and not given.again:
            print(f"{part.name}: passed before, for the same sources (AGAIN=1 runs it again)")
            continue
        outcome = run_part(part, take, given.jobs)
        history.add(part.name, done(outcome))
        outcomes.append(outcome)
    return report(outcomes, begin)


def done(*outcomes: Outcome) -> Done:
    passed = all(outcome.passed for outcome in outcomes)
    return Done(passed, outcomes[-1].seconds, sum(outcome.cpu for outcome in outcomes))


def command_ci(given: argparse.Namespace) -> int:
    begin = time.monotonic()
    os.environ.setdefault(KEPT, str(kept_folder() / "caches"))
    outcomes = quick(given.jobs)
    used = time.monotonic() - begin
    end = begin + min(60 * given.minutes, used + 60 * PARTS_MINUTES)
    memory = Memory.open()
    order = in_order(PARTS, memory, given.since)
    skipped: list[Part] = []
    for part in order:
        left = end - time.monotonic()
        if memory.expected(part) > left:
            skipped.append(part)
            continue
        outcome = run_part(part, "rest", given.jobs, left)
        memory.add(part.name, done(outcome))
        outcomes.append(outcome)
    memory.finish([part.name for part in skipped])
    ran = [outcome.name for outcome in outcomes[3:]]
    print(f"\nParts of `make check` that ran: {', '.join(ran) or 'none'}.")
    print(f"Parts that did not: {', '.join(part.name for part in skipped) or 'none'}.")
    return report(outcomes, begin)


def command_parts(given: argparse.Namespace) -> int:
    memory, history = Memory.open(), History.open(BUILD)
    for part in PARTS:
        minutes = f"{memory.expected(part) / 60:5.1f} min"
        passed = "  (passed, for these sources)" if history.passed(part.name) else ""
        print(f"{part.name:13}{minutes}  {' '.join(part.paths)}{passed}")
    return 0


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="python -m tests.run",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    cores = min(os.cpu_count() or 2, 4)
    made.add_argument("--jobs", type=int, default=cores, help=f"processes at a time ({cores})")
    commands = made.add_subparsers(required=True)
    test = commands.add_parser("test", help="ruff, mypy and the quick tests; all tests of PATHS")
    test.add_argument("paths", nargs="*")
    test.set_defaults(run=command_test)
    check = commands.add_parser("check", help="every test, part by part")
    check.add_argument("parts", nargs="*", metavar="PART")
    check.add_argument("--again", action="store_true", help="parts that have passed too")
    check.set_defaults(run=command_check)
    ci = commands.add_parser("ci", help="test, then parts of check while time is left")
    ci.add_argument("--minutes", type=float, default=50.0, help="for everything (50)")
    ci.add_argument("--since", help="the commit with which to compare (the last one that was run)")
    ci.set_defaults(run=command_ci)
    commands.add_parser("parts", help="list the parts").set_defaults(run=command_parts)
    return made


def main() -> int:
    given = parser().parse_args()
    try:
        return int(given.run(given))
    except KeyboardInterrupt:
        print("\nstopped; `make check` does not run again what has passed")
        return 130


if __name__ == "__main__":
    sys.exit(main())
