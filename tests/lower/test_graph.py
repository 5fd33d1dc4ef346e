"""Complete graphs: results, constants, symbols, random numbers, and errors."""

from __future__ import annotations

import pytest
import sympy
import torch
from torch._subclasses import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx

from inductor_lab.compiler.base.errors import LabError, MissingLowering
from inductor_lab.compiler.base.options import Options
from inductor_lab.compiler.ir.expr import Op
from inductor_lab.compiler.ir.program import BufferView, ExternCall, Pointwise
from inductor_lab.compiler.ir.verify import verify
from inductor_lab.compiler.lower.builder import Builder
from inductor_lab.compiler.lower.graph import lower_graph
from inductor_lab.compiler.lower.registry import LOWERINGS, lowers
from inductor_lab.compiler.lower.tensor import TensorValue
from tests.lower.lowering import Lowered, assert_same, program_of

aten = torch.ops.aten


def test_one_operator_is_one_nest() -> None:
    program = program_of(lambda x: ((x + 1) * 2).sin(), torch.randn(8))
    assert [type(step) for step in program.steps] == [Pointwise] * 3
    assert [step.buffer for step in program.steps] == ["buf0", "buf1", "buf2"]
    assert [step.origins for step in program.steps] == [{"add"}, {"mul"}, {"sin"}]


def test_a_load_has_the_origins_of_its_views() -> None:
    program = program_of(lambda x: x.t().reshape(-1)[1:] * 2, torch.randn(1, 8))
    (nest,) = program.nests
    (load,) = nest.body.loads()
    assert {"mul", "t", "view", "slice_1"} <= load.origins


def test_channels_last_is_kept() -> None:
    x = torch.randn(2, 3, 4, 5).contiguous(memory_format=torch.channels_last)
    program = program_of(lambda x: x.sin() + 1, x)
    assert program.buffers["buf0"].layout.stride == (60, 1, 15, 3)
    assert_same(program.run(x)[0], x.sin() + 1)


def test_results_may_be_inputs_views_numbers_or_none() -> None:
    def function(x: torch.Tensor) -> tuple[object, ...]:
        y = x * 2
        return x, y, y.t(), y[1:], y.view(-1), y

    x = torch.randn(3, 4)
    module = make_fx(lambda x: (*function(x), None, 7), tracing_mode="fake")(x)
    program = lower_graph(module, "results", Options())
    assert len(program.steps) == 1, "views of results are not copied"
    buffers = [out.buffer for out in program.outputs if isinstance(out, BufferView)]
    assert buffers == [module.graph.find_nodes(op="placeholder")[0].name] + ["buf0"] * 5
    *tensors, nothing, seven = program.run(x)
    assert (nothing, seven) == (None, 7)
    for actual, expected in zip(tensors, function(x), strict=True):
        assert_same(actual, expected)


def test_expanded_results_keep_their_zero_strides() -> None:
    x = torch.randn(1, 4)
    (out,) = program_of(lambda x: (x + 1).expand(3, 4), x).run(x)
    assert out.stride() == (0, 1)


def test_constants_are_stored_in_the_program() -> None:
    function = lambda x: x * torch.tensor([1.0, 2.0, 3.0])  # noqa: E731
    x = torch.randn(3)
    program = program_of(function, x)
    assert [name for name in program.constants] == [
        b.name for b in program.buffers.values() if b.kind.value == "constant"
    ]
    assert_same(program.run(x)[0], function(x))


def test_unused_results_are_not_computed() -> None:
    program = program_of(lambda x: torch.var_mean(x, 1)[1], torch.randn(4, 8))
    bodies = [expr for step in program.steps for expr in step.body.walk()]
    operations = {expr.name for expr in bodies if isinstance(expr, Op)}
    assert "square" not in operations, "the mean is computed, the variance is not"


