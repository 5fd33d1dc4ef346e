"""User options of the scheduler: force, forbid, disable rules, explain decisions."""

from __future__ import annotations

import pytest
import torch

from inductor_lab.compiler.base.errors import BadOption, UnknownName
from tests.schedule.programs import checked, planned, reasons


def chain(x):
    return ((x + 1) * 2).sin()


def columns(x):
    return x - x.sum(0)


def flipped(x):
    return x - x.sum(1, keepdim=True).flip(0)


def apart(x, y):
    return x.sin(), y.cos()


X = torch.linspace(-1, 1, 64 * 64).reshape(64, 64)


def test_forbidding_a_pair():
    schedule = checked(chain, X, forbid=(("buf0", "buf1"),))
    assert len(schedule.groups) == 2
    decision = schedule.decisions.about("buf0", "buf1")
    assert (decision.fused, decision.choice) == (False, "forbidden")
    assert all(verdict.reason is None for verdict in decision.verdicts)


def test_forcing_overrules_profit():
    assert len(checked(columns, X).groups) == 2
    schedule = checked(columns, X, force=(("buf0", "buf1"),))
    assert len(schedule.groups) == 1
    decision = schedule.decisions.about("buf0", "buf1")
    assert (decision.fused, decision.choice) == (True, "forced")
    assert set(reasons(schedule, "buf0", "buf1")) == {"memory_walk"}


def test_forcing_does_not_overrule_legality():
    schedule = checked(flipped, X, force=(("buf0", "buf1"),))
    decision = schedule.decisions.about("buf0", "buf1")
    assert (decision.fused, decision.choice) == (False, "forced")
    assert "same_point" in reasons(schedule, "buf0", "buf1")


def test_forcing_two_independent_nests():
    alone = {"combos": False}
    assert len(checked(apart, X, X * 2, **alone).groups) == 2
    assert len(checked(apart, X, X * 2, off=("bytes_saved",), **alone).groups) == 2
    schedule = checked(apart, X, X * 2, force=(("buf0", "buf1"),), **alone)
    assert len(schedule.groups) == 1


def test_disabling_a_rule():
    schedule = checked(columns, X, off=("memory_walk",))
    assert len(schedule.groups) == 1
    decision = schedule.decisions.about("buf0", "buf1")
    assert "memory_walk" not in {verdict.rule for verdict in decision.verdicts}


@pytest.mark.parametrize("name", ["same_point", "no such rule"])
def test_only_profit_rules_can_be_disabled(name):
    with pytest.raises(BadOption, match="bytes_saved"):
        planned(chain, X, off=(name,))


def test_options_for_buffers_of_another_graph_are_ignored():
    assert len(checked(chain, X, force=(("buf8", "buf9"),), forbid=(("buf7", "buf1"),)).groups) == 1


def test_asking_about_a_pair_that_was_never_considered():
    with pytest.raises(UnknownName, match="buf0, buf2"):
        planned(chain, X).decisions.explain("buf0", "buf2")


def test_explaining_a_decision(golden):
    schedule = planned(columns, X)
    golden("schedule_decision.txt", schedule.decisions.explain("buf0", "buf1"))


def test_text_of_a_schedule(golden):
    golden("schedule_softmax.txt", planned(lambda x: torch.softmax(x, -1) @ x, X))
