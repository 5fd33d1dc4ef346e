"""Measures which library is the fastest for a matrix product, once for each size.

ATen calls MKL for float32 products.  On some CPUs, oneDNN, which torch also includes, is twice as
fast.  Both are faster with a packed weight (`accelerate/packing.py`).  All candidates are timed on
matrices of the given sizes; a weight is read from memory, as in a model (`accelerate/evict.py`).
The result is stored in the user's cache directory, for this CPU, number of threads and torch
version.

Inductor: `fx_passes/mkldnn_fusion.py`, which decides by rules and packs frozen weights, and
`select_algorithm.py`, which measures templates.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import TypeAlias

import torch

from inductor_lab.compiler.accelerate.evict import evict
from inductor_lab.compiler.accelerate.packing import LIBRARIES, LINEAR, aten, onednn
from inductor_lab.compiler.base.errors import CacheRefused
from inductor_lab.compiler.base.options import Options
from inductor_lab.compiler.ir.library_ops import onednn_supports
from inductor_lab.compiler.ir.matmul_ops import UNBATCHED
from inductor_lab.compiler.ir.program import (
    Buffer,
    BufferKind,
    BufferView,
    ExternCall,
    Layout,
    LoopProgram,
)
from inductor_lab.compiler.library_choice import Choice
from inductor_lab.compiler.runtime.cache.kernel_cache import open_cache
from inductor_lab.compiler.runtime.toolchain.background_compile import wait_for_all
from inductor_lab.compiler.runtime.toolchain.find_compiler import cpu_identity
from inductor_lab.compiler.schedule.fusion.fuse import ScheduleFacts
from inductor_lab.compiler.schedule.memory import needed_by
from inductor_lab.compiler.schedule.schedule import Schedule
from inductor_lab.compiler.torch_door.torch_api import without_modes

ONEDNN = "mkldnn._linear_pointwise.default"
SMALLEST = 8_000_000
"""With fewer floating-point operations, the choice does not matter.  The limits in this file are
chosen.  The products are measured on the user's machine."""
OPERATIONS_A_BYTE = 5
"""The number of floating-point operations that take as long as reading one byte of the weight."""
ROUNDS = range(3, 12)
SECONDS = 0.06
"""A measurement ends after the round in which this time is exceeded, within `ROUNDS`."""
STEADY = 1.5
"""The maximum ratio of the median and the minimum time of a candidate.  If it is exceeded, the
machine was busy, and all candidates are measured again, at most `ATTEMPTS` times."""
ATTEMPTS = 3
ANSWER = "seconds.json"


class Unsteady(Exception):
    """The times were measured on a busy machine.  They are used, but not stored."""

    def __init__(self, seconds: dict[str, float]) -> None:
        self.seconds = seconds


@dataclass(frozen=True)
class Candidate:
    """One implementation of a product: a call, and the weight that it reads from memory."""

    run: Callable[[], object]
    weight: torch.Tensor | None = None


@dataclass(frozen=True)
class Product:
    """The operands of one matrix product, as views of buffers: `bias + a @ b`.

    `weight` is the graph input that `b` is equal to, or its transpose, if it can be packed.
    """

    bias: BufferView | None
    a: BufferView
    b: BufferView
    dtype: torch.dtype
    weight: Buffer | None = None

    @property
    def sizes(self) -> tuple[int, int, int]:
        m, k = self.a.layout.size
        n = self.b.layout.size[1]
        assert isinstance(m, int) and isinstance(k, int) and isinstance(n, int)
        return m, k, n

    @property
    def is_large(self) -> bool:
        m, k, n = self.sizes
        reading = OPERATIONS_A_BYTE * self.dtype.itemsize * k * n
        return 2 * m * k * n + reading >= SMALLEST

    @property
    def rows(self) -> BufferView:
        """`b` in the layout of `linear`: one row for each column of the result."""
        return replace(self.b, layout=flipped(self.b.layout))


