"""Combos: which groups may run in one kernel, and which storage they may reuse."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from inductor_lab.compiler.base.errors import BadOption
from inductor_lab.compiler.ir.index import ZERO
from inductor_lab.compiler.schedule.fusion import combo
from inductor_lab.compiler.schedule.schedule import Schedule
from inductor_lab.compiler.schedule.text import MORE
from inductor_lab.compiler.schedule.verify import verify_schedule
from inductor_lab.widgets.links import Links
from inductor_lab.widgets.memory import memory_views
from tests.schedule.programs import checked, reasons


def wave(*size: int) -> torch.Tensor:
    return torch.arange(1.0, 1 + torch.Size(size).numel()).reshape(size).sin()


def apart(x, y):
    return x.sin(), y.cos()


def with_a_sum(x, y):
    return x.sin(), y.sum(1)


def intermediates(x, y):
    """A matmul reads each of them, so in a combo one is computed early."""
    return x.sin() @ x, y.cos() @ y


def chained(x, y):
    """The second kernel of each chain is ready after the matmul."""
    return (x.sin() @ x).exp(), (y.cos() @ y).exp()


def far(x, y):
    first = y.cos()
    for _ in range(combo.FAR + 10):
        x = x.sin() @ x
    return first, (x @ x).exp(), y.sin() * 2


def many(*xs):
    return tuple(x.sin() for x in xs)


SMALL = (wave(40), wave(3, 50))


def sizes(schedule: Schedule) -> list[int]:
    return [len(group.parts) for group in schedule.groups]


def test_different_sizes_are_one_kernel():
    schedule = checked(apart, *SMALL)
    assert sizes(schedule) == [2]
    group = schedule.groups[0]
    assert [part.axes[0].size for part in group.parts] == [40, 3]
    assert group.cost.kernels == schedule.after.kernels == 1
    assert group.cost.bytes == sum(part.cost.bytes for part in group.parts)
    decision = schedule.decisions.about("buf0", "buf1")
    assert decision.fused and decision.relation == "combo" and decision.bytes_saved == 0
    assert {v.rule for v in decision.verdicts} == {*combo.LEGALITY, *combo.PROFIT}


def test_combos_can_be_disabled():
    assert sizes(checked(apart, *SMALL, combos=False)) == [1, 1]
    assert sizes(checked(apart, *SMALL, enabled=False)) == [1, 1]
    schedule = checked(apart, *SMALL, forbid=(("buf0", "buf1"),))
    assert sizes(schedule) == [1, 1]
    assert schedule.decisions.about("buf0", "buf1").choice == "forbidden"


def test_reductions_do_not_join_combos():
    schedule = checked(with_a_sum, *SMALL)
    assert sizes(schedule) == [1, 1]
    assert reasons(schedule, "buf0", "buf1") == {"combo_pointwise": "buf1 is a reduction"}
    schedule = checked(with_a_sum, *SMALL, force=(("buf0", "buf1"),))
    assert sizes(schedule) == [1, 1]


def test_large_intermediates_are_not_computed_early():
    assert sizes(checked(intermediates, wave(20, 20), wave(30, 30))) == [2]
    large = wave(500, 500), wave(400, 400)
    schedule = checked(intermediates, *large)
    assert sizes(schedule) == [1, 1]
    assert "combo_held" in reasons(schedule, "buf0", "buf2")
    schedule = checked(intermediates, *large, off=("combo_held",))
    assert sizes(schedule) == [2]
    schedule = checked(intermediates, *large, force=(("buf0", "buf2"),))
    assert sizes(schedule) == [2]


def results_at_both_ends(a, b, w):
    """cos and exp could run with sin, but would then stay alive during the products."""
    products = [w @ w]
    for _ in range(5):
        products.append(products[-1] @ w)
    return a.sin(), torch.cat(products).sum(), b.cos(), b[1:].exp(), torch.stack(products).amax()


def test_results_that_would_raise_the_peak_are_not_computed_early():
    large = wave(400, 400), wave(401, 400), wave(400, 400) / 20
    schedule = checked(results_at_both_ends, *large)
    assert sizes(schedule)[0] == 1
    refused = {k: v for d in schedule.decisions for k, v in _reasons(d) if k == "combo_held"}
    assert "would be allocated early" in refused["combo_held"]
    alone = checked(results_at_both_ends, *large, combos=False).memory.peak_after
    assert schedule.memory.peak_after == alone
    hasty = checked(results_at_both_ends, *large, off=("combo_held",))
    assert sizes(hasty)[0] == 3 and hasty.memory.peak_after > alone + combo.MAX_HELD
    small = checked(results_at_both_ends, wave(40, 40), wave(41, 40), wave(40, 40) / 20)
    assert sizes(small)[0] == 3, "a launch costs more than a few kilobytes"


def test_the_text_explains_a_peak_that_fusion_raises():
    def function(a, b, w):
        return a.sin(), (w @ w @ w).sum(), b.cos(), b[1:].exp()

    inputs = wave(40, 40), wave(41, 40), wave(40, 40)
    schedule = checked(function, *inputs)
    assert sizes(schedule)[0] == 3 and schedule.memory.peak_after > schedule.memory.peak_unfused
    assert MORE in str(schedule) and MORE in str(memory_views(schedule, "g0.forward", Links()))
    lower = checked(function, *inputs, combos=False)
    assert lower.memory.peak_after <= lower.memory.peak_unfused and MORE not in str(lower)
    assert MORE not in str(memory_views(lower, "g0.forward", Links()))


def _reasons(decision):
    return [(v.rule, v.reason) for v in decision.verdicts if v.reason is not None]


def test_only_ready_groups_are_candidates():
    schedule = checked(chained, wave(20, 20), wave(20, 20) * 2)
    assert sizes(schedule) == [2, 1, 1]


def test_distance_and_size():
    schedule = checked(far, wave(4, 4) / 9, wave(7))
    assert "combo_near" in {r for d in schedule.decisions for r in _refused(d)}
    xs = [wave(3 + k) for k in range(combo.MAX_POINTERS // 2 + 5)]
    schedule = checked(many, *xs)
    assert sizes(schedule) == [combo.MAX_POINTERS // 2, 5]
    assert "combo_size" in {r for d in schedule.decisions for r in _refused(d)}


def _refused(decision):
    return {v.rule for v in decision.verdicts if v.reason is not None}


def test_devices():
    schedule = checked(apart, *SMALL, combos=False)
    here, there = (_cluster(schedule, k) for k in (0, 1))
    assert combo.combo_device(combo.Candidate((here,), here, frozenset())) is None
    refused = combo.combo_device(combo.Candidate((here,), there, frozenset()))
    assert refused == "buf0 is on cpu, buf1 on cuda:0"


def _cluster(schedule: Schedule, number: int):
    """The cluster of one nest of a program whose second buffer is on a GPU."""
    from inductor_lab.compiler.schedule.facts import nest_facts
    from inductor_lab.compiler.schedule.fusion.cluster import single_nest_cluster

    buffers = dict(schedule.program.buffers)
    buffers["buf1"] = replace(buffers["buf1"], device="cuda:0")
    nest = schedule.program.nests[number]
    return single_nest_cluster(nest_facts(nest, number, buffers[nest.buffer].layout, {}), buffers)


def test_only_profit_rules_can_be_disabled():
    with pytest.raises(BadOption, match="combo_pointwise"):
        checked(apart, *SMALL, off=("combo_pointwise",))


def test_parts_of_a_combo_do_not_reuse_each_others_storage():
    """The first part reads `a` last; the second part runs at the same time and must not reuse
    it."""

    def function(x, y):
        a = x @ x
        return a.sin(), y.cos()

    schedule = checked(function, wave(16, 16), wave(16, 16) * 2)
    combined = next(group for group in schedule.groups if group.combined)
    assert len(combined.parts) == 2
    owner = {new: old for new, old in schedule.memory.reuse.items()}
    assert owner == {"buf1": "buf0"}, "sin overwrites the matmul's result, cos does not"


def test_the_verifier_rejects_dependent_parts():
    schedule = checked(apart, *SMALL)
    group = schedule.groups[0]
    first, second = group.combined
    own = second.nests[0]
    load = replace(next(iter(first.nests[0].body.loads())), buffer="buf0", index=(ZERO,))
    reading = replace(second, nests=(replace(own, body=load),))
    wrong = replace(group, combined=(first, reading), nests=(*first.nests, *reading.nests))
    with pytest.raises(AssertionError, match="another part computes"):
        verify_schedule(replace(schedule, steps=(wrong,)))
