"""`torch.cond`, loops, scans, regions and custom operators."""

from __future__ import annotations

import pytest
import torch
from torch._higher_order_ops.map import map as torch_map
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop
from torch.compiler import nested_compile_region

import inductor_lab as lab
from tests.semantics.compare import assert_same, check_call, check_gradients, wave


@torch.library.custom_op("lab_tests::scale_", mutates_args={"x"})
def scale_(x: torch.Tensor, factor: float) -> None:
    x.mul_(factor)


@torch.library.custom_op("lab_tests::grow", mutates_args={"x", "others"})
def grow(x: torch.Tensor, others: list[torch.Tensor]) -> torch.Tensor:
    x.add_(1)
    for other in others:
        other.mul_(2)
    return x.sum() + 0


@grow.register_fake
def _(x, others):
    return x.new_empty(())


@torch.library.custom_op("lab_tests::sine", mutates_args=())
def sine(x: torch.Tensor) -> torch.Tensor:
    return torch.sin(x)


@sine.register_fake
def _(x):
    return torch.empty_like(x)


sine.register_autograd(
    lambda ctx, gradient: gradient * torch.cos(ctx.saved_tensors[0]),
    setup_context=lambda ctx, inputs, output: ctx.save_for_backward(inputs[0]),
)


@torch.library.custom_op("lab_tests::count", mutates_args=())
def count(x: torch.Tensor) -> int:
    return int((x > 0).sum())


@count.register_fake
def _(x):
    return torch.library.get_ctx().new_dynamic_size()


@torch.library.custom_op("lab_tests::positive", mutates_args=())
def positive(x: torch.Tensor) -> tuple[int, torch.Tensor, int]:
    return len(x), x[x > 0], int((x > 0).sum())


@positive.register_fake
def _(x):
    size = torch.library.get_ctx().new_dynamic_size
    number = size()
    return size(), x.new_empty(number), number


def choice(x: torch.Tensor) -> torch.Tensor:
    return torch.cond(x.sum() > 0, lambda x: x.sin() * 2, lambda x: x.cos(), (x,))


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("sign", [1, -1])
def test_cond(sign: int, dynamic: bool) -> None:
    check_call(choice, lambda: [wave(4, 4) * sign], dynamic=dynamic)
    check_gradients(choice, wave(4, 4) * sign, dynamic=dynamic)


@pytest.mark.parametrize("scale", [1.0, 0.1, -1.0])
def test_cond_in_cond(scale: float) -> None:
    def inner(x):
        return torch.cond(x.sum() > 3, lambda x: x + 1, lambda x: x - 1, (x,))

    def function(x):
        return torch.cond(x.sum() > 0, inner, lambda x: x * 2, (x,))

    check_call(function, lambda: [torch.full((4,), scale)])


def test_cond_shows_in_every_stage(tmp_path) -> None:
    x = wave(4, 4)
    c = lab.inspect(choice, x)
    part = c.graphs[0].forward
    for stage in (part.loops, part.schedule, part.executable):
        assert_same(stage.run(x)[0], choice(x))
    assert [use.op for use in c.coverage.extern] == ["higher_order.cond"]
    assert "true_graph_0" in str(part.loops) and "true_graph_0" in str(part.host)
    loaded = lab.load(c.save(tmp_path / "cond.lab.json"))
    assert str(loaded.graphs[0].forward.loops) == str(part.loops)


@pytest.mark.parametrize("start", [0, 9])
def test_while_loop(start: int) -> None:
    def function(i, x):
        return while_loop(lambda i, x: i < 5, lambda i, x: (i + 1, x * 1.5), (i, x))

    check_call(function, lambda: [torch.tensor(start), wave(4)])


NUMBERS = {
    "of a loop": lambda x: while_loop(lambda i, x: i < 5, lambda i, x: (i + 1, x * 1.5), (0, x)),
    "of a loop, used": lambda x: (
        x * while_loop(lambda i, y: i < 5, lambda i, y: (i + 2, y + 1), (1, x))[0]
    ),
    "of an operator": lambda x: (count(x), x * count(x), torch.ones(count(x)) + 1),
    "beside a tensor": lambda x: positive(x * 2),
    "beside a tensor, alone": lambda x: x.sin() * positive(x * 2)[2] + positive(x)[0],
}


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_among_the_results(name: str, dynamic: bool) -> None:
    check_call(NUMBERS[name], lambda: [wave(7)], dynamic=dynamic, fullgraph=True)
    c = lab.inspect(NUMBERS[name], wave(7))
    part = c.graphs[0].forward
    for stage in (part.loops, part.schedule):
        assert_same(list(stage.run(wave(7))), list(part.executable.run(wave(7))))


def test_scan_and_map() -> None:
    def function(x):
        sums = scan(lambda carry, row: (carry + row, carry * row), torch.zeros(3), x)
        return sums, torch_map(lambda row: row.sin().cumsum(0), x)

    check_call(function, lambda: [wave(5, 3)])


def test_nested_compile_region() -> None:
    @nested_compile_region
    def region(x):
        return x.sin() + 1

    check_gradients(lambda x: region(x) + region(x * 2), wave(4, 4))


def test_custom_operator_with_a_gradient() -> None:
    check_gradients(lambda x: sine(x * 2).cos(), wave(4))


@pytest.mark.parametrize("dynamic", [False, True])
def test_custom_operator_that_writes(dynamic: bool) -> None:
    def function(x):
        y = x * 2
        scale_(y, 3.0)
        scale_(x[1:3], 3.0)
        return y + 1, x.sum()

    check_call(function, lambda: [wave(4)], dynamic=dynamic)


def test_custom_operator_that_writes_a_list() -> None:
    def function(x):
        y = x * 2
        total = grow(y, [x, y * 1])
        return y, x.t(), total

    check_call(function, lambda: [wave(4, 4)])
