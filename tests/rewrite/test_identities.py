"""Every identity applies where it should, changes no bit of any result, and applies nowhere
else."""

import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx

from inductor_lab.compiler.base.options import Options
from inductor_lab.compiler.rewrite.aten.identities import RULES, holds
from inductor_lab.compiler.rewrite.passes import rewrite

aten, prims = torch.ops.aten, torch.ops.prims
nan, inf = float("nan"), float("inf")
SPECIAL = [
    0.0,
    -0.0,
    inf,
    -inf,
    nan,
    1e-40,
    -1e-40,
    3e38,
    0.5,
    -0.5,
    1.5,
    2.5,
    -2.0,
    1.0,
    7.3,
    1e20,
]

floats = torch.tensor(SPECIAL).reshape(4, 4)
doubles = floats.double()
halves = floats.bfloat16()
powers_of_two = torch.exp2(torch.arange(-8.0, 8.0)).reshape(4, 4)
ints = torch.tensor([[0, 1, -1, 2**31 - 1], [-(2**31), 7, -7, 100]], dtype=torch.int32)
flags = torch.tensor([[True, False], [False, True]])


def traced(function, *inputs):
    return make_fx(function, tracing_mode="fake")(*inputs)


def fired(module):
    """Names of the applied identities, in order, and the new module."""
    result = rewrite(module, "forward", Options(), record=False)
    result.module.graph.lint()
    return [f.rule for f in result.fired if f.rule in RULES], result.module


def bits(tensor):
    """The bytes of a tensor; all NaN are equal."""
    if tensor.is_floating_point():
        tensor = torch.where(tensor.isnan(), torch.full_like(tensor, nan), tensor)
    return tensor.contiguous().view(torch.uint8)


def same(a, b):
    assert (a.dtype, a.shape, a.stride()) == (b.dtype, b.shape, b.stride())
    assert torch.equal(bits(a), bits(b))


def used(f):
    """The result is used by another op, so that it is not an output itself."""
    return lambda *inputs: aten.flip.default(f(*inputs), [0])


def of_pairs(x):
    """Adjacent elements as complex numbers."""
    return torch.view_as_complex(x.view(4, 2, 2))


# rule: (function that it changes, its input), (function that it must not change, its input)
CASES = {
    "mul_one": [(lambda x: x * 1, floats), (lambda x: x * 1.0, ints)],
    "div_one": [(lambda x: x / 1, floats), (lambda x: x / 1, ints)],
    "div_power_of_two": [(lambda x: x / -8, floats), (lambda x: x / 10, floats)],
    "add_zero": [(lambda x: x + -0.0, floats), (lambda x: x + 0.0, floats)],
    "sub_zero": [(lambda x: x - 0.0, floats), (lambda x: x - -0.0, floats)],
    "double_neg": [(lambda x: x.neg().neg(), ints), (lambda x: -x.abs(), ints)],
    "abs_of_neg": [(lambda x: (-x).abs(), floats), (lambda x: -(x.abs()), floats)],
    "idempotent": [(lambda x: x.relu().relu(), floats), (lambda x: x.floor().ceil(), floats)],
    "double_not": [
        (lambda x: x.logical_not().logical_not(), flags),
        (lambda x: x.logical_not().logical_not(), floats),
    ],
    "with_itself": [
        (lambda x: torch.maximum(x, x), floats),
        (lambda x: torch.maximum(x, x[0]), floats),
    ],
    "where_same": [
        (lambda x: torch.where(x > 0, x, x), floats),
        (lambda x: torch.where(x[:, :1] > 0, x[0], x[0]), floats),
    ],
    "pow_one": [(lambda x: x**1, floats), (lambda x: x**1.0, ints)],
    "pow_two": [(lambda x: x**2, floats), (lambda x: x**2.0, ints)],
    "pow_minus_one": [
        (lambda x: x ** torch.full((), -1.0), powers_of_two),
        (lambda x: x[0] ** torch.full((4, 1), -1.0), powers_of_two),
    ],
    "pow_half": [
        (lambda x: x ** torch.full((), 0.5), ints),
        (lambda x: x[0] ** torch.full((4, 1), 0.5), floats),
    ],
    "pow_three": [(lambda x: x**3, floats), (lambda x: x**3, halves)],
    "pow_root": [(lambda x: x**0.5, floats), (lambda x: x**0.5, floats.half())],
    "view_of_same_shape": [
        (lambda x: x.expand(4, 4), floats),
        (lambda x: x.expand(2, 4, 4), floats),
    ],
    "view_of_view": [
        (lambda x: x.view(16).view(2, 8), floats),
        (lambda x: x.view(16).unsqueeze(0), floats),
    ],
    "permute_of_permute": [
        (lambda x: x.permute(1, 0).transpose(0, 1), floats),
        (lambda x: x.permute(1, 0).unsqueeze(0), floats),
    ],
    "copy_of_same_kind": [
        (lambda x: x.clone(), floats),
        (lambda x: x.t().clone(memory_format=torch.contiguous_format), floats),
    ],
    "there_and_back": [
        (lambda x: x.float().bfloat16(), halves),
        (lambda x: x.bfloat16().float(), floats),
    ],
    "pairs_of_reals": [
        (lambda x: torch.view_as_real(of_pairs(x) * of_pairs(x)[0].conj() - of_pairs(x)), floats),
        (lambda x: torch.view_as_real(of_pairs(x) * torch.complex(x[:, :2], x[:, 2:])), floats),
    ],
    "cat_of_one": [(lambda x: torch.cat([x]), floats), (lambda x: torch.cat([x, x]), floats)],
}


