"""Triton kernels that an earlier process has compiled, and worker processes that compile them."""

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
from inductor_lab.compiler.runtime.prestart import start_triton

started = []

def probe(module, inputs):
    started.append(start_triton.cache_info().currsize)
    return module

x = torch.ones(4, device="cuda")
lab.compile(torch.sin)
torch.compile(lambda x: x.sin(), backend=probe)(x)
print(started)
"""


def test_triton_starts_while_the_first_graph_is_captured() -> None:
    command = [sys.executable, "-c", EARLY]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["[1]"]


def test_a_second_process_finds_the_kernels_of_the_first(tmp_path: Path) -> None:
    counts = [json.loads(run(PROGRAM, tmp_path)) for _ in range(2)]
    assert counts[0]["autograd_cache_saved"] == counts[1]["autograd_cache_hit"] == 1
    assert "autograd_cache_miss" not in counts[1]


ELSEWHERE = """
import time
import torch
import inductor_lab as lab
from inductor_lab.compiler.runtime.triton.launch import Launcher, this_gpu
from inductor_lab.compiler.runtime.triton.worker_processes import processes

x = torch.randn(64, 1000, device="cuda")
while not processes(this_gpu())._ready:
    time.sleep(0.05)
launchers = []
made = Launcher.__init__
Launcher.__init__ = lambda self, kernel: (made(self, kernel), launchers.append(self))[0]
found = lab.compile(lambda x: x.softmax(-1).sin())(x)
torch.testing.assert_close(found, x.softmax(-1).sin())
print(len(launchers), ["function" in vars(one) for one in launchers])
"""


def test_kernels_compiled_by_a_worker_are_not_compiled_again(tmp_path: Path) -> None:
    done = run(ELSEWHERE, tmp_path)
    assert done.split() == ["1", "[False]"]


LIBRARIES = """
import torch
import torch.nn.functional as F
import inductor_lab as lab
from inductor_lab.compiler.runtime import library_warmup

def f(q, k, v, w):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True) @ w

q, k, v = (torch.randn(2, 4, 256, 64, device="cuda", dtype=torch.half) for _ in range(3))
w = torch.randn(64, 32, device="cuda", dtype=torch.half)
compiled, before = lab.compile(f), torch.cuda.get_rng_state()
found = compiled(q, k, v, w)
assert torch.equal(before, torch.cuda.get_rng_state()), "random numbers were drawn"
torch.testing.assert_close(found, f(q, k, v, w), rtol=1e-2, atol=1e-2)
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):  # all background work has ended
    compiled(q, k, v, w)
print(sorted(op.split(".")[1] for op, _ in library_warmup._BEGUN))
"""


def test_library_warm_up_draws_no_random_numbers(tmp_path: Path) -> None:
    begun = run(LIBRARIES, tmp_path)
    assert "mm" in begun and "attention" in begun


def run(program: str, folder: Path) -> str:
    caches = ("INDUCTOR_LAB_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")
    environment = {**os.environ, **{name: str(folder / name) for name in caches}}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1]
