"""`fx_graph_runnable.py` runs standalone, also with sub-graphs and user operators."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import inductor_lab as lab

SCALE = torch.tensor([2.0, 3.0, 4.0, 5.0])


def branches(x: torch.Tensor) -> torch.Tensor:
    def inner(v: torch.Tensor) -> torch.Tensor:
        return torch.cond(v.sum() > 1, lambda u: u * SCALE, lambda u: u - 1, (v,))

    return torch.cond(x.sum() > 0, inner, lambda v: v.cos() + float("inf"), (x,)) * 2


def turns(x: torch.Tensor) -> torch.Tensor:
    start = torch.tensor(0)
    return torch.while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, v.sin()), (start, x))[1]


def run(folder: Path, file: str = "fx_graph_runnable.py") -> subprocess.CompletedProcess[str]:
    (part,) = folder.glob("model__*_forward")
    command = [sys.executable, str(part / file)]
    return subprocess.run(command, capture_output=True, text=True, cwd="/", timeout=300)


def given() -> torch.Tensor:
    """The input that the program creates for four floats."""
    torch.manual_seed(0)
    return torch.randn(4)


def expected(fn: Callable[..., Any]) -> str:
    value = fn(given()).double().sum().item()
    return f"0 torch.float32 [4] sum {value:.5g}"


def trained(x: torch.Tensor) -> torch.Tensor:
    return torch.cond(x.sum() > 0, lambda v: v.sin() * SCALE, lambda v: v.cos(), (x * WEIGHT,))


WEIGHT = torch.ones(4, requires_grad=True)


@pytest.mark.parametrize("fn", [branches, turns, trained])
@pytest.mark.parametrize("file", ["fx_graph_runnable.py", "output_code.py"])
def test_the_program_contains_sub_graphs(fn, file, tmp_path) -> None:
    ran = run(lab.inspect(fn, torch.randn(4)).dump(tmp_path), file)
    assert ran.returncode == 0, ran.stderr
    assert fn is trained or ran.stdout.strip() == expected(fn)


DEFINITION = """
import torch

@torch.library.custom_op("{space}::twice", mutates_args=())
def twice(x: torch.Tensor) -> torch.Tensor:
    return x * 2

@twice.register_fake
def _(x):
    return torch.empty_like(x)
"""


@pytest.fixture
def own_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    package = tmp_path / "lib" / "own_ops"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "doubling.py").write_text(DEFINITION.format(space="lab_test_runnable"))
    monkeypatch.syspath_prepend(str(tmp_path / "lib"))
    yield importlib.import_module("own_ops.doubling")
    for name in ("own_ops", "own_ops.doubling"):
        del sys.modules[name]


@pytest.mark.parametrize("file", ["fx_graph_runnable.py", "output_code.py"])
def test_the_program_imports_the_module_of_an_operator(own_module, file, tmp_path) -> None:
    def fn(x: torch.Tensor) -> torch.Tensor:
        return own_module.twice(x.sin()) + 1

    ran = run(lab.inspect(fn, torch.randn(4)).dump(tmp_path / "dumped"), file)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.strip() == expected(fn)


def test_an_operator_without_a_module_is_named(tmp_path) -> None:
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(DEFINITION.format(space="lab_test_cell"), "<cell>", "exec"), names)

    def fn(x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 0, lambda v: names["twice"](v), lambda v: v.sin(), (x,))

    folder = lab.inspect(lambda x: names["twice"](x) + 1, torch.randn(4)).dump(tmp_path / "plain")
    inside = lab.inspect(fn, torch.randn(4)).dump(tmp_path / "inside")
    for dumped in (folder, inside):
        ran = run(dumped)
        assert ran.returncode == 1 and "Traceback" not in ran.stderr, ran.stderr
        assert "define the operator lab_test_cell::twice" in ran.stderr
        assert "it was in <cell>, line 4" in ran.stderr
    (file,) = folder.glob("model__*/fx_graph_runnable.py")
    file.write_text(DEFINITION.format(space="lab_test_cell") + file.read_text())
    assert run(folder).stdout.strip() == expected(lambda x: x * 2 + 1)
