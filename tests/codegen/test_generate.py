"""Equal groups share one function."""

from __future__ import annotations

import pytest
import torch

import inductor_lab as lab
from inductor_lab.compiler.codegen.cpp.printer import translation_unit


def three_layers(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    for _ in range(3):
        x = torch.nn.functional.layer_norm(torch.tanh(x @ w), (64,))
    return x


@pytest.fixture(scope="module")
def layers() -> lab.Compilation:
    torch.manual_seed(0)
    return lab.inspect(three_layers, torch.randn(32, 64), torch.randn(64, 64))


def test_equal_layers_are_compiled_once(layers: lab.Compilation) -> None:
    part = layers.graphs[0].forward
    assert len(part.kernels) == 3
    assert len({kernel.name for kernel in part.kernels}) == 1
    name = part.kernels[0].name
    assert str(translation_unit(part.kernels)).count(f"int {name}(") == 1
    assert str(part.host).count(f"{name}(") == 3


def test_each_kernel_keeps_its_own_nodes(layers: lab.Compilation) -> None:
    part = layers.graphs[0].forward
    origins = [
        frozenset().union(*(line.origins for line in kernel.code.lines)) for kernel in part.kernels
    ]
    assert all(origins)
    assert not origins[0] & origins[1] and not origins[1] & origins[2]
    unit = translation_unit(part.kernels)
    assert frozenset().union(*origins) <= frozenset().union(*(x.origins for x in unit.lines))


def test_the_result_is_correct(layers: lab.Compilation) -> None:
    torch.manual_seed(0)
    x, w = torch.randn(32, 64), torch.randn(64, 64)
    torch.testing.assert_close(layers.result, three_layers(x, w))


@pytest.mark.parametrize("language", ["cpp", "triton"])
def test_equal_combos_are_compiled_once(language: str) -> None:
    """Independently of their position; a combo of other sizes is another kernel."""

    def layers(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        for width in (32, 32, 32, 16):
            product = x @ w
            x = torch.exp(product[:, :width]) @ torch.tanh(product[:width])
        return x

    compiled = lab.inspect(layers, *torch.randn(2, 64, 64), options={"language": language})
    part = compiled.graphs[0].forward
    assert [len(kernel.group.combined) for kernel in part.kernels] == [2] * 4
    first, second, third, other = (kernel.name for kernel in part.kernels)
    assert first == second == third != other
    if language == "cpp":
        assert str(translation_unit(part.kernels)).count("static int") == 4


def test_kernels_with_different_constants_sizes_or_dtypes_are_not_shared() -> None:
    def f(x: torch.Tensor, y: torch.Tensor) -> list[torch.Tensor]:
        return [x.sort().values + 1, x.sort().values + 2, y.sort().values + 1]

    part = lab.inspect(f, torch.randn(100), torch.randn(101)).graphs[0].forward
    assert len({kernel.name for kernel in part.kernels}) == len(part.kernels)


def test_equal_triton_texts_with_different_dtypes_are_not_shared() -> None:
    """Triton text does not contain the dtypes of pointers, and a cached launch has fixed dtypes."""

    def f(x: torch.Tensor, y: torch.Tensor, z: torch.Tensor) -> list[torch.Tensor]:
        return [x.flip(0), y.flip(0), z.flip(0)]

    given = torch.randn(100), torch.arange(100), torch.randn(100)
    options = {"language": "triton", "fusion": False}
    part = lab.inspect(f, *given, options=options).graphs[0].forward
    first, second, third = (kernel.name for kernel in part.kernels)
    assert first == third != second
