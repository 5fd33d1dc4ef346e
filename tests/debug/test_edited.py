"""An edited kernel: a compile error with its line, a wrong result, or a correct and timed one."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import inductor_lab as lab
from inductor_lab.compiler.base.errors import UnknownName
from inductor_lab.compiler.codegen.kernel import Kernel
from inductor_lab.compiler.runtime.cache.kernel_cache import open_cache
from inductor_lab.compiler.runtime.toolchain.shared_library import LIBRARY
from inductor_lab.debug.explore.edit_kernel import NEW, OLD, EditedKernel, edited_code
from inductor_lab.debug.isolate import can_fork

needs_fork = pytest.mark.skipif(not can_fork(), reason="it would run in this process")


def pythagoras(x: torch.Tensor) -> torch.Tensor:
    return torch.sin(x) ** 2 + torch.cos(x) ** 2


@pytest.fixture(scope="module")
def c() -> lab.Compilation:
    return lab.inspect(pythagoras, torch.linspace(0, 9, 1000))


@pytest.fixture(scope="module")
def kernel(c: lab.Compilation) -> Kernel:
    return c.graphs[0].forward.kernels[0]


def attempt(c: lab.Compilation, kernel: Kernel, old: str, new: str) -> EditedKernel:
    text = str(kernel.code)
    assert old in text
    return lab.try_kernel(c, kernel.name, text.replace(old, new), seconds=0.05, limit=5)


def test_an_unchanged_kernel_is_correct_and_timed(c, kernel) -> None:
    found = attempt(c, kernel, "return 0;", "return 0;  // as it was")
    assert found.right and "agrees with eager" in str(found)
    assert found.timings.rounds >= 9 and set(found.timings.seconds) == {OLD, NEW}
    assert all(took > 0 for took in found.timings.seconds[NEW])


def test_a_kernel_with_another_function_is_wrong_and_not_timed(c, kernel) -> None:
    found = attempt(c, kernel, "lab_sin", "lab_cos")
    assert not found.right and found.judged[0].kind == "wrong"
    assert found.timings.rounds == 0 and str(found).startswith("wrong: result 0 of g0.forward")


def test_a_compile_error_has_the_line_of_the_edited_text(c, kernel) -> None:
    text = str(kernel.code).replace("lab_sin", "lab_sine")
    found = lab.try_kernel(c, kernel.name, text)
    where, said = found.errors[0]
    assert "lab_sine" in text.split("\n")[where - 1] and "lab_sine" in said
    assert f"line {where}:" in str(found) and not found.right
    renamed = attempt(c, kernel, kernel.name, "elsewhere")
    assert renamed.errors == ((0, f"the text has no function {kernel.name} any more"),)


@needs_fork
@pytest.mark.parametrize(("statement", "says"), [
    ("*(volatile int*)8 = 1;", "SIGSEGV"), ("for (volatile int n = 0;;) n = 1;", "still running"),
])  # fmt: skip
def test_a_crash_or_hang_is_isolated_and_reported(c, kernel, statement: str, says: str) -> None:
    found = attempt(c, kernel, "return 0;", f"{statement} return 0;")
    assert says in found.failure and says in str(found) and not found.right


def test_the_compilation_and_the_caches_do_not_change(c, kernel, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("INDUCTOR_LAB_CACHE_DIR", str(tmp_path))
    attempt(c, kernel, "lab_sin", "lab_cos")
    attempt(c, kernel, "lab_sin", "lab_sine")
    assert open_cache().root.is_relative_to(tmp_path)
    assert not list(tmp_path.rglob("*.cpp"))
    assert not list(tmp_path.rglob(LIBRARY))
    x = torch.linspace(0, 9, 1000)
    torch.testing.assert_close(c.compiled(x), pythagoras(x))


def test_a_backward_and_random_numbers() -> None:
    net = nn.Sequential(nn.Linear(8, 8), nn.Dropout(), nn.BatchNorm1d(8))
    c = lab.inspect(net, torch.randn(20, 8))
    for part in c.graphs[0].parts:
        kernel = part.kernels[0]
        found = lab.try_kernel(
            c, kernel.name, str(kernel.code), part=f"g0.{part.name}", seconds=0.01
        )
        assert found.right, str(found)
        assert (found.against == "eager") is (part.name == "backward")


def test_triton_kernels_are_interpreted_without_a_gpu() -> None:
    pytest.importorskip("triton")
    c = lab.inspect(pythagoras, torch.linspace(0, 9, 100), options={"language": "triton"})
    (kernel,) = c.graphs[0].forward.kernels
    assert kernel.language == "triton"
    assert attempt(c, kernel, "tl.store", "tl.store").right
    assert attempt(c, kernel, "cos(", "sin(").judged[0].kind == "wrong"
    broken = attempt(c, kernel, "tl.store(", "tl.store((")
    assert broken.errors and broken.errors[0][0] > 1


def test_unchanged_lines_keep_their_origins(kernel) -> None:
    lines = str(kernel.code).rstrip("\n").split("\n")
    code = edited_code("\n".join([*lines, "// more"]), kernel.code)
    assert code.lines[: len(lines)] == tuple(
        new for new, old in zip(code.lines, kernel.code.lines, strict=False)
        if new.origins == old.origins
    )  # fmt: skip
    assert not code.lines[-1].origins


def test_unknown_parts_and_kernels_are_refused(c, kernel) -> None:
    with pytest.raises(UnknownName, match=r"no part 'g0\.backward'"):
        lab.try_kernel(c, kernel.name, "", part="g0.backward")
    with pytest.raises(UnknownName, match="no kernel 'other'"):
        lab.try_kernel(c, "other", "")
