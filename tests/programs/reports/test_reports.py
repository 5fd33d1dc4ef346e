"""What other compilers got wrong in public reports is right with ours; strangers' defects are held.

Where `aot_eager` is known to be wrong, a test says so, so that a fix in torch is noticed: then the
rule in `inductor_lab/compiler/capture/eager_rules.py` may go.
"""

from __future__ import annotations

import pytest

from tests.programs.reports.case import Report
from tests.programs.reports.judge import verdict
from tests.programs.reports.programs import CASES

KNOWN = {
    "hessians_of_a_batch": "raises: TorchDynamo fails, with backend `eager` too",
    "the_square_of_a_float_that_varies": "raises: TorchDynamo fails, with backend `eager` too",
    "gradients_of_the_user_inside": "raises: AOTAutograd has no double backward, and says so",
}
"""Programs that ours does not run as eager mode does, how that begins, and why."""
WRONG_BEFORE_US = (
    "zeros_an_expanded_view", "puts_by_a_mask_into_an_expanded_view",
    "adds_through_windows_with_gaps", "writes_windows_with_gaps_with_gradients",
    "a_flat_view_of_an_argument_after_its_base_is_written", "two_overlapping_slices",
    "a_parameter_filled_through_data_and_a_counter", "data_replaced_with_gradients",
    "an_operator_hides_that_it_returns_its_argument", "an_operator_returns_rows",
    "powers_with_gradients", "doubles_an_overlapping_window",
    "writes_an_expanded_argument_and_reads_another", "gradients_are_retained_before_writes",
    "an_attribute_written_before_and_after_a_hook", "an_attribute_written_before_and_after_cond",
    "squares_of_short_integers_added_in_place", "squares_of_halves_added_in_place",
)  # fmt: skip
"""One program of each kind that AOTAutograd or TorchDynamo has wrong in torch 2.13."""


@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_ours_is_right(case: Report) -> None:
    """Those in KNOWN are not: the test fails when one becomes right, and it leaves the list."""
    said = verdict(case, "inductor_lab")
    if case.name in KNOWN:
        how = KNOWN[case.name].partition(":")[0]
        assert said.startswith(how), said
    else:
        assert said == ("refused" if case.refused else "right")


def test_known_programs_are_there() -> None:
    assert [name for name in (*KNOWN, *WRONG_BEFORE_US) if name not in CASES] == []


@pytest.mark.parametrize("name", WRONG_BEFORE_US)
def test_a_fix_in_torch_is_noticed(name: str) -> None:
    assert verdict(CASES[name], "aot_eager") not in ("right", "refused")
