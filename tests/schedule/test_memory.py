"""Costs and storage: bytes, passes, lifetimes, reuse, and writes in place."""

from __future__ import annotations

import re

import torch
import torch.nn.functional as F
from IPython.lib.pretty import pretty
from rich.pretty import pretty_repr

import inductor_lab as lab
from inductor_lab.compiler.ir.program import ExternCall
from inductor_lab.compiler.schedule.schedule import Cost
from tests.schedule.programs import checked, planned


def normal(*size):
    return torch.randn(size)


def test_ten_million_floats():
    """The numbers of the lesson on fusion: fusion saves two thirds of the traffic."""
    schedule = planned(lambda x: ((x + 1) * 2).sin(), torch.empty(10_000_000))
    assert schedule.before == Cost(120_000_000, 120_000_000, 120_000_000, 3, 6)
    assert schedule.after == Cost(40_000_000, 40_000_000, 120_000_000, 1, 2)
    assert f"{schedule.saved:.1%}" == "66.7%"


def test_plans_decisions_and_code_are_one_line_in_a_terminal():
    """As IPython and rich print them; `print` shows all of it."""
    c = lab.inspect(lambda x: torch.softmax(x @ x, -1).sin(), torch.randn(8, 8))
    part = c.graphs[0].forward
    memory, decisions, code = part.schedule.memory, part.schedule.decisions, part.host.code
    assert re.fullmatch(r"Decisions\(\d+ pairs?, \d+ fused\)", repr(decisions))
    assert f"{len(decisions.by_pair)} pair" in repr(decisions)
    shape = r"MemoryPlan\(peak \d+ B -> \d+ B, \d+ buffers? in reused storage\)"
    assert re.fullmatch(shape, repr(memory))
    assert repr(code) == f"Code({len(code.lines)} lines)"
    assert str(memory) in str(part.schedule) and str(memory).startswith("memory peak: ")
    for value in (memory, decisions, code):
        assert pretty(value) == pretty_repr(value) == repr(value)


def test_only_touched_elements_count():
    cost = planned(lambda x, b: x[:, :10] + b, torch.empty(100, 50), torch.empty(10)).after
    assert cost.bytes_read == 4 * (100 * 10 + 10)
    cost = planned(lambda x: x[0] * 2, torch.empty(100, 50)).after
    assert cost.bytes_read == 4 * 50
    cost = planned(lambda w, i: w[i] * 2, torch.empty(1000, 8), torch.zeros(5).long()).after
    assert cost.bytes_read == 4 * 5 * 8 + 8 * 5


def test_a_buffer_counts_once_per_kernel():
    schedule = planned(lambda x: torch.softmax(x, -1), torch.empty(16, 32))
    assert schedule.after == Cost(4 * 512, 4 * 512, schedule.after.flops, 1, 2)
    schedule = planned(lambda a, b: torch.cat([a, b]).sin(), torch.empty(6, 8), torch.empty(2, 8))
    assert schedule.after.bytes_read == 4 * 8 * 8


def test_a_matmul_is_a_kernel_before_and_after():
    schedule = planned(lambda a, b: (a @ b).exp(), torch.empty(8, 16), torch.empty(16, 4))
    assert schedule.before == schedule.after
    assert schedule.after.kernels == 2
    assert schedule.after.flops == 2 * 8 * 16 * 4 + 10 * 8 * 4


def test_the_storage_of_an_optional_library_result_is_not_reused():
    """Attention returns statistics for its gradient; on a GPU they are None if unused."""

    def attend(q):
        return torch.nn.functional.scaled_dot_product_attention(q, q, q).sum(-1) * 2

    schedule = planned(attend, normal(1, 2, 16, 8))
    (call,) = (step for step in schedule.steps if isinstance(step, ExternCall))
    _, statistics = call.outputs[:2]
    assert statistics is not None and statistics not in schedule.memory.reuse.values()
    assert any(life.buffer == statistics for life in schedule.memory.lifetimes)


def matmul_chain(x, w):
    """The lifetimes of the values between matmuls end one after the other."""
    a = torch.relu(x @ w)
    b = torch.tanh(a @ w)
    return torch.sigmoid(b @ w)


def test_results_are_written_in_place_of_matmuls():
    plan = checked(matmul_chain, normal(16, 16), normal(16, 16)).memory
    assert plan.reuse == {"buf1": "buf0", "buf3": "buf2", "buf5": "buf4"}
    assert plan.in_place == {"buf1", "buf3", "buf5"}
    assert plan.peak_before == 2 * 16 * 16 * 4
    assert plan.freed == {2: ("buf1",), 4: ("buf3",)}


def test_a_row_is_overwritten_after_its_reductions():
    schedule = checked(lambda x: torch.softmax(x @ x, -1), normal(16, 16))
    assert schedule.memory.in_place == {schedule.groups[0].nests[-1].buffer}


def test_a_norm_overwrites_its_input():
    """The mean is computed relative to the first element of a row, which is kept in a register.  If
    one kernel reduces and another normalizes, the mean is stored (`one_more_place`), and the
    element is not read again.
    """
    image, kernel = normal(2, 64, 34, 34), torch.ones(64, 64, 3, 3)
    programs = {
        "rows": (lambda x, w: F.layer_norm(x @ w, (96,)), normal(64, 96), normal(96, 96)),
        "groups": (lambda x, w: F.group_norm(F.conv2d(x, w), 4).relu(), image, kernel),
        "channels": (batch_norm, image, kernel),
        "the last": (batch_norm, image.to(memory_format=torch.channels_last), kernel),
    }
    for name, program in programs.items():
        assert checked(*program).memory.in_place, name


def batch_norm(x, w):
    return F.batch_norm(F.conv2d(x, w), None, None, training=True)


def test_an_element_that_another_point_reads_is_not_overwritten():
    for function in (
        lambda x: (x @ x).t().contiguous() + 1,
        lambda x: (x @ x).flip(0) + 1,
        lambda x: (lambda y: y + y[0])(x @ x),
    ):
        schedule = checked(function, normal(16, 16), off=("memory_walk",))
        assert not schedule.memory.in_place, str(schedule)


def test_inputs_and_outputs_keep_their_storage():
    def function(x, w):
        a = x @ w
        return a, torch.relu(a), torch.relu(x)

    schedule = checked(function, normal(16, 16), normal(16, 16))
    assert schedule.memory.reuse == {}


def test_storage_is_reused_after_a_gap():
    """`a` is dead before `c` is computed; `c` is transposed, so it is not in place."""

    def function(x, w):
        a = torch.relu(x @ w)
        b = a @ w
        c = torch.tanh(b).t().contiguous()
        return c @ w

    plan = checked(function, normal(16, 16), normal(16, 16)).memory
    assert set(plan.reuse) >= {"buf1"}
    assert plan.peak_after <= plan.peak_before


def test_lifetimes():
    plan = planned(matmul_chain, torch.empty(16, 16), torch.empty(16, 16)).memory
    spans = {life.buffer: (life.first, life.last, life.nbytes) for life in plan.lifetimes}
    assert spans["buf1"] == (1, 2, 1024)
    assert spans["buf5"] == (5, 6, 1024)
