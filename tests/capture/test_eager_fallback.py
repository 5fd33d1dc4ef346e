"""Which captured graphs run in eager mode: each rule with graphs that it accepts and refuses."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch.autograd import forward_ad
from torch.utils.checkpoint import checkpoint

import inductor_lab as lab
from inductor_lab.compiler.base.errors import RunsUncompiled
from inductor_lab.compiler.capture import eager_rules
from inductor_lab.compiler.torch_door.torch_api import FakeTensorMode

Tensor = torch.Tensor
Example = tuple[Callable[..., Any], tuple[Any, ...]]
ROW, MATRIX = torch.arange(4.0), torch.arange(24.0).reshape(4, 6)


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    torch.compiler.reset()
    yield
    torch.compiler.reset()


TRACES_GRADIENTS = {
    name: True for name in ("trace_autograd_ops",) if hasattr(torch._dynamo.config, name)
}
"""Since 2.15, TorchDynamo captures `torch.autograd.grad` only with this setting."""


def why(function: Callable[..., Any], *args: Any) -> list[str]:
    """The names of all rules that refuse the graphs of a call, and the line."""
    found: list[str] = []

    def backend(module: torch.fx.GraphModule, inputs: Any) -> Any:
        graph = eager_rules.Graph(module, inputs)
        found.extend(name for name, ask in eager_rules.RULES.items() if ask(graph))
        return module.forward

    with torch._dynamo.config.patch(TRACES_GRADIENTS):
        torch.compile(function, backend=backend)(*args)
    return found


def copied(example: Example) -> tuple[Any, ...]:
    """New arguments that share memory in the same way."""
    storages: dict[int, Any] = {}

    def copy(given: Any) -> Any:
        if not isinstance(given, Tensor) or given.is_meta:
            return given
        key = given.untyped_storage().data_ptr()
        storage = storages.setdefault(key, given.untyped_storage().clone())
        new = torch.empty(0, dtype=given.dtype).set_(
            storage, given.storage_offset(), given.shape, given.stride()
        )
        return torch.nn.Parameter(new) if given.requires_grad else new

    return tuple(map(copy, example[1]))


# ---- programs ----


def zeros_a_row_of_an_expanded_view(x):
    x.expand(3, -1)[1].zero_()
    return x + 1


def adds_by_an_operator(x):
    x.expand(3, -1)[0] += 1
    return x


def adds_by_a_list(x):
    torch._foreach_add_([x.expand(3, -1)[0]], 1.0)
    return x


def adds_by_an_out_argument(x):
    torch.add(x, 1, out=x.expand(3, -1)[0])
    return x


def activates_in_place(x):
    F.relu(x.expand(3, -1)[0], True)
    return F.elu(x.expand(3, -1)[0], inplace=True)


def writes_in_a_checkpoint(x):
    def inside(row):
        return row.mul_(2) + 1

    return checkpoint(inside, x.expand(3, -1)[0], use_reentrant=False)


def writes_and_reads_an_expanded_view(x):
    x.add_(1)
    x[1:].mul_(2)
    return x.expand(3, -1) * 2


def writes_a_copy_of_an_expanded_view(x):
    y = x.expand(3, -1).contiguous()
    y[0].add_(1)
    return y, F.relu(x.expand(3, -1))


def writes_windows_with_gaps(x):
    x.unfold(1, 1, 5).add_(1)
    return x


def writes_windows_that_cover(x):
    x.unfold(1, 3, 3).add_(1)
    return x


def reads_windows_with_gaps(x):
    x.add_(1)
    return x.unfold(1, 1, 5) + 1


def views_the_second(x, y):
    x.add_(1)
    return y.view(-1)


def adds_the_second(x, y):
    x.add_(1)
    return y + 1, x


def writes_and_counts(x, weight, calls):
    weight.data.fill_(1)
    calls += 1
    return x + 1, calls


def writes_without_gradients_and_counts(x, weight, calls):
    with torch.no_grad():
        weight.fill_(1)
    calls += 1
    return x + 1, calls


def counts(x, weight, calls):
    calls += 1
    return x * weight, calls


def replaces_data(x, weight):
    weight.data = x * 2
    return weight + 1


def replaces_data_without_gradients(x, y):
    z = x + 1
    z.data = y * 3
    return z.mul_(2) + 1


def reads_data(x, weight):
    return x * weight.data


def takes_memory(x):
    y = x + 1
    y.untyped_storage().resize_(0)
    return x * 2


def adds(x):
    return x + 1


def strides_from(x):
    return x.as_strided((2,), (1,), 1) + 1


def strides(x):
    return x.as_strided((2,), (1,)) + 1


def other_dtype_at(x, n):
    return x[n.item() :].view(torch.int32)


def other_dtype(x, n):
    return x[2:].view(torch.int32)


LIBRARY = torch.library.Library("inductor_lab_as_captured", "DEF")
LIBRARY.define("rows(Tensor(a) x) -> Tensor(a)")
LIBRARY.define("copied(Tensor x) -> Tensor")
LIBRARY.define("fill_two_(Tensor(a!) x, Tensor(b!) y) -> ()")


def fill_two(x, y):
    x.fill_(1)
    y.fill_(2)


for _key in ("CompositeExplicitAutograd", "Meta"):
    LIBRARY.impl("fill_two_", fill_two, _key)
    LIBRARY.impl("rows", lambda x: x[:2], _key)
    LIBRARY.impl("copied", lambda x: x[:2].clone(), _key)
ops = torch.ops.inductor_lab_as_captured


def calls_an_operator_that_returns_rows(x):
    return ops.rows(x) * 2


def calls_an_operator_in_a_checkpoint(x):
    return checkpoint(lambda x: ops.rows(x) * 2, x, use_reentrant=False)


def calls_an_operator_that_copies(x):
    return ops.copied(x) * 2


def fills(first, second):
    """A function that fills two parts of its argument, which `first` and `second` make."""

    def fill(x):
        ops.fill_two_(first(x), second(x))
        return x * 2

    return fill


def fills_parts_of_one_detached(x):
    free = x.detach()
    ops.fill_two_(free[:1], free[1:])
    return x * 2


def writes_after_retain_grad(x):
    y, z = x.sin(), x.cos()
    z.retain_grad()
    z[0] = 1
    (y * z).sum().backward()
    return z.grad


def writes_the_only_result_after_retain_grad(x):
    z = x.cos()
    z.retain_grad()
    z[0] = 1
    (z * 2).sum().backward()
    return z.grad


COUNTER, WEIGHT = torch.zeros((), dtype=torch.int64), torch.nn.Parameter(torch.arange(4.0))
def resizes(*sizes: int, **more: Any) -> Example:
    """A call of `interpolate` on numbers of this shape, with its gradient."""

    def resize(x):
        x = x.clone().requires_grad_()
        y = F.interpolate(x, **more)
        (grad,) = torch.autograd.grad((y * y).sum(), x)
        return y.detach(), grad

    size = torch.Size((1, 1, *sizes))
    return resize, (torch.arange(float(size.numel())).sin().reshape(size),)


REFUSED: dict[str, list[Example]] = {
    "resize_without_its_scale": [
        *(resizes(3, 3, scale_factor=1.3, mode=mode)
          for mode in ("nearest", "bilinear", "bicubic")),
        *(resizes(3, scale_factor=1.3, mode=mode) for mode in ("nearest", "linear")),
        *(resizes(3, 3, 3, scale_factor=1.3, mode=mode) for mode in ("nearest", "trilinear")),
        resizes(3, 3, scale_factor=2.1),
        resizes(3, 5, scale_factor=(1.9, 1.1)),
        resizes(3, scale_factor=2.1),
    ],
    "overlapping_write": [
        (zeros_a_row_of_an_expanded_view, (ROW,)), (adds_by_an_operator, (ROW,)),
        (adds_by_a_list, (ROW,)), (adds_by_an_out_argument, (ROW,)), (activates_in_place, (ROW,)),
        (writes_in_a_checkpoint, (ROW,)),
    ],
    "write_through_gaps": [(writes_windows_with_gaps, (MATRIX,))],
    "view_of_a_shared_argument": [(views_the_second, (MATRIX, MATRIX[1:]))],
    "write_to_an_argument_of_shared_memory": [(adds_the_second, (ROW, ROW.expand(3, -1)))],
    "returned_input_that_is_written": [(writes_and_counts, (ROW, WEIGHT, COUNTER))],
    "replaced_storage": [(replaces_data, (ROW, WEIGHT))],
    "resized_storage": [(takes_memory, (ROW,))],
    "place_in_a_moved_storage": [(strides_from, (ROW[1:],))],
    "operator_that_writes_detached": [
        (fills(lambda x: x.detach()[:1], lambda x: x.detach()[1:]), (MATRIX,)),
        (fills(lambda x: x.data[:1], lambda x: x[1:]), (MATRIX,)),
    ],
    "operator_with_an_alias": [
        (calls_an_operator_that_returns_rows, (ROW,)), (calls_an_operator_in_a_checkpoint, (ROW,)),
    ],
    "write_after_retain_grad": [(writes_after_retain_grad, (WEIGHT,))],
}  # fmt: skip
ACCEPTED: dict[str, list[Example]] = {
    "resize_without_its_scale": [
        resizes(3, 3, scale_factor=2.0),
        resizes(3, 3, scale_factor=1.3, recompute_scale_factor=True),
        resizes(3, 3, size=(3, 6)),
        resizes(3, 3, scale_factor=1.3, mode="nearest-exact"),
        resizes(4, 4, scale_factor=1.4),
        resizes(3, 3, scale_factor=2.1, mode="bilinear"),
    ],
    "overlapping_write": [
        (writes_and_reads_an_expanded_view, (ROW,)), (writes_a_copy_of_an_expanded_view, (ROW,)),
    ],
    "write_through_gaps": [
        (writes_windows_that_cover, (MATRIX,)), (reads_windows_with_gaps, (MATRIX,)),
    ],
    "view_of_a_shared_argument": [
        (adds_the_second, (MATRIX, MATRIX[1:])), (views_the_second, (MATRIX[:2], MATRIX[2:])),
    ],
    "write_to_an_argument_of_shared_memory": [(adds_the_second, (MATRIX, MATRIX))],
    "returned_input_that_is_written": [
        (counts, (ROW, WEIGHT, COUNTER)),
        (writes_without_gradients_and_counts, (ROW, WEIGHT, COUNTER)),
    ],
    "replaced_storage": [
        (reads_data, (ROW, WEIGHT)),
        (replaces_data_without_gradients, (ROW, ROW)),
    ],
    "resized_storage": [(adds, (ROW,))],
    "place_in_a_moved_storage": [(strides, (ROW[1:],)), (strides_from, (ROW,))],
    "operator_that_writes_detached": [
        (fills(lambda x: x[:1], lambda x: x[1:]), (MATRIX,)),
        (fills_parts_of_one_detached, (MATRIX,)),
        (fills(lambda x: x.detach()[:1], lambda x: x.clone().detach()), (MATRIX,)),
    ],
    "operator_with_an_alias": [(calls_an_operator_that_copies, (ROW,))],
    "write_after_retain_grad": [(writes_the_only_result_after_retain_grad, (WEIGHT,))],
    "other_elements_at_an_unknown_place": [(other_dtype, (ROW, COUNTER))],
    "tangents": [(adds, (ROW,))],
    "fake_inputs": [(adds, (ROW,))],
}  # fmt: skip


def listed(examples: dict[str, list[Example]]) -> Any:
    pairs = [(name, each) for name, several in examples.items() for each in several]
    names = [f"{name}-{each[0].__name__}" for name, each in pairs]
    return pytest.mark.parametrize(("rule", "example"), pairs, ids=names)


@listed(REFUSED)
def test_a_rule_refuses(rule: str, example: Example) -> None:
    assert rule in why(example[0], *copied(example))


@listed(ACCEPTED)
def test_a_rule_accepts(rule: str, example: Example) -> None:
    assert rule in eager_rules.RULES
    assert rule not in why(example[0], *copied(example))


@listed({rule: e for rule, e in ACCEPTED.items() if rule not in ("tangents", "fake_inputs")})
def test_a_graph_that_all_rules_accept_is_compiled(
    rule: str, example: Example, recwarn: pytest.WarningsRecorder
) -> None:
    if rule == "place_in_a_moved_storage" or example[0] is writes_windows_that_cover:
        return
    expected, found = copied(example), copied(example)
    result = lab.compile(example[0])(*found)
    torch.testing.assert_close(result, example[0](*expected))
    torch.testing.assert_close(found, expected)
    assert not [w for w in recwarn if w.category is RunsUncompiled]


@listed(REFUSED)
def test_a_refused_graph_is_correct_and_reports_its_line(rule: str, example: Example) -> None:
    expected, found = copied(example), copied(example)
    with pytest.warns(RunsUncompiled, match="a graph runs in eager mode: ") as caught:
        result = lab.compile(example[0])(*found)
    torch.testing.assert_close(result, example[0](*expected))
    torch.testing.assert_close(found, expected)
    line = str(next(w.message for w in caught if w.category is RunsUncompiled))
    assert "test_eager_fallback.py" in line


def test_fake_inputs_are_refused() -> None:
    module = torch.fx.symbolic_trace(adds)
    ask = eager_rules.RULES["fake_inputs"]
    with FakeTensorMode():
        fake = torch.ones(3)
    assert ask(eager_rules.Graph(module, [fake])) is not None
    assert ask(eager_rules.Graph(module, [ROW])) is None


def test_tangents_are_refused() -> None:
    """Since torch 2.14, TorchDynamo itself compiles nothing inside `dual_level`."""
    module = torch.fx.symbolic_trace(adds)
    ask = eager_rules.RULES["tangents"]
    assert ask(eager_rules.Graph(module, [ROW])) is None
    with forward_ad.dual_level(), warnings.catch_warnings():
        warnings.simplefilter("ignore", RunsUncompiled)
        dual = forward_ad.make_dual(ROW, ROW)
        assert ask(eager_rules.Graph(module, [dual])) is not None
        assert set(why(adds, dual)) <= {"tangents"}
        torch.testing.assert_close(
            forward_ad.unpack_dual(lab.compile(adds)(dual)), forward_ad.unpack_dual(adds(dual))
        )


def test_the_compilation_lists_graphs_in_eager_mode() -> None:
    with pytest.warns(RunsUncompiled):
        compilation = lab.inspect(zeros_a_row_of_an_expanded_view, ROW.clone())
    (found,) = compilation.capture.as_captured
    assert found.rule == "overlapping_write"
    assert found.span is not None and found.span.code == "x.expand(3, -1)[1].zero_()"
    assert "a graph runs in eager mode" in str(compilation)
    assert "elements share memory" in str(compilation.capture)


def test_a_graph_that_aotautograd_rejects_runs_in_eager_mode() -> None:
    def writes_strides_of_a_slice(x):
        y = x.clone()
        y[1:].as_strided((2,), (2,)).zero_()
        return y

    with pytest.warns(RunsUncompiled, match="AOTAutograd rejects it: .*as_strided"):
        result = lab.compile(writes_strides_of_a_slice)(ROW)
    torch.testing.assert_close(result, writes_strides_of_a_slice(ROW))


def test_a_rejection_from_below_functools_counts_too() -> None:
    """torch computes the kind of a mutation in a cached property."""

    def replaces_and_writes(x):
        x.data = torch.zeros_like(x).data
        x[torch.arange(4) % 2 == 0] = 1
        return x * 2

    with pytest.warns(RunsUncompiled, match="AOTAutograd rejects it: .*set_"):
        result = lab.compile(replaces_and_writes)(ROW.clone())
    torch.testing.assert_close(result, replaces_and_writes(ROW.clone()))


def test_an_error_of_a_compiler_phase_is_raised() -> None:
    def raises(*args: Any, **more: Any) -> Any:
        raise RuntimeError("mine")

    with lab.override(schedule=raises), pytest.raises(Exception, match="mine"):
        lab.compile(lambda x: x.sin() + 1)(ROW)
