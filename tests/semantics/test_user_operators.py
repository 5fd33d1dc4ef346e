"""Operators of the user get inputs with the strides of eager mode, whatever computes these
inputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.library import Library

import inductor_lab as lab
from tests.semantics.compare import assert_same, wave

SEEN: list[tuple[int, ...]] = []
LIBRARY = Library("strides", "DEF")
TAGS = {
    "exact": (torch.Tag.needs_exact_strides,),
    "in_order": (torch.Tag.needs_fixed_stride_order,),
    "untagged": (),
}


def operator(name: str) -> Callable[[torch.Tensor], torch.Tensor]:
    """An operator that records the strides of its input and returns a contiguous copy."""

    def computed(x: torch.Tensor) -> torch.Tensor:
        SEEN.append(x.stride())
        return x.clone(memory_format=torch.contiguous_format)

    LIBRARY.define(f"{name}(Tensor x) -> Tensor", tags=TAGS[name])
    LIBRARY.impl(name, computed, "CPU")
    torch.library.register_fake(
        f"strides::{name}",
        lambda x: torch.empty_like(x, memory_format=torch.contiguous_format),
        lib=LIBRARY,
    )
    return getattr(torch.ops.strides, name)


OPERATORS = {name: operator(name) for name in TAGS}
LAST = {"memory_format": torch.channels_last}
SMALL, LARGE = nn.Conv2d(8, 16, 3, padding=1), nn.Conv2d(16, 16, 3, padding=1)

Program = Callable[..., Any]
PROGRAMS: dict[str, tuple[Program, Callable[[], torch.Tensor]]] = {
    "fused": (lambda op, x: op(x * 2 + 1) + 1, lambda: wave(4, 5)),
    "transposed": (lambda op, x: op(x.t()), lambda: wave(4, 5)),
    "transposed and fused": (lambda op, x: op(x.t().sin() + 1), lambda: wave(4, 5)),
    "of two layouts": (lambda op, x: op(x.t() + x), lambda: wave(5, 5)),
    "expanded": (lambda op, x: op(x.expand(3, 4)), lambda: wave(4)),
    "computed and expanded": (lambda op, x: op(x.sin().expand(3, 4)), lambda: wave(4)),
    "sliced": (lambda op, x: op(x[::2, 1:3]), lambda: wave(6, 5)),
    "computed and sliced": (lambda op, x: op((x * 2)[::2, 1:3]), lambda: wave(6, 5)),
    "channels last": (lambda op, x: op(x.contiguous(**LAST) * 2), lambda: wave(2, 8, 5, 5)),
    "of channels": (lambda op, x: op(x.mean(1, True)), lambda: wave(2, 8, 5, 5).contiguous(**LAST)),
    "joined": (lambda op, x: op(torch.cat([x, x])), lambda: wave(2, 8, 5, 5).contiguous(**LAST)),
    "product": (lambda op, x: op((x @ x).t()), lambda: wave(5, 5)),
    "permuted": (lambda op, x: op(x.permute(2, 0, 1) * 2), lambda: wave(3, 4, 5)),
    "one row": (lambda op, x: op(x.transpose(0, 1)), lambda: wave(1, 4, 5)),
    "one column": (lambda op, x: op(x[:, :1] * 1), lambda: wave(3, 4, 5)),
    "a sum": (lambda op, x: op(x.sum(0, keepdim=True)), lambda: wave(3, 4, 5).transpose(1, 2)),
    "softmax": (lambda op, x: op(x.softmax(-1)), lambda: wave(4, 5).t()),
    "chosen rows": (lambda op, x: op(x[torch.tensor([0, 2])]), lambda: wave(4, 5).t()),
    "with gaps": (lambda op, x: op(x * 2), lambda: wave(6, 8)[:, ::2]),
    "from a convolution": (lambda op, x: op(SMALL(x).relu()), lambda: wave(2, 8, 32, 32)),
    "between convolutions": (
        lambda op, x: LARGE(op(LARGE(SMALL(x).relu())).relu()),
        lambda: wave(2, 8, 64, 64),
    ),
}


def seen_by(function: Program, x: torch.Tensor) -> tuple[Any, list[tuple[int, ...]]]:
    SEEN.clear()
    with torch.no_grad():
        result = function(x)
    return result, list(SEEN)


@pytest.mark.parametrize("name", PROGRAMS)
def test_strides_equal_eager_mode(name: str) -> None:
    program, make = PROGRAMS[name]
    for op in OPERATORS.values() if name == "between convolutions" else [OPERATORS["exact"]]:
        torch.compiler.reset()
        expected, strides = seen_by(lambda x, op=op: program(op, x), make())
        found, ours = seen_by(lab.compile(lambda x, op=op: program(op, x)), make())
        assert_same(found, expected)
        assert ours == strides and strides


@pytest.mark.parametrize("name", TAGS)
def test_strides_equal_eager_mode_for_every_tag(name: str) -> None:
    op = OPERATORS[name]
    expected, strides = seen_by(lambda x: op(x.t() * 2), wave(4, 5))
    found, ours = seen_by(lab.compile(lambda x: op(x.t() * 2)), wave(4, 5))
    assert_same(found, expected)
    assert ours == strides == [(1, 5)]


FORMATS = (torch.preserve_format, torch.contiguous_format, torch.channels_last, None)


@pytest.mark.parametrize("memory_format", FORMATS, ids=str)
@pytest.mark.parametrize("last", [False, True])
def test_resize_as_in_every_memory_format(memory_format: Any, last: bool) -> None:
    def in_place(x: torch.Tensor, template: torch.Tensor) -> torch.Tensor:
        return x.clone().resize_as_(template, memory_format=memory_format)

    def functional(x: torch.Tensor, template: torch.Tensor) -> torch.Tensor:
        return torch.ops.aten.resize_as.default(x, template, memory_format=memory_format)

    template = torch.empty(1, 2, 3, 4)
    template = template.contiguous(**LAST) if last else template
    for function in (in_place, functional):
        for x in (torch.arange(24.0), torch.arange(24.0).view(1, 2, 3, 4)):
            torch.compiler.reset()
            expected = function(x, template)
            assert_same(lab.compile(function)(x, template), expected, strides=True)


@torch.library.custom_op("lab_tests::double_in_place", mutates_args=["x"])
def double_in_place(x: torch.Tensor) -> None:
    x.mul_(2)


def every_second(y: torch.Tensor) -> None:
    double_in_place(y.view(-1)[::2])


def every_second_from_one(y: torch.Tensor) -> None:
    double_in_place(y.view(-1)[1::2])


def whole_then_part(y: torch.Tensor) -> None:
    double_in_place(y)
    every_second(y)


def slice_then_part(y: torch.Tensor) -> None:
    double_in_place(y[1:])
    every_second_from_one(y)


def element_then_part(y: torch.Tensor) -> None:
    y[0] = 1
    every_second(y)


def three_times(y: torch.Tensor) -> None:
    double_in_place(y.detach().detach())
    double_in_place(y.view(2, -1).mT)
    every_second(y)


WRITES = (
    every_second, every_second_from_one, whole_then_part, slice_then_part, element_then_part,
    three_times,
)  # fmt: skip


@pytest.mark.parametrize("write", WRITES)
def test_a_copy_with_an_absolute_view_is_kept(write: Callable[[torch.Tensor], None]) -> None:
    """The operator's view has an absolute offset in the copy's storage; the input has another
    offset."""

    def f(x: torch.Tensor) -> torch.Tensor:
        y = x.clone()
        write(y)
        return y

    compiled = lab.compile(f)
    for x in (torch.arange(12.0)[4:], torch.arange(8.0), torch.arange(30.0)[9:17]):
        before = x.clone()
        assert_same(compiled(x), f(x), strides=True)
        assert torch.equal(x, before)


def test_a_copy_without_an_absolute_view_is_removed() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        y = x.clone()
        double_in_place(y)
        return y + 1

    rewrites = lab.inspect(f, torch.arange(12.0)[4:]).graphs[0].forward.rewrites
    assert "copy_of_same_kind" in str(rewrites)
