"""After a call that raised, or that had no operators, the next call is compiled."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import inductor_lab as lab
from inductor_lab.compiler.base.errors import BadArguments


def scaled(x: Any) -> Any:
    return (x.sin() + 1).softmax(-1)


def added(x: Any) -> Any:
    return x + 1


class Scaled(torch.nn.Module):
    def forward(self, x: Any) -> Any:
        return x.sin() + 1


@pytest.mark.parametrize("compiler", ["inductor_lab", "stock"])
@pytest.mark.parametrize("make", [lambda: scaled, Scaled, lambda: Scaled().forward])
def test_after_a_call_that_raised_the_next_is_compiled(make: Any, compiler: str) -> None:
    torch.compiler.reset()
    function = make()
    for wrong in (3, None):
        with pytest.raises(AttributeError, match="sin"):
            lab.inspect(function, wrong, compiler=compiler)
    assert len(lab.inspect(function, torch.ones(4), compiler=compiler).graphs) == 1


def test_numbers_first_and_tensors_then() -> None:
    torch.compiler.reset()
    assert len(lab.inspect(added, 3).graphs) == 0
    c = lab.inspect(added, torch.ones(4))
    assert len(c.graphs) == 1
    with pytest.raises(BadArguments, match="TypeError: unsupported operand"):
        c.again(None)
    assert len(c.what_if(fusion=False).graphs) == 1
    assert c.again(torch.ones(4)).hit and len(c.again(torch.ones(4, 5)).capture.bytecode) == 1
    assert "right" in str(lab.blame(added, torch.ones(4)))


def test_code_that_was_compiled_stays() -> None:
    torch.compiler.reset()
    c = lab.inspect(added, torch.ones(4))
    lab.inspect(added, torch.ones(5))
    assert c.again(torch.ones(4)).hit and all(part.times for part in c.measure(0).parts)


def test_disabled_code_stays_uncompiled() -> None:
    torch.compiler.reset()

    disabled = torch.compiler.disable(scaled)
    for _ in range(2):
        (graph,) = lab.inspect(lambda x: disabled(x).cos(), torch.ones(4)).graphs
        assert "cos" in str(graph.captured) and "sin" not in str(graph.captured)