def test_symbolic_sizes() -> None:
    def function(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        n = x.shape[0]
        y = x.reshape(-1, 2).t().reshape(2, n, -1).softmax(1) / n
        return y, x.mean(0) * (1 / n), torch.cat([x, x[1:]]), torch.arange(n), x.var(0)

    lowered = Lowered()
    compiled = lowered.dynamo(function, dynamic=True)
    for n in (6, 9, 30):
        x = torch.randn(n, 4)
        for actual, expected in zip(compiled(x), function(x), strict=True):
            assert_same(actual, expected)
    assert len(lowered.programs) == 1
    assert any(isinstance(i, sympy.Symbol) for i in lowered.programs[0].inputs)


def test_symbolic_numbers_are_inputs() -> None:
    lowered = Lowered()
    function = lambda x, n, s: x * n + s  # noqa: E731
    compiled = lowered.dynamo(function)
    x = torch.randn(4)
    for n, s in ((2, 0.5), (3, 1.5), (4, 2.5)):
        assert_same(compiled(x, n, s), function(x, n, s))
    assert len(lowered.programs) == 2


def test_low_precision_is_rounded_after_every_operator() -> None:
    x = torch.full((4,), 1.0, dtype=torch.bfloat16)
    program = program_of(lambda x: (x + 2**-9) * 2**10, x)
    assert_same(program.run(x)[0], (x + 2**-9) * 2**10)
    assert all(program.buffers[n.buffer].dtype is torch.bfloat16 for n in program.nests)


class TestRandom:
    def test_same_seed_same_numbers(self) -> None:
        compiled = Lowered().aot(lambda x: torch.rand_like(x))
        x = torch.empty(64)
        torch.manual_seed(3)
        first, second = compiled(x), compiled(x)
        torch.manual_seed(3)
        assert torch.equal(first, compiled(x))
        assert not torch.equal(first, second)

    def test_two_draws_of_one_graph_differ(self) -> None:
        a, b = Lowered().aot(lambda x: (torch.rand_like(x), torch.rand_like(x)))(torch.empty(64))
        assert not torch.equal(a, b)

    @pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
    def test_rand_is_uniform(self, dtype: torch.dtype) -> None:
        torch.manual_seed(0)
        x = Lowered().aot(lambda x: torch.rand_like(x))(torch.empty(100, 500, dtype=dtype))
        assert x.min() >= 0 and x.max() < 1
        quarters = torch.histc(x.float(), 4, 0, 1) / x.numel()
        assert (quarters - 0.25).abs().max() < 0.01

    def test_randn_is_normal(self) -> None:
        torch.manual_seed(0)
        x = Lowered().aot(lambda x: torch.randn_like(x) * 2 + 1)(torch.empty(50_000))
        assert abs(x.mean() - 1) < 0.05 and abs(x.std() - 2) < 0.05
        within_one = ((x - 1).abs() < 2).float().mean()
        assert abs(within_one - 0.6827) < 0.01

    def test_dropout_zeroes_and_scales(self) -> None:
        torch.manual_seed(0)
        x = torch.ones(50_000, requires_grad=True)
        y = Lowered().aot(lambda x: torch.nn.functional.dropout(x, 0.25))(x)
        kept = y != 0
        assert abs(kept.float().mean() - 0.75) < 0.01
        assert torch.allclose(y[kept], torch.tensor(1 / 0.75))
        y.sum().backward()
        assert torch.equal(x.grad, y.detach()), "the backward uses the same mask"

    def test_bernoulli(self) -> None:
        torch.manual_seed(0)
        p = torch.tensor([0.0, 0.3, 1.0])[:, None].expand(3, 20_000)
        means = Lowered().aot(torch.bernoulli)(p).mean(1)
        assert (means - p[:, 0]).abs().max() < 0.02


class TestExtern:
    def test_no_lowering_falls_back(self) -> None:
        x = torch.randn(4, 6)
        program = program_of(lambda x: x.t().histc(5) + 1, x)
        (call,) = (step for step in program.steps if isinstance(step, ExternCall))
        assert (call.op, call.reason) == ("aten.histc.default", "no lowering")
        assert call.args[0].layout.stride == (1, 6), "a strided view is passed, not a copy"
        assert_same(program.run(x)[0], x.t().histc(5) + 1)

    def test_several_results_some_unused(self) -> None:
        x = torch.randn(4, 6)
        program = program_of(lambda x: torch.sort(x, 1)[1] * 2, x)
        assert_same(program.run(x)[0], torch.sort(x, 1)[1] * 2)

    def test_a_view_without_strides_is_copied_first(self) -> None:
        x = torch.randn(6, 4).t()
        program = program_of(lambda x: x.reshape(-1)[:4].reshape(2, 2) @ torch.eye(2), x)
        assert_same(program.run(x)[0], x.reshape(-1)[:4].reshape(2, 2) @ torch.eye(2))

    def test_complex_numbers_are_left_to_aten(self) -> None:
        x = torch.randn(8)
        function = lambda x: torch.fft.fft(x).abs()  # noqa: E731
        assert_same(program_of(function, x).run(x)[0], function(x), rtol=1e-5, atol=1e-5)

    def test_aten_views_do_not_share_memory_with_their_base(self) -> None:
        x = torch.randn(8, 2)
        program = program_of(lambda x: torch.view_as_complex(x), x)
        assert [step.op for step in program.steps] == ["aten.view_as_complex_copy.default"]

    def test_matmuls_are_library_calls(self) -> None:
        program = program_of(lambda x: x @ x.t(), torch.randn(4, 6))
        assert [step.reason for step in program.steps] == ["library"]


def inverse(x: torch.Tensor) -> torch.Tensor:
    return torch.linalg.inv(x)


def test_strict_reports_the_operator_and_the_users_line() -> None:
    with pytest.raises(Exception, match="MissingLowering") as caught:
        Lowered(Options(strict=True)).dynamo(inverse)(torch.eye(3))
    text = str(caught.value)
    assert "no lowering for aten.linalg_inv_ex.default" in text
    assert "return torch.linalg.inv(x)" in text and "test_graph.py" in text


def test_strict_allows_library_calls() -> None:
    x = torch.randn(3, 3)
    assert_same(Lowered(Options(strict=True)).aot(lambda x: (x @ x).sin())(x), (x @ x).sin())


def test_operators_that_write_to_arguments_raise() -> None:
    module = make_fx(lambda x: x.clone().add_(1), tracing_mode="fake")(torch.ones(2))
    with pytest.raises(LabError, match="writes to its arguments"):
        lower_graph(module, "writes", Options())


def test_unbacked_sizes_are_bound_by_the_call_that_returns_them() -> None:
    module = make_fx(lambda x: x.nonzero() + 1, tracing_mode="symbolic")(torch.ones(2))
    program = lower_graph(module, "unknown", Options())
    x = torch.tensor([0.0, 3.0])
    assert program.run(x)[0].tolist() == [[2]]


def test_a_missing_lowering_is_a_lab_error() -> None:
    module = make_fx(torch.linalg.inv, tracing_mode="fake")(torch.eye(2))
    with pytest.raises(MissingLowering, match="linalg_inv_ex"):
        lower_graph(module, "strict", Options(strict=True))


def test_a_registry_can_be_given() -> None:
    """`neg` as `2 * x`: a lesson on debugging does that."""

    def doubled(build: Builder, x: TensorValue) -> TensorValue:
        return build.pointwise(build.op("mul", build.const(2, x.dtype), build.load(x, x.index)))

    module = make_fx(torch.neg, tracing_mode="fake")(torch.ones(3))
    x = torch.ones(3)
    assert lower_graph(module, "right", Options()).run(x)[0].tolist() == [-1, -1, -1]
    wrong = {**LOWERINGS, aten.neg.default: doubled}
    assert lower_graph(module, "wrong", Options(), wrong).run(x)[0].tolist() == [2, 2, 2]


def test_an_operator_has_one_lowering() -> None:
    with pytest.raises(ValueError, match="has a lowering already"):
        lowers(aten.sin.default)(lambda build, x: x)


def test_a_cpu_scalar_is_copied_to_the_device_that_reads_it() -> None:
    """The program for a GPU is inspected, not run."""
    with FakeTensorMode():
        x, scalar = torch.empty(4, 6, device="cuda"), torch.empty(())
        module = make_fx(lambda x, s: (x * s, x.to("cpu", torch.float64)))(x, scalar)
    program = lower_graph(module, "devices", Options())
    verify(program)
    calls = [step for step in program.steps if isinstance(step, ExternCall)]
    assert [(call.op, call.reason) for call in calls] == [
        ("aten._to_copy.default", "device copy"),
        ("aten._to_copy.default", "device copy"),
    ]
    devices = [program.buffers[nest.buffer].device for nest in program.nests]
    assert devices == ["cuda:0", "cpu"]
    for nest in program.nests:
        home = program.buffers[nest.buffer].device
        assert {program.buffers[load.buffer].device for load in nest.body.loads()} == {home}
