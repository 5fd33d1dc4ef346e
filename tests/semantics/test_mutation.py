"""In-place writes, and memory that several tensors share: as in eager mode, including aliasing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from tests.semantics.compare import check_call, check_gradients, wave

Make = Callable[[], Sequence[Any]]
CASES: dict[str, tuple[Callable[..., Any], Make]] = {}


def case(make: Make) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        if function.__name__ in CASES:
            raise ValueError(f"two cases are called {function.__name__}")
        CASES[function.__name__] = (function, make)
        return function

    return add


def one() -> list[torch.Tensor]:
    return [wave(4, 3)]


def two() -> list[torch.Tensor]:
    return [wave(4, 3), wave(4, 3) + 2]


@case(one)
def writes_its_input(x):
    x.add_(1)
    return x * 2


@case(one)
def returns_the_input_it_wrote(x):
    x.mul_(2)
    return x


@case(one)
def writes_through_a_view(x):
    x[1:3].zero_()
    return x.t()


@case(one)
def returns_views_of_its_input(x):
    return x.t(), x[1], x.view(-1), x.detach()


@case(one)
def returns_one_tensor_several_times(x):
    y = x + 1
    return y, y, y.t(), y[0]


@case(one)
def writes_through_dropout_that_drops_nothing(x):
    y = x * 2
    idle = F.dropout(F.dropout(y, 0.5, training=False), 0.0)
    idle += 1
    torch.dropout(x, 0.5, train=False).mul_(3)
    return y, F.dropout(x, 0.5, False), idle


@case(one)
def writes_through_dropout_in_a_graph_inside(x):
    y = checkpoint(lambda y: F.dropout(y * 2, 0.5, False).add_(1), x, use_reentrant=False)
    return F.dropout(y, 0.5, False).mul_(3), y


@case(two)
def writes_both_inputs(x, y):
    x.copy_(y)
    y.add_(x)


@case(one)
def writes_with_out(x):
    out = torch.empty(4, 3)
    torch.add(x, 1, out=out)
    return out


@case(two)
def writes_an_input_with_out(x, out):
    return torch.mul(x, 3, out=out)


@case(lambda: [wave(4, 3), torch.empty(0)])
def resizes_with_out(x, out):
    return torch.mul(x, 3, out=out)


@case(lambda: [wave(2, 8), wave(2, 1)])
def writes_a_column_of_a_cache(cache, x):
    cache[:, 3:4] = x
    return cache.sum()


@case(lambda: [wave(2, 8, 4), wave(2, 1, 4), torch.tensor([3])])
def writes_a_cache_at_an_index(cache, x, position):
    cache.index_copy_(1, position, x)
    return cache.sum(1)


@case(lambda: [(lambda base: (base[:6], base[2:]))(torch.arange(8.0))])
def writes_one_of_two_overlapping_inputs(pair):
    a, b = pair
    a.add_(1)
    return a.sum() + b.sum(), b * 2


@case(lambda: [[torch.arange(8.0)] * 2])
def gets_the_same_tensor_twice(pair):
    a, b = pair
    a.add_(1)
    b.mul_(2)
    return a + b


@case(lambda: [torch.arange(4.0).expand(3, 4)])
def reads_an_expanded_input(x):
    return x + 1, x.sum(0)


@case(lambda: [torch.arange(20.0).as_strided((4, 4), (2, 1))])
def reads_an_input_that_overlaps_itself(x):
    return x * 2, x.sum()


def overlapping() -> list[torch.Tensor]:
    return [torch.arange(20.0).as_strided((4, 4), (2, 1))]


@case(overlapping)
def writes_a_row_of_an_input_that_overlaps_itself(x):
    x[0].add_(1)
    return x * 2


@case(overlapping)
def writes_the_diagonal_of_an_input_that_overlaps_itself(x):
    x.diagonal().mul_(2)
    return x * 2


@case(lambda: [wave(2, 6)[:, 1:5]])
def writes_parts_of_an_input_with_gaps(x):
    x[0].add_(1)
    x[:, 2:] = 3
    return x * 2


@case(lambda: [torch.complex(wave(4), wave(4)).conj().imag])
def writes_an_input_that_memory_holds_negated(x):
    x.add_(1)
    return x * 2, x.view(2, 2) + 1


@case(lambda: [wave(4), wave(3)])
def gives_its_input_the_memory_of_another(x, y):
    x.data = y
    return x + 1


@case(one)
def reads_between_writes(x):
    y = x.clone()
    before = y.sum()
    z = y[1:]
    z.add_(1)
    y.mul_(2)
    z[0] = 7
    return y, z, before


@case(lambda: [wave(4, 4)])
def fills_the_diagonal(x):
    x.diagonal().fill_(5)
    return x.sum()


@case(one)
def writes_where_a_mask_holds(x):
    x[x > 0] = 0
    return x


@case(lambda: [wave(4, 3)])
def transposes_its_input_in_place(x):
    x.t_()
    return x + 0


@case(one)
def writes_rows_chosen_by_an_index(x):
    y = torch.zeros(4, 3)
    y[torch.tensor([0, 2])] = x[:2]
    y[:, 1] += 3
    return y


@case(one)
def changes_shape_in_place(x):
    y = x.clone()
    y.unsqueeze_(0)
    y.squeeze_()
    return y


@case(one)
def returns_a_view_of_the_input_it_wrote(x):
    x.add_(1)
    return x.view(-1), x


@case(lambda: (wave(9)[1:],))
def returns_a_part_of_the_input_that_it_wrote(x):
    part, twice = x.chunk(2, 0)[0], x * 2
    part.detach().add_(1)
    return part, twice


@case(lambda: (wave(3)[1:],))
def returns_one_element_of_the_input_that_it_wrote(x):
    """Its size is 1 for all values of the input's symbol."""
    part = x.chunk(2, 0)[0]
    part.detach().add_(1)
    return part


