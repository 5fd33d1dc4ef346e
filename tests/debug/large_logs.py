"""Logs of 200 MB stream: `python -m tests.debug.large_logs [--megabytes 200] [--ranks 2]`.

Repeats the entries of a real log (`tests/stock/training.py`) under other compile ids, with one
change in the last repetition, and runs `lab.read_trace` and `lab.diff` in processes of their own.
Prints the time and by how much each increases the memory of its process.  The exit code is 1 if
that is more than `MOST` or 3 times the largest entry, or if the change is not found.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

TRAINING = Path(__file__).parents[1] / "stock" / "training.py"
MOST = 100_000_000
"""Bytes, next to 3 times the largest entry, that a process may need for a log of 200 MB."""

_FRAME = re.compile(rb'"frame_id": (\d+)')
_GRAPH, _OLD, _NEW = b'{"dynamo_output_graph"', b".sin()", b".cos()"
MEASURED = """
import json, sys, time
import inductor_lab as lab
from inductor_lab.debug.resident_memory import ResidentPeak

def read(path):
    return lab.read_trace(path)

def index(path):
    return len(lab.read_trace(path).compiled)

def diff(*paths):
    return lab.diff(*paths)

work, *paths = sys.argv[1:]
small, *paths = paths
globals()[work](*[small] * len(paths))  # what is made once, such as modules
peak, started = ResidentPeak(), time.monotonic()
found = globals()[work](*paths)
seconds, nbytes = time.monotonic() - started, peak.bytes()
changes = [[c.old, c.stage] for c in getattr(found, "changes", ())]
print(json.dumps({"seconds": seconds, "bytes": nbytes, "changes": changes}))
"""


def recorded(folder: Path) -> bytes:
    """The log of a small training run."""
    env = {**os.environ, "TORCH_TRACE": str(folder / "trace"), "INDUCTOR_PROVENANCE": "1",
           "TORCHINDUCTOR_CACHE_DIR": str(folder / "cache")}  # fmt: skip
    subprocess.run([sys.executable, TRAINING], check=True, env=env, capture_output=True)
    (log,) = (folder / "trace").glob("*.log")
    return log.read_bytes()


def entries(log: bytes) -> Iterator[bytes]:
    """The head line of each entry with its payload."""
    found: list[bytes] = []
    for line in log.splitlines(keepends=True):
        if found and not line.startswith(b"\t"):
            yield b"".join(found)
            found.clear()
        found.append(line)
    yield b"".join(found)


def repeated(log: bytes, nbytes: int, path: Path, changed: bool = False) -> None:
    """Write a log of about `nbytes`: each repetition has compile ids of its own."""
    texts = list(entries(log))
    frames = 1 + max(int(found[1]) for text in texts for found in _FRAME.finditer(text))
    strings = [text for text in texts if b'{"str":' in text]
    others = [text for text in texts if b'{"str":' not in text]
    times = max(nbytes // len(log), 1)
    with path.open("wb") as file:
        file.writelines(strings)
        for number in range(times):
            last = changed and number == times - 1
            file.writelines(_renumbered(_edited(text) if last else text, number * frames)
                            for text in others)  # fmt: skip


def _renumbered(text: bytes, more: int) -> bytes:
    head, line, payload = text.partition(b"\n")
    new = _FRAME.sub(lambda found: b'"frame_id": %d' % (int(found[1]) + more), head)
    return new + line + payload


def _edited(text: bytes) -> bytes:
    """A captured graph with another function."""
    head, line, payload = text.partition(b"\n")
    if _GRAPH not in head or _OLD not in payload:
        return text
    payload = payload.replace(_OLD, _NEW)
    plain = b"\n".join(each.removeprefix(b"\t") for each in payload.rstrip(b"\n").split(b"\n"))
    checksum = hashlib.md5(plain, usedforsecurity=False).hexdigest().encode()
    return re.sub(rb'"has_payload": "[0-9a-f]+"', b'"has_payload": "%s"' % checksum,
                  head) + line + payload  # fmt: skip


def measured(work: str, *paths: Path) -> dict[str, Any]:
    """Seconds, bytes and differences of one piece of work, in a process of its own."""
    done = subprocess.run([sys.executable, "-c", MEASURED, work, *map(str, paths)],
                          check=True, stdout=subprocess.PIPE, text=True)  # fmt: skip
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=200)
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        log = recorded(folder)
        largest = max(map(len, entries(log)))
        small, old, new = (folder / f"{name}.log" for name in ("small", "old", "new"))
        repeated(log, 1, small)
        repeated(log, given.megabytes * 1_000_000, old)
        repeated(log, given.megabytes * 1_000_000, new, changed=True)
        print(f"two logs of {old.stat().st_size / 1e6:.0f} MB; the largest entry has "
              f"{largest / 1e3:.0f} kB", flush=True)  # fmt: skip
        wrong = False
        for work, paths in (("read", [old]), ("index", [old]), ("diff", [old, new])):
            found = measured(work, small, *paths)
            print(f"{work:6} {found['seconds']:7.1f} s  {found['bytes'] / 1e6:7.1f} MB  "
                  f"{found['changes'] or ''}", flush=True)  # fmt: skip
            wrong |= found["bytes"] > MOST + 3 * largest
            wrong |= work == "diff" and [stage for _, stage in found["changes"]] != [
                "captured graph"]  # fmt: skip
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main())
