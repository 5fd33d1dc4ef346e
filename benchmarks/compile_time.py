"""Seconds of the first call, in fresh processes: ours and stock TorchInductor.

    python -m benchmarks.compile_time                both tables
    python -m benchmarks.compile_time --rounds 3 trig bert
    python -m benchmarks.compile_time --no-stock layers

"cold" starts with empty caches on disk; "warm" is the next process with the same caches.  Brackets
contain the processor time in seconds, with the C++ compiler's: it varies less on a busy machine.
The clock starts after the compiler is imported; "import" is the time of `import torch._dynamo` and
of the backend, once per process.

The second table shows one training step of 6 to 48 equal transformer layers with empty caches: the
processor time of each phase, and the ratio of 48 layers to 6, which are an eighth of the work.
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

from benchmarks.installed import write_bytecode
from benchmarks.workloads import adam_step
from inductor_lab.bench.demo import programs
from inductor_lab.bench.demo.programs import trig
from inductor_lab.compiler.base.observer import Observer

BACKENDS = ("inductor_lab", "inductor")
CACHES = ("INDUCTOR_LAB_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")
LAYERS = (6, 12, 24, 48)
WAYS = ("cold", "warm")
Built = tuple[Callable[..., Any], tuple[Any, ...]]


def softmax() -> Built:
    return (lambda x: torch.softmax(x, -1)), (torch.randn(64, 1000),)


def training() -> Built:
    return trig, (torch.randn(1000, requires_grad=True),)


def layers(count: int) -> Built:
    """A stack of equal transformer layers: is the compile time linear in their number?"""
    layer = torch.nn.TransformerEncoderLayer(128, 4, 256, dropout=0.0, batch_first=True)
    model = torch.nn.TransformerEncoder(layer, count, enable_nested_tensor=False)
    return model, (torch.randn(2, 32, 128),)


CASES: dict[str, Callable[[], Built]] = {
    "softmax": softmax,
    "softmax, second function": softmax,
    "trig, training": training,
    "trig, training, second function": training,
    "Adam step": adam_step,
    "bert": programs.bert,
    "gpt2, training": programs.gpt2_loss,
}
SCALING: dict[str, Callable[[], Built]] = {
    f"{count} layers": (lambda count=count: layers(count)) for count in LAYERS
}


class Clock(Observer):
    """Processor seconds of each phase of inductor_lab, the sum of forward and backward."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.started: list[float] = []

    def entered(self, phase: str) -> None:
        self.started.append(time.process_time())

    def left(self, phase: str, result: Any) -> None:
        step = phase.split(".")[-1]
        took = time.process_time() - self.started.pop()
        self.seconds[step] = self.seconds.get(step, 0.0) + took


def first_call(built: Built, backend: Any) -> None:
    """Compile and run the forward, and the backward if there are gradients."""
    fn, args = built
    result = torch.compile(fn, backend=backend)(*args)
    results = result if isinstance(result, tuple) else (result,)
    total = sum(t.sum() for t in results if isinstance(t, torch.Tensor))
    if isinstance(total, torch.Tensor) and total.requires_grad:
        total.backward()


def children() -> float:
    """Processor seconds of the child processes of this process."""
    times = os.times()
    return times.children_user + times.children_system


def once(case: str, backend: str) -> dict[str, float]:
    """In this process: import the compiler, then call for the first time."""
    start = time.perf_counter()
    import torch._dynamo

    torch._dynamo.lookup_backend(backend)
    imported = time.perf_counter()
    built = CASES[case]()
    if case.endswith("second function"):
        first_call((lambda x: x.exp() + 1, tuple(t.detach().clone() for t in built[1])), backend)
    begun, used, others = time.perf_counter(), time.process_time(), children()
    first_call(built, backend)
    return {
        "import": imported - start,
        "wall": time.perf_counter() - begun,
        "cpu": time.process_time() - used + children() - others,
    }


def phases(case: str) -> dict[str, float]:
    """In this process: processor seconds of each phase of a first call."""
    from inductor_lab.api.backend import backend_with
    from inductor_lab.compiler.base.options import Options

    built, clock = SCALING[case](), Clock()
    begun = time.process_time()
    first_call(built, backend_with(Options(), clock))
    total = time.process_time() - begun
    rest = total - sum(clock.seconds.values())
    name = "TorchDynamo, AOTAutograd, the run"
    return {name: rest, **clock.seconds, "C++ compiler": children(), "all": total + children()}


def fresh(folder: str, *what: str) -> dict[str, float]:
    """Run `once` or `phases` in a new process, with its caches in `folder`."""
    command = [sys.executable, "-m", "benchmarks.compile_time", "--inside", *what]
    environment = {**os.environ, **{name: folder for name in CACHES}}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def first_calls(cases: Sequence[str], backends: Sequence[str], rounds: int) -> Table:
    """The table of first calls, cold and warm."""
    table = Table(title=f"First call, s, torch {torch.__version__}")
    table.add_column("case")
    for backend in backends:
        for column in ("import", *WAYS):
            table.add_column(f"{backend} {column}", justify="right")
    for case in cases:
        cells = []
        for backend in backends:
            found: list[dict[str, dict[str, float]]] = []
            for _ in range(rounds):
                with tempfile.TemporaryDirectory() as folder:
                    found.append({way: fresh(folder, case, backend) for way in WAYS})
            cells.append(f"{_median(found, 'warm', 'import'):.2f}")
            for way in WAYS:
                wall, cpu = (_median(found, way, kind) for kind in ("wall", "cpu"))
                cells.append(f"{wall:.2f} ({cpu:.2f})")
        table.add_row(case, *cells)
    return table


def _median(found: Sequence[dict[str, dict[str, float]]], way: str, kind: str) -> float:
    return statistics.median(one[way][kind] for one in found)


def scaling(rounds: int) -> Table:
    """The table of phases for an increasing number of equal layers."""
    table = Table(
        title=f"Equal layers, one training step, s of processor, torch {torch.__version__}"
    )
    for column in ("phase", *SCALING, f"{LAYERS[-1]} / {LAYERS[0]}"):
        table.add_column(column, justify="left" if column == "phase" else "right")
    columns = []
    for case in SCALING:
        found = []
        for _ in range(rounds):
            with tempfile.TemporaryDirectory() as folder:
                found.append(fresh(folder, case))
        columns.append({name: statistics.median(one[name] for one in found) for name in found[0]})
    for name in columns[0]:
        row = [column[name] for column in columns]
        growth = f"{row[-1] / row[0]:.1f}" if row[0] > 0.005 else ""
        table.add_row(name, *(f"{seconds:.2f}" for seconds in row), growth)
    return table


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure the requested programs and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("words", nargs="*", help="only cases whose name contains one of these")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--no-stock", action="store_true", help="ours alone")
    parser.add_argument("--inside", nargs="+", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.inside:
        work = once if len(given.inside) == 2 else phases
        print(json.dumps(work(*given.inside)))
        return

    write_bytecode()

    def asked(name: str) -> bool:
        return not given.words or any(word in name for word in given.words)

    console = Console(width=120)
    cases = [case for case in CASES if asked(case)]
    if cases:
        backends = BACKENDS[:1] if given.no_stock else BACKENDS
        console.print(first_calls(cases, backends, given.rounds))
    if asked("layers"):
        console.print(scaling(given.rounds))


if __name__ == "__main__":
    main()
