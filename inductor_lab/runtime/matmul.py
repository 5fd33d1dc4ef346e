"""Which library multiplies two matrices: measured here, once for each size.

ATen sends float32 products to MKL.  On some CPUs oneDNN, which torch also has, is twice as fast, on
others it is not.  Both are timed on matrices of the sizes at hand; the answer is kept in the user's
cache directory, for this CPU, this number of threads and this torch.

Inductor: `fx_passes/mkldnn_fusion.py`, which decides by rules and packs frozen weights, and
`select_algorithm.py`, which measures templates.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from inductor_lab.errors import CacheRefused
from inductor_lab.ir.program import BufferView, ExternCall, Layout, LoopProgram
from inductor_lab.options import Options
from inductor_lab.runtime.cache import open_cache
from inductor_lab.runtime.toolchain import cpu_identity
from inductor_lab.schedule.result import Schedule
from inductor_lab.torch_api import without_modes

ONEDNN = "mkldnn._linear_pointwise.default"
PRODUCTS = {"aten.mm.default": 0, "aten.addmm.default": 1}
"""The operators that may be replaced, and where their first matrix is among the arguments."""

SMALLEST = 20_000_000
"""Floating-point operations below which a product is over before the choice matters."""
ROUNDS = 4
MARGIN = 0.9
"""oneDNN must take less than this share of ATen's time: a tie keeps what eager does."""
ANSWER = "seconds.json"


@dataclass(frozen=True)
class Choice:
    """One product, the seconds each library took for it, and who got it."""

    op: str
    sizes: tuple[int, int, int]
    dtype: str
    aten: float
    onednn: float

    @property
    def chosen(self) -> str:
        return "oneDNN" if self.onednn < MARGIN * self.aten else "ATen"

    def __str__(self) -> str:
        m, k, n = self.sizes
        return (
            f"{self.op} ({m}, {k}) x ({k}, {n}) {self.dtype}: "
            f"ATen {self.aten * 1e3:.3f} ms, oneDNN {self.onednn * 1e3:.3f} ms: {self.chosen}"
        )


@dataclass(frozen=True)
class Product:
    """The operands of one matrix product, as views of buffers: `bias + a @ b`."""

    bias: BufferView | None
    a: BufferView
    b: BufferView
    dtype: torch.dtype

    @property
    def sizes(self) -> tuple[int, int, int]:
        m, k = self.a.layout.size
        n = self.b.layout.size[1]
        assert isinstance(m, int) and isinstance(k, int) and isinstance(n, int)
        return m, k, n

    @property
    def weight(self) -> BufferView:
        """`b` as oneDNN's linear takes it, one row for each column of the result."""
        layout = self.b.layout
        return replace(self.b, layout=Layout(layout.size[::-1], layout.stride[::-1], layout.offset))


def choose_libraries(schedule: Schedule, options: Options) -> tuple[Schedule, tuple[Choice, ...]]:
    """The schedule with each matrix product given to the faster library, and the measurements."""
    if options.matmul == "aten" or options.target is not None:
        return schedule, ()
    choices: dict[Choice, None] = {}
    steps = []
    for step in schedule.steps:
        product = product_of(step, schedule.program) if isinstance(step, ExternCall) else None
        if product is not None and isinstance(step, ExternCall):
            choice = measured(step.op, product)
            choices[choice] = None
            if choice.chosen == "oneDNN":
                args = (product.a, product.weight, product.bias, "none", (), "")
                step = replace(step, op=ONEDNN, args=args)
        steps.append(step)
    return replace(schedule, steps=tuple(steps)), tuple(choices)


def product_of(call: ExternCall, program: LoopProgram) -> Product | None:
    """The operands, if oneDNN's linear computes the same: both matrices on the CPU, of fixed sizes
    and a dtype that it knows; a bias of one number for each column."""
    at = PRODUCTS.get(call.op)
    if at is None or not torch.backends.mkldnn.is_available():  # type: ignore[no-untyped-call]
        return None
    if call.kwargs and any(value != 1 for _, value in call.kwargs):
        return None
    views = call.args[: at + 2]
    if not all(isinstance(view, BufferView) for view in views):
        return None
    buffers = [program.buffers[view.buffer] for view in views]
    dtype = buffers[0].dtype
    if any(b.device != "cpu" or b.dtype != dtype for b in buffers) or dtype not in KNOWN:
        return None
    *bias, a, b = views
    layouts = [view.layout for view in views]
    if not all(isinstance(n, int) for layout in layouts for n in (*layout.size, *layout.stride)):
        return None
    if bias and (len(bias[0].layout.size) != 1 or bias[0].layout.stride != (1,)):
        return None
    product = Product(bias[0] if bias else None, a, b, dtype)
    m, k, n = product.sizes
    return product if 2 * m * k * n >= SMALLEST else None


KNOWN = (torch.float32, torch.bfloat16)


def measured(op: str, product: Product) -> Choice:
    """How long both libraries take, from the cache or by trying."""
    layouts = [view.layout for view in (product.a, product.b)]
    shape = repr([(layout.size, layout.stride) for layout in layouts])
    name = op.split(".")[1]
    dtype = str(product.dtype).removeprefix("torch.")
    where = (str(torch.get_num_threads()), str(torch.__version__), cpu_identity())
    key = ("matmul, real tensors", name, dtype, shape, *where)

    def build(folder: Path) -> None:
        (folder / ANSWER).write_text(json.dumps(timed(product)), encoding="ascii")

    try:
        entry = open_cache().entry(key, build)
        aten, onednn = json.loads((entry / ANSWER).read_text(encoding="ascii"))
    except CacheRefused:
        aten, onednn = timed(product)
    return Choice(name, product.sizes, dtype, aten, onednn)


def timed(product: Product) -> tuple[float, float]:
    """Seconds of the quickest of some calls of each, in turns, on random matrices."""
    took: list[list[float]] = [[], []]
    with without_modes(), torch.no_grad():
        ways = _ways(product)
        for _ in range(ROUNDS):
            for way, times in zip(ways, took, strict=True):
                start = time.perf_counter()
                way()
                times.append(time.perf_counter() - start)
    return min(took[0]), min(took[1])


def _ways(product: Product) -> Sequence[Callable[[], torch.Tensor]]:
    """ATen's and oneDNN's."""
    a, b = (_random(view.layout, product.dtype) for view in (product.a, product.b))
    bias = None if product.bias is None else _random(product.bias.layout, product.dtype)
    linear = torch.ops.mkldnn._linear_pointwise
    return (
        (lambda: torch.mm(a, b)) if bias is None else (lambda: torch.addmm(bias, a, b)),
        lambda: linear(a, b.t(), bias, "none", [], ""),
    )


def _random(layout: Layout, dtype: torch.dtype) -> torch.Tensor:
    return torch.empty_strided(layout.size, layout.stride, dtype=dtype).normal_()
