"""`c.dump(folder)` and TORCH_COMPILE_DEBUG: files of all stages, and standalone programs."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch.nn import functional as F

import inductor_lab as lab
from inductor_lab.compiler.base.errors import CannotWrite

FILES = {
    "fx_graph_readable.py", "fx_graph_runnable.py", "fx_graph_transformed.py", "ir_pre_fusion.txt",
    "ir_post_fusion.txt", "fusion.txt", "output_code.py", "kernels",
}  # fmt: skip


def randn(*shape: int, grad: bool = False) -> torch.Tensor:
    return torch.randn(*shape).requires_grad_(grad)


def convolved(x, w):
    return F.avg_pool2d(torch.relu(F.conv2d(x, w, padding=1)), 2)


def looked_up(table, places, x):
    return F.layer_norm(table[places] + x, (8,))


PROGRAMS = {
    "pointwise": (lambda x: (torch.sin(x) ** 2 + torch.cos(x) ** 2), [randn(100, grad=True)]),
    "matmul": (lambda x, w: torch.softmax((x @ w).sin(), -1), [randn(16, 16), randn(16, 16)]),
    "uint8": (lambda x, y: torch.maximum(x, -y), [torch.ones(8, 8, dtype=torch.uint8)] * 2),
    "transposed": (lambda x: x.t().contiguous().cumsum(0), [randn(6, 10).t()]),
    "convolution": (convolved, [randn(1, 3, 8, 8, grad=True), randn(4, 3, 3, 3, grad=True)]),
    "embedding": (looked_up, [randn(12, 8, grad=True), torch.tensor([1, 0, 1]), randn(3, 8)]),
    "constant": (lambda x: x * torch.tensor([1.0, 2.0, 3.0]), [randn(5, 3)]),
    "half": (lambda x: F.gelu(x) * 2, [randn(33).half()]),
    "several": (lambda x: torch.sort(x.abs(), dim=0), [randn(9, 4)]),
    "in_place": (lambda x: x.mul_(2) + 1, [randn(20)]),
}


def run(file: Path, **more: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, file], capture_output=True, text=True, check=False,
        env={**os.environ, **more}, cwd=file.parent,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_ten_dumped_programs_run_standalone(tmp_path):
    """Each graph and its generated code compute the same results for the same random inputs."""
    for name, (function, arguments) in PROGRAMS.items():
        given = [a.clone() if not a.requires_grad else a for a in arguments]
        lab.inspect(function, *given).dump(tmp_path / name)
    parts = sorted(path.parent for path in tmp_path.glob("*/model__*/output_code.py"))
    assert len(parts) == 13
    files = [part / file for part in parts for file in ("fx_graph_runnable.py", "output_code.py")]
    all_at_once = tmp_path / "all.py"
    all_at_once.write_text(
        "import runpy, sys\nfor path in sys.stdin.read().split():\n"
        "    print('FILE', path)\n    runpy.run_path(path, run_name='__main__')\n"
    )
    done = subprocess.run([sys.executable, all_at_once], input="\n".join(map(str, files)),
                          capture_output=True, text=True, check=False)  # fmt: skip
    assert done.returncode == 0, done.stderr
    outputs = [text.split("\n")[1:-1] for text in done.stdout.split("FILE ")[1:]]
    for part, graph, code in zip(parts, outputs[::2], outputs[1::2], strict=True):
        same(graph, code, str(part))
    assert sum("nan" in line for lines in outputs for line in lines) <= 4, "random, but few NaN"


def same(graph: list[str], code: list[str], where: str) -> None:
    """Each result of the code is a result of the graph, which also returns new input values."""
    assert code and len(code) <= len(graph), where
    for found in code:
        assert any(alike(found, expected) for expected in graph), f"{where}: {found} in {graph}"


def alike(found: str, expected: str) -> bool:
    kind, _, one = found.partition(" ")[2].partition(" sum ")
    other_kind, _, other = expected.partition(" ")[2].partition(" sum ")
    if kind != other_kind or not one or not other:
        return found == expected
    close = math.isclose(float(one), float(other), rel_tol=2e-3, abs_tol=2e-3)
    return close or one == other == "nan"


def test_the_files_have_the_names_that_stock_uses(tmp_path):
    function, arguments = PROGRAMS["pointwise"]
    c = lab.inspect(function, *arguments)
    folder = c.dump(tmp_path / "dumped")
    forward = folder / "model__0_forward"
    assert set(os.listdir(forward)) == FILES
    assert {"captured_0.py", "joint_0.py", "guards.txt", "compilation.lab.json"} <= set(
        os.listdir(folder)
    )
    kernel = c.graphs[0].forward.kernels[0]
    assert (forward / "kernels" / f"{kernel.name}.cpp").read_text() == str(kernel)
    assert "same_iteration_space" in (forward / "fusion.txt").read_text()
    assert str(lab.load(folder / "compilation.lab.json")) == str(c)


def test_an_edit_of_the_dumped_code_changes_its_result(tmp_path):
    """The expected result is that of a graph with the same edit.

    The test of ten programs runs the unchanged code.
    """
    c = lab.inspect(lambda x: x + 1, torch.zeros(4))
    file = c.dump(tmp_path / "d") / "model__0_forward" / "output_code.py"
    text = file.read_text()
    assert "1.0f" in text
    file.write_text(text.replace("1.0f", "2.0f"))
    torch.manual_seed(0)
    expected = float((torch.randn(4) + 2).sum())
    assert math.isclose(float(run(file)[0].split("sum ")[1]), expected, rel_tol=1e-3)


def test_triton_kernels_have_a_file_for_each_stage(tmp_path):
    """Compiled for a GPU that this machine lacks: PTX always, machine code if `ptxas` exists."""
    pytest.importorskip("triton")
    c = lab.inspect(lambda x: (x + 1).sin(), torch.zeros(64), options={"target": "cuda:90"})
    (kernel,) = c.graphs[0].forward.kernels
    kernels = c.dump(tmp_path / "d") / "model__0_forward" / "kernels"
    made = {path.name.removeprefix(f"{kernel.name}."): path for path in kernels.iterdir()}
    if "error.txt" in made:
        pytest.skip(made["error.txt"].read_text())
    assert set(made) == {"py", "ttir", "ttgir", "llir", "ptx", "cubin"}
    assert f".visible .entry {kernel.name}(" in made["ptx"].read_text()
    assert made["cubin"].read_bytes().startswith(b"\x7fELF")


def test_a_folder_that_cannot_be_created_raises_cannot_write(tmp_path):
    (tmp_path / "file").write_text("")
    c = lab.inspect(lambda x: x + 1, torch.zeros(4))
    with pytest.raises(CannotWrite):
        c.dump(tmp_path / "file")


def test_environment_variables_of_torch_write_our_code(tmp_path):
    """TORCH_COMPILE_DEBUG creates a folder; TORCH_LOGS and TORCH_TRACE contain our code."""
    script = tmp_path / "train.py"
    script.write_text(
        "import torch\nf = torch.compile(lambda x: x.sin() * 2, backend='inductor_lab')\n"
        "f(torch.ones(3, requires_grad=True)).sum().backward()\n"
    )
    env = {**os.environ, "TORCH_TRACE": str(tmp_path / "trace"), "TORCH_LOGS": "output_code,fusion",
           "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "cache"),
           "TORCH_COMPILE_DEBUG": "1"}  # fmt: skip
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True,
                          env=env, cwd=tmp_path)  # fmt: skip
    assert "cpp_fused_mul_sin_0" in done.stderr and "same_iteration_space" in done.stderr
    opened = lab.read_trace(tmp_path / "trace")["0/0"]
    assert [part.name for part in opened.parts] == ["forward", "backward"]
    assert "lab_sin" in opened.parts[0].text and opened.parts[0].last.node("sin") is not None
    (folder,) = tmp_path.glob("torch_compile_debug/run_*/inductor_lab")
    assert sorted(os.listdir(folder)) == ["model__0_forward", "model__1_backward"]
    assert all(set(os.listdir(part)) == FILES for part in folder.iterdir())


LOGS_ON_DEMAND = """
import sys
import torch

