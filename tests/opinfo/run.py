"""Check the compiler on torch's own operator database.

    python -m tests.opinfo.run                                all ops, float32, results in build/
    python -m tests.opinfo.run --dtypes float16 int64         other dtypes
    python -m tests.opinfo.run --gradients                    and their gradients
    python -m tests.opinfo.run --shard 2/8                    every eighth op, from the second
    python -m tests.opinfo.run --ops softmax 'nn.*pool' --samples 5 --fresh
    python -m tests.opinfo.run --table                        only print what is known so far

A run that was stopped goes on where it was.  Ends with status 1 if anything is wrong that
`known.toml` does not explain.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

from tests.opinfo.check import Settings
from tests.opinfo.roads import STAGES
from tests.opinfo.table import BAD, excused, failures, known, read, table
from tests.opinfo.workers import server, verdicts_of

BUILD = Path(__file__).parents[2] / "build"


def main(given: Sequence[str] | None = None) -> int:
    arguments = _parser().parse_args(given)
    settings = Settings(
        gradients=arguments.gradients,
        in_place=arguments.in_place,
        dynamic=arguments.dynamic,
        layout=arguments.layout,
        stage=arguments.stage,
        language=arguments.language,
        road=arguments.road,
        samples=arguments.samples,
    )
    results = arguments.results or BUILD / f"opinfo-{_label(settings)}.jsonl"
    if not arguments.table:
        _run(arguments, settings, results)
    verdicts = read(results)
    print(table(verdicts, known()))
    return int(any(v.verdict in BAD and not excused(v, known()) for v in verdicts))


def _run(arguments: argparse.Namespace, settings: Settings, results: Path) -> None:
    from tests.opinfo import database

    results.parent.mkdir(parents=True, exist_ok=True)
    complete = results.with_suffix(".done")
    if arguments.fresh:
        results.unlink(missing_ok=True)
        complete.unlink(missing_ok=True)
    finished = set(complete.read_text().splitlines()) if complete.exists() else set()
    before: dict[tuple[str, str], int] = {}
    for verdict in read(results):
        key = verdict.op, verdict.dtype
        before[key] = max(before.get(key, 0), verdict.sample + 1)
    chosen = _chosen(database.names(), arguments.ops, arguments.shard)
    todo = [
        (name, dtype)
        for dtype in arguments.dtypes
        for name in chosen
        if f"{name} {dtype}" not in finished
        and database.supports(database.find(name), database.DTYPES[dtype], settings.gradients)
    ]
    context, started = server(), time.time()
    with results.open("a", encoding="utf-8") as out, complete.open("a", encoding="utf-8") as done:
        for position, (name, dtype) in enumerate(todo, 1):
            wanted = replace(settings, dtype=dtype)
            first = before.get((name, dtype), 0)
            bad = []
            for verdict in verdicts_of(context, name, wanted, first=first, limit=arguments.limit):
                out.write(verdict.to_json() + "\n")
                out.flush()
                if verdict.verdict in BAD:
                    bad.append(verdict)
            done.write(f"{name} {dtype}\n")
            done.flush()
            if not arguments.quiet:
                minutes = (time.time() - started) / 60
                print(f"{minutes:6.1f} min  {position}/{len(todo)} {name} {dtype}", flush=True)
                print(*(f"    {line}\n" for line in failures(bad)), sep="", end="", flush=True)


def _chosen(names: Sequence[str], patterns: Sequence[str], shard: str) -> list[str]:
    wanted = [re.compile(pattern) for pattern in patterns]
    found = [n for n in names if not wanted or any(p.fullmatch(n) for p in wanted)]
    number, count = (int(part) for part in shard.split("/"))
    return found[number - 1 :: count]


def _label(settings: Settings) -> str:
    words = [
        settings.stage,
        *(["gradients"] if settings.gradients else []),
        *(["in-place"] if settings.in_place else []),
        *(["dynamic"] if settings.dynamic else []),
        *filter(None, (settings.layout, settings.language, settings.road)),
    ]
    return "-".join(words)


def _parser() -> argparse.ArgumentParser:
    from tests.opinfo import database

    parser = argparse.ArgumentParser(prog="tests.opinfo.run", description=__doc__.split("\n")[0])
    add = parser.add_argument
    add("--dtypes", nargs="+", default=["float32"], choices=list(database.DTYPES))
    add("--ops", nargs="+", default=[], help="names, or regular expressions for them")
    add("--shard", default="1/1", help="n/m: every m-th op, from the n-th on")
    add("--samples", type=int, default=0, help="at most so many of each op, spread over all")
    add("--stage", default="code", choices=STAGES, help="what runs; 'code' needs a C++ compiler")
    add("--language", default="", choices=["", "cpp", "triton"])
    add("--road", default="", choices=["", "aot", "dynamo"], help="how to capture; '': the shorter")
    add("--gradients", action="store_true")
    add("--in-place", action="store_true")
    add("--dynamic", action="store_true", help="symbolic sizes")
    add("--layout", default="", choices=["", *database.LAYOUTS])
    add("--limit", type=float, default=120.0, help="seconds for one sample")
    add("--results", type=Path, help="the file of results (JSON lines)")
    add("--fresh", action="store_true", help="forget earlier results")
    add("--table", action="store_true", help="run nothing")
    add("--quiet", action="store_true")
    return parser


if __name__ == "__main__":
    sys.exit(main())
