"""Logs of `TORCH_TRACE` with random changes: they open and report the damage, or are rejected.

A payload that is changed gets its right checksum, so that it is read and not skipped.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import inductor_lab as lab
from inductor_lab.widgets.model import document
from tests.faults.child import batch, caches
from tests.faults.outcome import DEFECT, Tried, judged
from tests.faults.pages import PAYLOADS
from tests.faults.plan import Plan
from tests.faults.saved_files import STRANGE, cut, doubled, flip, places

SECONDS = 20
"""Seconds after which reading a log counts as a hang; this log takes half a second."""
PROGRAM = """
import torch

@torch.compile(backend="inductor_lab")
def program(x, k):
    y = torch.softmax(x.sin() * k, -1)
    print(end="")
    torch._dynamo.graph_break()
    return (y + 1).sum()

for rows in (4, 6):
    program(torch.ones(rows, 8, requires_grad=True), rows).backward()
"""
"""A graph break, a restart, recompiles, forward and backward."""
Entry = tuple[bytes, Any, bytes]
"""The start of an entry's line, its metadata, its payload."""


def tries(plan: Plan) -> Iterator[Tried]:
    setting, folder = caches(plan.place("caches")), plan.place("logs")
    log = written(folder, {**os.environ, **setting.environment})
    count, batches = plan.times(1000, 30), plan.times(40, 1)
    for number in range(batches):
        seed = plan.seed * 1000 + number
        yield from batch(setting, mutants, log, plan.place(f"l{number}"), seed, count // batches)


def written(folder: Path, environment: Any) -> Path:
    """The log of `PROGRAM`, run in a separate process."""
    script = folder / "program.py"
    script.write_text(PROGRAM)
    given = {**environment, "TORCH_TRACE": str(folder), "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, script], check=True, env=given, capture_output=True)
    (log,) = folder.glob("*.log")
    return log


def mutants(log: Path, folder: Path, seed: int, count: int) -> Iterator[Tried]:
    """`count` changed copies of a log."""
    chance, original, path = random.Random(seed), log.read_bytes(), folder / "changed.log"
    path.write_bytes(original)
    yield Tried("a log without changes", *judged(looked_at, path))
    for number in range(count):
        what = chance.choice(list(CHANGES))
        path.write_bytes(CHANGES[what](original, chance))
        found, said = judged(looked_at, path)
        if found == DEFECT:
            said += f" (seed {seed}, number {number})"
        yield Tried(what, found, said)


def looked_at(path: Path) -> None:
    """A log is read, printed, and each of its compile ids is drawn, within a limit."""
    signal.signal(signal.SIGALRM, _too_long)
    signal.alarm(SECONDS)
    try:
        log = lab.read_trace(path)
        repr(log), str(log)
        for one in log.compiled:
            opened = log[one.key]
            str(opened), document(opened)
    finally:
        signal.alarm(0)


def _too_long(*_: object) -> None:
    raise TimeoutError(f"not done within {SECONDS} s")


# ---- changes ---------------------------------------------------------------------------------


def entries(data: bytes) -> list[Entry]:
    """The entries of an undamaged log."""
    found: list[Entry] = []
    for line in data.split(b"\n"):
        if line.startswith(b"\t"):
            head, metadata, payload = found[-1]
            found[-1] = head, metadata, (payload + b"\n" if payload else b"") + line[1:]
        elif line:
            head, _, text = line.partition(b"] ")
            found.append((head, json.loads(text), b""))
    return found


def joined(found: list[Entry]) -> bytes:
    """A log of these entries, with correct checksums."""
    lines = []
    for head, metadata, payload in found:
        if payload and isinstance(metadata, dict):
            metadata = {**metadata, "has_payload": hashlib.md5(payload).hexdigest()}
        lines.append(head + b"] " + json.dumps(metadata).encode())
        lines += [b"\t" + line for line in payload.split(b"\n")] if payload else []
    return b"\n".join(lines) + b"\n"


def other_value(data: bytes, chance: random.Random) -> bytes:
    """Replace one value of an entry's metadata by an unexpected one."""
    found = entries(data)
    holder, key = chance.choice(places([metadata for _, metadata, _ in found])[1:])
    if isinstance(holder, dict):
        holder[key] = chance.choice((*STRANGE, *PAYLOADS))
    return joined(found)


def other_payload(data: bytes, chance: random.Random) -> bytes:
    """Truncate a payload, flip bits, or replace it by hostile text or another payload."""
    found = entries(data)
    number = chance.choice([n for n, (_, _, payload) in enumerate(found) if payload])
    head, metadata, payload = found[number]
    hostile = chance.choice(PAYLOADS).encode("utf-8", "surrogatepass")
    at = chance.randrange(len(payload))
    strange = json.dumps(chance.choice(STRANGE)).encode()
    foreign = chance.choice([p for _, _, p in found if p])
    found[number] = head, metadata, chance.choice((
        payload[:at], flip(payload, chance), hostile, strange, foreign,
        payload[:at] + hostile + payload[at:],
    ))  # fmt: skip
    return joined(found)


def missing(data: bytes, chance: random.Random) -> bytes:
    found = entries(data)
    for _ in range(chance.choice((1, 3, 30))):
        del found[chance.randrange(len(found))]
    return joined(found)


def shuffled(data: bytes, chance: random.Random) -> bytes:
    found = entries(data)
    chance.shuffle(found)
    return joined(found)


CHANGES: dict[str, Callable[[bytes, random.Random], bytes]] = {
    "bits of a log are flipped": flip,
    "a log is cut": cut,
    "a part of a log stands there twice": doubled,
    "a value of an entry is another": other_value,
    "a payload is another": other_payload,
    "entries are missing": missing,
    "entries are in another order": shuffled,
}
