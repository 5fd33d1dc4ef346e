"""Writes that eager mode rejects raise the same error, at the user's line."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F

import inductor_lab as lab

Function = Callable[..., Any]
FLOATS, INTS, BOOLS = torch.arange(6.0), torch.arange(6), torch.arange(6) > 2


def outcome(function: Function, given: Any) -> tuple[Any, ...]:
    """The values of a call and its changed arguments, or its exception."""
    args = [x.clone() if isinstance(x, torch.Tensor) else x for x in given]
    try:
        result = function(*args)
    except RuntimeError as refused:
        notes = getattr(refused, "__notes__", [])
        return "refused", type(refused), str(refused), [a.tolist() for a in args], notes
    return "answered", result.tolist(), [a.tolist() for a in args]


def alike(function: Function, *given: Any, **how: Any) -> tuple[Any, ...]:
    theirs, ours = outcome(function, given), outcome(lab.compile(function, **how), given)
    assert ours[:4] == theirs[:4]
    return ours


def assignment(x: torch.Tensor) -> torch.Tensor:
    x[:-1] = x[1:]
    return x


def out_of_itself(x: torch.Tensor) -> torch.Tensor:
    torch.add(x[1:], x[1:], out=x[:-1])
    return x


def after_another_write(x: torch.Tensor) -> torch.Tensor:
    x.add_(1)
    x[1:].mul_(x[:-1])
    return x


def in_a_list(x: torch.Tensor) -> torch.Tensor:
    torch._foreach_add_([x[1:]], [x[:-1]])
    return x


def assigned_at_places(x: torch.Tensor) -> torch.Tensor:
    x[INTS.to(x.device)] = x
    return x


def concatenated(x: torch.Tensor) -> torch.Tensor:
    return torch.cat([x[:3], x[3:]], out=x)


OVERLAPPING: dict[str, Function] = {
    "copy_": lambda x: x[:-1].copy_(x[1:]),
    "setitem": assignment,
    "out": out_of_itself,
    "after another write": after_another_write,
    "foreach": in_a_list,
    "cat": concatenated,
    "index_put": assigned_at_places,
    "scatter_": lambda x: x.scatter_(0, INTS, x),
    "index_add_": lambda x: x.index_add_(0, INTS, x),
    "index_copy_": lambda x: x.index_copy_(0, INTS, x),
    "addcmul_": lambda x: x[1:].addcmul_(x[:-1], x[:-1]),
    "lerp_": lambda x: x[1:].lerp_(x[:-1], 0.5),
    "where": lambda x: torch.where(x[1:] > 0, x[:-1], x[:-1], out=x[1:]),
    "expanded": lambda x: x[:1].expand(3).add_(1),
}
BINARY = (
    "add_ sub_ mul_ div_ pow_ fmod_ remainder_ atan2_ copysign_ hypot_ nextafter_ xlogy_ eq_ lt_"
    " logical_and_"
).split()  # fmt: skip
AUGMENTED = "iadd isub imul itruediv ifloordiv imod ipow".split()


@pytest.mark.parametrize("name", OVERLAPPING)
def test_overlaps(name: str) -> None:
    ours = alike(OVERLAPPING[name], FLOATS)
    assert ours[0] == "refused" and __file__.rpartition("/")[2] in ours[-1][0]


@pytest.mark.parametrize("name", BINARY)
def test_every_binary_method(name: str) -> None:
    assert alike(lambda x: getattr(x[1:], name)(x[:-1]), FLOATS)[0] == "refused"


@pytest.mark.parametrize("name", AUGMENTED)
def test_every_assignment_with_an_operator(name: str) -> None:
    assign = getattr(operator, name)
    assert alike(lambda x: assign(x[1:], x[:-1]), FLOATS)[0] == "refused"


def test_arguments_that_overlap() -> None:
    compiled = lab.compile(lambda a, b: a.add_(b))
    x = FLOATS.clone()
    with pytest.raises(RuntimeError, match="single memory location"):
        compiled(x[1:], x[:-1])
    assert compiled(x[:3], x[3:]).tolist() == [3.0, 5.0, 7.0]


def test_positions_that_depend_on_the_call() -> None:
    compiled = lab.compile(lambda x, k: x[:k].copy_(x[3 : 3 + k]), dynamic=True)
    for k in (2, 3, 4, 2, 5):
        x = torch.arange(20.0)
        if k > 3:
            with pytest.raises(RuntimeError, match="single memory location"):
                compiled(x, k)
        else:
            assert compiled(x, k).tolist() == torch.arange(20.0)[3 : 3 + k].tolist()


def columns(x: torch.Tensor) -> torch.Tensor:
    y = x.view(2, 3)
    y[:, :1] += y[:, 2:]
    return x


@pytest.mark.parametrize("function", [
    columns,
    lambda x: x[:3].add_(x[3:]),
    lambda x: x.add_(x).mul_(x),
    lambda x: x.copy_(x),
    lambda x: F.relu(x, inplace=True),
    lambda x: x.view(2, 3).t().add_(x.view(2, 3).t()),
    lambda x: x.expand(3, -1).__eq__(1),
    lambda x: (x > 0).expand(2, -1).__and__(x < 9),
    lambda x: (x > 0).__and__((x < 9).__invert__()),
])  # fmt: skip
def test_tensors_without_common_elements_are_compiled(function: Function) -> None:
    assert alike(function, FLOATS)[0] == "answered"
    assert lab.inspect(function, FLOATS.clone()).graphs


OTHER_DTYPES: dict[str, tuple[Function, torch.Tensor]] = {
    "mul_": (lambda n: n.mul_(0.5), INTS),
    "imul": (lambda n: operator.imul(n, 0.5), INTS),
    "alpha": (lambda n: n.add_(n, alpha=1.5), INTS),
    "complex": (lambda x: x.mul_(1j), FLOATS),
    "later": (lambda n: n.add_(1).mul_(0.5), INTS),
}


@pytest.mark.parametrize("name", OTHER_DTYPES)
def test_a_result_of_a_wider_kind_of_dtype(name: str) -> None:
    function, given = OTHER_DTYPES[name]
    ours = alike(function, given)
    assert ours[0] == "refused" and ours[-1]


@pytest.mark.parametrize("function, given", [
    (lambda n: n.copy_(n * 0.5), INTS),
    (lambda n: n.mul_(torch.tensor(2)), INTS),
    (lambda x: x.add_(INTS), FLOATS),
    (lambda b: operator.ior(b, True), BOOLS),
    (lambda x: x.half().mul_(0.5).float(), FLOATS),
])  # fmt: skip
def test_results_that_fit(function: Function, given: torch.Tensor) -> None:
    assert alike(function, given)[0] == "answered"
