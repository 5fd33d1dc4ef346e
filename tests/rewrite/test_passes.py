"""The passes: which nodes are removed or kept, what is recorded, and the origins of nodes."""

import pytest
import torch
from torch._functorch.partitioners import default_partition
from torch.fx.experimental.proxy_tensor import make_fx

from inductor_lab.compiler.accelerators import LISTS
from inductor_lab.compiler.base.errors import BadOption
from inductor_lab.compiler.base.options import Options
from inductor_lab.compiler.lower.graph import lowered
from inductor_lab.compiler.rewrite.decompose.decompositions import decomposition_table
from inductor_lab.compiler.rewrite.decompose.find_decomposed import decompositions_of
from inductor_lab.compiler.rewrite.passes import rewrite
from inductor_lab.compiler.torch_door import torch_aot, torch_api

aten = torch.ops.aten
PASSES = LISTS["rewrite"]
x = torch.randn(4, 8)


def run(function, *inputs, **options):
    module = make_fx(function, tracing_mode="fake")(*inputs)
    result = rewrite(module, "forward", Options(**options))
    result.module.graph.lint()
    return result


def targets(result):
    nodes = result.module.graph.nodes
    return [str(n.target) for n in nodes if n.op in ("call_function", "get_attr")]


def by_pass(result, name):
    return [(f.node, f.became) for step in result.steps if step.name == name for f in step.fired]


# ---- constant folding ------------------------------------------------------------------------


def test_folds_to_full():
    result = run(lambda x: x + torch.full((8,), 2.0) * 3 + 1.5, x)
    assert targets(result) == ["aten.full.default", "aten.add.Tensor", "aten.add.Tensor"]
    assert (
        result.module.graph.find_nodes(op="call_function", target=aten.full.default)[0].args[1]
        == 6.0
    )
    assert torch.equal(result.module(x), x + 6.0 + 1.5)


def test_folds_to_a_constant():
    result = run(lambda x: x + torch.arange(8) * 2.5, x)
    assert targets(result) == ["_folded_mul", "aten.add.Tensor"]
    assert torch.equal(result.module(x), x + torch.arange(8) * 2.5)


def test_a_chain_is_folded_once():
    result = run(lambda x: x * ((torch.full((), 3.0) + 1) * 2).neg(), x)
    assert by_pass(result, "constant_folding") == [("neg", "full_1")]
    assert targets(result) == ["aten.full.default", "aten.mul.Tensor"]
    assert torch.equal(result.module(x), x * -8.0)


@pytest.mark.parametrize("fill", [-0.0, float("nan"), float("inf")])
def test_special_values_are_folded_exactly(fill):
    result = run(lambda x: torch.full((3,), fill) * torch.ones(3), x)
    found = result.module(x)
    assert repr(found[0].item()) == repr(fill)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x + torch.rand(8) * 2,  # random
        lambda x: x[0, 0] + torch.arange(5000) * 2,  # large
        lambda x: x[0, 0] + torch.arange(3000) * 2,  # not one value, and too large to keep
        lambda x: x + torch.full((8,), 2.0),  # already a constant
        lambda x: x * 2 * 3,  # depends on an input
        lambda x: x + torch.full((1,), 2.0).expand(8),  # a view
    ],
)
def test_does_not_fold(function):
    assert by_pass(run(function, x), "constant_folding") == []


def test_folds_under_fake_mode():
    with torch._subclasses.FakeTensorMode() as mode:
        module = make_fx(lambda x: x + torch.full((8,), 2.0) * 3)(mode.from_tensor(x))
        result = rewrite(module, "forward", Options())
    assert torch.equal(result.module(x), x + 6.0)


# ---- common subexpressions -------------------------------------------------------------------


def test_equal_calls_run_once():
    result = run(lambda x: x.sin() * x.sin().cos() + x.sin().cos(), x)
    assert len(by_pass(result, "common_subexpressions")) == 3
    assert targets(result) == [
        "aten.sin.default", "aten.cos.default", "aten.mul.Tensor", "aten.add.Tensor",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "function",
    [
        lambda x: torch.rand_like(x) - torch.rand_like(x),
        lambda x: x.new_empty(3) + x.new_empty(3),
        lambda x: (x + 1).sum() / (x + True).mean(),
        lambda x: (x * 0.0).sin() + (x * -0.0).sin(),
        lambda x: (x.sin(), x.sin()),
        lambda x: (x.max(1).values, x.max(1).values),
        lambda x: x.sin() + x.add_(1).sin(),
    ],
)
def test_these_are_not_equal(function):
    assert by_pass(run(function, x.clone()), "common_subexpressions") == []


def test_several_results_are_shared_too():
    result = run(lambda x: x.max(1).values * x.max(1).values, x)
    assert targets(result) == ["aten.max.dim", "<built-in function getitem>", "aten.mul.Tensor"]


def test_the_survivor_inherits_the_origins():
    result = run(lambda x: x.sin() + x.sin(), x)
    (sin,) = result.module.graph.find_nodes(op="call_function", target=aten.sin.default)
    assert sin.meta["lab_from"] == ("sin", "sin_1")


# ---- dead code -------------------------------------------------------------------------------


def test_dead_code_is_removed():
    def function(x):
        x.sin().cos()
        return x + 1

    result = run(function, x)
    assert by_pass(result, "dead_code") == [("cos", ""), ("sin", "")]
    assert targets(result) == ["aten.add.Tensor"]


def test_writes_are_not_dead():
    def function(x):
        x.copy_(x * 2)
        return x.sum()

    assert "aten.copy_.default" in targets(run(function, x.clone()))


# ---- the record ------------------------------------------------------------------------------