def flipped(layout: Layout) -> Layout:
    return Layout(layout.size[::-1], layout.stride[::-1], layout.offset)


def choose_libraries(schedule: Schedule, facts: ScheduleFacts) -> Schedule:
    """The schedule with the fastest library for each matrix product (`libraries_of`)."""
    schedule, choices = libraries_of(schedule, facts.options, trained=facts.trained)
    facts.choices.extend(choices)
    return schedule


def libraries_of(
    schedule: Schedule, options: Options, *, trained: bool = False
) -> tuple[Schedule, tuple[Choice, ...]]:
    """Return the schedule with the fastest candidate for each matrix product, and the measurements.

    If it has a backward (`trained`), weights change too often to be packed.
    """
    if options.matmul != "measured" or options.target is not None:
        return schedule, ()
    products = {
        position: product
        for position, step in enumerate(schedule.steps)
        if isinstance(step, ExternCall) and (product := product_of(step, schedule.program))
    }
    if options.pack_weights and not trained:
        products = with_weights(schedule, products)
    choices: dict[Question, Choice] = {}
    steps = list(schedule.steps)
    for position, product in products.items():
        call = steps[position]
        assert isinstance(call, ExternCall)
        question = question_of(call.op, product)
        choice = choices.get(question)
        if choice is None:
            seconds = measured(question, partial(candidates_of, product), options.cache)
            choice = Choice(question[2], product.sizes, question[3], tuple(seconds.items()))
            choices[question] = choice
        steps[position] = library_call(call, product, choice)
    return replace(schedule, steps=tuple(steps)), tuple(choices.values())


def library_call(call: ExternCall, product: Product, choice: Choice) -> ExternCall:
    """Return the call of the chosen library."""
    if choice.packed is not None and product.weight is not None:
        weight = BufferView(product.weight.name, product.weight.layout)
        transposed = product.rows.layout != weight.layout
        args = (product.a, weight, product.bias, transposed, choice.packed, choice.plain)
        return replace(call, op=LINEAR, args=args)
    if choice.plain == "oneDNN":
        given = (product.a, product.rows, product.bias, "none", (), "")
        return replace(call, op=ONEDNN, args=given)
    return call


def product_of(call: ExternCall, program: LoopProgram) -> Product | None:
    """Return the operands if oneDNN's linear can compute the product, or None.

    Both matrices must be on the CPU, with static sizes and a supported dtype.  A bias must have one
    number for each column.
    """
    at = UNBATCHED[call.op].first if call.op in UNBATCHED else None
    if at is None or (call.kwargs and any(value != 1 for _, value in call.kwargs)):
        return None
    views = call.args[: at + 2]
    if not all(isinstance(view, BufferView) for view in views):
        return None
    buffers = [program.buffers[view.buffer] for view in views]
    dtype = buffers[0].dtype
    if any(b.device != "cpu" or b.dtype != dtype for b in buffers) or not onednn_supports(dtype):
        return None
    *bias, a, b = views
    layouts = [view.layout for view in views]
    if not all(isinstance(n, int) for layout in layouts for n in (*layout.size, *layout.stride)):
        return None
    if bias and (len(bias[0].layout.size) != 1 or bias[0].layout.stride != (1,)):
        return None
    product = Product(bias[0] if bias else None, a, b, dtype)
    return product if product.is_large else None


def with_weights(schedule: Schedule, products: Mapping[int, Product]) -> dict[int, Product]:
    """Set the weight of each product if it is a complete input that only products read.

    Our own kernels would request a writable pointer, which ends copy-on-write (see `packing.py`).
    """
    buffers = schedule.program.buffers
    others = (step for position, step in enumerate(schedule.steps) if position not in products)
    read = frozenset[str]().union(*map(needed_by, others))
    read |= {p.a.buffer for p in products.values()}
    read |= {p.bias.buffer for p in products.values() if p.bias is not None}
    found = dict(products)
    for position, product in products.items():
        weight = buffers[product.b.buffer]
        layouts = (product.b.layout, flipped(product.b.layout))
        whole = weight.layout in layouts and weight.layout == Layout.contiguous(weight.layout.size)
        if whole and weight.kind is BufferKind.INPUT and weight.name not in read:
            found[position] = replace(product, weight=weight)
    return found


