"""Seconds of the first call, in fresh processes: ours and stock TorchInductor.

    python -m benchmarks.compile_time                the table
    python -m benchmarks.compile_time --rounds 3 trig bert

"cold" starts with empty caches on disk, "warm" is the next process with the same caches.  The clock
starts when the compiler has been imported; "import" is what `import torch._dynamo` and the backend
cost before that, once for a process.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

from inductor_lab.demo import programs
from inductor_lab.demo.programs import trig

BACKENDS = ("inductor_lab", "inductor")
CACHES = ("INDUCTOR_LAB_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")


def softmax() -> tuple[Callable[..., Any], tuple[Any, ...]]:
    return (lambda x: torch.softmax(x, -1)), (torch.randn(64, 1000),)


def training() -> tuple[Callable[..., Any], tuple[Any, ...]]:
    return trig, (torch.randn(1000, requires_grad=True),)


def layers(count: int) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """So many equal transformer layers: does the time grow with the number, or with its square?"""
    layer = torch.nn.TransformerEncoderLayer(128, 4, 256, dropout=0.0, batch_first=True)
    model = torch.nn.TransformerEncoder(layer, count, enable_nested_tensor=False)
    return model, (torch.randn(2, 32, 128),)


CASES: dict[str, Callable[[], tuple[Callable[..., Any], tuple[Any, ...]]]] = {
    "softmax": softmax,
    "trig, training": training,
    "bert": programs.bert,
    "gpt2, training": programs.gpt2_loss,
    **{f"{n} layers, training": (lambda n=n: layers(n)) for n in (6, 12, 24)},
}


def once(case: str, backend: str) -> dict[str, float]:
    """In this process: import the compiler, then call for the first time."""
    start = time.perf_counter()
    import torch._dynamo

    torch._dynamo.lookup_backend(backend)
    imported = time.perf_counter()
    fn, args = CASES[case]()
    made = time.perf_counter()
    result = torch.compile(fn, backend=backend)(*args)
    results = result if isinstance(result, tuple) else (result,)
    total = sum(t.sum() for t in results if isinstance(t, torch.Tensor))
    if isinstance(total, torch.Tensor) and total.requires_grad:
        total.backward()
    return {"import": imported - start, "first": time.perf_counter() - made}


def fresh(case: str, backend: str, folder: str) -> dict[str, float]:
    """The same in a new process, with its caches in `folder`."""
    command = [sys.executable, "-m", "benchmarks.compile_time", "--once", case, backend]
    environment = {**os.environ, **{name: folder for name in CACHES}}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure what was asked for and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("words", nargs="*", help="only cases whose name contains one of these")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--no-stock", action="store_true", help="ours alone")
    parser.add_argument("--once", nargs=2, metavar=("CASE", "BACKEND"), help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.once:
        print(json.dumps(once(*given.once)))
        return
    backends = BACKENDS[:1] if given.no_stock else BACKENDS
    table = Table(title=f"First call, s, torch {torch.__version__}")
    for column in ("case", *(f"{b} {w}" for b in backends for w in ("import", "cold", "warm"))):
        table.add_column(column, justify="left" if column == "case" else "right")
    for case in CASES:
        if given.words and not any(word in case for word in given.words):
            continue
        found: dict[str, list[float]] = {}
        for _ in range(given.rounds):
            for backend in backends:
                with tempfile.TemporaryDirectory() as folder:
                    cold, warm = (fresh(case, backend, folder) for _ in range(2))
                found.setdefault(f"{backend} import", []).append(warm["import"])
                found.setdefault(f"{backend} cold", []).append(cold["first"])
                found.setdefault(f"{backend} warm", []).append(warm["first"])
        table.add_row(case, *(f"{statistics.median(times):.2f}" for times in found.values()))
    Console(width=110).print(table)


if __name__ == "__main__":
    main()
