"""Random programs from fixed seeds, in every way to compile; `make fuzz` checks more."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch

from tests.fuzz import check as checked
from tests.fuzz import run
from tests.fuzz.check import (
    BEFORE,
    BY_ZERO,
    KNOWN,
    ROUNDED,
    SKIPPED,
    STOCK,
    check,
    check_calls,
    with_other_numbers,
)
from tests.fuzz.eager import Call, Wrong, compare, known
from tests.fuzz.jumps import jumps
from tests.fuzz.numbers import Number
from tests.fuzz.page import page
from tests.fuzz.program import Input, Program
from tests.fuzz.run import Batch, draw, fuzz
from tests.fuzz.values import Values, is_outside

RUNS = {
    "default": (302, 25),
    "sizes": (301, 12),
    "gradients": (305, 16),
    "threads": (304, 16),
    "triton": (303, 10),
    "symbolic triton": (8200000, 5),
    "ptx": (312, 4),
    "symbolic ptx": (313, 2),
    "dynamic": (306, 5),
    "unfused": (307, 5),
    "simple loops": (314, 6),
    "bounds": (308, 4),
    "numbers": (309, 3),
    "numbers with bounds": (310, 3),
    "numbers in triton": (311, 1),
}
"""Seed and number of programs for each way."""


@pytest.mark.parametrize("way", RUNS)
def test_random_programs(way: str) -> None:
    seed, count = RUNS[way]
    fuzz(count, seed, way)


REGRESSIONS = {
    "a constant stored as float16": Program(
        ("v0 = x0.to(torch.float16)", "v1 = x0>0", "v0[v1]=2"),
        ("v0",),
        (Input("int64", (17,), 2),),
    ),
    "equal text, two dtypes": Program(
        ("v0 = x0.new_zeros(3,dtype=torch.int16)", "v1 = x0.new_zeros(3,dtype=torch.int64)"),
        ("v0", "v1"),
        (Input("int64", (17,), 2),),
    ),
    "a double without dimensions": Program(("v0 = -x0",), ("v0",), (Input("float64", (), 0),)),
    "a float32 among doubles": Program(
        ("v0 = x0.to(torch.int32)", "v1 = x0.mul(torch.atan2(v0+1,v0))"),
        ("v1",),
        (Input("float64", (17,), 0),),
    ),
    "a place in rows that are all the same": Program(
        ("v0 = x0.expand(3,6).relu()", "v1 = v0.argmin(-1)", "v2 = v0.cummax(-1).indices"),
        ("v1", "v2"),
        (Input("float32", (1, 6), 0),),
    ),
    "whole numbers in half precision": Program(
        ("v0 = torch.full_like(x0,x0.shape[0])+x0",), ("v0",), (Input("float16", (3, 1), 0),)
    ),
    "overlapping memory between two graphs": Program(
        (
            "v0 = x0.argmin(1)",
            "v1 = v0.unfold(-1,2,1)",
            "v2 = v0.new_zeros(3)",
            "torch.add(v0,1,out=v2)",  # another shape: capture starts again
            "v1.relu_()",
        ),
        ("v1", "v2"),
        (Input("int16", (4, 6), 3),),
    ),
}


@pytest.mark.parametrize("name", REGRESSIONS)
@pytest.mark.parametrize("dynamic", [False, True])
def test_found_before(name: str, dynamic: bool) -> None:
    check(REGRESSIONS[name], dynamic=dynamic)
    check(REGRESSIONS[name], dynamic=dynamic, language="triton", target="cuda:90")


OUTSIDE = Program(
    ("v0 = x0[(torch.arange(3)%x0.shape[0]+1)]", "v1 = F.pad(v0,(1,1))"),
    ("v0", "v1"),
    (Input("float32", (3, 4), 0),),
)


@pytest.mark.parametrize("way", [{}, {"sizes": True}, {"gradients": True}, {"check_bounds": True}])
def test_an_index_that_is_out_of_range_is_refused(way: dict[str, bool]) -> None:
    assert "out of bounds" in known(OUTSIDE, False).raises
    check(OUTSIDE, **way)
    with pytest.raises(Wrong, match="nothing is raised"):
        check_calls("test", lambda x: (x, x), [known(OUTSIDE, False)], False)


@pytest.mark.filterwarnings("ignore")
def test_some_random_programs_have_indices_out_of_range() -> None:
    drawn: list[Program] = []
    draw(150, 5, drawn.append, "default")
    refused = [program.lines for program in drawn if known(program, False).raises]
    assert 1 <= len(refused) < 20


def test_a_dimension_out_of_range_is_not_an_index_error() -> None:
    for wrong, expected in ((lambda x: x.sum(5), False), (lambda x: x[torch.tensor([5])], True)):
        with pytest.raises(IndexError) as raised:
            wrong(torch.zeros(3))
        assert is_outside(raised.value) is expected


NUMBERS = {
    "a view of nothing of an input that is written to": Program(
        ("v0 = x0.unsqueeze(0)[:(abs(n0)%3)]", "x0[(bool(n0)+1)].copy_(x0[0])"),
        ("v0",),
        (Input("int8", (3, 1), 0),),
        (Number("int", 3),),
    ),
    "sizes that torch took for equal": Program(
        ("v0 = torch.arange(abs(n0)%3)-torch.full((abs(n0)%5,),n0)",),
        ("v0",),
        (),
        (Number("int", 3, item=True),),
    ),
    "work that has a size of its own": Program(
        ("v0 = torch.zeros(abs(n0//2),2)", "v1 = (v0@v0.mT/3).softmax(-1)@v0"),
        ("v1",),
        (),
        (Number("int", 0),),
    ),
    "rows of nothing that a sum goes on with": Program(
        ("v0 = torch.eye(abs(n0)%6).sin()", "v1 = v0[torch.arange(8)%1].sum(0)"),
        ("v1",),
        (),
        (Number("int", 3),),
    ),
    "a division by a zero that is a constant": Program(
        ("v0 = torch.arange(9)//(min(n0,n0))",), ("v0",), (), (Number("int", 1),)
    ),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_found_before_with_numbers(name: str) -> None:
    check(NUMBERS[name], numbers=True, check_bounds=True)


def test_a_division_by_zero_is_not_a_failure_in_triton() -> None:
    given = Program(("v0 = torch.arange(9)//n0",), ("v0",), (), (Number("int", 0),))
    assert any(call.raises.startswith(BY_ZERO) for call in with_other_numbers(given, False))
    check(given, numbers=True, language="triton")


def test_the_gradient_of_a_minimum_of_nearly_equal_values_is_discontinuous() -> None:
    given = (Input("float32", (33, 20), 1),)
    lowest = Program(("v0 = F.group_norm(x0,1)", "v1 = v0.cummin(0).values"), ("v1",), given)
    smooth = Program(("v0 = F.group_norm(x0,1)", "v1 = v0.sin()"), ("v1",), given)
    assert jumps(known(lowest.with_copies(), True), True)
    assert not jumps(known(smooth.with_copies(), True), True)


def test_the_count_of_nonzeros_after_subtracting_a_mean_is_discontinuous() -> None:
    given = (Input("int8", (4, 10, 5, 5), 1),)
    lines = ("v0 = torch.xlogy(x0,x0.abs()+1)", "v1 = F.instance_norm(v0)", "v2 = v1.sin()")
    for last, expected in (("v3 = v1.count_nonzero(3)", True), ("v3 = v2.sum(3)", False)):
        assert jumps(known(Program((*lines, last), ("v3",), given), False), False) is expected


def test_the_sign_of_a_minimum_of_zeros_is_discontinuous_and_nothing_else_is() -> None:
    given = (Input("float64", (4, 6), 0, "x[1:]"),)
    lines = ("v0 = torch.minimum(torch.copysign(x0,-x0),x0)", "v1 = v0.signbit()", "v2 = v0*2")
    for result, expected in (("v1", True), ("v2", False)):
        program = Program(lines, (result,), given)
        assert jumps(known(program, False), False) is expected
    program = Program(lines, ("v2",), given).with_copies()
    assert not jumps(known(program, True), True)


def test_a_division_by_zero_in_a_second_call_is_not_a_failure() -> None:
    """Its input is what the first call left; the interpreter of the loops notices, Triton not."""
    lines = ("v0 = x0%(x0+1)", "x0.neg_()")
    given = (Input("int32", (5,), 0, "x.clamp(min=1)"),)
    check(Program(lines, ("v0",), given), language="triton")


def test_programs_that_torch_refuses_with_the_same_error_pass() -> None:
    lines = (
        "v0 = x1.pow(3)",
        "v1 = v0.select(-1,0)",
        "v2 = x1.unique()",  # capture starts again, with two views of one tensor
        "v1[...,1:].copy_(v1[...,:-1].clone())",
        "v3 = v0[None,:,None]",
    )
    given = (Input("uint8", (17,), 0), Input("int32", (4, 6), 1, "x[1:]"))
    check(Program(lines, ("v3",), given), sizes=True)


HALF = Program(("v0 = x0.to(torch.int32)",), ("v0",), (Input("float32", (17,), 0),))


def test_a_wrong_result_is_no_excuse_although_aot_eager_gives_it_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def wrong(*_: object, **__: object) -> None:
        raise Wrong("result 0")

    monkeypatch.setattr(checked, "check_against", wrong)
    monkeypatch.setattr(checked, "found_with", lambda backend, **_: "Wrong: result 0")
    sines = Program(("v0 = x0.sin()",), ("v0",), (Input("float32", (17,), 0),))
    with pytest.raises(Wrong, match="result 0"):
        check(sines)


@pytest.mark.parametrize(("error", "excuse"), [(None, ""), ("TypeError: broken", BEFORE)])
def test_programs_that_fail_before_our_compiler_are_counted(
    error: str | None, excuse: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ValueError("broken")

    monkeypatch.setattr(checked, "check_against", broken)
    monkeypatch.setattr(checked, "found_with", lambda backend, **_: error)
    if excuse:
        assert check(HALF) == excuse
        with pytest.raises(Wrong, match="aot_eager fails too, TypeError: broken"):
            check(HALF, aliases=True)
    else:
        with pytest.raises(ValueError, match="broken"):
            check(HALF)


def test_excuses_are_counted_in_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[object] = []
    excuses = iter(["", BEFORE, BEFORE])
    monkeypatch.setattr(run, "_checked", lambda *_: lambda program: next(excuses))
    run._work(sent.append, Batch(5, "default", 3), True)
    assert [one for one in sent if not isinstance(one, Program)] == [run.Excused(BEFORE)] * 2
    monkeypatch.setattr(run, "messages", lambda *_: iter(sent))
    found, _ = run.run_batch(None, Batch(5, "default", 3), True, 1.0, run.Clock())
    assert (found.checked, found.excused, found.failures) == (3, {BEFORE: 2}, ())
    assert found.torch and found.torch in torch.__version__


def test_a_mask_that_only_the_backward_needs_may_jump() -> None:
    """The sum is zero but for roundings; nothing that the program returns depends on its sign."""
    lines = ("v0 = F.batch_norm(x0,None,None,training=True)", "torch._dynamo.graph_break()",
             "v1 = v0.sum_to_size(1)", "v1[v1<0]=0")  # fmt: skip
    for seed in range(6):
        one = Program(lines, ("v1",), (Input("float32", (2, 70), seed, view="x.mT"),))
        check(one, gradients=True)


@pytest.mark.parametrize("eager_crashes", [True, False])
def test_a_batch_goes_on_where_a_program_ends_eager_mode_too(
    monkeypatch: pytest.MonkeyPatch, eager_crashes: bool
) -> None:
    """The third of five programs ends its process."""
    drawn: list[Program] = []
    run.draw(5, 5, drawn.append, "default")

    def messages(context: object, work: object, arguments: Any, *_: object) -> Iterator[object]:
        if work is run._work:
            first = arguments[2]
            yield from drawn[first:3] if first < 3 else drawn[first:]
        elif not eager_crashes:
            return
        if work is not run._work or first < 3:
            yield run.Lost(run.CRASH, "killed by SIGSEGV")

    monkeypatch.setattr(run, "messages", messages)
    found, _ = run.run_batch(None, Batch(5, "default", 5), True, 1.0, run.Clock())
    if eager_crashes:
        assert (found.checked, found.excused, found.failures) == (5, {run.CRASHES: 1}, ())
    else:
        assert found.checked == 3 and found.failures[0].startswith("crash: killed by SIGSEGV")


def test_a_batch_that_goes_on_leaves_out_what_was_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[Program] = []
    run.draw(5, 5, drawn.append, "default")
    sent: list[object] = []
    monkeypatch.setattr(run, "_checked", lambda *_: lambda program: "")
    run._work(sent.append, Batch(5, "default", 5), True, 3)
    assert sent == drawn[3:]


def test_the_page_of_random_programs_counts_each_kind() -> None:
    before, ours = (f"Wrong: a | b [aot_eager {kind}]" for kind in ("fails too, c", "is right"))
    excused = {BEFORE: 2, STOCK: 1, KNOWN: 1, ROUNDED: 3, SKIPPED: 4}
    batches = [
        Batch(3000000, "default", 25, 25, (), False, excused, "2.11.0"),
        Batch(3000001, "aliases", 25, 20, (f"{before}\nx", f"{ours}\ny"), False, {}, "2.13.0"),
    ]
    text = page(batches)
    assert "45 programs were checked, with the seed 3, on a CPU" in text.replace("\n", " ")
    assert "torch 2.11.0, 2.13.0." in text
    assert "| default | 25 | 14 | 0 | 2 | 2 | 3 | 4 |\n" in text
    assert "| aliases | 20 | 18 | 1 | 1 | 0 | 0 | 0 |\n" in text
    assert "| all | 45 | 32 | 1 | 3 | 2 | 3 | 4 |\n" in text
    assert text.endswith("| 3000001 | aliases | Wrong: a / b [aot_eager is right] |\n")


def test_tensors_with_overlapping_elements_are_not_written_to() -> None:
    values = Values()
    values.env.update(a=torch.zeros(3).as_strided((2, 2), (1, 1)), b=torch.zeros(4)[::2])
    assert not values.write("a.copy_(a.flip(0))", "a", ("a",))
    assert values.write("b.copy_(b.flip(0))", "b", ("b",))


def test_a_wrong_result_is_found() -> None:
    program = REGRESSIONS["a double without dimensions"]
    right = torch.tensor(2.0, dtype=torch.float64)
    with pytest.raises(Wrong, match="result 0"):
        compare("test", Call(program, [right], [right]), [right + 1e-6])


def test_combo_parts_with_equal_text_may_have_different_arguments() -> None:
    """Of `x1.sum(0)` and `x2.sum(-1)`, both of nothing, one knows a length that neither asks."""
    lines = ["v0 = x0.abs()", "v1 = x1 + 1", "v2 = x1.diff(dim=-2)", "v3 = x2.square()"]
    lines += ["v4 = x1.sum(0)", "v5 = x2.sum(-1)", "v6 = x1 * 2"]
    inputs = (Input("float16", (5,), 0, "", False), Input("float32", (0, 3), 1, "", False))
    turned = Input("float32", (0, 3), 1, "x.mT", False)
    program = Program(tuple(lines), tuple(f"v{n}" for n in range(7)), (*inputs, turned))
    check(program, language="triton", target="cuda:90", dynamic=True)


def test_truncation_after_a_float16_product_is_discontinuous() -> None:
    """float16 has 109.94 for 109.97, and rounded to its nearest that is 110."""
    lines = ("v2 = x0.prod(-2)", "v3 = v2.to(torch.int32)")
    program = Program(lines, ("v3",), (Input("float16", (7, 9), 3, "x.mT"),))
    assert jumps(known(program, False), False)
