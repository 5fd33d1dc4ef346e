"""Index tables with known numbers: their pieces, and programs that read them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close

import inductor_lab as lab
from inductor_lab.compiler.ir.index import Axis, Index
from inductor_lab.compiler.lower.index_table import Piece, affine_place, pieces_of

I = np.arange(100)

TABLES: dict[str, tuple[np.ndarray, list[tuple[int, int]]]] = {
    "as it is": (I, [(0, 100)]),
    "backwards": (I[::-1], [(0, 100)]),
    "every third": (3 * I, [(0, 100)]),
    "one place": (0 * I + 7, [(0, 100)]),
    "pairs": (I // 2, [(0, 100)]),
    "pairs, out of step": ((I + 1) // 2, [(0, 100)]),
    "fours": ((I + 3) // 4, [(0, 100)]),
    "reflected": (99 - abs(99 - abs(np.arange(-3, 104))), [(0, 4), (4, 103), (103, 107)]),
    "replicated": (np.arange(-3, 104).clip(0, 99), [(0, 4), (4, 103), (103, 107)]),
    "bilinear": (((I - 1) // 2).clip(0, 99), [(0, 3), (3, 100)]),
    "fives": (I // 5, []),
    "anything": ((I * I) % 31, []),
}


@pytest.mark.parametrize("name", TABLES)
def test_pieces_evaluate_to_the_table(name: str) -> None:
    numbers, expected = TABLES[name]
    pieces = pieces_of(numbers)
    assert [(piece.begin, piece.end) for piece in pieces] == expected
    i = Axis("i", len(numbers))
    for piece in pieces:
        index = piece.place(Index.of(i))
        for at in range(piece.begin, piece.end):
            assert index.substitute({i: Index.constant_of(at)}).constant == numbers[at]


def test_few_equal_numbers_are_not_a_quotient() -> None:
    assert pieces_of(np.array([5, 5, 5, 6, 6])) == (Piece(0, 3, 0, 5), Piece(3, 5, 0, 6))


def image(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(0)).to(dtype)


SIDE_BY_SIDE: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "bilinear, x 2": lambda x: F.interpolate(x, scale_factor=2.0, mode="bilinear"),
    "bilinear, x 4": lambda x: F.interpolate(x, scale_factor=4.0, mode="bilinear"),
    "nearest, x 3": lambda x: F.interpolate(x, scale_factor=3.0, mode="nearest"),
    "reflect": lambda x: F.pad(x, (3, 2, 1, 4), "reflect"),
    "replicate": lambda x: F.pad(x, (3, 2, 1, 4), "replicate") + 1,
    "circular": lambda x: F.pad(x, (3, 2, 1, 4), "circular") * 2,
    "picked": lambda x: x[:, :, :, torch.arange(30, 9, -1)],
    "picked pairs": lambda x: x[:, :, torch.tensor([[3], [-1]]), torch.arange(2, 32)],
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", SIDE_BY_SIDE)
def test_results(name: str, dtype: torch.dtype) -> None:
    for shape in ((2, 3, 17, 33), (1, 1, 40, 131), (1, 2, 5, 700)):
        x = image(*shape, dtype=dtype)
        tolerance = {} if dtype.itemsize > 2 else {"rtol": 1e-2, "atol": 1e-2}
        assert_close(lab.compile(SIDE_BY_SIDE[name])(x), SIDE_BY_SIDE[name](x), **tolerance)
        torch.compiler.reset()


NOT_SIDE_BY_SIDE: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "bilinear, x 1.7": lambda x: F.interpolate(x, scale_factor=1.7, mode="bilinear"),
    "bicubic": lambda x: F.interpolate(x, scale_factor=2.0, mode="bicubic"),
    "table of rows": lambda x: x[:, :, torch.arange(4, -1, -1)],
    "both at once": lambda x: x[:, :, torch.arange(16) // 4, torch.arange(16)],
    "apart": lambda x: x[:, torch.arange(33) % 2, :, torch.arange(33)],
    "negative": lambda x: x[..., torch.arange(-20, 12)],
    "summed": lambda x: F.pad(x, (2, 2, 0, 0), "reflect").sum(-1),
    "normalized": lambda x: F.pad(x, (2, 2, 0, 0), "reflect").softmax(-1),
    "columns": lambda x: F.pad(x, (2, 2, 0, 0), "reflect").sum(-2),
    "transposed": lambda x: F.pad(x.transpose(2, 3), (2, 2, 1, 1), "reflect"),
}


@pytest.mark.parametrize("name", NOT_SIDE_BY_SIDE)
def test_tables_in_other_dimensions(name: str) -> None:
    x = image(2, 3, 17, 33)
    assert_close(lab.compile(NOT_SIDE_BY_SIDE[name])(x), NOT_SIDE_BY_SIDE[name](x))


@pytest.mark.parametrize("name", SIDE_BY_SIDE)
def test_gradients(name: str) -> None:
    ours, theirs = (image(2, 2, 17, 33).requires_grad_() for _ in range(2))
    lab.compile(SIDE_BY_SIDE[name])(ours).square().sum().backward()
    SIDE_BY_SIDE[name](theirs).square().sum().backward()
    assert_close(ours.grad, theirs.grad, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", ["bilinear, x 2", "reflect", "replicate"])
def test_innermost_loops_neither_gather_nor_check(name: str) -> None:
    found = lab.inspect(SIDE_BY_SIDE[name], image(2, 3, 64, 64))
    (kernel,) = found.graphs[0].forward.kernels
    lines = str(kernel.code).splitlines()
    for number, line in enumerate(lines):
        if "#pragma omp simd" in line:
            inside = lines[number + 1 : lines.index(line.split("#")[0] + "}", number)]
            assert not any("bad" in text or "?" in text or "/" in text for text in inside)


def test_dynamic_sizes_and_changed_tables() -> None:
    """A table that is an input is not a constant, whatever its value was at compile time."""
    pick = lab.compile(lambda x, i: x[:, i])
    x = image(3, 40)
    for table in (torch.arange(40), torch.arange(39, -1, -1), torch.randint(0, 40, (40,))):
        assert_close(pick(x, table), x[:, table])
    pad = lab.compile(lambda x: F.pad(x, (3, 3), "reflect"), dynamic=True)
    for size in (17, 40, 99):
        assert_close(pad(image(3, size)), F.pad(image(3, size), (3, 3), "reflect"))


AFFINE: dict[str, tuple[np.ndarray, bool]] = {
    "rows and columns": (np.add.outer(5 * np.arange(3), 7 - np.arange(4)), True),
    "one row": (np.arange(6)[None] * 2, True),
    "one number": (np.array(3), True),
    "but for the last": (np.array([[0, 1, 2], [1, 2, 4]]), False),
    "of nothing": (np.zeros((0, 3), int), False),
}


@pytest.mark.parametrize("name", AFFINE)
def test_an_affine_table_is_a_linear_combination(name: str) -> None:
    numbers, is_affine = AFFINE[name]
    axes = tuple(Axis(f"i{d}", size) for d, size in enumerate(numbers.shape))
    place = affine_place(numbers, tuple(Index.of(axis) for axis in axes))
    assert (place is not None) == is_affine
    for at in np.ndindex(numbers.shape) if place is not None else ():
        known = {a: Index.constant_of(k) for a, k in zip(axes, at, strict=True)}
        assert place is not None and place.substitute(known).constant == numbers[at]


WINDOWS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "fold": lambda x: F.fold(x, (9, 11), (3, 2), padding=1, stride=(2, 1)),
    "dilated": lambda x: F.fold(x[..., :63], (9, 11), (3, 2), dilation=(1, 2), padding=0),
    "gathered": lambda x: x[:, torch.arange(3)[:, None] + torch.arange(8)],
    "put": lambda x: x.index_put((torch.arange(2)[:, None] + 0, torch.arange(9) * 3), x[0, 0]),
    "with two in one place": lambda x: x.index_put(
        (torch.arange(3)[:, None] // 2, torch.arange(3)[:, None] + torch.arange(5)),
        x[0, 0], accumulate=True),
}  # fmt: skip


@pytest.mark.parametrize("name", WINDOWS)
def test_affine_tables_are_not_loaded(name: str) -> None:
    x = image(2, 30, 60 if name == "fold" else 63)
    c = lab.inspect(WINDOWS[name], x)
    assert_close(c.graphs[0].forward.loops.run(x)[0], WINDOWS[name](x))
    assert_close(lab.compile(WINDOWS[name])(x), WINDOWS[name](x))
    text = "".join(str(kernel) for kernel in c.graphs[0].forward.kernels)
    assert ("lab_outside" in text) == (name == "with two in one place"), "its rows have no formula"