first = torch.compile(lambda x: x.sin() * 2, backend="inductor_lab")
second = torch.compile(lambda x: x.cos() * 3, backend="inductor_lab")
first(torch.ones(3))
tools = {name.split(".")[1] for name in sys.modules if name.startswith("inductor_lab.")}
assert not tools & {"bench", "debug", "notebook", "saved", "widgets"}, tools
torch._logging.set_logs(output_code=True)
second(torch.ones(3))
"""


def test_logs_are_written_from_when_they_are_asked_for(tmp_path):
    """Without logs a compile imports none of the tools that write them."""
    names = {"TORCH_LOGS", "TORCH_TRACE", "TORCH_COMPILE_DEBUG"}
    env = {name: value for name, value in os.environ.items() if name not in names}
    env["TORCHINDUCTOR_CACHE_DIR"] = str(tmp_path / "cache")
    for _ in range(2):  # the second process could load both graphs from disk
        done = subprocess.run([sys.executable, "-c", LOGS_ON_DEMAND], capture_output=True,
                              text=True, env=env, cwd=tmp_path)  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert "cpp_fused_cos_mul_0" in done.stderr and "cpp_fused_mul_sin" not in done.stderr


def test_a_graph_that_only_writes_its_inputs_prints_them(tmp_path):
    def doubled(x):
        x.mul_(2)

    c = lab.inspect(doubled, randn(5))
    folder = c.dump(tmp_path / "d") / "model__0_forward"
    found = run(folder / "output_code.py")
    assert found and found == run(folder / "fx_graph_runnable.py")
