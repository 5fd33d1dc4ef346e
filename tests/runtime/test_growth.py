"""Memory stops growing; `make faults FAULTS="--only 'long runs'"` runs the longer form."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

RECOMPILES = int(os.environ.get("GROWTH_RECOMPILES", "10"))
MEGABYTE = 2**20


@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
def test_memory_stops_growing() -> None:
    command = [sys.executable, "-m", "tests.runtime.growth"]
    command += ["--calls", "20000", "--recompiles", str(RECOMPILES)]
    root = Path(__file__).parents[2]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    sizes, recompiles = found["sizes"], found["recompiles"]
    assert sizes[-1] - sizes[4] < MEGABYTE, "10,000 calls of new sizes"
    grown = (recompiles[-1] - recompiles[4]) / (RECOMPILES / 2)
    assert grown < MEGABYTE / 4, "torch itself keeps about 0.1 MB for each recompile"
    assert found["libraries"] <= 2, "libraries of deleted functions are unloaded"
