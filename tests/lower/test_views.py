"""Views cost nothing: they change the index of a load, and keep it affine if possible."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from inductor_lab.compiler.ir.index import Axis, Index
from inductor_lab.compiler.ir.program import Layout
from inductor_lab.compiler.lower import tensor
from inductor_lab.compiler.lower.tensor import TensorValue, identity, is_within_storage
from tests.lower.lowering import Lowered, assert_same, program_of

VIEWS: dict[str, Callable[[torch.Tensor], Any]] = {
    "view": lambda x: x.view(6, 20),
    "merge": lambda x: x.view(24, 5),
    "flat": lambda x: x.reshape(-1),
    "split": lambda x: x.view(2, 3, 2, 2, 5),
    "cut": lambda x: x.view(5, 24),
    "cut and back": lambda x: x.view(5, 24).view(2, 3, 4, 5),
    "ones": lambda x: x.view(1, 2, 3, 1, 20, 1),
    "permute": lambda x: x.permute(3, 0, 2, 1),
    "transpose": lambda x: x.transpose(1, -1),
    "t": lambda x: x[0, 0].t(),
    "mT": lambda x: x.mT,
    "movedim": lambda x: x.movedim(0, 2),
    "expand": lambda x: x[:, :1].expand(2, 7, 4, 5),
    "expand in front": lambda x: x.expand(3, -1, -1, -1, -1),
    "squeeze": lambda x: x[:, :1].squeeze(1),
    "squeeze all": lambda x: x[:1, :, :1].squeeze(),
    "unsqueeze": lambda x: x.unsqueeze(-1).unsqueeze(0),
    "slice": lambda x: x[:, 1:],
    "slice from the end": lambda x: x[:, -2:, :-1],
    "slice with step": lambda x: x[..., 1::2],
    "slice past the end": lambda x: x[:, :, 2:100],
    "select": lambda x: x[1],
    "select from the end": lambda x: x[:, -1],
    "diagonal": lambda x: x.diagonal(0, 1, 2),
    "diagonal below": lambda x: x.diagonal(-1, 2, 3),
    "unfold": lambda x: x.unfold(3, 2, 1),
    "unfold with step": lambda x: x.unfold(2, 2, 2),
    "split sizes": lambda x: x.split([1, 3], 2),
    "chunk": lambda x: x.chunk(2, -1),
    "unbind": lambda x: x.unbind(1),
    "as_strided": lambda x: x.as_strided((3, 4), (2, 20), 5),
    "as_strided overlapping": lambda x: x.as_strided((5, 3), (1, 1)),
    "detach": lambda x: x.detach(),
    "view_as": lambda x: x.view_as(torch.empty(4, 30)),
    "unflatten": lambda x: x.unflatten(2, (2, 2)),
    "flatten of transpose": lambda x: x.transpose(0, 1).flatten(0, 1),
    "chain": lambda x: x.permute(2, 0, 3, 1)[1:, :, ::2].flatten(1, 2).mT.reshape(3, 9, 2),
    "bits": lambda x: x.view(torch.int32),
}


@pytest.mark.parametrize("name", VIEWS)
def test_view_as_a_result_and_as_an_operand(name: str) -> None:
    torch.manual_seed(0)
    x = torch.randn(2, 3, 4, 5)
    view = VIEWS[name]

    def used(x: torch.Tensor) -> Any:
        result = view(x)
        return [r * 2 for r in result] if isinstance(result, tuple) else result * 2

    assert_same(list(flat(Lowered().aot(used)(x))), list(flat(used(x))))
    assert_same(list(flat(Lowered().aot(view)(x))), list(flat(view(x))))


@pytest.mark.parametrize("name", VIEWS)
def test_views_of_strided_inputs(name: str) -> None:
    """The input is a slice of a permuted tensor: its strides are not row-major."""
    torch.manual_seed(0)
    base = torch.randn(5, 2, 4, 6)
    x = base.permute(1, 3, 2, 0)[:, ::2]
    view = VIEWS[name]
    try:
        expected = list(flat(view(x)))
    except RuntimeError:
        pytest.skip("eager refuses this view of a strided tensor")
    assert_same(
        list(flat(Lowered().aot(lambda x: [r * 2 for r in flat(view(x))])(x))),
        [r * 2 for r in expected],
    )


def flat(result: Any) -> tuple[torch.Tensor, ...]:
    return tuple(result) if isinstance(result, tuple | list) else (result,)


AFFINE = [name for name in VIEWS if name not in ("cut", "bits", "view_as")]


@pytest.mark.parametrize("name", AFFINE)
def test_a_view_makes_no_step(name: str) -> None:
    program = program_of(VIEWS[name], torch.randn(2, 3, 4, 5))
    copies = {"flatten of transpose": 1, "chain": 2}.get(name, 0)
    assert len(program.steps) == copies


def test_only_an_incompatible_reshape_needs_division() -> None:
    program = program_of(lambda x: x.view(5, 24) + 1, torch.randn(2, 3, 4, 5))
    loads = [load for nest in program.nests for load in nest.body.loads()]
    assert not all(index.is_affine for load in loads for index in load.index)
    program = program_of(lambda x: x.view(5, 24).view(6, 20) + 1, torch.randn(2, 3, 4, 5))
    loads = [load for nest in program.nests for load in nest.body.loads()]
    flat_index = sum(
        (i * s for i, s in zip(loads[0].index, (60, 20, 5, 1), strict=True)), start=Index((), 0)
    )
    assert flat_index.is_affine


def whole(*shape: int) -> TensorValue:
    return TensorValue("x", shape, torch.float32, "cpu", identity(shape))


def test_reshape_matches_the_smallest_chunks() -> None:
    assert tensor.chunks((2, 3, 4), (6, 2, 2)) == [([0, 1], [0]), ([2], [1, 2])]
    assert tensor.chunks((1, 4, 1), (2, 2)) == [([1], [0, 1])]
    assert tensor.chunks((4, 6), (3, 8)) == [([0, 1], [0, 1])]
    assert tensor.chunks((0, 4), (4, 0)) == []


def test_the_docstring_example() -> None:
    value = tensor.permute(whole(4, 6), (1, 0))
    value = tensor.reshape(tensor.slice_dim(value, 0, 1, 1, 5), (5, 2, 2))
    i0, i1, i2 = (Index.of(Axis(f"i{d}", n)) for d, n in enumerate((5, 2, 2)))
    assert value.index == (i1 * 2 + i2, i0 + 1)


def test_as_strided_needs_a_known_storage() -> None:
    """A view outside the input is left to ATen, with the input itself."""
    x = torch.randn(6, 6)[:, :3]
    lowered = Lowered()
    actual = lowered.aot(lambda x: x.as_strided((3, 3), (6, 2)) + 1)(x)
    assert_same(actual, x.as_strided((3, 3), (6, 2)) + 1)
    assert lowered.externs()["aten.as_strided_copy.default"] == 1


@pytest.mark.parametrize("size, stride, offset, inside", [
    ((4,), (1,), 2, True), ((2, 2), (2, 1), 2, True),
    ((4,), (1,), 1, False),  # before the storage
    ((4,), (1,), 3, False),  # beyond its end
    ((5,), (1,), 2, False), ((2,), (4,), 2, False),
])  # fmt: skip
def test_a_view_is_within_its_storage_at_both_ends(
    size: tuple[int, ...], stride: tuple[int, ...], offset: int, inside: bool
) -> None:
    storage = Layout((2, 2), (2, 1), offset=2)
    assert is_within_storage(Layout(size, stride, offset), storage) is inside
