"""Check many random programs: `python -m tests.fuzz.run --programs 5000 --seed 1`.

A program that fails is made as small as hypothesis can make it, and printed.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from typing import Any

import torch
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as seeded

from tests.fuzz.check import check
from tests.fuzz.program import Program, programs

WAYS: dict[str, dict[str, Any]] = {
    "default": {},
    "dynamic": {"dynamic": True},
    "unfused": {"fusion": False},
    "triton": {"language": "triton"},
}
BATCH = 100


def fuzz(count: int, seed: int, way: str = "default", shrink: bool = True) -> None:
    """Check `count` programs drawn from `seed`; raises Wrong for a smallest one that fails."""
    phases = [Phase.generate, *([Phase.shrink] if shrink else [])]

    @seeded(seed)
    @settings(
        max_examples=count,
        deadline=None,
        database=None,
        phases=phases,
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False,
    )
    @given(programs())
    def every(program: Program) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            check(program, **WAYS[way])

    every()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--programs", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--way", choices=WAYS, help="only one of the ways to compile")
    parser.add_argument("--no-shrink", action="store_true", help="print failures as they are")
    options = parser.parse_args()
    torch.set_num_threads(1)
    failures, start = 0, time.perf_counter()
    for batch in range(-(-options.programs // BATCH)):
        way = options.way or ("default", "dynamic", "default", "unfused")[batch % 4]
        count = min(BATCH, options.programs - batch * BATCH)
        seed = options.seed * 1_000_000 + batch
        try:
            fuzz(count, seed, way, shrink=not options.no_shrink)
            said = "agree"
        except Exception as wrong:
            failures += 1
            said = f"FAIL\n{type(wrong).__name__}: {wrong}"
            said += "\n" + "\n".join(getattr(wrong, "__notes__", ()))
        seconds = time.perf_counter() - start
        print(f"{seconds:6.0f} s  seed {seed}  {way}: {count} programs {said}", flush=True)
    print(f"{failures} batches failed" if failures else "all agree")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
