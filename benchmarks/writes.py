"""Writes to part of a large tensor: eager, stock TorchInductor and ours, interleaved.

    python -m benchmarks.writes                       all kinds, on 64 MB of float32
    python -m benchmarks.writes set_plane index       only kinds whose name contains one of these
    python -m benchmarks.writes --device cuda         on a GPU
    python -m benchmarks.writes --loops               a cache of keys and values, a decoded token
    python -m benchmarks.writes --chain 63            seconds of a first call with 63 writes

Each kind runs in a separate process.  Results and modified arguments are compared with eager before
anything is timed.  "best" is the faster of eager and stock; the last column is the ratio of our
time to it, the median over the rounds.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

import inductor_lab as lab
from benchmarks.measure import Failed, in_fork
from benchmarks.partial_writes import KINDS, LARGE, Given, Kind
from inductor_lab.bench.timing import Timings, compare

EAGER, STOCK, OURS = "eager", "stock", "ours"
WAYS: Mapping[str, Callable[..., Any]] = {EAGER: lambda f, **_: f, STOCK: torch.compile,
                                          OURS: lab.compile}  # fmt: skip
GOAL = 1.1
"""Ours may take so many times as long as the best of the others."""
TOLERANCE = 1e-4
LAYERS, HEADS, WIDTH, LENGTH, VOCABULARY = 8, 8, 64, 4096, 4096
Job = Callable[[], Any]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure the requested kinds and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("words", nargs="*", help="only kinds whose name contains one of these")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--seconds", type=float, default=1.0, help="for timing each kind")
    parser.add_argument("--loops", action="store_true", help="only the caches")
    parser.add_argument("--chain", type=int, default=0, help="only so many writes in a row")
    given = parser.parse_args(arguments)
    if given.chain:
        in_fork(partial(print_chain, given.chain, given.device), 600.0)
        return
    jobs: dict[str, Callable[[], Timings]] = {}
    if not given.loops:
        jobs.update({name: partial(measured, kind, given) for name, kind in KINDS.items()})
    jobs["static cache step"] = partial(timed, cache_step, given)
    jobs["decoded token"] = partial(timed, decoded_token, given)
    words = given.words
    chosen = {n: job for n, job in jobs.items() if not words or any(w in n for w in words)}
    table = Table("kind", *(f"{way} ms" for way in WAYS), "ours / best")
    for name, job in chosen.items():
        try:
            timings = job() if given.device == "cuda" else in_fork(job, 600.0)
        except (Failed, AssertionError) as failed:
            table.add_row(name, str(failed))
            continue
        table.add_row(name, *row(timings))
    Console(width=100).print(table)


def row(timings: Timings) -> list[str]:
    """Milliseconds of each, and the ratio of ours to the best of the others."""
    best = min((EAGER, STOCK), key=timings.median_ms)
    ratio = timings.ratio(OURS, best)
    mark = "" if ratio <= GOAL else " *"
    return [*(f"{timings.median_ms(way):.4f}" for way in WAYS), f"{ratio:.2f}{mark}"]


def measured(kind: Kind, given: argparse.Namespace) -> Timings:
    """Compare, then time, all three, each with its own copy of the arguments."""
    jobs: dict[str, Job] = {}
    expected: list[Any] = []
    for way, compiled in WAYS.items():
        torch.compiler.reset()
        make = Given(LARGE, given.device)
        arguments = [make.c, *kind.make(make)]
        more = {"dynamic": True} if kind.dynamic else {}
        jobs[way] = partial(compiled(kind.function, **more), *arguments)
        with torch.no_grad():
            found = [jobs[way](), *arguments]
        expected = expected or [v.clone() if isinstance(v, torch.Tensor) else v for v in found]
        assert same(found, expected), f"{way} is wrong"
    with torch.no_grad():
        return compare(jobs, seconds=given.seconds)


def same(found: Sequence[Any], expected: Sequence[Any]) -> bool:
    """Are all tensors equal to those of eager mode?"""
    pairs = zip(found, expected, strict=True)
    return all(torch.allclose(a, b, TOLERANCE, TOLERANCE) for a, b in pairs
               if isinstance(b, torch.Tensor))  # fmt: skip


# ---- caches of keys and values -------------------------------------------------------------------


def timed(build: Callable[[str], Callable[..., Any]], given: argparse.Namespace) -> Timings:
    """Time a step, which is created for each compiler; its position increases with each call."""
    jobs = {}
    for way, compiled in WAYS.items():
        torch.compiler.reset()
        step, arguments = build(given.device)
        run = compiled(step)
        with torch.no_grad():
            for _ in range(3):
                run(*arguments)
        jobs[way] = partial(run, *arguments)
    with torch.no_grad():
        return compare(jobs, seconds=given.seconds * 4)


def cache_step(device: str) -> Any:
    """Write new keys and values to one position of caches of 2 x 8 MB."""
    keys, values = (torch.zeros(1, HEADS, LENGTH, WIDTH, device=device) for _ in range(2))
    new = torch.randn(1, HEADS, 1, WIDTH, device=device)
    place = torch.tensor([1234], device=device)

    def step(new: torch.Tensor, place: torch.Tensor) -> None:
        keys.index_copy_(2, place, new)
        values.index_copy_(2, place, new * 2)

    return step, (new, place)


class Layer(torch.nn.Module):
    """A decoder layer as in LLaMA, with a cache of a fixed length."""

    keys: torch.Tensor
    values: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        wide = HEADS * WIDTH
        self.before, self.after = torch.nn.RMSNorm(wide), torch.nn.RMSNorm(wide)
        self.qkv = torch.nn.Linear(wide, 3 * wide, bias=False)
        self.out = torch.nn.Linear(wide, wide, bias=False)
        self.gate, self.up = (torch.nn.Linear(wide, 3 * wide, bias=False) for _ in range(2))
        self.down = torch.nn.Linear(3 * wide, wide, bias=False)
        for name in ("keys", "values"):
            self.register_buffer(name, torch.zeros(1, HEADS, LENGTH, WIDTH))

    def forward(self, x: torch.Tensor, place: torch.Tensor, mask: torch.Tensor,
                angle: torch.Tensor) -> torch.Tensor:  # fmt: skip
        heads = self.qkv(self.before(x)).view(1, 1, 3, HEADS, WIDTH).permute(2, 0, 3, 1, 4)
        q, k, v = heads[0], heads[1], heads[2]
        q, k = rotated(q, angle), rotated(k, angle)
        self.keys.index_copy_(2, place, k)
        self.values.index_copy_(2, place, v)
        seen = torch.nn.functional.scaled_dot_product_attention(q, self.keys, self.values, mask)
        x = x + self.out(seen.transpose(1, 2).reshape(1, 1, -1))
        y = self.after(x)
        return x + self.down(torch.nn.functional.silu(self.gate(y)) * self.up(y))


def rotated(x: torch.Tensor, angle: torch.Tensor) -> torch.Tensor:
    """Rotary positions."""
    one, other = x.chunk(2, -1)
    return x * angle.cos() + torch.cat((-other, one), -1) * angle.sin()


def decoded_token(device: str) -> Any:
    """One token of a model of 8 layers, with 4,096 positions in its cache."""
    torch.manual_seed(0)
    layers = torch.nn.ModuleList(Layer() for _ in range(LAYERS)).to(device).eval()
    table = torch.nn.Embedding(VOCABULARY, HEADS * WIDTH).to(device)
    place = torch.tensor([LENGTH - 2], device=device)

    def step(token: torch.Tensor, place: torch.Tensor) -> torch.Tensor:
        x = table(token)
        mask = (torch.arange(LENGTH, device=device) <= place)[None, None, None]
        steps = torch.arange(WIDTH, device=device) % (WIDTH // 2)
        angle = place * 10000.0 ** (-2.0 * steps / WIDTH)
        for layer in layers:
            x = layer(x, place, mask, angle)
        return x @ table.weight.t()

    return step, (torch.tensor([[17]], device=device), place)


# ---- compile time --------------------------------------------------------------------------------


def print_chain(count: int, device: str) -> None:
    """Print the seconds of a first call with a number of writes to one tensor, ours and stock."""

    def writes(c: torch.Tensor, x: torch.Tensor) -> None:
        for n in range(count):
            c[n] = x * n

    torch.compile(lambda x: x + 1, backend="inductor_lab")(torch.zeros(3, device=device))
    for way in (STOCK, OURS):
        torch.compiler.reset()
        start = time.perf_counter()
        WAYS[way](writes)(torch.zeros(64, 1 << 12, device=device), torch.ones(1, device=device))
        print(f"{way:6} {time.perf_counter() - start:6.2f} s for {count} writes")


if __name__ == "__main__":
    main()
