"""Each rule with a pair that it accepts and a pair that it refuses; golden texts of refusals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, reduce
from types import SimpleNamespace

import pytest
import torch

from inductor_lab.compiler.base.options import FusionOptions
from inductor_lab.compiler.ir.expr import Load, Op
from inductor_lab.compiler.ir.index import Axis, Index
from inductor_lab.compiler.ir.program import (
    Buffer,
    BufferKind,
    BufferView,
    Layout,
    LoopProgram,
    Pointwise,
)
from inductor_lab.compiler.lower.retarget import retarget
from inductor_lab.compiler.schedule.fusion.rules import LEGALITY, PROFIT
from inductor_lab.compiler.schedule.passes import schedule_program
from inductor_lab.compiler.schedule.schedule import Schedule
from tests.schedule.programs import planned, reasons, traced


def floats(*size: int) -> torch.Tensor:
    return torch.empty(size)


def residual(x: torch.Tensor) -> torch.Tensor:
    y = x.exp()
    return y @ y + y


def rows(x: torch.Tensor) -> torch.Tensor:
    return x - x.sum(1, keepdim=True)


def rows_and_parts(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return x.sum(1), x.view(-1, 4, x.shape[1]).sum(1)


def flipped_rows(x: torch.Tensor) -> torch.Tensor:
    return x - x.sum(1, keepdim=True).flip(0)


def running(x: torch.Tensor) -> torch.Tensor:
    return x.cumsum(1).flip(1)


def differences(x: torch.Tensor) -> torch.Tensor:
    y = x.cumsum(1)
    return y[:, 1:] - y[:, :-1]


def columns(x: torch.Tensor) -> torch.Tensor:
    return x - x.sum(0)


def chain(x: torch.Tensor) -> torch.Tensor:
    return (x + 1).sin()


def outer(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return (a.exp() * b[:, None]).sum(1)


def broadcast(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return a.exp()[:, None] * b[..., None]


def two_readers(x: torch.Tensor) -> torch.Tensor:
    y = x.exp()
    return (y + 1) @ x + y


def mean_from_sum(x: torch.Tensor) -> torch.Tensor:
    return x - x.sum(1, keepdim=True) / 64


def mean_from_first(x: torch.Tensor) -> torch.Tensor:
    """The mean is read in another order than it is computed, so in another kernel."""
    first = x[:, :1]
    return x - (first + (x - first).sum(1, keepdim=True) / 64).flip(0)


def copied(x: torch.Tensor) -> torch.Tensor:
    y = x.abs()
    return (y + 1) @ x + y


def many_inputs(*xs: torch.Tensor) -> torch.Tensor:
    return reduce(torch.add, xs).sin()


def total(x: torch.Tensor) -> torch.Tensor:
    return x / x.sum()


def centered(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return y - x.sum(1, keepdim=True)


def both_sums(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return x.sum(1), x.amax(1)


def unequal_sums(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return x.sum(1), x[:, :8].amax(1)


def two_homes(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    y = x.exp()
    return y, y.sum(1), y[:, :8].amax(1)


def share_little(x: torch.Tensor, y: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return x + b, y - b


def share_all(x: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return x + b, x - b


def far(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    early, y = x.sin(), x
    for _ in range(110):
        y = y @ y
    return early, y, x.cos()


def sum_of_two(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    y = a + b
    return y, y @ a + y


def rows_added(x: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    return x.abs().index_add(0, rows.bool().long()[:, 0], rows.sin())


def old_and_new(x: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    """A product that needs the old value after the new value is written to its storage."""
    y = x @ x
    old = y + 1
    return old * y.index_copy(0, rows.bool().long()[:, 0], rows)


@cache
def cached_schedule(
    function: Callable[..., object], sizes: tuple[tuple[int, ...], ...]
) -> Schedule:
    return planned(function, *(floats(*size) for size in sizes))


@dataclass(frozen=True)
class Example:
    """A function, the sizes of its arguments, and a pair of its buffers."""

    function: Callable[..., object]
    sizes: tuple[tuple[int, ...], ...]
    producer: str
    consumer: str

    def schedule(self) -> Schedule:
        return cached_schedule(self.function, self.sizes)


@dataclass(frozen=True)
class OnGpu(Example):
    """An example that is scheduled for a GPU."""

    def schedule(self) -> Schedule:
        program = traced(self.function, *(floats(*size) for size in self.sizes))
        return schedule_program(retarget(program, "cuda:90"), FusionOptions())


@dataclass(frozen=True)
class OfProducts(Example):
    """An example with products of float16 matrices as loop nests."""

    def schedule(self) -> Schedule:
        args = (floats(*size).half() for size in self.sizes)
        return schedule_program(traced(self.function, *args, products=True), FusionOptions())


def product_relu(x, y):
    return torch.relu(x @ y)


def product_softmax(x, y):
    return (x @ y).float().softmax(-1)


def pool_of_relu(x):
    return torch.nn.functional.max_pool2d(torch.relu(x), 3, 2, 1)


def pool_of_gelu(x):
    return torch.nn.functional.max_pool2d(torch.nn.functional.gelu(x), 3, 2, 1)


SQUARE = ((64, 64),)
EXAMPLES: dict[str, tuple[Example, Example]] = {
    "no_step_between": (
        Example(chain, SQUARE, "buf0", "buf1"),
        Example(residual, SQUARE, "buf0", "buf2"),
    ),
    "stored_once": (
        Example(two_homes, SQUARE, "buf0", "buf1"),
        Example(two_homes, SQUARE, "buf0", "buf2"),
    ),
    "not_overwritten": (
        Example(chain, SQUARE, "buf0", "buf1"),
        Example(old_and_new, SQUARE * 2, "buf1", "buf6"),
    ),
    "scatter_alone": (
        Example(rows_added, SQUARE * 2, "buf3", "buf5"),
        Example(rows_added, SQUARE * 2, "buf0", "buf5"),
    ),
    "same_iteration_space": (
        Example(rows, SQUARE, "buf0", "buf1"),
        Example(flipped_rows, SQUARE, "buf0", "buf1"),
    ),
    "same_point": (
        Example(rows, SQUARE, "buf0", "buf1"),
        Example(flipped_rows, SQUARE, "buf0", "buf1"),
    ),
    "in_step_with_scan": (
        Example(running, SQUARE, "buf0", "buf1"),
        Example(differences, SQUARE, "buf0", "buf1"),
    ),
    "bytes_saved": (
        Example(chain, SQUARE, "buf0", "buf1"),
        Example(sum_of_two, SQUARE * 2, "buf0", "buf2"),
    ),
    "parallelism": (
        Example(total, ((8, 8),), "buf0", "buf1"),
        Example(total, ((1024, 1024),), "buf0", "buf1"),
    ),
    "fills_the_gpu": (
        OnGpu(centered, ((1000, 8), (1000, 8)), "buf0", "buf1"),
        OnGpu(centered, ((1000, 8), (1000, 4096)), "buf0", "buf1"),
    ),
    "parts_fill_the_gpu": (
        OnGpu(rows_and_parts, ((1024, 512),), "buf0", "buf1"),
        OnGpu(rows_and_parts, ((1024, 128),), "buf0", "buf1"),
    ),
    "product_goes_on": (
        OfProducts(product_relu, ((32, 64), (64, 48)), "buf1", "buf2"),
        OfProducts(product_softmax, ((32, 64), (64, 48)), "buf1", "buf2"),
    ),
    "memory_walk": (
        Example(rows, SQUARE, "buf0", "buf1"),
        Example(columns, SQUARE, "buf0", "buf1"),
    ),
    "recompute_work": (
        Example(broadcast, ((512, 64), (512, 32)), "buf0", "buf1"),
        Example(outer, ((4096,), (4096,)), "buf0", "buf1"),
    ),
    "window_work": (
        Example(pool_of_relu, ((1, 8, 32, 32),), "buf0", "buf1"),
        Example(pool_of_gelu, ((1, 8, 32, 32),), "buf0", "buf1"),
    ),
    "cheap_copy": (
        Example(copied, SQUARE, "buf0", "buf1"),
        Example(two_readers, SQUARE, "buf0", "buf3"),
    ),
    "one_more_place": (
        Example(mean_from_sum, SQUARE, "buf0", "buf1"),
        Example(mean_from_first, SQUARE, "buf3", "buf4"),
    ),
    "kernel_size": (
        Example(many_inputs, SQUARE * 40, "buf0", "buf1"),
        Example(many_inputs, SQUARE * 60, "buf12", "buf13"),
    ),
    "same_loops": (
        Example(both_sums, SQUARE, "buf0", "buf1"),
        Example(unequal_sums, SQUARE, "buf0", "buf1"),
    ),
    "shares_enough": (
        Example(share_all, ((64, 64), (64,)), "buf0", "buf1"),
        Example(share_little, ((64, 64), (64, 64), (64,)), "buf0", "buf1"),
    ),
    "near": (
        Example(share_all, ((64, 64), (64,)), "buf0", "buf1"),
        Example(far, SQUARE, "buf0", "buf111"),
    ),
}


def text_of(rule: str, example: Example) -> str | None:
    return reasons(example.schedule(), example.producer, example.consumer).get(rule)


@pytest.mark.parametrize("rule", EXAMPLES)
def test_rule(rule: str):
    accepted, refused = EXAMPLES[rule]
    assert text_of(rule, accepted) is None
    assert accepted.schedule().decisions.about(accepted.producer, accepted.consumer).fused
    assert text_of(rule, refused) is not None


def test_texts_of_refusals(golden: Callable[[str, str], None]):
    lines = [f"{rule}: {text_of(rule, refused)}" for rule, (_, refused) in EXAMPLES.items()]
    golden("schedule_refusals.txt", "\n".join(lines))


def test_every_rule_has_an_example():
    assert {*EXAMPLES, "same_device"} == {*LEGALITY, *PROFIT}


def on_devices(*devices: str) -> Schedule:
    """`sin(exp(x))`, each step on its own device."""
    axis = Axis("i0", 8)
    names = ("x", "buf0", "buf1")
    kinds = (BufferKind.INPUT, BufferKind.COMPUTED, BufferKind.COMPUTED)
    layout = Layout.contiguous((8,))
    buffers = {
        name: Buffer(name, kind, torch.float32, device, layout)
        for name, kind, device in zip(names, kinds, ("cpu", *devices), strict=True)
    }
    loads = [Load(name, (Index.of(axis),), torch.float32) for name in names]
    steps = tuple(
        Pointwise(made, (axis,), Op(op, (load,), torch.float32))
        for made, op, load in zip(names[1:], ("exp", "sin"), loads, strict=False)
    )
    loops = LoopProgram("devices", ("x",), buffers, steps, (BufferView("buf1", layout),))
    return schedule_program(loops, FusionOptions())


def test_same_device():
    assert reasons(on_devices("cpu", "cpu"), "buf0", "buf1") == {}
    refused = reasons(on_devices("cpu", "cuda:0"), "buf0", "buf1")
    assert refused == {"same_device": "buf0 is on cpu, buf1 on cuda:0"}


def test_a_pair_that_saves_nothing_is_refused() -> None:
    pair = SimpleNamespace(merged=object(), saved=0)
    assert PROFIT["bytes_saved"](pair) == "it saves no memory traffic"
    pair.saved = 1
    assert PROFIT["bytes_saved"](pair) is None