def test_every_rule_has_an_example():
    assert CASES.keys() == RULES.keys()


@pytest.mark.parametrize("rule", CASES)
def test_a_rule_applies_and_changes_no_bit(rule):
    function, given = CASES[rule][0]
    original = traced(used(function), given)
    names, module = fired(original)
    assert rule in names
    same(module(given), original(given))


@pytest.mark.parametrize("rule", CASES)
def test_a_rule_does_not_apply(rule):
    function, given = CASES[rule][1]
    original = traced(used(function), given)
    names, module = fired(original)
    assert rule not in names
    same(module(given), original(given))


@pytest.mark.parametrize(
    ("function", "given"),
    [
        (lambda x: 1 * x, floats),
        (lambda x: x * torch.full((4, 4), 1.0), floats),
        (lambda x: x + 0, ints),
        (lambda x: x - 0, ints),
        (lambda x: x**2, ints),
        (lambda x: x**2, halves),
        (lambda x: x**2, doubles),
        (lambda x: x**3, doubles),
        (lambda x: x**-0.5, floats),
        (lambda x: x**-1, doubles),
        (lambda x: x / 16384, halves),
        (lambda x: x.float().half(), floats.half()),
        (lambda x: x.long().int(), ints),
        (lambda x: x.int().bool(), flags),
        (lambda x: x & x, ints),
        (lambda x: x.round().round(), floats),
        (lambda x: prims.convert_element_type(x, torch.float32), floats),
        (lambda x: x[0:4], floats),
        (lambda x: x.view(2, 2, 4).permute(2, 0, 1).permute(1, 0, 2), floats),
    ],
)
def test_other_graphs_to_which_a_rule_applies(function, given):
    original = traced(used(function), given)
    names, module = fired(original)
    assert names
    same(module(given), original(given))


@pytest.mark.parametrize(
    ("function", "given"),
    [
        (lambda x: x * torch.full((3, 4, 4), 1.0), floats),
        (lambda x: x.expand(3, 4, 4) * 1, floats),
        (lambda x: torch.add(x, x, alpha=0), floats),
        (lambda x: x / 0.0, floats),
        (lambda x: x / inf, floats),
        (lambda x: x / 2.0**40, floats),
        (lambda x: torch.div(x, 2, rounding_mode="floor"), floats),
        (lambda x: torch.round(torch.round(x, decimals=1), decimals=1), floats),
        (lambda x: x[1:], floats),
        (lambda x: x.float().int(), ints),
        (lambda x: x * 1, torch.tensor([complex(inf, nan)])),
    ],
)
def test_other_graphs_to_which_no_rule_applies(function, given):
    names, _ = fired(traced(used(function), given))
    assert names == []


def test_round_trips():
    assert holds(torch.float32, torch.bfloat16)
    assert not holds(torch.float16, torch.bfloat16)
    assert not holds(torch.float32, torch.int32)
    assert not holds(torch.float64, torch.int64)


# ---- outputs keep the properties that AOTAutograd has reported -------------------------------


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x * 1,
        lambda x: x.clone(),
        lambda x: (x * 1).view(16),
        lambda x: (x.sin(), x.sin() * 1),
        lambda x: (x.sin(), x.sin()),
        lambda x: ((s := x.sin()), s.clone().view(16)),
    ],
)
def test_outputs_do_not_share_new_memory(function):
    before = function(floats)
    _, module = fired(traced(function, floats))
    after = module(floats)
    one = [before, after]
    before, after = (r if isinstance(r, tuple) else (r,) for r in one)
    places = {t.untyped_storage().data_ptr() for t in (*after, floats)}
    assert len(places) == len(after) + 1
    for a, b in zip(before, after, strict=True):
        same(a, b)


def test_an_output_that_is_a_view_of_an_input_stays_one():
    _, module = fired(traced(lambda x: x.view(16).view(2, 8), floats))
    assert module(floats).untyped_storage().data_ptr() == floats.untyped_storage().data_ptr()


def test_strides_of_outputs_are_kept():
    given = floats.t()
    function = lambda x: torch.stack([x]).clone() + 0.5  # noqa: E731
    _, module = fired(traced(function, given))
    same(module(given), function(given))


def scaled(x):
    y = x.sin()
    z = y * 1
    y.add_(1)
    return z + y


def negated(x):
    y = x.sin()
    z = y.neg()
    y.add_(1)
    return z.abs() + y


@pytest.mark.parametrize("function", [scaled, negated])
def test_graphs_with_in_place_writes_are_unchanged(function):
    module = traced(function, floats)
    expected = function(floats)
    names, module = fired(module)
    assert names == []
    same(module(floats), expected)
