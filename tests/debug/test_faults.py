"""Every seeded fault is found: its stage, its effect, and the user's line."""

from __future__ import annotations

import gc

import pytest
import torch

import inductor_lab as lab
from inductor_lab.compiler.codegen.cpp.cpp_ops import CPP_OPS
from inductor_lab.debug.faults import CATALOGUE, Seeded

LIMIT = 2.0
"""Seconds for the fault that hangs."""


def blamed(fault: Seeded) -> lab.Blame:
    function, arguments, _, options = fault.example()
    with fault():
        if fault.stage != "guards":
            limit = LIMIT if fault.shows == "hangs" else 60.0
            return lab.blame(function, *arguments, options=options, limit=limit)
        compilation = lab.inspect(function, *arguments)
        arguments[1].scale = 5.0
        return compilation.blame(*arguments)


@pytest.mark.parametrize("name", CATALOGUE)
def test_a_fault_is_found(name: str) -> None:
    fault = CATALOGUE[name]
    found = blamed(fault).fault
    assert found is not None
    assert (found.stage, found.verdict) == (fault.stage, fault.shows), str(found)
    assert found.span is not None and found.span.code == fault.example().line
    assert found.span.file.endswith("examples.py")
    if fault.stage.split(":")[0] in ("kernel", "loop tree", "host program"):
        assert found.code.strip() and found.line > 0, "the generated line is named too"


def test_the_wrong_loop_tree_pass_is_named() -> None:
    """The trees before the pass are correct: the program without the pass is."""
    fault = CATALOGUE["lost_tail"]
    function, arguments, *_ = fault.example()
    found = blamed(fault).fault
    assert found is not None and "after pass registers" in found.says
    with fault():
        without = lab.blame(function, *arguments, options={"passes_off": ["registers"]})
    assert without.fault is None, str(without)
    (row,) = (row for row in without.stages if row.stage.startswith("loop tree"))
    assert row.verdict == "right" and row.says == "1 kernel matches its fused group"


def test_loop_trees_that_are_too_long_to_interpret_are_skipped() -> None:
    function, arguments, *_ = CATALOGUE["race"].example()
    (row,) = (r for r in lab.blame(function, *arguments).stages if r.stage == "loop tree")
    assert row.verdict == "unknown" and "1 take too many iterations" in row.says


def test_the_catalogue_covers_enough_kinds_of_faults() -> None:
    assert len(CATALOGUE) >= 16
    assert {fault.shows for fault in CATALOGUE.values()} == {
        "wrong", "raises", "crashes", "hangs", "race", "not deterministic", "stale",
    }  # fmt: skip


def test_faults_are_removed_after_the_block() -> None:
    """The example of each fault is correct before and after the block."""
    function, arguments, *_ = CATALOGUE["wrong_neg"].example()
    compiled = lab.compile(function)
    expected, table = function(*arguments), dict(CPP_OPS)
    torch.testing.assert_close(compiled(*arguments), expected)
    with lab.faults.wrong_neg():
        assert not torch.equal(compiled(*arguments), expected)
    assert table == CPP_OPS
    torch.testing.assert_close(compiled(*arguments), expected)


def test_a_fault_is_removed_if_its_block_is_never_closed() -> None:
    before = CPP_OPS.get("neg.uint8")
    left = lab.faults.wrong_neg()
    left.__enter__()
    assert CPP_OPS["neg.uint8"] != before
    del left
    gc.collect()
    assert CPP_OPS.get("neg.uint8") == before


def test_a_fault_is_removed_after_an_exception() -> None:
    table = dict(CPP_OPS)
    with pytest.raises(KeyError), lab.faults.int_overflow():
        raise KeyError
    assert table == CPP_OPS


def test_the_table_lists_all_faults() -> None:
    text = lab.faults.table()
    assert all(name in text for name in CATALOGUE)