Question: TypeAlias = tuple[str, ...]
"""Everything that the times depend on.  Equal products of a graph are measured once."""
Candidates: TypeAlias = Callable[[], Mapping[str, Candidate]]
"""Returns all implementations, by name, on random operands."""


def question_of(op: str, product: Product) -> Question:
    layouts = [view.layout for view in (product.a, product.b)]
    shape = repr([(layout.size, layout.stride) for layout in layouts])
    dtype = str(product.dtype).removeprefix("torch.")
    kind = "matmul" if product.weight is None else f"matmul packed {' '.join(LIBRARIES)}"
    return (kind, "from memory", op.split(".")[1], dtype, shape, *machine())


def machine() -> Question:
    """What times depend on besides the operands."""
    return str(torch.get_num_threads()), str(torch.__version__), cpu_identity()


def measured(question: Question, candidates: Candidates, cache: bool = True) -> dict[str, float]:
    """Return the seconds of each candidate, from the cache or measured."""

    def build(folder: Path) -> None:
        (folder / ANSWER).write_text(json.dumps(timed(candidates)), encoding="ascii")

    try:
        if cache:
            entry = open_cache().entry(question, build)
            found: dict[str, float] = json.loads((entry / ANSWER).read_text(encoding="ascii"))
            return found
        return timed(candidates)
    except (CacheRefused, OSError):
        return measured(question, candidates, cache=False)
    except Unsteady as now:
        return now.seconds


def timed(candidates: Candidates) -> dict[str, float]:
    """Return the minimum seconds of each candidate over interleaved calls.

    Raises Unsteady if the times of a candidate vary too much.
    """
    wait_for_all()
    with without_modes(), torch.no_grad():
        made = candidates()
        best: dict[str, float] = {}
        for _ in range(ATTEMPTS):
            took = interleaved_times(made)
            best = {name: min(*times, best.get(name, times[0])) for name, times in took.items()}
            if all(median(times) <= STEADY * best[name] for name, times in took.items()):
                return best
    raise Unsteady(best)


def interleaved_times(candidates: Mapping[str, Candidate]) -> dict[str, list[float]]:
    """Return the seconds of several calls of each candidate, interleaved."""
    took: dict[str, list[float]] = {name: [] for name in candidates}
    begin = time.perf_counter()
    for number in range(ROUNDS.stop):
        for name, candidate in candidates.items():
            if candidate.weight is not None:
                evict(candidate.weight)
            start = time.perf_counter()
            candidate.run()
            if number:  # the first call prepares what the library needs
                took[name].append(time.perf_counter() - start)
        if number in ROUNDS and time.perf_counter() - begin > SECONDS:
            break
    return took


def candidates_of(product: Product) -> dict[str, Candidate]:
    """Return all implementations of a product, on random matrices."""
    a, b = (_random(view.layout, product.dtype) for view in (product.a, product.b))
    bias = None if product.bias is None else _random(product.bias.layout, product.dtype)
    weight = b.t()
    read = None if product.weight is None else weight
    candidates = {
        "ATen": Candidate(partial(aten, a, weight, bias), read),
        "oneDNN": Candidate(partial(onednn, a, weight, weight, bias), read),
    }
    for name, library in LIBRARIES.items():
        if product.weight is not None and library.knows(product.dtype):
            packed = library.pack(weight.contiguous(), len(a))
            run = partial(library.multiply, a, packed, weight, bias)
            candidates[f"{name} packed"] = Candidate(run, packed)
    return candidates


def _random(layout: Layout, dtype: torch.dtype) -> torch.Tensor:
    return torch.empty_strided(layout.size, layout.stride, dtype=dtype).normal_()
