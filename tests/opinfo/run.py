"""Check the compiler on torch's own operator database.

    python -m tests.opinfo.run                                all ops, float32, results in build/
    python -m tests.opinfo.run --dtypes float16 int64         other dtypes
    python -m tests.opinfo.run --gradients                    and their gradients
    python -m tests.opinfo.run --shard 2/8                    every eighth op, from the second
    python -m tests.opinfo.run --ops softmax 'nn.*pool' --samples 5 --fresh
    python -m tests.opinfo.run --language triton --representative --samples 8
    python -m tests.opinfo.run --device cuda --representative --samples 4
    python -m tests.opinfo.run --minutes 9 --jobs 16          so many processes, for so long
    python -m tests.opinfo.run --table                        only print what is known so far

A run that was stopped, or whose minutes are over, goes on where it was.  Ends with status 1 if
anything is wrong that `known.toml` does not explain.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import re
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

from tests.opinfo.check import Settings
from tests.opinfo.choice import REPRESENTATIVE
from tests.opinfo.roads import STAGES
from tests.opinfo.table import BAD, Results, excused, failures, known, read, sums, table
from tests.opinfo.workers import Outcome, Part, check
from tests.processes import Clock, gpu_server, in_parallel, server

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
        device=arguments.device,
        reference=arguments.reference,
    )
    results = arguments.results or BUILD / f"opinfo-{_label(settings)}.jsonl"
    if arguments.fresh:
        results.unlink(missing_ok=True)
    todo, clock = _todo(arguments, settings), Clock(arguments.minutes)
    if not arguments.table:
        _run(arguments, todo, results, clock)
    found = read(results)
    left = [f"{op} {wanted.dtype}" for op, wanted in todo if found.unfinished(op, wanted.dtype)]
    print(table(found.verdicts, known()))
    print(f"{len(todo) - len(left)} of {len(todo)} (op, dtype) finished in {results}")
    if arguments.summary:
        arguments.summary.write_text(_summary(settings, found, left, clock.passed))
    return int(any(v.verdict in BAD and not excused(v, known()) for v in found.verdicts))


def _todo(arguments: argparse.Namespace, settings: Settings) -> list[tuple[str, Settings]]:
    """Ops and dtypes, well mixed: a run that is stopped has seen a bit of everything."""
    from tests.opinfo import database

    patterns = [*arguments.ops, *(REPRESENTATIVE if arguments.representative else ())]
    todo = [
        (name, replace(settings, dtype=dtype))
        for dtype in arguments.dtypes
        for name in _chosen(database.names(), patterns, arguments.shard)
        if database.supports(
            database.find(name), database.DTYPES[dtype], settings.gradients, settings.device
        )
    ]
    random.Random(0).shuffle(todo)
    return todo


def _run(
    arguments: argparse.Namespace,
    todo: Sequence[tuple[str, Settings]],
    results: Path,
    clock: Clock,
) -> None:
    results.parent.mkdir(parents=True, exist_ok=True)
    on_gpu = arguments.device == "cuda"
    before = read(results)
    context = gpu_server("tests.opinfo.warm_gpu") if on_gpu else server("tests.opinfo.warm")
    parts = [
        Part(op, settings, before.known(op, settings.dtype))
        for op, settings in todo
        if before.unfinished(op, settings.dtype)
    ]

    def do(part: Part) -> tuple[Outcome, list[Part]]:
        return check(context, part, arguments.limit, clock)

    with results.open("a", encoding="utf-8") as out:
        for number, outcome in enumerate(in_parallel(do, parts, arguments.jobs, clock), 1):
            op, dtype = outcome.part.op, outcome.part.settings.dtype
            if outcome.count is not None:
                out.write(json.dumps({"op": op, "dtype": dtype, "samples": outcome.count}) + "\n")
            out.writelines(verdict.to_json() + "\n" for verdict in outcome.verdicts)
            out.flush()
            if not arguments.quiet:
                print(f"{clock.passed / 60:6.1f} min  {number}: {op} {dtype}", flush=True)
                bad = failures(outcome.verdicts)
                print(*(f"    {line}\n" for line in bad), sep="", end="", flush=True)


def _chosen(names: Sequence[str], patterns: Sequence[str], shard: str) -> list[str]:
    wanted = [re.compile(pattern) for pattern in patterns]
    found = [n for n in names if not wanted or any(p.fullmatch(n) for p in wanted)]
    number, count = (int(part) for part in shard.split("/"))
    return found[number - 1 :: count]


def _summary(settings: Settings, found: Results, left: Sequence[str], seconds: float) -> str:
    """The table for programs, as JSON."""
    import torch

    content = {
        "settings": asdict(settings),
        "torch": torch.__version__,
        "python": platform.python_version(),
        "seconds": round(seconds),
        "dtypes": [asdict(one) for one in sums(found.verdicts, known())],
        "failures": failures(found.verdicts, known()),
        "unfinished": left,
    }
    return json.dumps(content, indent=1)


def _label(settings: Settings) -> str:
    words = [
        settings.stage,
        *(["gradients"] if settings.gradients else []),
        *(["in-place"] if settings.in_place else []),
        *(["dynamic"] if settings.dynamic else []),
        *(["reference"] if settings.reference else []),
        *([f"{settings.samples}-samples"] if settings.samples else []),
        *filter(None, (settings.layout, settings.language, settings.road)),
        *(["gpu"] if settings.device == "cuda" else []),
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
    add("--reference", action="store_true", help="torch's reference inputs: more of them")
    add("--device", default="cpu", choices=["cpu", "cuda"])
    add("--layout", default="", choices=["", *database.LAYOUTS])
    add("--representative", action="store_true", help="a hundred ops of every family")
    add("--jobs", type=int, default=os.cpu_count(), help="processes at a time, of one thread each")
    add("--minutes", type=float, default=0.0, help="stop after so long and print what is known")
    add("--limit", type=float, default=120.0, help="seconds for one sample")
    add("--results", type=Path, help="the file of results (JSON lines)")
    add("--summary", type=Path, help="also write the sums and failures there, as JSON")
    add("--fresh", action="store_true", help="forget earlier results")
    add("--table", action="store_true", help="run nothing")
    add("--quiet", action="store_true")
    return parser


if __name__ == "__main__":
    sys.exit(main())
