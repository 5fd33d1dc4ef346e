"""`check_bounds`: accesses outside a buffer are reported, and not executed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest import mock

import pytest
import torch

import inductor_lab as lab
from inductor_lab.compiler.base.errors import OutOfBounds
from inductor_lab.compiler.codegen.cpu import passes
from inductor_lab.compiler.lower import fits
from inductor_lab.compiler.runtime.check_bounds import extent
from tests.semantics.compare import assert_same, wave

LAST = torch.tensor([3, 8, 0])
CASES: dict[str, tuple[Callable[..., Any], tuple[torch.Tensor, ...]]] = {
    "pointwise": (lambda x, y: x.sin() + y, (wave(7, 9), wave(9))),
    "rows": (lambda x: x.softmax(-1), (wave(5, 33),)),
    "long sum": (lambda x: x.sum(-1), (wave(2, 5000),)),
    "columns": (lambda x: x.sum(0), (wave(60, 40),)),
    "whole sum": (lambda x: x.sum(), (wave(300_000),)),
    "tiles": (lambda x, y: x + y.t(), (wave(300, 260), wave(260, 300))),
    "halves": (lambda x: (x * 2).half().exp(), (wave(4, 600).half(),)),
    "streams": (lambda x: x + 1, (wave(1000, 128),)),
    "running sum": (lambda x: x.cumsum(1) * 2, (wave(3, 200),)),
    "bools": (lambda x: (x > 0).any(1), (wave(6, 20),)),
    "windows": (lambda x: torch.nn.functional.max_pool2d(x, 3, 1), (wave(1, 2, 12, 40),)),
    "gathered": (lambda x, i: x[i] * 2, (wave(9, 4), LAST)),
    "scattered": (lambda x, i, y: x.index_add(0, i, y), (wave(9, 4), LAST, wave(3, 4))),
    "found": (lambda x, y: torch.searchsorted(x, y), (wave(9).sort().values, wave(5) + 2)),
    "combo": (lambda x, y: (x + 1, y * 2), (wave(30), wave(5, 4))),
    "short rows": (lambda x: x.softmax(-1), (wave(200, 13),)),
    "short rows of halves": (lambda x: x.rot90(), (wave(32, 20).half(),)),
    "ends of rows": (lambda x: x.exp().sum(-1), (wave(40, 143),)),
    "rows in steps": (
        lambda x: ((x[:, None] - x) / ((x[:, None] - x) ** 2).sum(-1, keepdim=True).add(1)).sum(1),
        (wave(300, 3),),
    ),
}
INTERPRETED = ("pointwise", "rows", "columns", "tiles", "gathered", "running sum")


def less(tensor: torch.Tensor) -> torch.Tensor:
    """The same storage without its last element."""
    return tensor.as_strided((extent(tensor) - 1,), (1,))


@pytest.mark.parametrize("language", ["cpp", "triton"])
@pytest.mark.parametrize("name", CASES)
def test_an_access_to_a_missing_last_element_is_reported(name: str, language: str) -> None:
    if language == "triton" and name not in INTERPRETED:
        pytest.skip("a case of C++")
    function, given = CASES[name]
    options = {"check_bounds": True, "language": language}
    with mock.patch.object(passes, "STREAMED_BYTES", 100_000):
        compilation = lab.inspect(function, *given, options=options)
    assert_same(compilation.result, function(*given), rtol=2e-3, atol=2e-3)
    part = compilation.graphs[0].forward
    names, calls = part.executable.call.__globals__, []
    for kernel in part.kernels:
        run = names[kernel.name]
        names[kernel.name] = lambda *args, run=run, kernel=kernel: calls.append(
            (kernel, run, args, run(*args))
        )
    sizes = [part.loops.buffers[name].layout.size for name in part.loops.inputs]
    part.executable.run(*sorted(given, key=lambda x: sizes.index(tuple(x.shape))))
    assert len(calls) == len(part.kernels)
    for kernel, run, args, _ in calls:
        for number, one in enumerate(args):
            if isinstance(one, torch.Tensor):
                short = (*args[:number], less(one), *args[number + 1 :])
                reached = f"{kernel.name} reaches element [0-9]+ of .*which has {extent(one) - 1}"
                with pytest.raises(OutOfBounds, match=reached):
                    run(*short)


@pytest.mark.parametrize("language", ["cpp", "triton"])
def test_an_index_out_of_range_is_reported_with_its_line(language: str) -> None:
    """A negative start of a slice that has not been converted to an index from the front."""

    def function(x: torch.Tensor, n: int) -> torch.Tensor:
        return x[n:] * 2

    options = {"check_bounds": True, "language": language}
    compiled = lab.compile(function, dynamic=True, options=options)
    wrong = mock.patch.object(fits, "_position_from_start", lambda build, size, place, *_: place)
    with wrong, pytest.raises(OutOfBounds, match=r"reaches element -\d+ of") as caught:
        compiled(wave(6, 4), -2)
    assert "x[n:] * 2" in str(caught.value) or language == "triton"


def test_bounds_checks_change_only_the_parameters() -> None:
    """The text of a kernel is the same except for its parameters, and the host passes tensors."""
    plain, checked = (
        lab.inspect(lambda x: x.softmax(-1), wave(5, 33), options={"check_bounds": on})
        for on in (False, True)
    )
    one, other = (c.graphs[0].forward.kernels[0].code.lines for c in (plain, checked))
    assert [a.text for a in one if "LAB_EXPORT" not in a.text] == [
        b.text for b in other if "LAB_EXPORT" not in b.text
    ]
    assert "data_ptr" in str(plain.graphs[0].forward.host)
    assert "data_ptr" not in str(checked.graphs[0].forward.host)
