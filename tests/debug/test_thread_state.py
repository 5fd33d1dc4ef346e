"""Isolated work and comparisons run with the user's torch settings."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
import torch._dynamo.config as dynamo_config
import torch._functorch.config as functorch_config

import inductor_lab as lab
from inductor_lab.compiler.capture.eager import eager_cost
from inductor_lab.debug.isolate import run_isolated

inductor_config = importlib.import_module("torch._inductor.config")


@contextmanager
def changed(get: Callable[[], Any], put: Callable[[Any], None], value: Any) -> Iterator[None]:
    before = get()
    put(value)
    try:
        yield
    finally:
        put(before)


def deterministic() -> Any:
    on, algorithms = torch.are_deterministic_algorithms_enabled, torch.use_deterministic_algorithms
    return changed(on, algorithms, True)


SETTINGS: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
    "dynamo": (
        lambda: dynamo_config.patch(capture_scalar_outputs=True),
        lambda: dynamo_config.capture_scalar_outputs,
    ),
    "inductor": (
        lambda: inductor_config.patch({"cpp.inject_relu_bug_TESTING_ONLY": "accuracy"}),
        lambda: inductor_config.cpp.inject_relu_bug_TESTING_ONLY,
    ),
    "functorch": (
        lambda: functorch_config.patch(activation_memory_budget=0.25),
        lambda: functorch_config.activation_memory_budget,
    ),
    "default dtype": (
        lambda: changed(torch.get_default_dtype, torch.set_default_dtype, torch.float64),
        torch.get_default_dtype,
    ),
    "no gradients": (torch.no_grad, torch.is_grad_enabled),
    "inference mode": (torch.inference_mode, torch.is_inference_mode_enabled),
    "autocast": (
        lambda: torch.autocast("cpu", torch.float16, cache_enabled=False),
        lambda: (torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu"),
                 torch.is_autocast_cache_enabled()),
    ),
    "default device": (lambda: torch.device("meta"), lambda: torch.ones(1).device.type),
    "deterministic": (deterministic, torch.are_deterministic_algorithms_enabled),
    "threads": (
        lambda: changed(torch.get_num_threads, torch.set_num_threads, 1),
        torch.get_num_threads,
    ),
    "precision": (
        lambda: changed(
            torch.get_float32_matmul_precision, torch.set_float32_matmul_precision, "medium"
        ),
        torch.get_float32_matmul_precision,
    ),
    "anomalies": (torch.autograd.detect_anomaly, torch.is_anomaly_enabled),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:Anomaly Detection")
@pytest.mark.parametrize("name", SETTINGS)
def test_isolated_work_has_the_settings_of_the_caller(name: str) -> None:
    change, look = SETTINGS[name]
    plain = look()
    with change():
        here = look()
        assert here != plain, "the setting changes something"
        assert run_isolated(lambda tell: look()).value == here
    assert look() == plain and run_isolated(lambda tell: look()).value == plain


def test_eager_costs_are_counted_with_the_settings_of_the_caller() -> None:
    module = torch.fx.symbolic_trace(lambda x: x @ x)
    x = torch.ones(4, 4)
    plain = eager_cost(module, [x])
    with torch.autocast("cpu"):
        cast = eager_cost(module, [x])
    assert plain is not None and cast is not None and "_to_copy" in str(cast) != str(plain)


def relu(x: torch.Tensor) -> torch.Tensor:
    return torch.relu(x) * 2


def read(x: torch.Tensor) -> torch.Tensor:
    return x * x.sum().item()


WRONG_RELU = {"cpp.inject_relu_bug_TESTING_ONLY": "accuracy"}


def test_a_wrong_stock_compiler_is_found() -> None:
    x = torch.randn(64) * 40
    with torch.no_grad(), inductor_config.patch(WRONG_RELU):
        found = lab.backends(relu, x, only=("aot_eager", "stock"), limit=300)
    assert [rung.verdict for rung in found.rungs] == ["agrees", "wrong"], str(found)


@pytest.mark.parametrize("backend", ["inductor_lab", "stock"])
def test_isolated_work_keeps_capture_scalar_outputs(backend: str) -> None:
    with ExitStack() as stack:
        stack.enter_context(dynamo_config.patch(capture_scalar_outputs=True))
        found = lab.backends(read, torch.ones(4), only=(backend,))
    assert found.rungs[0].verdict == "agrees", str(found)


AFTER_A_COMPILE = """
import torch

def backward():
    x = torch.ones(3, requires_grad=True)
    torch.compile(lambda x: x.sin().sum(), backend="aot_eager")(x).backward()

if {first}:
    backward()
import inductor_lab as lab
from inductor_lab.debug.isolate import run_isolated
if not {first}:
    lab.compile
    backward()
ended = run_isolated(lambda tell: backward())
assert ended.how == "returned", ended
"""


@pytest.mark.parametrize("first", [False, True], ids=["after the import", "before the import"])
def test_isolated_work_can_run_a_backward_after_a_compile(first: bool) -> None:
    """A torch that is built for CUDA starts threads for GPUs that this machine does not have."""
    program = AFTER_A_COMPILE.format(first=first)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


AFTER_STOCK = """
import torch, torch._inductor.config
from inductor_lab.debug.isolate import run_isolated

def kernels(x):
    return (x.sin().sum(0) * 2).exp(), (x.cos().sum(1) + 3).sqrt()

def others(x):
    return (x.exp().sum(0) * 5).sin(), (x.sqrt().sum(1) + 7).cos()

x = torch.ones(70, 90)
with torch._inductor.config.patch(compile_threads=2):
    torch.compile(kernels)(x)
    ended = run_isolated(lambda tell: bool(torch.compile(others)(x)), limit=120)
assert ended.how == "returned", ended
"""


def test_isolated_work_compiles_with_stock_after_stock_used_its_threads(tmp_path: Path) -> None:
    """With an empty cache: a kernel on disk needs no thread."""
    env = os.environ | {"TORCHINDUCTOR_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", AFTER_STOCK]
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
