"""Looking into a program draws no random numbers: later cells see what they would have seen."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

import inductor_lab as lab
from inductor_lab.bench.demo.programs import PROGRAMS
from inductor_lab.debug.recompiles.call_again import call_with_edits


def states() -> tuple[Any, ...]:
    """Of the three generators that everybody shares."""
    return random.getstate(), str(np.random.get_state()), torch.get_rng_state().tolist()


def test_nothing_of_ours_draws_from_the_users_generators(tmp_path: Path) -> None:
    layer, x = nn.Linear(128, 128), torch.randn(64, 128)
    before = states()

    def loss(x: torch.Tensor) -> torch.Tensor:
        return layer(x).relu().sum()

    c = lab.inspect(loss, x)
    c.report(tmp_path / "c.html")
    lab.load(c.save(tmp_path / "c.json")).report(tmp_path / "again.html")
    c.measure(0.01)
    c.what_if(fusion=False)
    c.again(x)
    call_with_edits(c, {"L['x']": {"size": [7, 128]}})
    lab.bench(loss, x, against=["eager"], seconds=0.01, cold=False, kernels=False)
    assert states() == before


def test_the_demo_programs_have_generators_of_their_own() -> None:
    before = states()
    for program in PROGRAMS:
        program.make()
    assert states() == before