@case(one)
def keeps_strides(x):
    return torch.empty_strided((4, 3), (1, 4)).copy_(x), x.t().contiguous().t()


@case(two)
def writes_a_list_in_place(x, y):
    torch._foreach_mul_([x, y], 2.0)
    return torch._foreach_add([x, y], 1.0)


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_results_equal_eager_mode(name: str, dynamic: bool) -> None:
    function, make = CASES[name]
    check_call(function, make, dynamic=dynamic)


def test_gradients_through_writes() -> None:
    def function(x):
        y = x * 2
        y[1:].mul_(3)
        y.relu_()
        return y, y.t(), y[0]

    check_gradients(function, wave(4, 4))


def test_rows_written_one_after_the_other() -> None:
    """As in a gated delta rule: each write reads all earlier rows, so the number of paths from a
    view to its uses is exponential."""

    def function(x):
        x = x.clone()
        for i in range(1, x.shape[-1]):
            row, above = x[..., i, :i].clone(), x[..., :i, :i].clone()
            x[..., i, :i] = row + (row.unsqueeze(-1) * above).sum(-2)
        return x

    check_call(function, lambda: [wave(2, 22, 22)])


def test_gradients_through_views_of_inputs() -> None:
    check_gradients(lambda x: (x.t(), x * 2, x[1]), wave(4, 3))


def test_an_input_without_gradient_is_written_in_a_differentiated_graph() -> None:
    def function(x, count):
        count.add_(x.detach())
        return x * count

    check_call(function, lambda: [wave(4).requires_grad_(), wave(4)])


def test_parameters_are_written() -> None:
    def make():
        torch.manual_seed(0)
        return [torch.nn.Linear(4, 4), wave(3, 4)]

    def function(layer, x):
        with torch.no_grad():
            layer.weight.mul_(0.5)
            layer.bias.copy_(x[0])
        return layer(x), layer.weight * 1, layer.bias * 1

    ours, theirs = make(), make()
    import inductor_lab as lab
    from tests.semantics.compare import assert_same

    assert_same(lab.compile(function)(*ours), function(*theirs))
    assert_same(list(ours[0].parameters()), list(theirs[0].parameters()))
