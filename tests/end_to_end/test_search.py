"""searchsorted and bucketize in every stage, in C++ and in interpreted Triton."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import bucketize, searchsorted
from torch.testing import assert_close

import inductor_lab as lab
from inductor_lab.compiler.ir.program import Reduction
from inductor_lab.compiler.ir.verify import verify
from inductor_lab.compiler.schedule.verify import verify_schedule

NAN, INF = float("nan"), float("inf")


def floats(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)))


def ordered(*shape: int) -> torch.Tensor:
    return (floats(*shape) * 4).round().sort(-1).values


def search(boundaries: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    return searchsorted(boundaries, values)


def buckets(values: torch.Tensor, boundaries: torch.Tensor) -> torch.Tensor:
    return bucketize(values, boundaries)


SPECIAL = torch.tensor([-INF, -1.0, -0.0, 0.0, 1.0, 1.0, 1.0, INF, NAN, NAN])
PROBES = torch.tensor([NAN, -INF, INF, 0.0, -0.0, 1.0, 0.5, 9.0, -9.0])
SHUFFLED = ordered(64)[torch.randperm(64, generator=torch.Generator().manual_seed(0))]
INTS = torch.tensor([1, 3, 3, 7, 9])

CASES: dict[str, tuple[Callable[..., Any], tuple[torch.Tensor, ...]]] = {
    "plain": (search, (ordered(100), floats(7, 30) * 4)),
    "right": (lambda b, x: searchsorted(b, x, right=True), (ordered(99), ordered(50))),
    "side": (lambda b, x: searchsorted(b, x, side="right"), (ordered(99), ordered(50))),
    "int32": (lambda b, x: searchsorted(b, x, out_int32=True) * 2, (ordered(99), ordered(50))),
    "rows": (search, (ordered(3, 4, 33), floats(3, 4, 5) * 4)),
    "sorter": (
        lambda b, x: searchsorted(b, x, sorter=b.argsort(stable=True)),
        (SHUFFLED, ordered(50)),
    ),
    "sorter_of_rows": (
        lambda b, x: searchsorted(b, x, sorter=b.argsort(-1), right=True),
        (SHUFFLED.view(8, 8), floats(8, 3)),
    ),
    "nan": (search, (SPECIAL, PROBES)),
    "nan_right": (lambda b, x: searchsorted(b, x, right=True), (SPECIAL, PROBES)),
    "nan_first": (search, (SPECIAL.roll(2), PROBES)),
    "not_in_order": (search, (floats(77), floats(77))),
    "one_boundary": (search, (torch.tensor([0.5]), floats(9))),
    "two_boundaries": (search, (torch.tensor([-0.5, 0.5]), floats(9))),
    "no_boundary": (search, (torch.empty(0), floats(9))),
    "no_values": (search, (ordered(9), torch.empty(0))),
    "one_value": (search, (ordered(99), torch.tensor(0.3))),
    "number": (lambda b: (searchsorted(b, 0.3), bucketize(0.3, b)), (ordered(99),)),
    "number_of_another_kind": (lambda b: searchsorted(b, 2.5), (INTS,)),
    "ints": (search, (INTS, torch.arange(-2, 12))),
    "uint8": (search, (INTS.to(torch.uint8), torch.arange(0, 12, dtype=torch.uint8))),
    "half": (search, (ordered(99).half(), floats(50).half())),
    "bfloat16": (buckets, (floats(50).bfloat16(), ordered(99).bfloat16())),
    "bucketize": (lambda x, b: bucketize(x * 2, b, right=True), (floats(6, 8), ordered(20))),
    "of_softmax": (lambda x, b: bucketize(x.softmax(1), b), (floats(9, 80), ordered(20).abs())),
    "of_a_scan": (
        lambda x, u: searchsorted(x.softmax(1).cumsum(1), u),
        (floats(9, 80), floats(9, 3).sigmoid()),
    ),
    "looked_up": (lambda x, b, w: w[bucketize(x, b)], (floats(9), ordered(4), floats(5, 3))),
    "transposed": (lambda b, x: searchsorted(b, x.t().contiguous()), (ordered(50), floats(70, 40))),
}


@pytest.mark.parametrize("name", CASES)
def test_every_stage(name: str) -> None:
    function, args = CASES[name]
    expected = function(*args)
    c = lab.inspect(function, *args)
    part = c.graphs[0].forward
    assert part.loops.nests
    verify(part.loops)
    verify_schedule(part.schedule)
    if "sorter" not in name:
        assert c.coverage.share == 1.0, str(c.coverage)
    assert_close(c.result, expected)
    for stage in (part.loops, part.schedule):
        found = stage.run(*c.graphs[0].inputs)
        assert_close(found if isinstance(expected, tuple) else found[0], expected)


@pytest.mark.parametrize("name", CASES)
def test_triton(name: str) -> None:
    function, args = CASES[name]
    c = lab.inspect(function, *args, options={"language": "triton"})
    assert_close(c.result, function(*args))


@pytest.mark.parametrize("language", ["cpp", "triton"])
def test_dynamic_sizes(language: str) -> None:
    compiled = lab.compile(
        lambda boundaries, values: searchsorted(boundaries, values),
        dynamic=True,
        options={"language": language},
    )
    for size in (2, 3, 7, 64, 1000, 4096):
        boundaries, values = ordered(size), floats(size, 3) * 4
        assert_close(compiled(boundaries, values), searchsorted(boundaries, values))


def test_the_number_of_loads_is_that_of_a_binary_search() -> None:
    c = lab.inspect(search, ordered(1000), floats(50))
    (nest,) = c.graphs[0].forward.loops.nests
    assert isinstance(nest, Reduction) and nest.kind == "bisect"
    assert "bisect over r0<1000 of ge(arg0_1[r0], arg1_1[i0])" in str(c.graphs[0].forward.loops)
    assert c.after.flops == 50 * 10 * 2, "ten comparisons, each counted"


def test_ptx() -> None:
    c = lab.inspect(search, ordered(1000), floats(50), target="cuda:90")
    (kernel,) = c.graphs[0].forward.kernels
    assert ".visible .entry" in kernel.ladder("cuda:90")["ptx"]
