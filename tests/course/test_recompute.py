"""Lab 3's table: what a partition keeps, and what a training step takes, beside ours."""

from __future__ import annotations

from inductor_lab.course.given.gradients import waves
from inductor_lab.course.given.recompute import traded


def test_more_is_kept_where_nothing_is_recomputed() -> None:
    table = traded(lambda values: [v.name for v in values if v.needed], [waves], 0.1, (8, 4))
    ours, mine = table.rows
    assert (ours.who, mine.who) == ("inductor_lab", "you") and ours.program == "waves"
    assert mine.kept > ours.kept and mine.peak > ours.peak >= ours.kept
    assert min(ours.seconds, mine.seconds) > 0
    assert "a training step" in str(table) and " ms ±" in str(table)
    assert "then the time of a training step" in str(table.picture())
