"""Down to PTX, cubin and AMDGCN without a GPU."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from inductor_lab.compiler.base.errors import CompileFailed, UnknownTarget
from inductor_lab.compiler.base.options import Options
from inductor_lab.compiler.codegen.kernel import Code, Kernel
from tests.codegen.triton_programs import InTriton, kernels_of

pytest.importorskip("triton")

ELF = b"\x7fELF"


def trig(x):
    return torch.sin(x) ** 2 + torch.cos(x) ** 2


def softmax(x):
    return torch.softmax(x, -1)


def layer_norm(x):
    return F.layer_norm(x, (512,))


def fetched(x):
    return x[torch.arange(8).flip(0) // 2].sum(0).to(torch.bfloat16)


def random(x):
    return F.dropout(x, 0.5) + torch.randn_like(x)


def one_kernel(function: Callable[..., Any]) -> Kernel:
    (kernel,) = kernels_of(function, torch.randn(8, 512))
    return kernel


@pytest.mark.parametrize("function", [trig, softmax, layer_norm, fetched])
def test_nvidia(function: Callable[..., Any]) -> None:
    kernel = one_kernel(function)
    for architecture in ("80", "90"):
        rungs = kernel.ladder(f"cuda:{architecture}")
        assert list(rungs) == ["ttir", "ttgir", "llir", "ptx", "cubin"]
        assert f"tt.func public @{kernel.name}" in rungs["ttir"]
        assert "#ttg.blocked" in rungs["ttgir"]
        assert f".target sm_{architecture}" in rungs["ptx"]
        assert f".entry {kernel.name}" in rungs["ptx"]
        assert rungs["cubin"].startswith(ELF)


@pytest.mark.parametrize("function", [trig, softmax, layer_norm, fetched])
def test_amd(function: Callable[..., Any]) -> None:
    kernel = one_kernel(function)
    rungs = kernel.ladder("hip:gfx942")
    assert list(rungs) == ["ttir", "ttgir", "llir", "amdgcn", "hsaco"]
    assert "gfx942" in rungs["amdgcn"] and kernel.name in rungs["amdgcn"]
    assert rungs["hsaco"].startswith(ELF)


def test_only_gathered_indices_are_checked() -> None:
    (kernel,) = kernels_of(lambda x, i: x[i] * 2 + i, torch.arange(9).int(), torch.arange(9).int())
    assert kernel.launch["asserts"]
    checks = kernel.ladder("cuda:90")["ptx"].count("call.uni")
    assert checks == 1, "integers may wrap: only the index is checked"
    assert "__assertfail" not in one_kernel(softmax).ladder("cuda:90")["ptx"]
    assert "__triton_assert_fail" in kernel.ladder("hip:gfx942")["amdgcn"]


def test_random_numbers_and_symbolic_sizes_compile() -> None:
    for kernel in kernels_of(random, torch.randn(8, 512)):
        assert "ptx" in kernel.ladder("cuda:90")
    for kernel in kernels_of(softmax, torch.randn(9, 513), dynamic=True):
        assert kernel.launch["reach"]
        assert "ptx" in kernel.ladder("cuda:90")


def test_a_cpp_kernel_is_rendered_as_triton_first() -> None:
    compiled = InTriton(Options(language="cpp"))
    compiled(softmax)(torch.randn(8, 512))
    (kernel,) = compiled.kernels
    assert kernel.language == "cpp"
    name = kernel.name.replace("cpp_", "triton_")
    assert f".entry {name}" in kernel.ladder("cuda:90")["ptx"]


@pytest.mark.parametrize("target", ["", "cuda", "cuda:x", "cuda:13", "tpu:4", "hip:90"])
def test_the_error_for_an_unknown_target_lists_valid_targets(target: str) -> None:
    with pytest.raises(UnknownTarget, match=r"valid targets: .*cuda:90"):
        one_kernel(trig).ladder(target)


def test_without_triton_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = one_kernel(trig)
    monkeypatch.setitem(sys.modules, "triton", None)
    with pytest.raises(UnknownTarget, match=r"inductor-lab\[triton\]"):
        kernel.ladder("cuda:90")


def test_the_error_shows_the_kernel_that_does_not_compile() -> None:
    kernel = one_kernel(trig)
    lines = [
        replace(line, text=line.text.replace("tl.sin(", "tl.sine(")) for line in kernel.code.lines
    ]
    broken = replace(kernel, code=Code(tuple(lines)))
    with pytest.raises(CompileFailed) as failure:
        broken.ladder("cuda:90")
    assert "tl.sine(t0)" in str(failure.value)
    assert "has no attribute 'sine'" in str(failure.value)


def test_triton_interpret_does_not_affect_the_ladder() -> None:
    program = (
        "import torch\n"
        "from tests.codegen.triton_programs import kernels_of\n"
        "(k,) = kernels_of(lambda x: torch.softmax(x, -1), torch.randn(4, 300))\n"
        "print(len(k.ladder('cuda:80')['cubin']))\n"
    )
    environment = {**os.environ, "TRITON_INTERPRET": "1"}
    result = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr
    assert int(result.stdout) > 1000
