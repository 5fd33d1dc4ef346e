"""Eager mode's errors are raised, even if little of the result is used."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F

import inductor_lab as lab
from inductor_lab.compiler.ir.expr import IndexValue
from inductor_lab.compiler.ir.program import Pointwise

BEYOND = [torch.tensor([0, 1, 7]), torch.tensor([0, -9, 1]), torch.tensor([9, 1, 2])]
REFUSED: dict[str, Callable[..., Any]] = {
    "rows": lambda x, i: x[i][:1] * 2,
    "columns": lambda x, i: x[i][:, :0] * 2,
    "transposed": lambda x, i: x[i].t()[:, :1] * 1,
    "below the diagonal": lambda x, i: x[i].tril(-1) + 1,
    "for its shape": lambda x, i: torch.zeros_like(x[i]) + 1,
    "for its dtype": lambda x, i: x[i].new_ones(3),
    "overwritten": lambda x, i: _filled(x[i]),
    "embedding": lambda x, i: F.embedding(i, x)[:0].sum() + 1,
    "embedding's shape": lambda x, i: torch.zeros_like(F.embedding(i, x)),
    "index_select": lambda x, i: x.index_select(0, i)[:0] + 1,
    "take": lambda x, i: x.take(i * 4)[:1] + 1,
    "gather": lambda x, i: x.gather(0, i[:, None])[:0] + 1,
    "scatter": lambda x, i: x.scatter(0, i[:, None], 1.0)[3:] + 1,
    "index_put": lambda x, i: x.index_put((i,), x[0])[:1] + 1,
    "index_add": lambda x, i: x.index_add(0, i, x[:3])[:1] + 1,
    "cross entropy": lambda x, i: F.cross_entropy(x[:3], i, reduction="none")[:0].sum(),
    "an index of an index": lambda x, i: x[torch.arange(5)[i]][:1] + 1,
    "rolled": lambda x, i: x[i].roll(1, 0)[:1] * 2,
    "reduced": lambda x, i: x[i].sum(1)[:1] + 1,
    "divided": lambda x, i: ((i + 9) // torch.tensor([1, 2, 0]))[:1] + 1,
}
KINDS: dict[str, dict[str, Any]] = {
    "default": {},
    "no passes": {"options": {"passes_off": "all"}},
    "dynamic": {"dynamic": True},
}


def _filled(x: torch.Tensor) -> torch.Tensor:
    x[:] = 1.0
    return x


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", REFUSED)
def test_errors_are_raised_if_little_of_the_result_is_used(name: str, kind: str) -> None:
    compiled = lab.compile(REFUSED[name], **KINDS[kind])
    x = torch.randn(5, 4)
    for i in BEYOND:
        for function in (REFUSED[name], compiled):
            with pytest.raises((IndexError, RuntimeError), match=r"(?i)out of|zero"):
                function(x.clone(), i)


def test_errors_are_raised_in_training() -> None:
    compiled = lab.compile(lambda x, i: (x * 2)[i][:1].sum())
    with pytest.raises(IndexError):
        compiled(torch.randn(5, 4, requires_grad=True), BEYOND[0])


@pytest.mark.parametrize("use", [
    lambda y, x: y + 1,
    lambda y, x: y.t() * 2,
    lambda y, x: y.reshape(2, 3, 2, 2).transpose(0, 2) + 1,
    lambda y, x: y.view(4, 6) + 1,
    lambda y, x: torch.cat([x, y, x], 0),
    lambda y, x: torch.cat([x[:6], y], 1),
    lambda y, x: F.pad(y, (1, 2)),
    lambda y, x: y.sum(1),
    lambda y, x: (y + 1)[:, None] * x[:, :4],
    lambda y, x: y @ y.t(),
])  # fmt: skip
def test_no_extra_step_if_all_of_the_result_is_used(use: Callable[..., Any]) -> None:
    for dynamic in (False, True):
        x, i = torch.randn(6, 4), torch.tensor([0, 5, 1, 2, 2, 3])
        if dynamic:
            torch._dynamo.maybe_mark_dynamic(i, 0)
        c = lab.inspect(lambda x, i: use(x[i], x), x, i)
        steps = c.graphs[0].forward.loops.steps
        assert not [s for s in steps if isinstance(s, Pointwise) and isinstance(s.body, IndexValue)]


ON_ONE_ELEMENT: dict[str, Callable[..., Any]] = {
    "gather": lambda x, i: (x * 2).gather(0, i) + 1,
    "take_along_dim": lambda x, i: torch.take_along_dim(x * 2, i, 0) + 1,
    "index_select": lambda x, i: (x * 2).index_select(0, i) + 1,
    "scatter": lambda x, i: (x * 2).scatter(0, i, 5.0) + 1,
    "scatter_add": lambda x, i: (x * 2).scatter_add(0, i, x) + 1,
    "scatter_reduce": lambda x, i: (x * 2).scatter_reduce(0, i, x, "amax", include_self=False),
    "index_add": lambda x, i: (x * 2).index_add(0, i, x) + 1,
    "index_copy": lambda x, i: (x * 2).index_copy(0, i, x) + 1,
    "index_fill": lambda x, i: (x * 2).index_fill(0, i, 9.0) + 1,
    "index_reduce": lambda x, i: (x * 2).index_reduce(0, i, x, "amax") + 1,
}


@pytest.mark.filterwarnings("ignore:index_reduce")
@pytest.mark.parametrize("name", ON_ONE_ELEMENT)
@pytest.mark.parametrize("x", [torch.tensor(3.0), torch.tensor([3.0])], ids=["0-dim", "1-dim"])
def test_tensors_of_one_element(name: str, x: torch.Tensor) -> None:
    """Values, gradients and errors for 0-dim tensors, 0-dim indices and both."""
    function = ON_ONE_ELEMENT[name]
    compiled = lab.compile(function)
    for i in (*map(torch.tensor, (0, 1, -1, [0], [0, 0], [[0]])), torch.zeros(0).long()):
        (expected, gradient), (found, own) = (_outcome(f, x, i) for f in (function, compiled))
        if gradient is not None or expected == "refused":
            assert (found, own) == (expected, gradient), i


def _outcome(function: Callable[..., Any], x: torch.Tensor, i: torch.Tensor) -> tuple[Any, Any]:
    """The result and the gradient; None if eager mode has none (it rejects some for a 0-dim
    index)."""
    x = x.clone().requires_grad_()
    try:
        result = function(x, i)
    except (IndexError, RuntimeError) as refused:
        assert "CompilerDefect" not in str(refused)
        return "refused", None
    try:
        result.sum().backward()
    except RuntimeError:
        return (result.shape, result.stride(), result.tolist()), None
    return (result.shape, result.stride(), result.tolist()), x.grad.tolist()


def test_an_empty_index_of_another_rank() -> None:
    x, i = torch.randn(2, 3), torch.zeros(0).long()
    for function in (lambda x, i: (x * 2).scatter(0, i, x), lambda x, i: (x * 2).gather(0, i)):
        assert lab.compile(function)(x, i).equal(function(x, i))


@pytest.mark.parametrize("language", ["cpp", "triton"])
def test_the_maximum_of_an_empty_tensor(language: str) -> None:
    """If the result is stored in an empty tensor too, nothing depends on it."""

    def function(x: torch.Tensor, mask: torch.Tensor, n: int) -> torch.Tensor:
        rest = x[n // (abs(n) + 1) :][2:]
        return rest.masked_fill(mask, rest.max())

    compiled = lab.compile(function, options={"language": language})
    x, mask = torch.randn(3, 1), torch.randn(4, 1, 6) > 0
    for n in (3, 2):
        assert torch.equal(compiled(x, mask, n), function(x, mask, n))
    for call in (function, compiled):
        with pytest.raises(RuntimeError, match="numel"):
            call(x, mask, -1)
