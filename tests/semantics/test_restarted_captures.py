"""torch may abort a capture and restart it: only the last attempt is recorded."""

from __future__ import annotations

import pytest
import torch

import inductor_lab as lab


def test_a_zero_dimensional_double() -> None:
    x = torch.tensor(2.0, dtype=torch.float64)
    c = lab.inspect(lambda x: -x, x)
    assert [graph.captured.name for graph in c.graphs] == ["graph0"]
    assert torch.equal(c.result, -x)


def refuses(x: torch.Tensor, wrong: bool) -> torch.Tensor:
    y = x.sin()
    if wrong:
        raise ValueError("refused")
    return y.cos()


def around(x: torch.Tensor, wrong: bool) -> torch.Tensor:
    return refuses(x + 1, wrong) * 2


class Net(torch.nn.Module):
    def forward(self, x: torch.Tensor, wrong: bool) -> torch.Tensor:
        return around(x, wrong)


@pytest.mark.parametrize("call", [
    lab.inspect, lambda f, *given: lab.compile(f)(*given),
    lambda f, *given: torch.compile(f, backend="eager")(*given),
], ids=["inspect", "ours", "eager"])  # fmt: skip
@pytest.mark.parametrize("fn", [refuses, around, Net()], ids=["function", "callee", "module"])
def test_code_that_raised_is_compiled_in_a_later_call(fn, call) -> None:
    """TorchDynamo skips the code of a call that has raised."""
    lab.inspect(lambda x: x + 1, torch.ones(3))
    for _ in range(2):
        with pytest.raises(ValueError, match="refused"):
            call(fn, torch.ones(3), True)
    c = lab.inspect(fn, torch.ones(3), False)
    assert len(c.graphs) == 1 and not c.capture.breaks
    assert torch.equal(c.result, fn(torch.ones(3), False))


def test_a_function_with_too_many_versions_is_inspected() -> None:
    def scaled(x: torch.Tensor, n: int) -> torch.Tensor:
        return x.sin() * n

    fast = torch.compile(scaled, backend="eager", dynamic=False)
    for n in range(torch._dynamo.config.recompile_limit + 2):
        fast(torch.ones(3), n)
    assert len(lab.inspect(scaled, torch.ones(3), 99).graphs) == 1
