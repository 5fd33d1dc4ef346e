"""The battery of faults: `python -m tests.faults.run [--short] [--seed N] [--only FAMILY ...]`.

Each family breaks one thing around the compiler, many times, and says what became of each attempt:
it worked, it was refused in clear words, or it is a defect.  Prints a table; ends with 1 if there
is a defect.
"""

from __future__ import annotations

import argparse
import io
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from tests.faults import (
    cache_files,
    compilers,
    folders,
    interrupts,
    long_runs,
    many_processes,
    saved_files,
    surroundings,
    trace_logs,
    weights,
)
from tests.faults import pages as hostile_pages
from tests.faults.outcome import CLEAR, DEFECT, OK, SKIPPED, Tried
from tests.faults.plan import Family, Plan

FAMILIES: dict[str, Family] = {
    "saved files": saved_files.tries,
    "hostile pages": hostile_pages.tries,
    "trace logs": trace_logs.tries,
    "cache files": cache_files.tries,
    "folders": folders.tries,
    "many processes": many_processes.tries,
    "interrupts": interrupts.tries,
    "compilers": compilers.tries,
    "surroundings": surroundings.tries,
    "weights": weights.tries,
    "long runs": long_runs.tries,
}


def tried(name: str, short: bool, seed: int) -> Iterator[Tried]:
    """All attempts of a family, in an empty folder."""
    with tempfile.TemporaryDirectory(prefix="faults-", ignore_cleanup_errors=True) as folder:
        yield from FAMILIES[name](Plan(short, seed, Path(folder)))


def table(name: str, attempts: Iterable[Tried]) -> str:
    """One line for each kind of fault: the number of attempts, and the outcomes."""
    kinds: dict[str, Counter[str]] = {}
    for each in attempts:
        kinds.setdefault(each.what, Counter())[each.outcome] += 1
    lines = []
    for what, outcomes in kinds.items():
        counts = "".join(f"{outcomes[o] or '':>13}" for o in (OK, CLEAR, SKIPPED, DEFECT))
        lines.append(f"{name:16} {what:58} {outcomes.total():6}{counts}")
    return "\n".join(lines)


HEAD = f"{'family':16} {'what was tried':58} {'times':>6}" + "".join(
    f"{outcome:>13}" for outcome in (OK, CLEAR, SKIPPED, DEFECT)
)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults.run", description=__doc__)
    parser.add_argument("--short", action="store_true", help="a few of each kind, as in make check")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="*", default=list(FAMILIES), choices=list(FAMILIES),
                        metavar="FAMILY", help=", ".join(FAMILIES))  # fmt: skip
    given = parser.parse_args(arguments)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # hostile texts
    started, defects, count = time.monotonic(), [], 0
    print(HEAD, flush=True)
    for name in given.only:
        attempts = list(tried(name, given.short, given.seed))
        count += len(attempts)
        defects += [(name, each) for each in attempts if each.outcome == DEFECT]
        print(table(name, attempts), flush=True)
    print(f"\n{count} attempts, {len(defects)} defects, {time.monotonic() - started:.0f} s")
    for name, each in defects:
        print(f"  {name}: {each.what}: {each.detail}")
    return 1 if defects else 0


if __name__ == "__main__":
    sys.exit(main())
