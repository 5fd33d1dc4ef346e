"""The seeded bugs of lab 10: blame finds each bug at its stage and line."""

from __future__ import annotations

import pytest
import torch

import inductor_lab as lab
from inductor_lab.course.given.debugging import BUGGY, Bug, bugs
from inductor_lab.course.given.drawn import HOW_MANY, drawn
from inductor_lab.debug.faults import CATALOGUE

EVERY = [
    Bug(number, function, make, fault, line)
    for number, (function, make, faults) in enumerate(BUGGY)
    for fault, line in faults.items()
]


@pytest.mark.parametrize("bug", EVERY, ids=lambda bug: bug.fault)
def test_blame_finds_stage_and_line(bug: Bug) -> None:
    with bug.planted():
        fault = lab.blame(bug.function, *bug.inputs()).fault
    assert fault is not None and fault.stage == CATALOGUE[bug.fault].stage
    assert fault.span is not None and bug.line in fault.span.code


def test_a_name_always_draws_the_same_bugs() -> None:
    drawn = {tuple(bug.fault for bug in bugs(name)) for name in map(str, range(30))}
    assert len(drawn) > 10 and bugs("Ada") == bugs("Ada")
    assert all(bug.fault not in str(bug) and bug.fault not in repr(bug) for bug in EVERY)


def test_a_name_always_draws_the_same_programs() -> None:
    assert drawn("Ada") == drawn("Ada") != drawn("Bob") and len(drawn("Ada")) == HOW_MANY
    x, w = torch.randn(64, 64), torch.randn(64, 64)
    for program in (each for name in ("Ada", "Bob", "Eve", "林") for each in drawn(name)):
        assert program.function()(x, w).shape == (64, 64), str(program)
        *lines, result = str(program).splitlines()[1:]
        for line, after in zip(lines, [*lines[1:], result], strict=True):
            assert line.split()[0] in after, str(program)
