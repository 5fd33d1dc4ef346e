"""Check many random programs: `python -m tests.fuzz.run --programs 5000 --seed 1`.

Programs are drawn and checked in batches, each in a process of its own.  A run that was stopped, or
whose minutes are over, goes on where it was.  Programs that fail are made as small as they still
fail in the same way, and printed; the last lines have one for each failure: seed, way, error.
`--page FILE` writes a table as Markdown.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as seeded

from tests.fuzz import sanitizer
from tests.fuzz.check import CRASHES, check
from tests.fuzz.eager import Wrong, known
from tests.fuzz.page import page
from tests.fuzz.program import Program, programs
from tests.fuzz.shrink import failure, kind_of, shrunk
from tests.processes import (
    CRASH,
    STOPPED,
    Clock,
    Lost,
    gpu_server,
    in_parallel,
    messages,
    server,
)

BUILD = Path(__file__).parents[2] / "build"
WAYS: dict[str, dict[str, Any]] = {
    "default": {},
    "dynamic": {"dynamic": True},
    "unfused": {"fusion": False},
    "simple loops": {"passes_off": "all"},
    "triton": {"language": "triton"},
    "symbolic triton": {"language": "triton", "dynamic": True},
    "ptx": {"language": "triton", "target": "cuda:90"},
    "symbolic ptx": {"language": "triton", "target": "cuda:90", "dynamic": True},
    "gradients": {"gradients": True},
    "sizes": {"sizes": True},
    "threads": {"threads": 3},
    "gpu": {"device": "cuda"},
    "gpu gradients": {"device": "cuda", "gradients": True},
    "gpu sizes": {"device": "cuda", "sizes": True},
    "bounds": {"check_bounds": True},
    "numbers": {"numbers": True},
    "numbers with bounds": {"numbers": True, "check_bounds": True},
    "numbers and gradients": {"numbers": True, "gradients": True},
    "numbers in triton": {"numbers": True, "language": "triton", "check_bounds": True},
    "aliases": {"aliases": True},
    "aliases and gradients": {"aliases": True, "gradients": True},
    "aliases and sizes": {"aliases": True, "sizes": True},
    "aliases unfused": {"aliases": True, "fusion": False},
}
TURNS = ("default", "gradients", "sizes", "unfused", "threads", "dynamic", "triton", "gradients",
         "default", "sizes", "simple loops", "symbolic triton", "bounds", "numbers",
         "numbers with bounds", "numbers and gradients", "numbers",
         "numbers in triton", "aliases", "aliases and gradients", "aliases and sizes",
         "aliases", "aliases and gradients")  # fmt: skip
"""The ways of the batches, one after the other."""
TURNS_ON_GPU = ("gpu", "gpu gradients", "gpu sizes")
BATCH = 25
LINES = (10, 40)
"""A program has at least so many lines, and at most."""


@dataclass(frozen=True)
class Excused:
    """A program passed for a reason, although not all of its results agreed."""

    excuse: str


@dataclass(frozen=True)
class Batch:
    """Programs drawn from a seed, and what came of them."""

    seed: int
    way: str
    count: int
    checked: int = 0
    failures: tuple[str, ...] = ()
    check_bounds: bool = False
    excused: dict[str, int] = field(default_factory=dict)
    """Excuse (EXCUSES in `check.py`) → number of programs that passed with it."""
    torch: str = ""

    @property
    def finished(self) -> bool:
        return self.checked >= self.count or bool(self.failures)


def fuzz(count: int, seed: int, way: str = "default") -> None:
    """Check `count` programs drawn from `seed`; raises Wrong for the first one that fails."""

    def use(program: Program) -> None:
        first = failure(_checked(way), program)
        if first is not None:
            smallest, why = shrunk(_checked(way), program, first)
            raise Wrong(f"seed {seed}, {way}: {why}\n{smallest}")

    draw(count, seed, use, way)


def draw(
    count: int, seed: int, use: Callable[[Program], None], way: str, lines: tuple[int, int] = LINES
) -> None:
    """Call `use` with each of the programs drawn from `seed` for a way to compile."""

    @seeded(seed)
    @settings(
        max_examples=count,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False,
    )
    @given(programs(*lines, **{kind: kind in WAYS[way] for kind in ("numbers", "aliases")}))
    def every(program: Program) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            use(program)

    every()


def _checked(way: str, check_bounds: bool = False) -> Callable[[Program], str]:
    more = {"check_bounds": True} if check_bounds else {}
    return lambda program: check(program, **{**WAYS[way], **more})


def _work(send: Callable[[Any], None], batch: Batch, shrink: bool, first: int = 0) -> None:
    """What a process does: send each program before it is checked, each failure and excuse.

    The programs before number `first` are left out.
    """
    kinds: set[str] = set()
    run = _checked(batch.way, batch.check_bounds)
    numbers = itertools.count()

    def excusing(program: Program) -> None:
        excuse = run(program)
        if excuse:
            send(Excused(excuse))

    def use(program: Program) -> None:
        if next(numbers) < first:
            return
        send(program)
        why = failure(excusing, program)
        if why is None:
            return
        if shrink and kind_of(why) not in kinds:
            kinds.add(kind_of(why))
            program, why = shrunk(run, program, why)
        send(f"{why}\n{program}")

    draw(batch.count, batch.seed, use, batch.way)


def _in_eager_mode(send: Callable[[Any], None], program: Program, gradients: bool) -> None:
    """What a process does that finds out whether eager mode ends it."""
    with suppress(Exception):
        known(program.with_copies() if gradients else program, gradients)


def _ends_eager_mode(
    context: Any, program: Program, way: str, limit: float, clock: Clock
) -> bool:
    """Does a process end that runs the program in eager mode alone?"""
    arguments = program, WAYS[way].get("gradients", False)
    said = messages(context, _in_eager_mode, arguments, limit, clock)
    return any(one.how == CRASH for one in said)


def run_batch(
    context: Any, batch: Batch, shrink: bool, limit: float, clock: Clock
) -> tuple[Batch, tuple[()]]:
    """The batch with what came of it; `limit` is in seconds per program.

    Where a program ends the process in eager mode too, the batch goes on behind it.
    """
    drawn, failures, last = 0, [], None
    excused: Counter[str] = Counter()
    again = True
    while again:
        again = False
        for message in messages(context, _work, (batch, shrink, drawn), limit, clock):
            match message:
                case Program():
                    drawn, last = drawn + 1, message
                case Excused(excuse):
                    excused[excuse] += 1
                case str():
                    failures.append(message)
                case Lost(how, why) if how == CRASH and last is not None:
                    again = _ends_eager_mode(context, last, batch.way, limit, clock)
                    if again:
                        excused[CRASHES] += 1
                    else:
                        failures.append(f"{how}: {why}\n{last}")
                case Lost(how, why) if how != STOPPED:
                    failures.append(f"{how}: {why}\n{last or ''}")
                case Lost():
                    drawn -= bool(drawn)
    found = replace(batch, checked=drawn, failures=tuple(failures), excused=dict(excused),
                    torch=torch.__version__.partition("+")[0])  # fmt: skip
    return found, ()


def main(given: Sequence[str] | None = None) -> int:
    given = sys.argv[1:] if given is None else list(given)
    arguments = _parser().parse_args(given)
    if arguments.sanitizer and not sanitizer.is_on():
        again = [sys.executable, "-m", "tests.fuzz.run", *given]
        return sanitizer.run_again(again, BUILD / "sanitizer")
    results = arguments.results or BUILD / f"fuzz-{arguments.seed}.jsonl"
    results.parent.mkdir(parents=True, exist_ok=True)
    if arguments.fresh:
        results.unlink(missing_ok=True)
    before = {(one.seed, one.way): one for one in _read(results) if one.finished}
    batches = [b for b in _batches(arguments) if (b.seed, b.way) not in before]
    on_gpu = any(WAYS[batch.way].get("device") for batch in batches)
    context = gpu_server("tests.fuzz.warm_gpu") if on_gpu else server("tests.fuzz.warm")
    clock = Clock(arguments.minutes)

    def do(batch: Batch) -> tuple[Batch, tuple[()]]:
        return run_batch(context, batch, not arguments.no_shrink, arguments.limit, clock)

    with results.open("a", encoding="utf-8") as out:
        for batch in in_parallel(do, batches, arguments.jobs, clock):
            out.write(json.dumps(asdict(batch)) + "\n")
            out.flush()
            said = "FAIL\n" + "\n".join(batch.failures) if batch.failures else "agree"
            number = f"{batch.checked} programs, seed {batch.seed}, {batch.way}"
            print(f"{clock.passed / 60:6.1f} min  {number}: {said}", flush=True)
    found = list({(one.seed, one.way): one for one in _read(results)}.values())
    print(_table(found))
    if arguments.page:
        arguments.page.write_text(page(found), encoding="utf-8")
    if arguments.summary:
        bad = [asdict(one) for one in found if one.failures]
        content = {"checked": _sums(found), "seconds": round(clock.passed), "failures": bad}
        arguments.summary.write_text(json.dumps(content, indent=1))
    return int(any(one.failures for one in found))


def _batches(arguments: argparse.Namespace) -> list[Batch]:
    count, first = arguments.programs, arguments.seed * 1_000_000
    turns = TURNS_ON_GPU if arguments.gpu else TURNS
    return [
        Batch(
            first + number,
            arguments.way or turns[number % len(turns)],
            min(BATCH, count - number * BATCH),
            check_bounds=arguments.check_bounds,
        )
        for number in range(-(-count // BATCH))
    ]


def _read(results: Path) -> list[Batch]:
    if not results.exists():
        return []
    lines = results.read_text(encoding="utf-8").splitlines()
    return [Batch(**json.loads(line)) for line in lines]


def _sums(batches: Sequence[Batch]) -> dict[str, int]:
    """Programs that were checked, by the way they were compiled."""
    sums: Counter[str] = Counter()
    for batch in batches:
        sums[batch.way] += batch.checked
    return dict(sums)


def _table(batches: Sequence[Batch]) -> str:
    bad: Counter[str] = Counter()
    for batch in batches:
        bad[batch.way] += len(batch.failures)
    rows = [
        f"{way:22} {n:6d} programs  {bad[way]:4d} failures" for way, n in _sums(batches).items()
    ]
    for batch in batches:
        for text in batch.failures:
            rows.append(f"seed {batch.seed}  {batch.way:10} {text.splitlines()[0]}")
    return "\n".join([*rows, f"{bad.total()} failures" if bad.total() else "all agree"])


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="tests.fuzz.run", description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--programs", type=int, default=5000)
    add("--seed", type=int, default=0)
    add("--way", choices=WAYS, help="only one of the ways to compile")
    add("--gpu", action="store_true", help="programs on tensors of a GPU")
    add("--check-bounds", action="store_true", help="check reads and writes of all kernels")
    add("--sanitizer", action="store_true", help="kernels under GCC's address sanitizer (Linux)")
    add("--no-shrink", action="store_true", help="leave failing programs as long as they are")
    add("--jobs", type=int, default=os.cpu_count(), help="processes at a time, of one thread each")
    add("--minutes", type=float, default=0.0, help="stop after so long and print what is known")
    add("--limit", type=float, default=300.0, help="seconds for one program, shrinking included")
    add("--results", type=Path, help="the file of results (JSON lines)")
    add("--summary", type=Path, help="also write the sums and failures there, as JSON")
    add("--page", type=Path, help="write the table there, as Markdown")
    add("--fresh", action="store_true", help="forget earlier results")
    return parser


if __name__ == "__main__":
    sys.exit(main())
