"""Lab 3's table: saved bytes and memory of a training step, next to those of the compiler."""

from __future__ import annotations

from inductor_lab.course.given.gradients import waves
from inductor_lab.course.given.recompute import traded


def test_more_values_are_saved_if_nothing_is_recomputed() -> None:
    table = traded(lambda values: [v.name for v in values if v.needed], [waves], 0.1, (8, 4))
    ours, mine = table.rows
    assert (ours.who, mine.who) == ("inductor_lab", "you") and ours.program == "waves"
    assert mine.kept > ours.kept and mine.peak > ours.peak >= ours.kept
    assert min(ours.seconds, mine.seconds) > 0
    assert "a training step" in str(table) and " ms ±" in str(table)
    assert "then the time of a training step" in str(table.picture())
