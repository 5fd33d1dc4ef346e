"""Generated lines of the eight demo programs are linked to the user's lines."""

from __future__ import annotations

import importlib.util

import pytest
import torch

import inductor_lab as lab
from inductor_lab.bench.demo.programs import PROGRAMS

ENOUGH = 0.98
MODELS = {"bert", "gpt2", "resnet18"}

cases = [
    pytest.param(
        program,
        target,
        id=f"{program.name}-{target or 'cpu'}",
    )
    for program in PROGRAMS
    for target in (None, "cuda:90")
    if not (target and program.name in MODELS)
]


@pytest.mark.parametrize(("program", "target"), cases)
def test_nearly_every_line_is_linked_to_the_source(program, target):
    if program.name in MODELS and importlib.util.find_spec("transformers") is None:
        pytest.skip("no transformers; to run it: pip install 'inductor_lab[models]'")
    fn, args = program.make()
    coverage = lab.inspect(fn, *args, target=target).coverage
    assert coverage.lines >= 4
    assert coverage.linked_share >= ENOUGH, str(coverage)
    assert f"{coverage.linked_share:.1%} of {coverage.lines}" in str(coverage)


def test_lines_of_a_torch_module_are_linked_to_its_call():
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.LayerNorm(8))
    c = lab.inspect(model, torch.randn(4, 8))  # the line
    assert c.coverage.linked_share == 1
    assert c.source.called_from.code.endswith("# the line")
