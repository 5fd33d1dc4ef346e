"""Values that another process has written to disk."""

import os
import pickle
import subprocess
import sys

import torch

from inductor_lab.compiler.ir.expr import Load, Op
from inductor_lab.compiler.ir.index import Axis, Index

WRITE = """
import pickle, sys, torch
from inductor_lab.compiler.ir.expr import Load, Op
from inductor_lab.compiler.ir.index import Axis, Index
load = Load("x", (Index.of(Axis("i0", 4)),), torch.float32, frozenset({"sin"}))
sys.stdout.buffer.write(pickle.dumps(Op("sin", (load,), torch.float32, frozenset({"sin"}))))
"""


def test_a_value_from_another_process_equals_and_hashes_like_ours() -> None:
    """Hashes of strings differ between processes."""
    load = Load("x", (Index.of(Axis("i0", 4)),), torch.float32)
    ours = Op("sin", (load,), torch.float32)
    environment = {**os.environ, "PYTHONHASHSEED": "7"}
    done = subprocess.run(
        [sys.executable, "-c", WRITE], env=environment, capture_output=True, check=True
    )
    theirs = pickle.loads(done.stdout)
    assert theirs in {ours}
    assert theirs.origins == {"sin"}
    assert theirs.args[0] in {load}
