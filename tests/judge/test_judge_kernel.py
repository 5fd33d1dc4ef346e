"""Edited kernels of ours and of stock are judged."""

from __future__ import annotations

import pytest
import torch

import inductor_lab as lab
from inductor_lab.compiler.base.errors import BadArguments, NotRunnable, UnknownName
from inductor_lab.debug.isolate import can_fork
from inductor_lab.debug.untrusted.confine import confinable

pytestmark = pytest.mark.skipif(not can_fork(), reason="this process cannot be forked")
X = torch.linspace(0.1, 9, 1001)


def wave(x: torch.Tensor) -> torch.Tensor:
    return torch.sin(x) + x


@pytest.fixture(scope="module")
def c() -> lab.Compilation:
    return lab.inspect(wave, X)


def edited(c: lab.Compilation, old: str, new: str) -> tuple[str, str]:
    kernel = c.graphs[0].forward.kernels[0]
    assert old in str(kernel.code)
    return kernel.name, str(kernel.code).replace(old, new)


def test_an_unchanged_kernel_is_accepted_and_timed(c: lab.Compilation) -> None:
    found = lab.judge_kernel(c, *edited(c, "return 0;", "return 0;  // unchanged"), seconds=0.05)
    assert found.accepted and found.timings.rounds, str(found)
    assert {each.kind for each in found.checked} == {"given", "values", "special values"}


def test_a_kernel_that_is_right_only_for_the_inspected_call_is_rejected(c) -> None:
    """All inspected values are positive."""
    name, text = edited(c, "lab_sin<float>(t0)", "(t0 < 0 ? 0 : lab_sin<float>(t0))")
    found = lab.judge_kernel(c, name, text, seconds=None)
    assert not found.accepted and found.checked[0].result == "right", str(found)
    tried = lab.try_kernel(c, name, text, seconds=0.01)
    assert all(each.right for each in tried.judged) and not tried.right
    assert "rejected by the judge" in str(tried)
    assert tried.to_dict()["reasons"] and tried.to_dict()["cases"]


def test_an_access_out_of_bounds_is_found(c: lab.Compilation) -> None:
    kernel = c.graphs[0].forward.kernels[0]
    pointer = kernel.parameters[0].name
    text = str(kernel.code).replace("return 0;", f"*(volatile float*)({pointer} + 5000); return 0;")
    found = lab.judge_kernel(c, kernel.name, text, seconds=None)
    assert not found.accepted and "outside of its tensors" in found.reasons[0], str(found)


def test_a_text_that_does_not_compile_is_rejected_with_its_line(c: lab.Compilation) -> None:
    found = lab.judge_kernel(c, *edited(c, "lab_sin", "lab_sine"), seconds=None)
    assert not found.accepted and found.reasons[0].startswith("it does not compile: line ")


def test_unknown_names_and_random_numbers_are_refused(c: lab.Compilation) -> None:
    with pytest.raises(UnknownName, match="no kernel 'other'"):
        lab.judge_kernel(c, "other", "")
    random = lab.inspect(lambda x: torch.nn.functional.dropout(x), X)
    kernel = random.graphs[0].forward.kernels[0]
    with pytest.raises(BadArguments, match="two results"):
        lab.judge_kernel(random, kernel.name, str(kernel.code))


@pytest.fixture(scope="module")
def stock() -> lab.Compilation:
    if not confinable():
        pytest.skip("no Landlock on this machine")
    with torch.no_grad():
        return lab.inspect(wave, X, compiler="stock")


def test_kernels_of_stock_are_judged(stock) -> None:
    (kernel,) = stock.graphs[0].forward.generated
    found = lab.judge_kernel(stock, kernel.name, f"{kernel.code}\n// unchanged", seconds=0.05)
    assert found.accepted and found.timings.rounds, str(found)
    wrong = str(kernel.code).replace(".sin()", ".cos()")
    assert wrong != str(kernel.code)
    found = lab.judge_kernel(stock, kernel.name, wrong, seconds=None)
    assert not found.accepted and found.name == kernel.name
    with pytest.raises(UnknownName, match="no kernel 'other'"):
        lab.judge_kernel(stock, "other", "")


def test_a_forward_of_stock_that_is_followed_by_a_backward_is_refused() -> None:
    c = lab.inspect(wave, X.clone().requires_grad_(), compiler="stock")
    kernel = c.graphs[0].forward.generated[0]
    with pytest.raises(NotRunnable, match="without gradients"):
        lab.judge_kernel(c, kernel.name, str(kernel.code))
