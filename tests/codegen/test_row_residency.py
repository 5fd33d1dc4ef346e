"""Expensive values that two loops over a row share: in a local array or in the result buffer."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

import inductor_lab as lab

Function = Callable[[torch.Tensor], torch.Tensor]

KEPT: dict[str, Function] = {
    "alone": lambda x: x.softmax(-1),
    "in place": lambda x: (x @ x.t()).softmax(-1),
    "of columns side by side": lambda x: (x * 2).exp().softmax(-1),
}
AGAIN: dict[str, Function] = {
    "the old value is needed": lambda x: (x @ x.t()).relu().softmax(-1) + x @ x.t(),
    "read backwards": lambda x: (x @ x.t()).flip(-1).softmax(-1),
    "another dtype": lambda x: x.softmax(-1, dtype=torch.float64).float(),
}


def compiled(function: Function, x: torch.Tensor, *, dynamic: bool) -> str:
    """The text of the last kernel, after comparing its result with eager mode."""
    torch.compiler.reset()
    if dynamic:
        torch._dynamo.mark_dynamic(x, (0, 1))
    found = lab.inspect(function, x)
    torch.testing.assert_close(found.result, function(x), rtol=1e-5, atol=1e-6)
    return str(found.graphs[0].forward.kernels[-1])


def last_loop(text: str) -> str:
    return text[text.rindex("#pragma omp simd") :]


@pytest.mark.parametrize("name", KEPT)
def test_a_row_of_symbolic_length_is_kept_in_the_result(name: str) -> None:
    last = last_loop(compiled(KEPT[name], torch.randn(33, 77), dynamic=True))
    assert "= out0[" in last
    assert "lab_exp" not in last


@pytest.mark.parametrize("name", AGAIN)
def test_a_value_is_recomputed_if_the_result_must_not_be_written_yet(name: str) -> None:
    last = last_loop(compiled(AGAIN[name], torch.randn(33, 77), dynamic=True))
    assert "= out0[" not in last
    assert "lab_exp" in last


def test_a_short_row_is_kept_in_a_local_array() -> None:
    last = last_loop(compiled(KEPT["alone"], torch.randn(33, 77), dynamic=False))
    assert "= row0[" in last


def test_a_long_row_is_kept_in_the_result_unless_it_is_streamed() -> None:
    last = last_loop(compiled(KEPT["alone"], torch.randn(40, 70_000), dynamic=False))
    assert "= out0[" in last
    last = last_loop(compiled(KEPT["alone"], torch.randn(64, 70_000), dynamic=False))
    assert "lab_stream" in last
    assert "= out0[" not in last