def example(x):
    return ((x * 1) ** 2).view(32).view(8, 4) + torch.full((4,), 2.0) * 3, x.sin() + x.sin()


def test_the_given_module_is_unchanged():
    module = make_fx(example, tracing_mode="fake")(x)
    text = module.code
    names = [node.name for node in module.graph.nodes]
    rewrite(module, "forward", Options())
    assert (module.code, [node.name for node in module.graph.nodes]) == (text, names)
    assert not any("lab_from" in node.meta for node in module.graph.nodes)


def test_steps_are_graphs_that_run():
    result = run(example, x)
    assert [step.name for step in result.steps] == list(PASSES)
    expected = example(x)
    for step in result.steps:
        changed = {"constant_folding", "common_subexpressions", "identities", "dead_code"}
        assert step.changed is (step.name in changed)
        for graph in (step.before, step.after):
            for found, value in zip(graph.run(x), expected, strict=True):
                assert torch.equal(found, value)
    for earlier, later in zip(result.steps, result.steps[1:], strict=False):
        assert earlier.after is later.before


def test_a_pass_that_does_nothing():
    result = run(lambda x: x.sin(), x)
    assert not any(step.changed for step in result.steps)
    assert len({id(g) for step in result.steps for g in (step.before, step.after)}) == 1


def test_without_a_record():
    module = make_fx(example, tracing_mode="fake")(x)
    result = rewrite(module, "forward", Options(), record=False)
    assert result.steps[0].before is None
    assert [str(f) for f in result.fired] == [str(f) for f in run(example, x).fired]


def test_text():
    assert (
        str(run(example, x))
        == """\
collectives
flex_attention
constant_folding
  constant_folding: mul_1 -> full_1
common_subexpressions
  common_subexpressions: sin_1 -> sin
identities
  mul_one: mul -> x_1
  pow_two: pow_1 -> mul_2
  view_of_view: view_1 -> view_2
attention
own_attention
convolutions
products
dead_code
  dead_code: full -> nothing
  dead_code: view -> nothing
matmul_nests"""
    )
    assert repr(run(example, x)) == "Rewrites(11 passes, 7 rules fired)"


def test_every_node_has_origins():
    result = run(example, x)
    stands_for = {n.name: n.meta["lab_from"] for n in result.module.graph.nodes}
    assert stands_for["mul_2"] == ("pow_1", "mul")
    assert stands_for["view_2"] == ("view_1", "view")
    assert stands_for["full_1"] == ("mul_1", "full")
    assert stands_for["add"] == ("add",)


@pytest.mark.parametrize("name", [*PASSES, "pow_two"])
def test_switched_off(name):
    result = run(example, x, rewrites_off=(name,))
    if name in PASSES:
        assert str(run(example, x, passes_off=(name,))) == str(result)
    assert name not in {f.rule for f in result.fired}
    assert all(step.fired == () for step in result.steps if step.name == name)
    for found, value in zip(result.module(x), example(x), strict=True):
        assert torch.equal(found, value)


def test_unknown_name():
    with pytest.raises(BadOption, match="pow_seven"):
        run(example, x, rewrites_off=("pow_seven",))


# ---- graphs of AOTAutograd -------------------------------------------------------------------


def aot(function, *inputs):
    """Compile with torch.compile; the rewritten ATen graphs run in place of the originals."""
    seen = []

    def compiler(module, example_inputs):
        result = rewrite(module, "forward", Options())
        seen.append((module, result))
        return torch_api.boxed(result.module.forward)

    def backend(module, example_inputs):
        return torch_aot.aot_autograd(
            module, example_inputs, fw_compiler=compiler, bw_compiler=compiler,
            partition_fn=default_partition,
            decompositions=decomposition_table(lowered()),
        )  # fmt: skip

    torch._dynamo.reset()
    return torch.compile(function, backend=backend)(*inputs), seen


def test_lines_of_the_user():
    def function(x):
        y = x * 1
        return y.softmax(1)

    found, seen = aot(function, x)
    torch.testing.assert_close(found, function(x))
    module, result = seen[0]
    (fired,) = [f for f in result.fired if f.rule == "mul_one"]
    assert fired.span.code == "y = x * 1"
    assert "test_passes.py" in fired.span_text
    softmax = next(d for d in decompositions_of(module) if "softmax" in d.op)
    assert "aten.exp.default" in softmax.became
    assert len(softmax.nodes) == len(softmax.became)
    assert softmax.span.code == "return y.softmax(1)"
    assert not any(d.op == "aten.mul.Tensor" for d in decompositions_of(module))


def test_each_call_is_decomposed_once():
    def twice(x):
        for _ in range(2):
            x = x.softmax(1)
        return x

    _, seen = aot(twice, x)
    first, second = (d for d in decompositions_of(seen[0][0]) if "softmax" in d.op)
    assert len(first.became) == len(second.became) == 5

    def loss(x):
        return x.log_softmax(1).std()

    found, seen = aot(loss, x.clone().requires_grad_())
    found.backward()
    backward = [d for d in decompositions_of(seen[1][0]) if "_log_softmax_backward" in d.op]
    assert [len(d.became) for d in backward] == [4], "a detach is between its nodes"


def test_gradients_are_those_of_eager():
    layer = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.GELU(), torch.nn.LayerNorm(8))

    def loss(x):
        return ((layer(x) ** 2) / 8).mean() + (x * 1).sum()

    given = x.clone().requires_grad_()
    loss(given).backward()
    expected, given.grad = given.grad, None
    found, seen = aot(loss, given)
    found.backward()
    assert len(seen) == 2
    torch.testing.assert_close(given.grad, expected)
