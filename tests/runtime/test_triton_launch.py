"""Launching kernels: the interpreter with and without TRITON_INTERPRET, errors, cached launches."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import triton
from triton.backends.compiler import GPUTarget

from inductor_lab.compiler.base.errors import IndexOutOfRange
from inductor_lab.compiler.codegen.triton.kernel_module import compile_options, jit_function, source
from inductor_lab.compiler.runtime.triton import launch as triton_launch
from inductor_lab.compiler.runtime.triton.launch import load_kernel
from tests.codegen.triton_programs import InTriton, kernels_of

pytest.importorskip("triton")

PROGRAM = """
import torch
import torch.nn.functional as F
from tests.codegen.triton_programs import InTriton

def network(x, w):
    y = F.gelu(F.layer_norm(x, (6,), w))
    return y, torch.tanh(y).argmax(1), torch.pow(y.abs(), 1.5), y.to(torch.bfloat16)

x, w = torch.randn(4, 6), torch.randn(6)
torch.testing.assert_close(InTriton()(network)(x, w), network(x, w))
"""


@pytest.mark.parametrize("value", ["", "1"])
def test_interpreting_works_with_and_without_the_environment_variable(value: str) -> None:
    environment = {**os.environ, "TRITON_INTERPRET": value}
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr


def test_an_index_out_of_range_raises_as_in_eager() -> None:
    table = torch.randn(5, 3)
    compiled = InTriton()(lambda i: table[i] * 2)
    torch.testing.assert_close(compiled(torch.tensor([0, -1])), table[[0, -1]] * 2)
    with pytest.raises(IndexOutOfRange, match="dimension of size 5"):
        compiled(torch.tensor([0, 5]))


def test_triton_still_compiles_after_a_kernel_was_interpreted() -> None:
    (kernel,) = kernels_of(lambda x: torch.softmax(x, -1), torch.randn(4, 10))
    assert ".target sm_90" in kernel.ladder("cuda:90")["ptx"]
    x = torch.randn(4, 10)
    torch.testing.assert_close(InTriton()(torch.sin)(x), x.sin())


def test_interpreted_programs_have_larger_blocks_and_stay_in_bounds() -> None:
    for size in (1, 127, 128, 1000, 4096, 70_000, 1 << 17):
        room = torch.full((size + 64,), 7.0)
        x = torch.randn(size)
        (kernel,) = kernels_of(torch.neg, x)
        load_kernel(kernel, interpret=True)(x, room)
        torch.testing.assert_close(room[:size], -x)
        assert (room[size:] == 7.0).all()


class StandIn:
    """Replaces Triton on a machine without a GPU: `jit[grid]()` compiles, `compiled.run()` runs."""

    function, packed_metadata, hash = "function", "packed", "hash"

    def __init__(self, entry: Path) -> None:
        self.said: list[tuple[Any, ...]] = []
        self.metadata_group = {"kernel.json": str(entry / "kernel.json")}

    def __getitem__(self, grid: tuple[int, ...]) -> Any:
        def through_triton(*arguments: Any, **named: Any) -> StandIn:
            self.said.append(("triton", grid, len(arguments)))
            return self

        return through_triton

    def run(self, x: int, y: int, z: int, stream: int, *more: Any) -> None:
        assert more[:5] == ("function", "packed", None, None, None)
        self.said.append(("prepared", (x, y, z), more[6:], stream))


def launcher(kernel: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> tuple[Any, StandIn]:
    monkeypatch.setattr(triton_launch, "current_device", lambda: 0)
    monkeypatch.setattr(triton_launch, "current_stream", lambda device: 7)
    made = triton_launch.Launcher(kernel)
    made.function = StandIn(tmp_path)
    return made, made.function


def test_a_launch_is_cached_for_aligned_pointers(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    x = torch.randn(1000)
    (kernel,) = kernels_of(torch.neg, x)
    launch, stand_in = launcher(kernel, monkeypatch, tmp_path)
    room = torch.empty(1004)
    aligned, odd = room[:1000], room[1:1001]
    launch(x, odd)
    launch(x, aligned)
    launch(x, aligned)
    launch(x, odd)
    first, *_, last = stand_in.said
    assert [said[0] for said in stand_in.said] == ["triton", "triton", "prepared", "triton"]
    block = kernel.launch["constants"]["XBLOCK"]
    assert first == last == ("triton", (-(-1000 // block),), 2)
    assert stand_in.said[2] == ("prepared", (-(-1000 // block), 1, 1), (aligned, block), 7)


def test_a_launch_is_cached_for_each_number(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (kernel,) = kernels_of(torch.neg, torch.randn(1000), dynamic=True)
    launch, stand_in = launcher(kernel, monkeypatch, tmp_path)
    x, y = torch.randn(2000), torch.empty(2000)
    for size in (1000, 1500, 1000, 1500, 0):
        launch(x, y, size)
    assert [said[0] for said in stand_in.said] == ["triton", "triton", "prepared", "prepared"]
    assert len({said[1] for said in stand_in.said[2:]}) == 2


def test_kernels_with_static_sizes_are_compiled_in_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    def several(x: torch.Tensor) -> Any:
        return torch.softmax(x, 1), x.sum(0).exp(), x.t().contiguous() + 1

    target = SimpleNamespace(get_current_target=lambda: GPUTarget("cuda", 90, 32))
    monkeypatch.setattr(triton_launch, "driver", SimpleNamespace(active=target))
    monkeypatch.setattr(triton_launch, "_direct", lambda compiled, *given: compiled)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(torch.cuda, "device", nullcontext)
    launchers = [triton_launch.Launcher(k) for k in kernels_of(several, torch.randn(64, 1000))]
    for made in launchers:
        made.begin()
    assert len(launchers) > 1
    for made in launchers:
        compiled: Any = made.ahead[(0,)].wait()
        assert f".entry {made.kernel.name}" in compiled.asm["ptx"]


@pytest.mark.parametrize("size", [1, 1000])
def test_torch_launches_compiled_kernels_of_triton(
    size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Checks the arguments of its launcher for a real cubin; `tests/gpu` runs it."""
    (kernel,) = kernels_of(torch.neg, torch.randn(1000), dynamic=True)
    written = source(kernel, jit_function(kernel))
    if size == 1:  # Triton specializes numbers that are 1
        written.signature["ks0"] = "constexpr"
        written.constants[(2,)] = 1
    target = GPUTarget("cuda", 90, 32)
    compiled = triton.compile(written, target=target, options=compile_options(kernel))
    parameters = compiled.asm["ptx"].split(".entry")[1].split(")")[0].count(".param")
    loaded: list[Any] = []
    said: list[Any] = []

    def load(*given: Any) -> tuple[str, int, int]:
        loaded.append(given)
        return "function", 32, 0

    monkeypatch.setattr(triton_launch, "current_device", lambda: 0)
    monkeypatch.setattr(triton_launch, "load_cubin", load)
    monkeypatch.setattr(triton_launch, "run_cubin", lambda *given: said.append(given))
    launch = triton_launch._direct(compiled, (7,), {"XBLOCK": 128}, (size,))
    launch(5, ("x", "y"))
    ((file, *about),) = loaded
    assert Path(file).read_bytes() == compiled.asm["cubin"]
    assert about == [kernel.name, compiled.metadata.shared, 0]
    ((function, *grid, warps, shared, kinds, arguments, stream),) = said
    assert (function, grid, shared, stream) == ("function", [7, 1, 1], about[1], 5)
    assert warps == kernel.launch["num_warps"]
    numbers = () if size == 1 else (size,)
    assert arguments == ("x", "y", *numbers, None, None)
    assert kinds == "OO" + "i" * len(numbers) + "OO"
    assert parameters == len(arguments)


def test_a_kernel_with_symbolic_sizes_is_compiled_at_its_first_call() -> None:
    (kernel,) = kernels_of(torch.neg, torch.randn(1000), dynamic=True)
    made = triton_launch.Launcher(kernel)
    made.begin()
    assert not made.ahead
