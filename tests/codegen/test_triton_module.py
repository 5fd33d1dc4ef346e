"""The text of a kernel is a separate module, with the same random numbers as the loop program."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
import torch

from tests.codegen.triton_programs import InTriton, kernels_of

triton = pytest.importorskip("triton")


def test_the_text_can_be_imported_from_a_file(tmp_path: Path) -> None:
    from inductor_lab.compiler.codegen.triton.kernel_module import module_text

    (kernel,) = kernels_of(lambda x: torch.softmax(x, -1), torch.randn(64, 10))
    path = tmp_path / "softmax_kernel.py"
    path.write_text(module_text(kernel))
    spec = importlib.util.spec_from_file_location("softmax_kernel", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    function = getattr(module, kernel.name)
    assert isinstance(function, triton.runtime.jit.KernelInterface)
    assert list(function.arg_names) == ["in0", "out0", "XBLOCK", "RBLOCK"]


def test_equal_seeds_give_the_same_numbers_as_the_loop_program() -> None:
    def noisy(x):
        return torch.rand_like(x), torch.randn_like(x)

    x = torch.ones(3, 1000)
    torch.manual_seed(5)
    compiled = InTriton()
    uniform, normal = compiled(noisy)(x)
    torch.manual_seed(5)
    expected_uniform, expected_normal = compiled.schedules[0].run(x)
    torch.testing.assert_close(uniform, expected_uniform, rtol=0, atol=0)
    torch.testing.assert_close(normal, expected_normal, rtol=1e-5, atol=1e-6)
