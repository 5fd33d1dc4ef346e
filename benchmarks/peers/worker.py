"""One system and one workload in a separate process, which runs on request.

    python -m benchmarks.peers.worker "ours" "BERT-base 1x128" --threads 2 --result result.npy

It prints a line of JSON after the first call, and one for each line that it reads: the seconds for
which it shall call; it prints the seconds of each call.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.peers.systems import REFERENCE, SYSTEMS, CannotRun, as_array, pin
from benchmarks.peers.workloads import WORK

LEAST_CALLS = 2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("system", choices=[*SYSTEMS, REFERENCE.name])
    parser.add_argument("workload", choices=WORK)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--result", type=Path, required=True)
    given = parser.parse_args()
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # libraries print what is no answer

    def say(**what: Any) -> None:
        answers.write(json.dumps(what) + "\n")
        answers.flush()

    pin(given.threads)
    system = {**SYSTEMS, REFERENCE.name: REFERENCE}[given.system]
    start = time.perf_counter()
    try:
        call = system.prepare(WORK[given.workload], given.threads)
        result = as_array(call())
    except CannotRun as reason:
        say(failure=str(reason))
        return
    except Exception as error:
        lines = str(error).strip().splitlines() or [""]
        say(failure=f"{type(error).__name__}: {lines[0][:200]}")
        return
    np.save(given.result, result)
    say(first=time.perf_counter() - start)
    gc.disable()
    for line in sys.stdin:
        say(calls=calls(call, float(line)))


def calls(call: Any, seconds: float) -> list[float]:
    """Call for so long; the seconds of each call."""
    took, end = [], time.perf_counter() + seconds
    while len(took) < LEAST_CALLS or time.perf_counter() < end:
        start = time.perf_counter()
        call()
        took.append(time.perf_counter() - start)
    return took


if __name__ == "__main__":
    main()
