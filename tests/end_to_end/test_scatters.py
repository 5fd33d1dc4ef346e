"""Scatters (stores at computed positions) in every stage, in C++ and in interpreted Triton."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch._subclasses import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.testing import assert_close

import inductor_lab as lab
from inductor_lab.compiler.base.options import Options
from inductor_lab.compiler.ir.program import ExternCall, Pointwise, Scatter
from inductor_lab.compiler.ir.verify import verify
from inductor_lab.compiler.lower.graph import lower_graph, lowered
from inductor_lab.compiler.rewrite.decompose.decompositions import decomposition_table
from inductor_lab.compiler.schedule.verify import verify_schedule

f16, bf16, f32, i8, i64 = torch.float16, torch.bfloat16, torch.float32, torch.int8, torch.int64


def generator(*shape: int) -> torch.Generator:
    return torch.Generator().manual_seed(sum(shape))


def floats(*shape: int, dtype: torch.dtype = f32) -> torch.Tensor:
    return torch.randn(shape, generator=generator(*shape)).to(dtype)


def ints(high: int, *shape: int, low: int = 0, dtype: torch.dtype = i64) -> torch.Tensor:
    return torch.randint(low, high, shape, generator=generator(*shape)).to(dtype)


def special(*shape: int) -> torch.Tensor:
    values = torch.tensor([1.0, -2.0, float("inf"), 0.0, -0.0, float("nan"), -float("inf"), 3.0])
    return values[ints(8, *shape)]


def put(x: Any, i: Any, v: Any) -> Any:
    x = x * 1
    x[i] = v + v
    return x * 2


def put_many(x: Any, i: Any, j: Any, v: Any) -> Any:
    x = x.clone()
    x[i, :, j] = v
    x[0] = 5
    x[:, 1:3] += 1
    x[:, i[:, 0] % 5] -= v.sum() + x[:, :3]
    return x.index_put((i, j % 5), v.cos().sum(2, True), accumulate=True)


def masks(x: Any, m: Any, v: Any) -> Any:
    x = x.clone()
    x[m] = 0.5
    x[:, m[0]] = 2
    x[:, m.any(0)] = v
    return x.index_put((m,), v[0, 0], accumulate=True)


def reduced(reduce: str, include_self: bool, x: Any, i: Any, v: Any) -> Any:
    along = x.scatter_reduce(0, i, v, reduce, include_self=include_self)
    kind = {"sum": "mean", "prod": "prod", "mean": "mean"}.get(reduce, reduce)
    whole = x.index_reduce(0, i[:, 0], v[:, : x.shape[1]], kind, include_self=include_self)
    return along, whole * 2


def mixture(x: Any, w: Any, expert: Any) -> Any:
    """Group tokens by expert and restore their order, as in a mixture-of-experts block."""
    order = expert.argsort(stable=True)
    return torch.zeros_like(x).index_add(0, order, x[order].sin() * w[expert[order], None])


def many_rows(x: Any, i: Any) -> Any:
    return x.new_zeros(50, x.shape[1]).index_add(0, i, x.sin()) / 2


CASES: dict[str, tuple[Callable[..., Any], tuple[torch.Tensor, ...]]] = {
    "put": (put, (floats(9, 20), ints(9, 6, low=-9), floats(6, 20))),
    "put_scalar": (put, (floats(9, 20), ints(9, 6), torch.tensor(3.0))),
    "put_one": (
        lambda x, i, v: x.index_put((i,), v) + x.index_put((i,), v, accumulate=True),
        (floats(9, 20), torch.tensor(-2), floats(20)),
    ),
    "put_many": (put_many, (floats(6, 5, 7), ints(6, 3, 1), ints(7, 4), floats(3, 4, 5))),
    "put_into_half": (put, (floats(9, 20, dtype=f16), ints(9, 6), floats(6, 20, dtype=f16))),
    "masks": (masks, (floats(8, 8), floats(8, 8) > 0, floats(8, 1))),
    "flat": (
        lambda x, i, v: (x.put(i, v), x.put(i, v, accumulate=True)),
        (floats(6, 7).t(), ints(42, 3, 5, low=-42), floats(5, 3)),
    ),
    "scatter": (
        lambda x, i, v: (x.scatter(1, i, v * 2), x.scatter(0, i[:, :20] % 9, 7.0)),
        (floats(9, 20), ints(20, 7, 30), floats(8, 30)),
    ),
    "scatter_one_each": (
        lambda x, i: x.scatter(1, i, 1.5).softmax(1),
        (floats(9, 20), ints(20, 9, 1)),
    ),
    "scatter_and_add": (
        lambda x, i, v: x.scatter(1, i, v, reduce="add").scatter(0, i % 9, 3, reduce="multiply"),
        (floats(9, 20), ints(20, 7, 20), floats(8, 30)),
    ),
    "scatter_add_bytes": (
        lambda x, i, v: x.scatter_add(1, i, v) | x,
        (ints(9, 9, 20, dtype=i8), ints(20, 9, 30), ints(90, 9, 30, dtype=i8)),
    ),
    "scatter_add_bool": (
        lambda x, i, v: x.scatter_add(1, i, v) | x,
        (floats(9, 20) > 1, ints(20, 9, 30), floats(9, 30) > 0),
    ),
    "scatter_rows": (
        lambda x, i, v: x.scatter_add(0, i[:, None].expand(40, 12), v.sin()),
        (floats(9, 12, dtype=bf16), ints(9, 40), floats(40, 12, dtype=bf16)),
    ),
    "index_add": (
        lambda x, i, v: (x * 2).index_add(1, i, v.sin(), alpha=3).cos(),
        (floats(5, 6, 7), ints(6, 9), floats(5, 9, 7)),
    ),
    "index_add_ints": (
        lambda x, i, v: x.index_add(0, i, v, alpha=-2),
        (ints(9, 30), ints(30, 90), ints(9, 90)),
    ),
    "index_copy": (
        lambda x, i, v: x.index_copy(0, i, v),
        (ints(9, 9, 20), ints(9, 16, dtype=torch.int64), ints(9, 16, 20)),
    ),
    "index_fill": (
        lambda x, i: (x.index_fill(1, i, 3), x.index_fill(0, i[0], x.sum())),
        (floats(9, 20), ints(9, 6, low=-9)),
    ),
    **{
        f"{name}{'' if given else '_alone'}": (
            partial(reduced, name, given),
            (floats(9, 11), ints(9, 20, 11), floats(20, 13)),
        )
        for name in ("sum", "prod", "mean", "amax", "amin")
        for given in (True, False)
    },
    "nan_wins": (
        lambda x, i, v: (x.scatter_reduce(0, i, v, "amax"), x.scatter_reduce(0, i, -v, "amin")),
        (special(40), ints(40, 60), special(60)),
    ),
    "integers": (
        partial(reduced, "mean", True),
        (ints(9, 9, 11, low=-9), ints(9, 20, 11), ints(9, 20, 13, low=-9)),
    ),
    "halves": (
        partial(reduced, "prod", False),
        (floats(9, 11, dtype=f16), ints(9, 20, 11), floats(20, 13, dtype=f16)),
    ),
    "nobody": (lambda x, i, v: x.index_add(0, i, v), (floats(3, 4), ints(3, 0), floats(0, 4))),
    "nothing": (lambda x, i, v: x.index_add(0, i, v), (floats(3, 0), ints(3, 5), floats(5, 0))),
    "zero_dim": (
        lambda x, i, v: (x.scatter_add(0, i, v), x.index_fill(0, i, 2), x.index_add(0, i, v)),
        (torch.tensor(3.0), torch.tensor(0), torch.tensor(2.0)),
    ),
    "strided": (
        lambda x, v: torch.as_strided_scatter(x * 2, v, (3, 4), (7, 2), 1),
        (floats(6, 7), floats(3, 4)),
    ),
    "transposed": (
        lambda x, i, v: x.t().index_copy(1, i, v),
        (floats(9, 5), ints(9, 4), floats(5, 4)),
    ),
    "one_hot": (lambda i: F.one_hot(i, 9) * 2, (ints(9, 4, 5),)),
    "mixture": (mixture, (floats(30, 8), floats(4), ints(4, 30))),
    "many_rows": (many_rows, (floats(3000, 300), ints(50, 3000))),
    "many_bins": (
        lambda x, i: x.new_zeros(77).scatter_add(0, i, x),
        (floats(90_000), ints(77, 90_000)),
    ),
}
EXTERN = {
    "mixture": {"aten.sort.stable"},
    "one_hot": {"aten._assert_async.msg"},
    "zero_dim": {
        "aten.scatter_add.default",
        "aten.index_add.default",
        "aten.index_fill.int_Scalar",
    },
}
"""The library calls of each function."""

LAST_STAYS = {"put", "put_many", "put_into_half", "flat", "scatter", "index_copy", "transposed"}
"""Several values are stored at one position: on a CPU the last one wins, on a GPU any can win."""


def same(found: Any, expected: Any, where: str) -> None:
    found = found if isinstance(found, tuple | list) else (found,)
    expected = expected if isinstance(expected, tuple | list) else (expected,)
    for a, b in zip(found, expected, strict=True):
        wide = 3e-2 if b.dtype in (f16, bf16) else 2e-4
        assert_close(a, b, rtol=wide, atol=wide, equal_nan=True, msg=lambda m: f"{where}: {m}")


@pytest.mark.parametrize("name", CASES)
def test_every_stage(name: str) -> None:
    function, args = CASES[name]
    expected = function(*args)
    c = lab.inspect(function, *args)
    part = c.graphs[0].forward
    verify(part.loops)
    verify_schedule(part.schedule)
    assert {call.op for call in part.loops.steps if hasattr(call, "op")} == EXTERN.get(name, set())
    same(c.result, expected, "C++")
    same(part.loops.run(*c.graphs[0].inputs), expected, "loops")
    same(part.schedule.run(*c.graphs[0].inputs), expected, "schedule")


@pytest.mark.parametrize("name", sorted(CASES.keys() - {"many_rows", "many_bins"}))
def test_triton(name: str) -> None:
    function, args = CASES[name]
    c = lab.inspect(function, *args, options={"language": "triton"})
    same(c.result, function(*args), "Triton")


# ---- compiled code -------------------------------------------------------------------------------


def forward(function: Callable[..., Any], *args: Any, **options: Any) -> Any:
    return lab.inspect(function, *args, **options).graphs[0].forward


def test_producers_are_fused_into_the_scatter() -> None:
    part = forward(many_rows, floats(30, 8), ints(50, 30))
    assert [[type(n) for n in group.nests] for group in part.schedule.groups] == [
        [Pointwise],
        [Scatter],
        [Pointwise],
    ]
    assert "sin" in str(part.kernels[1])
    assert len(part.schedule.memory.in_place) == 2
    assert part.schedule.memory.peak_after == 50 * 8 * 4


def test_only_axes_without_collisions_are_parallel() -> None:
    """Rows of the result can collide, but columns cannot."""
    part = forward(many_rows, floats(3000, 300), ints(50, 3000))
    text = str(part.kernels[1])
    strips = text.index("parallel for"), text.index("for (int64_t j0"), text.index("simd")
    assert list(strips) == sorted(strips)
    part = forward(
        lambda x, i: x.new_zeros(77).scatter_add(0, i, x), floats(90_000), ints(77, 90_000)
    )
    assert "#pragma" not in str(part.kernels[1])


def test_assignments_in_a_row_copy_once() -> None:
    def assigned(x: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
        x = x.clone()
        for step in range(5):
            x[i + step] = step
        return x

    part = forward(assigned, floats(20, 4), ints(9, 3))
    assert len(part.kernels) == 6
    assert part.schedule.memory.peak_after == 20 * 4 * 4
    x, i = floats(20, 4), ints(9, 3)
    same(part.executable.run(*sorted((x, i), key=lambda t: t.dtype is i64)), assigned(x, i), "C++")


def test_a_base_that_is_read_later_is_copied() -> None:
    def both(x: torch.Tensor, i: torch.Tensor) -> tuple[torch.Tensor, ...]:
        first = x.index_fill(0, i, 1)
        return first, first.index_fill(0, i + 1, 2), x

    x, i = floats(20, 4), ints(9, 3)
    c = lab.inspect(both, x, i)
    same(c.result, both(x, i), "C++")


@pytest.mark.parametrize("language", ["cpp", "triton"])
@pytest.mark.parametrize(
    "function",
    [
        lambda x, i: x.index_add(0, i, x[:4]),
        lambda x, i: x.scatter(0, i[:, None].expand(4, 5), 1.0),
        lambda x, i: x.scatter(1, i[:, None].expand(4, 1).repeat(2, 1)[:6], 1.0),
        lambda x, i: x.index_put((i,), x[0]),
        lambda x, i: x.put(i * 10, x[0, :4]),
        lambda x, i: x.scatter_reduce(0, i[:, None].expand(4, 5), x[:4], "amax"),
    ],
)
@pytest.mark.parametrize("bad", [6, -7, 2**40])
def test_bad_indices_raise(function: Callable[..., Any], language: str, bad: int) -> None:
    x, i = floats(6, 5), torch.tensor([1, 0, bad, 2])
    with pytest.raises((IndexError, RuntimeError)):
        function(x, i)
    with pytest.raises(IndexError):
        lab.inspect(function, x, i, options={"language": language})


def test_the_last_store_wins() -> None:
    x, i = torch.zeros(3, 600), torch.tensor([1, 1, 2, 1, 2]).repeat(500)
    v = torch.arange(2500.0)[:, None].expand(2500, 600)
    for language in ("cpp", "triton"):
        c = lab.inspect(
            lambda x, i, v: x.index_copy(0, i, v), x, i, v, options={"language": language}
        )
        assert c.result[:, 0].tolist() == [0, 2498, 2499]


def test_sums_are_deterministic() -> None:
    x, i = floats(3000, 300), ints(50, 3000)
    compiled = lab.compile(many_rows)
    first = compiled(x, i)
    assert all(torch.equal(first, compiled(x, i)) for _ in range(5))


@pytest.mark.parametrize("rows", [0, 1, 2, 7, 64])
@pytest.mark.parametrize("picked", [0, 1, 7, 64])
def test_dynamic_sizes(rows: int, picked: int) -> None:
    def function(x: torch.Tensor, i: torch.Tensor, v: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return x.index_add(0, i, v) * 2, x.index_put((i - len(x),), v), x.sum(0)

    compiled = _dynamic(function)
    x, v = floats(rows, 5), floats(picked, 5)
    i = ints(max(rows, 1), picked)
    if rows or not picked:
        same(compiled(x, i, v), function(x, i, v), "dynamic")


_COMPILED: dict[str, Callable[..., Any]] = {}


def _dynamic(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function with dynamic sizes."""
    if function.__qualname__ not in _COMPILED:
        torch.compiler.reset()
        _COMPILED[function.__qualname__] = lab.compile(function, dynamic=True)
    return _COMPILED[function.__qualname__]


