"""`addcmul_`, `addcdiv_` and `add_`, which TorchDynamo captures as products and sums, on all pairs
of types: the results, or the errors, of eager mode."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

import inductor_lab as lab
from inductor_lab.compiler.base.errors import RunsUncompiled
from inductor_lab.compiler.rewrite.captured.addcmul import FMA, restore_addcmul

Tensor = torch.Tensor
Function = Callable[[Tensor, Tensor], Tensor]
TYPES = (torch.float64, torch.float32, torch.bfloat16, torch.float16, torch.complex64, torch.int64,
         torch.int8, torch.uint8, torch.bool)  # fmt: skip
ROUNDING = {torch.bfloat16: 1.6e-2, torch.float16: 2e-3}


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    torch.compiler.reset()
    yield
    torch.compiler.reset()


def multiplied(x: Tensor, a: Tensor) -> Tensor:
    return x.clone().addcmul_(a, a, value=3)


def multiplied_by_a_fraction(x: Tensor, a: Tensor) -> Tensor:
    return x.clone().addcmul_(a, a, value=0.25)


def divided(x: Tensor, a: Tensor) -> Tensor:
    return x.clone().addcdiv_(a, a.abs() + 1, value=3)


def multiplied_by_a_tensor(x: Tensor, a: Tensor) -> Tensor:
    return x.clone().addcmul_(a, a, value=torch.tensor(3))


def added_times_a_tensor(x: Tensor, a: Tensor) -> Tensor:
    return x.clone().add_(a, alpha=torch.tensor(3))


NUMBERS: list[Function] = [multiplied, multiplied_by_a_fraction, divided]
TENSORS: list[Function] = [multiplied_by_a_tensor, added_times_a_tensor]


def drawn(dtype: torch.dtype, seed: int) -> Tensor:
    """Numbers whose squares underflow in float16, and do not fit in 8 bits."""
    x = torch.randn(37, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    if dtype.is_floating_point or dtype.is_complex:
        return (x * (1e-4 if dtype == torch.float16 else 1)).to(dtype)
    return x > 0 if dtype == torch.bool else (x * 30).long().to(dtype)


def outcome(function: Function, *args: Tensor) -> Tensor | str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RunsUncompiled)
        try:
            return function(*args)
        except RuntimeError as error:
            return str(error)


def captured(function: Callable[..., Any], *args: Tensor) -> torch.fx.GraphModule:
    found: list[torch.fx.GraphModule] = []

    def backend(module: torch.fx.GraphModule, inputs: Any) -> Any:
        found.append(module)
        return module.forward

    torch.compile(function, backend=backend)(*args)
    return found[0]


def skip_older_torch() -> None:
    """Before torch 2.13, TorchDynamo captures products that the program could have written."""
    if FMA not in str(captured(multiplied, drawn(torch.float32, 0), drawn(torch.float32, 1)).graph):
        pytest.skip("this torch captures addcmul_ as plain products")


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("function", [*NUMBERS, *TENSORS], ids=lambda f: f.__name__)
def test_all_pairs_of_types(function: Function, dtype: torch.dtype) -> None:
    skip_older_torch()
    x = drawn(dtype, 0)
    for other in TYPES:
        a = drawn(other, 1)
        torch.compiler.reset()
        ours, eager = outcome(lab.compile(function), x, a), outcome(function, x, a)
        if isinstance(eager, str):
            if function in TENSORS and "not implemented for 'Bool'" in eager:
                continue  # eager mode lacks a kernel, and the sum of bools is defined
            assert isinstance(ours, str) and eager.splitlines()[0] in ours, other
        else:
            assert isinstance(ours, Tensor), (other, ours)
            rtol = ROUNDING.get(dtype, 1e-6)
            torch.testing.assert_close(ours, eager, rtol=rtol, atol=0)


@pytest.mark.parametrize("function", NUMBERS, ids=lambda f: f.__name__)
def test_the_call_of_the_program_is_restored(function: Function) -> None:
    skip_older_torch()
    module = captured(function, drawn(torch.float32, 0), drawn(torch.float32, 1))
    restore_addcmul(module)
    targets = [str(node.target) for node in module.graph.nodes]
    assert targets.count("addcdiv_" if function is divided else "addcmul_") == 1
    assert FMA not in targets and "copy_" not in targets


def test_a_sum_that_is_copied_elsewhere_stays() -> None:
    importlib.import_module("torch._inductor.inductor_prims")

    def copies(x: Tensor, a: Tensor, y: Tensor) -> Tensor:
        y.copy_(torch.ops.prims.fma(a * a, 2.0, x))
        return y

    given = [drawn(torch.float32, seed) for seed in range(3)]
    module = captured(copies, *given)
    before = str(module.graph)
    restore_addcmul(module)
    assert str(module.graph) == before
