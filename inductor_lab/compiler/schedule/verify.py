"""Check that a schedule is legal.  Tests run this between phases; a violation is our own bug.

Inductor: `scheduler.py` has assertions in many places, not in one.
"""

from __future__ import annotations

from inductor_lab.compiler.ir.index import Index
from inductor_lab.compiler.ir.program import ExternCall, Nest, Pointwise, Scan, Scatter, written_by
from inductor_lab.compiler.schedule.demand import demand
from inductor_lab.compiler.schedule.facts import real_axes
from inductor_lab.compiler.schedule.memory import (
    Readers,
    last_uses,
    made_by,
    needed_by,
    new_values,
    runs_in_place,
)
from inductor_lab.compiler.schedule.order.step_order import storages_continued
from inductor_lab.compiler.schedule.schedule import Group, Schedule


def verify_schedule(schedule: Schedule) -> None:
    """Raise AssertionError with the error, unless the schedule satisfies all invariants.

    These are the invariants of `Group`, of the order of steps, and of `MemoryPlan`.
    """
    for group in schedule.groups:
        for part in group.parts:
            _verify_group(part)
        _verify_independent(group)
    _verify_order(schedule)
    _verify_memory(schedule)


def _verify_group(group: Group) -> None:
    made = {nest.buffer: nest for nest in group.nests}
    assert group.nests, f"{group.name} computes nothing"
    assert not made.keys() & group.inlined.keys(), f"{group.name} inlines a nest that it computes"
    assert group.stored <= made.keys(), f"{group.name} stores a buffer that it does not compute"
    unique = len({axis.name for axis in group.axes}) == len(group.axes)
    assert unique, f"{group.name}: two axes have the same name"
    outer = set(group.axes)
    names = {axis.name for axis in outer}
    for nest in group.nests:
        where = f"{nest.buffer} in {group.name}"
        inner = set(real_axes((*nest.axes, *nest.reduce_axes))) - outer
        if group.in_parts and group.sums_across_points(nest):
            steps = set(real_axes(nest.reduce_axes))
            summed = set(real_axes(group.in_parts.steps))
            assert steps == summed, f"{where} is summed over axes other than the steps"
            _verify_loads(nest, group, made)
            continue
        assert outer <= set(nest.axes), f"{where} does not visit all outer axes"
        if isinstance(nest, Scatter):
            assert outer == set(real_axes(nest.disjoint_axes)), f"{where}: its points may collide"
            assert len(group.nests) == 1, f"{where}: a scatter shares its kernel with another nest"
            continue
        assert not names & {axis.name for axis in inner}, f"{where}: two axes have the same name"
        if isinstance(nest, Pointwise):
            assert nest.buffer in group.stored, f"{where} is neither stored nor inlined"
        else:
            own = {nest.axis} if isinstance(nest, Scan) else set()
            assert outer | own == set(real_axes(nest.axes)), f"{where} has inner axes"
            assert not outer & own, f"{where} scans along an outer axis"
        _verify_loads(nest, group, made)


def _verify_independent(combo: Group) -> None:
    """The parts of a combo run at the same time: none may read a result of another part."""
    assert not combo.combined or not combo.axes, f"{combo.name}: a combo has no axes itself"
    for part in combo.parts:
        others = {name for other in combo.parts if other is not part for name in other.stored}
        needed = sorted(others & (needed_by(part) | part.stored))
        assert not needed, f"a part of {combo.name} needs {needed}, which another part computes"


def _verify_loads(nest: Nest, group: Group, made: dict[str, Nest]) -> None:
    here = group.in_parts.places if group.in_parts and group.sums_across_points(nest) else {}
    for name, place in demand(nest, group.inlined):
        if name not in made:
            continue
        assert name != nest.buffer, f"{nest.buffer} loads itself"
        assert not group.sums_across_points(made[name]), (
            f"{nest.buffer} loads the incomplete {name}"
        )
        for axis, index in zip(made[name].axes, place, strict=True):
            if axis in group.axes:
                assert index == here.get(axis, Index.of(axis)), (
                    f"{nest.buffer} in {group.name} loads {name} at another outer point"
                )


def _verify_order(schedule: Schedule) -> None:
    program = schedule.program
    computed = {name for step in program.steps for name in written_by(step)}
    ready = {name for name in program.buffers if name not in computed}
    for step in schedule.steps:
        missing = needed_by(step) - ready
        assert not missing, f"{step!r} needs {sorted(missing)}, which no step has stored yet"
        twice = ready.intersection(made_by(step))
        assert not twice, f"{sorted(twice)} are stored twice"
        ready.update(made_by(step))
    outputs = program.output_buffers
    assert outputs <= ready, f"outputs {sorted(outputs - ready)} are never stored"
    used = outputs.union(*(needed_by(step) for step in schedule.steps))
    for group in schedule.groups:
        unused = group.stored - used
        assert not unused, f"{group.name} stores {sorted(unused)}, which no step reads"


def _verify_memory(schedule: Schedule) -> None:
    plan = schedule.memory
    lives = {life.buffer: life for life in plan.lifetimes}
    outputs = schedule.program.output_buffers
    assert len(set(plan.reuse.values())) == len(plan.reuse), "two buffers reuse the same storage"
    continued = storages_continued(schedule.program.steps)
    for new, old in plan.reuse.items():
        assert old not in outputs, f"{new} reuses the storage of the output {old}"
        if new in continued:
            assert old == continued[new], f"{new} writes to {continued[new]}, not to {old}"
            _verify_overwritten(schedule, old, lives[new].first)
            continue
        given = plan.storage(old)
        if given in schedule.program.inputs:
            _verify_new_value(schedule, given, old, new, lives[new].first)
            continue
        here, there = lives[old], lives[new]
        if new in plan.in_place:
            group = schedule.steps[there.first]
            assert not isinstance(group, ExternCall), f"{new} is not a result of a group"
            safe = runs_in_place(group, old, new, schedule.program.buffers, Readers(group))
            assert safe and here.last == there.first, f"{new} must not overwrite {old}"
        else:
            assert here.last < there.first, f"{new} reuses the storage of {old} while it is alive"


def _verify_overwritten(schedule: Schedule, old: str, place: int) -> None:
    """Step `place` writes to the storage of `old`: no later step may read `old`."""
    for step in schedule.steps[place + 1 :]:
        assert old not in needed_by(step), f"{step!r} reads {old}, which has been written to"


def _verify_new_value(schedule: Schedule, given: str, old: str, new: str, made: int) -> None:
    """Step `made` computes `new` in the storage of the input `given`, which has the value `old`."""
    program, step = schedule.program, schedule.steps[made]
    assert new_values(program).get(new) == given, f"{new} is not the new value of {given}"
    uses = last_uses(program, schedule.steps)
    last = max(uses.get(given, -1), uses.get(old, -1))
    assert isinstance(step, Group) and last <= made, f"{given} is read after {new} overwrites it"
    safe = uses.get(old, -1) < made or runs_in_place(step, old, new, program.buffers, Readers(step))
    assert safe, f"{new} must not overwrite {given}"
