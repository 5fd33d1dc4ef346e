"""Saved compilations with random changes: they load and can be displayed, or are refused."""

from __future__ import annotations

import json
import random
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch

import inductor_lab as lab
from tests.faults import jobs
from tests.faults.child import batch, caches
from tests.faults.outcome import DEFECT, Tried, judged
from tests.faults.plan import Plan

SECONDS = 20
"""Seconds after which loading a file counts as a hang; undamaged files take less than one."""

STRANGE: tuple[Any, ...] = (
    None, True, -1, 0, 10**30, 1e308, float("nan"), "", "x" * 100_000, "\0", "../../etc/passwd",
    "torch.load", "ir.expr.Op", [], {}, ["r", 0], ["r", 10**9], ["r", -1], ["t"],
    ["o", "os.system", "true"], ["z", "sympy.Pow", ["n", 10], ["n", 10**12]], ["n", "1/0"],
    ["z", "sympy.Pow", ["n", 10**6], ["z", "sympy.Pow", ["n", 10**6], ["n", 10**6]]],
    ["T", "torch.float32", "AAAA", 10**12], ["y", "s0", "positive", True, "negative", True],
)  # fmt: skip


def tries(plan: Plan) -> Iterator[Tried]:
    setting = caches(plan.place("caches"))
    count, batches = plan.times(2000, 60), plan.times(20, 1)
    for number in range(batches):
        seed = plan.seed * 1000 + number
        yield from batch(setting, mutants, plan.place(f"b{number}"), seed, count // batches)


def mutants(folder: Path, seed: int, count: int) -> Iterator[Tried]:
    """`count` changed files of two compilations."""
    chance = random.Random(seed)
    originals = [saved(folder / f"{n}.json", fn, *args).read_bytes() for n, (fn, args) in
                 enumerate(((jobs.bowl, (torch.ones(64), torch.ones(64, requires_grad=True))),
                            (torch.softmax, (torch.ones(8, 40), 1))))]  # fmt: skip
    path = folder / "changed.json"
    for number in range(count):
        what = chance.choice(list(CHANGES))
        path.write_bytes(CHANGES[what](chance.choice(originals), chance))
        found, said = judged(looked_at, path)
        if found == DEFECT:
            said += f" (seed {seed}, number {number})"
        yield Tried(what, found, said)


def saved(path: Path, fn: Callable[..., Any], *args: Any) -> Path:
    return lab.inspect(fn, *args).save(path)


def looked_at(path: Path) -> None:
    """A file is loaded, printed, and drawn, within a limit."""
    signal.signal(signal.SIGALRM, _too_long)
    signal.alarm(SECONDS)
    try:
        c = lab.load(path)
        repr(c), str(c)
        for part in c.parts:
            str(part)
        c.report(path.with_suffix(".html"))
    finally:
        signal.alarm(0)


def _too_long(*_: object) -> None:
    raise TimeoutError(f"not done within {SECONDS} s")


# ---- changes ---------------------------------------------------------------------------------


def flip(data: bytes, chance: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(chance.choice((1, 1, 3, 20))):
        changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
    return bytes(changed)


def cut(data: bytes, chance: random.Random) -> bytes:
    return data[: chance.randrange(len(data))]


def doubled(data: bytes, chance: random.Random) -> bytes:
    start = chance.randrange(len(data))
    return data[:start] + data[start - chance.randrange(200) :]


def nested(data: bytes, chance: random.Random) -> bytes:
    deep = chance.choice((100, 2_000, 100_000))
    return data.replace(b'"root":', b'"root":' + b'["t",' * deep, 1) + b"]" * deep


def other_value(data: bytes, chance: random.Random) -> bytes:
    """Replace one value of the tree by an unexpected one."""
    whole = json.loads(data)
    holder, key = chance.choice(places(whole))
    holder[key] = chance.choice(STRANGE)
    return json.dumps(whole).encode()


def swapped(data: bytes, chance: random.Random) -> bytes:
    """Swap two values of the tree."""
    whole = json.loads(data)
    (one, a), (other, b) = chance.sample(places(whole), 2)
    one[a], other[b] = other[b], one[a]
    try:
        return json.dumps(whole).encode()
    except (ValueError, RecursionError):  # one contains the other
        return data[1:]


def missing(data: bytes, chance: random.Random) -> bytes:
    whole = json.loads(data)
    holder, key = chance.choice(places(whole))
    del holder[key]
    return json.dumps(whole).encode()


CHANGES: dict[str, Callable[[bytes, random.Random], bytes]] = {
    "bits are flipped": flip,
    "it is cut": cut,
    "a part stands there twice": doubled,
    "it is nested deeply": nested,
    "a value is another": other_value,
    "two values are exchanged": swapped,
    "a value is missing": missing,
}


def places(tree: Any) -> list[tuple[Any, Any]]:
    """Every (list or dict, place in it) of a JSON value."""
    found: list[tuple[Any, Any]] = []
    waiting = [tree]
    while waiting:
        holder = waiting.pop()
        keys = holder.keys() if isinstance(holder, dict) else range(len(holder))
        for key in keys:
            found.append((holder, key))
            if isinstance(holder[key], list | dict):
                waiting.append(holder[key])
    return found
