"""Importing and using our backend leaves torch as it is for everybody else."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]

FUNCTIONS_OF = """
import logging, sys, torch, torch._dynamo, torch._dynamo.backends.common, torch._inductor
import torch._functorch.aot_autograd
import torch._functorch._aot_autograd.autograd_cache, torch._functorch.config, torch._dynamo.config

def snapshot():
    found = {}
    for name, module in list(sys.modules.items()):
        if name == "torch" or name.startswith("torch."):
            for key, value in list(vars(module).items()):
                if callable(value):
                    found[name, key] = value
    for module in (torch._dynamo.config, torch._functorch.config, torch._inductor.config):
        for key, value in module.get_config_copy().items():
            found[module.__name__, key] = repr(value)
    for name, logger in logging.root.manager.loggerDict.items():
        if name.startswith("torch") and isinstance(logger, logging.Logger):
            found[name, "logger"] = (logger.level, logger.propagate, tuple(logger.handlers))
    return found

def graphs_of(backend):
    # what a backend of somebody else is given, and the bytecode that calls it
    torch._dynamo.reset()
    seen, codes = [], []
    hook = torch._dynamo.convert_frame.register_bytecode_hook(
        lambda before, after: codes.append((after.co_code, after.co_names))
    )
    def compiler(graph, inputs):
        seen.append(graph.print_readable(print_output=False))
        return graph.forward
    if backend == "aot":
        backend = torch._dynamo.backends.common.aot_autograd(fw_compiler=compiler)
    else:
        backend = compiler
    w = torch.ones(3, requires_grad=True)
    torch.compile(lambda x: (x @ w).relu() * x.shape[0], backend=backend)(torch.ones(3)).sum()
    hook.remove()
    names = [[name.split("compiled_fn")[0] for name in names] for _, names in codes]
    return seen, [code for code, _ in codes], names

torch.compile(lambda x: x.sin() + 1, backend="aot_eager")(torch.ones(3))
graphs = {backend: graphs_of(backend) for backend in ("captured", "aot")}
before = snapshot()
"""

CHECK = """
after = snapshot()
same = lambda one, other: one is other or (not callable(one) and one == other)
changed = [key for key in before if not same(before[key], after.get(key))]
changed += [(b, "graphs") for b in graphs if graphs_of(b) != graphs[b]]
print(*(".".join(key) for key in changed))
"""

IMPORT = """
import inductor_lab.api.backend, inductor_lab.bench.run, inductor_lab.notebook.magic
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


def test_a_patch_is_detected() -> None:
    assert changed_by("torch.sin = torch.cos\n") == "torch.sin"
    setting = "torch._dynamo.config.recompile_limit"
    assert changed_by(f"{setting} += 1\n") == setting
