"""Importing and using our backend leaves torch as it is for everybody else."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]

FUNCTIONS_OF = """
import sys, torch, torch._dynamo, torch._inductor, torch._functorch.aot_autograd
import torch._functorch._aot_autograd.autograd_cache, torch._functorch.config, torch._dynamo.config

def snapshot():
    found = {}
    for name, module in list(sys.modules.items()):
        if name == "torch" or name.startswith("torch."):
            for key, value in list(vars(module).items()):
                if callable(value):
                    found[name, key] = value
    return found

torch.compile(lambda x: x.sin() + 1, backend="aot_eager")(torch.ones(3))
before = snapshot()
"""

CHECK = """
after = snapshot()
changed = [key for key in before if after.get(key) is not before[key]]
print(*(".".join(key) for key in changed))
"""

IMPORT = """
import inductor_lab.backend, inductor_lab.bench.run, inductor_lab.notebook.magic
"""
USE = """
import torch
for grad in (False, True):
    x = torch.randn(5, requires_grad=grad)
    torch.compile(lambda x: (x.sin() + 1).sum(), backend="inductor_lab")(x)
torch.compile(lambda x: x.cos(), backend="aot_eager")(torch.ones(3))
"""


def changed_by(program: str) -> str:
    run = subprocess.run(
        [sys.executable, "-c", FUNCTIONS_OF + program + CHECK],
        cwd=ROOT, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    return run.stdout.strip()


def test_nothing_of_torch_is_patched_by_an_import_or_left_patched_by_a_compile() -> None:
    assert changed_by(IMPORT) == ""
    assert changed_by(IMPORT + USE) == ""


def test_a_patch_would_be_seen() -> None:
    assert changed_by("torch.sin = torch.cos\n") == "torch.sin"