def test_gradients() -> None:
    table, tokens = torch.nn.Parameter(floats(30, 8)), ints(30, 4, 6)

    def loss(w: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
        rows = F.embedding(i, w, padding_idx=2)
        picked = rows.gather(2, i[..., None] % 8) + w[i].index_select(0, i[0] % 4).sum()
        return (picked.sin() * w.take(i)[..., None]).sum()

    (expected,) = torch.autograd.grad(loss(table, tokens), table)
    c = lab.inspect(loss, table, tokens)
    (found,) = torch.autograd.grad(c.result, table)
    assert_close(found, expected, rtol=1e-4, atol=1e-4)
    assert not [s for s in c.graphs[0].backward.loops.steps if hasattr(s, "op")]


def test_mutated_inputs() -> None:
    def function(x: torch.Tensor, i: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        x.index_add_(0, i, v)
        x[i] *= 2
        x[0, i % 5] = 7
        return x.sum()

    x, i, v = floats(9, 5), ints(9, 4), floats(4, 5)
    expected = x.clone()
    total = function(expected, i, v)
    found = x.clone()
    assert_close(lab.compile(function)(found, i, v), total)
    assert_close(found, expected)


def test_a_saved_scatter_is_unchanged(tmp_path: Any) -> None:
    c = lab.inspect(many_rows, floats(30, 8), ints(50, 30))
    loaded = lab.load(c.save(tmp_path / "scatter.lab.json"))
    for station in ("loops", "schedule", "kernels"):
        here, there = (getattr(one.graphs[0].forward, station) for one in (c, loaded))
        assert str(here) == str(there)


@pytest.mark.parametrize("dtype", [f32, i64, i8])
def test_a_gpu_uses_atomic_operations_or_aten(dtype: torch.dtype) -> None:
    """Without an atomic operation, values that collide would have to wait for each other."""

    def function(x: Any, i: Any, v: Any) -> tuple[Any, ...]:
        most = x.scatter_reduce(0, i, v, "amax")
        product = x.scatter_reduce(0, i, v, "prod", include_self=False)
        total = x.index_put((i,), v, accumulate=True)
        return most, product, x.scatter_add(0, i, v), total, x.scatter(0, i, v)

    with FakeTensorMode():
        x, v = (torch.empty(n, dtype=dtype, device="cuda") for n in (9, 20))
        i = torch.empty(20, dtype=i64, device="cuda")
        table = dict(decomposition_table(lowered()))
        module = make_fx(function, decomposition_table=table)(x, i, v)
    program = lower_graph(module, "gpu", Options())
    kinds = [step.kind for step in program.nests if isinstance(step, Scatter)]
    called = [step.reason for step in program.steps if isinstance(step, ExternCall)]
    assert set(called) <= {"no atomic operation"}
    expected = {f32: ["add", "add", "store"], i64: ["maximum", "add", "add", "store"]}
    assert kinds == expected.get(dtype, ["store"])
    assert len(called) + len(kinds) == 5


def test_compiled_for_a_gpu() -> None:
    pytest.importorskip("triton")
    part = forward(partial(reduced, "amax", False), floats(9, 11), ints(9, 20, 11), floats(20, 13))
    added = forward(many_rows, floats(30, 8), ints(50, 30))
    assert "red.global" in added.kernels[1].ladder("cuda:90")["ptx"]
    for kernel in part.kernels:
        assert kernel.ladder("cuda:90")["cubin"]
