"""Operators over lists of tensors become one call for each tensor, with the same results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import inductor_lab as lab
from inductor_lab.compiler.lower.graph import lowered
from inductor_lab.compiler.rewrite.decompose.decompositions import decomposition_table
from inductor_lab.compiler.rewrite.decompose.foreach import ELEMENTWISE, SPECIAL

A = [torch.rand(3, 4) + 0.1, torch.rand(5) + 0.1, torch.rand(()) + 0.1]
B = [x * 2 for x in A]
C = [x * 3 for x in A]

CASES: dict[str, Callable[[], Any]] = {
    "add": lambda: torch._foreach_add(A, B, alpha=2),
    "add a number": lambda: torch._foreach_add(A, 2.5),
    "add numbers": lambda: torch._foreach_add(A, [1.0, 2.0, 3.0]),
    "add a tensor": lambda: torch._foreach_add(A, torch.tensor(2.0), alpha=0.5),
    "div": lambda: torch._foreach_div(A, B),
    "addcdiv": lambda: torch._foreach_addcdiv(A, B, C, value=0.5),
    "addcmul numbers": lambda: torch._foreach_addcmul(A, B, C, [0.5, 0.6, 0.7]),
    "lerp": lambda: torch._foreach_lerp(A, B, 0.3),
    "lerp tensors": lambda: torch._foreach_lerp(A, B, C),
    "pow": lambda: torch._foreach_pow(A, B),
    "number to the power": lambda: torch._foreach_pow(2.0, A),
    "maximum": lambda: torch._foreach_maximum(A, B),
    "maximum number": lambda: torch._foreach_maximum(A, 0.5),
    "minimum numbers": lambda: torch._foreach_minimum(A, [0.1, 0.2, 0.3]),
    "clamp": lambda: torch._foreach_clamp_min(A, 0.5),
    "norm": lambda: torch._foreach_norm(A, 1, dtype=torch.float64),
    "sqrt": lambda: torch._foreach_sqrt(A),
}


@pytest.mark.parametrize("name", CASES)
def test_results(name: str) -> None:
    compilation = lab.inspect(CASES[name])
    assert compilation.coverage.calls == 0, compilation.coverage
    torch.testing.assert_close(compilation.result, CASES[name]())


def test_in_place() -> None:
    def function(xs: list[torch.Tensor], ys: list[torch.Tensor]) -> None:
        torch._foreach_zero_(xs)
        torch._foreach_copy_(ys, A)
        torch._foreach_mul_(ys, 3)

    ours, theirs = ([x.clone() for x in (*A, *A)] for _ in range(2))
    function(theirs[:3], theirs[3:])
    compilation = lab.inspect(function, ours[:3], ours[3:])
    torch.testing.assert_close(ours, theirs)
    assert compilation.coverage.calls == 0


def test_every_name_is_an_operator_of_this_torch() -> None:
    table = map(str, decomposition_table(lowered()))
    names = {op.split(".")[1] for op in table if "_foreach_" in op}
    assert names == {f"_foreach_{name}" for name in (*ELEMENTWISE, *SPECIAL)} & {
        schema.name.removeprefix("aten::") for schema in torch._C._jit_get_all_schemas()
    }
