"""Triton kernels that another process has compiled, and processes that compile them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU"),
]

PROGRAM = """
import json
import torch
from torch._dynamo.utils import counters
import inductor_lab as lab

def f(x, w):
    return torch.softmax(x @ w, -1).cumsum(0).sin()

def gradients(run):
    torch.manual_seed(0)
    x, w = (torch.randn(64, 64, device="cuda").requires_grad_() for _ in range(2))
    for _ in range(2):
        run(x, w).square().sum().backward()
    return x.grad, w.grad

torch.testing.assert_close(gradients(lab.compile(f)), gradients(f), rtol=1e-3, atol=1e-3)
print(json.dumps(counters["aot_autograd"]))
"""


EARLY = """
import torch
import inductor_lab as lab
from inductor_lab.runtime.ready import warm_triton

started = []

def probe(module, inputs):
    started.append(warm_triton.cache_info().currsize)
    return module

x = torch.ones(4, device="cuda")
lab.compile(torch.sin)
torch.compile(lambda x: x.sin(), backend=probe)(x)
print(started)
"""


def test_triton_begins_while_the_first_graph_is_captured() -> None:
    command = [sys.executable, "-c", EARLY]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["[1]"]


def test_a_second_process_finds_what_the_first_compiled(tmp_path: Path) -> None:
    caches = ("INDUCTOR_LAB_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")
    environment = {**os.environ, **{name: str(tmp_path / name) for name in caches}}
    counts = []
    for _ in range(2):
        command = [sys.executable, "-c", PROGRAM]
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        counts.append(json.loads(done.stdout.splitlines()[-1]))
    assert counts[0]["autograd_cache_saved"] == counts[1]["autograd_cache_hit"] == 1
    assert "autograd_cache_miss" not in counts[1]
