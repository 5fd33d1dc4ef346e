"""Decomposed attention becomes the library's fused attention, with the results of eager mode."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch

import inductor_lab as lab
from inductor_lab.compiler.rewrite.aten import match_attention

Function = Callable[..., torch.Tensor]
N, H, ROWS, COLUMNS, D = 2, 3, 20, 24, 8
INF = float("inf")


@pytest.fixture(autouse=True)
def small_ones_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(match_attention, "SMALLEST", 1)


def operands(dtype: torch.dtype = torch.float32) -> tuple[torch.Tensor, ...]:
    generator = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(N, H, n, D, generator=generator) for n in (ROWS, COLUMNS, COLUMNS))
    return q.to(dtype), k.to(dtype), v.to(dtype)


BIAS = torch.randn(N, 1, 1, COLUMNS, generator=torch.Generator().manual_seed(1))
CAUSAL = torch.ones(ROWS, COLUMNS).tril().bool()


def masked(condition: torch.Tensor, fill: float = -INF) -> Function:
    def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        scores = (q @ k.transpose(-1, -2) / math.sqrt(D)).masked_fill(condition, fill)
        return torch.softmax(scores, -1) @ v

    return attend


def hugging_face(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    q, k, v = (x.transpose(1, 2).contiguous().transpose(1, 2) for x in (q, k, v))
    scores = torch.matmul(q, k.transpose(2, 3)) * 0.3 + BIAS.to(q.dtype)
    probabilities = torch.softmax(scores, -1, dtype=torch.float32).to(q.dtype)
    dropped = torch.nn.functional.dropout(probabilities, 0.1, training=False)
    return torch.matmul(dropped, v).transpose(1, 2).reshape(N, ROWS, -1)


def summed(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    scores = torch.einsum("bhls,bhds->bhld", q, k) * D**-0.5
    return torch.einsum("bhld,bhds->bhls", scores.softmax(-1), v)


def three_dimensions(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    q, k, v = q.flatten(0, 1), k.flatten(0, 1), v.flatten(0, 1)
    scores = torch.bmm(q, k.transpose(1, 2)) / math.sqrt(D) + BIAS[:1, 0].to(q.dtype)
    return torch.bmm(torch.softmax(scores, 2), v)


def transposed_keys(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    stored = k.transpose(2, 3).contiguous()
    return (q @ stored).softmax(-1) @ v


def causal(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    lower = torch.tril(torch.ones(q.shape[2], k.shape[2], dtype=torch.bool))
    scores = torch.where(lower, 0.5 * (q @ k.mT), torch.tensor(torch.finfo(q.dtype).min))
    return scores.softmax(-1) @ v


WRITTEN: dict[str, Function] = {
    "plain": lambda q, k, v: (q @ k.mT).softmax(-1) @ v,
    "masked_fill": masked(~CAUSAL),
    "half a mask": masked(torch.arange(COLUMNS) > 9),
    "hugging_face": hugging_face,
    "einsum": summed,
    "three dimensions": three_dimensions,
    "transposed keys": transposed_keys,
    "causal": causal,
    "added": lambda q, k, v: (CAUSAL.to(q.dtype).log() + q @ k.mT).softmax(-1) @ v,
}


def inspected(function: Function, *inputs: torch.Tensor, **options: object) -> lab.Compilation:
    with torch.no_grad():
        return lab.inspect(function, *inputs, options=options)


def fired(c: lab.Compilation) -> list[str]:
    return [f.rule for f in c.graphs[0].forward.rewrites.fired if f.rule == "attention"]


def right(function: Function, c: lab.Compilation, *inputs: torch.Tensor) -> None:
    expected = function(*inputs)
    exact = function(*(x.double() for x in inputs))
    bound = {torch.float32: 2e-6, torch.bfloat16: 2e-2, torch.float16: 3e-3}[inputs[0].dtype]
    for got in (c.result, c.graphs[0].forward.loops.run(*c.graphs[0].inputs)[0]):
        assert (got.shape, got.stride(), got.dtype) == (
            expected.shape, expected.stride(), expected.dtype
        )  # fmt: skip
        torch.testing.assert_close(got.double(), exact, rtol=0, atol=bound, equal_nan=True)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", WRITTEN)
def test_the_usual_spellings(name: str, dtype: torch.dtype) -> None:
    if name == "causal" and dtype is torch.float16:
        pytest.skip("the sum of the lowest float16 and a score may differ from it")
    function, inputs = WRITTEN[name], operands(dtype)
    c = inspected(function, *inputs)
    assert fired(c) == ["attention"]
    right(function, c, *inputs)
    kernels = str(c.graphs[0].forward.host)
    assert "flash_attention" in kernels and "bmm" not in kernels


def no_rows() -> torch.Tensor:
    nothing = ~CAUSAL
    nothing[3] = True
    return nothing


def test_fully_masked_rows_are_nan() -> None:
    for function in (
        masked(no_rows()),
        lambda q, k, v: (q @ k.mT + torch.where(no_rows(), -INF, 0.0)).softmax(-1) @ v,
    ):
        c = inspected(function, *operands())
        assert fired(c) == ["attention"] and c.result[:, :, 3].isnan().all()
        right(function, c, *operands())


@pytest.mark.parametrize("which", ["q", "k", "v"])
@pytest.mark.parametrize("value", [INF, -INF, math.nan])
def test_numbers_that_are_not_finite(which: str, value: float) -> None:
    q, k, v = operands()
    for row in (0, 5, COLUMNS - 5):
        {"q": q, "k": k, "v": v}[which][0, row % H, row, 1] = value
    for name in ("plain", "masked_fill") if which != "k" else ("plain",):
        c = inspected(WRITTEN[name], q, k, v)
        assert fired(c) == ["attention"]
        torch.testing.assert_close(c.result, WRITTEN[name](q, k, v), equal_nan=True)


def test_all_zeros() -> None:
    inputs = [torch.zeros_like(x) for x in operands()]
    right(masked(~CAUSAL), inspected(masked(~CAUSAL), *inputs), *inputs)


OTHERS: dict[str, Function] = {
    "a low fill that a row may be full of": masked(no_rows(), -1e9),
    "probabilities are returned": lambda q, k, v: (
        (p := (q @ k.mT).softmax(-1)) @ v + p.sum(-1, keepdim=True)
    ),
    "scores are used": lambda q, k, v: (
        (s := q @ k.mT).softmax(-1) @ v + s.amax(-1, keepdim=True)
    ),
    "softmax over queries": lambda q, k, v: (q @ k.mT).softmax(-2) @ v,
    "another width of values": lambda q, k, v: (q @ k.mT).softmax(-1) @ v[..., :5],
    "scaled after the mask": lambda q, k, v: ((q @ k.mT + BIAS) * 2).softmax(-1) @ v,
    "no softmax": lambda q, k, v: (q @ k.mT).exp() @ v,
    "float64": lambda q, k, v: ((q.double() @ k.double().mT).softmax(-1) @ v.double()).float(),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_patterns_are_unchanged(name: str) -> None:
    c = inspected(OTHERS[name], *operands())
    assert fired(c) == []
    torch.testing.assert_close(c.result, OTHERS[name](*operands()))


def test_training_is_unchanged() -> None:
    def loss(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return masked(~CAUSAL)(q, k, v).square().sum()

    inputs, twins = ([x.requires_grad_() for x in operands()] for _ in range(2))
    c = lab.inspect(loss, *inputs)
    assert fired(c) == []
    c.result.backward()
    loss(*twins).backward()
    for x, twin in zip(inputs, twins, strict=True):
        torch.testing.assert_close(x.grad, twin.grad)


def test_symbolic_sizes() -> None:
    function = WRITTEN["masked_fill"]

    def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        lower = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool).tril()
        return (q @ k.mT / math.sqrt(D)).masked_fill(~lower, -INF).softmax(-1) @ v

    fast = lab.compile(attend, dynamic=True, fullgraph=True)
    with torch.no_grad():
        right(function, inspected(function, *operands()), *operands())
        for rows, columns in ((20, 24), (31, 9), (64, 64)):
            q = torch.randn(N, H, rows, D)
            k, v = torch.randn(N, H, columns, D), torch.randn(N, H, columns, D)
            torch.testing.assert_close(fast(q, k, v), attend(q, k, v))


def test_small_sizes_and_other_targets_are_unchanged(monkeypatch: pytest.MonkeyPatch) -> None:
    assert fired(inspected(WRITTEN["plain"], *operands(), rewrites_off=("attention",))) == []
    assert fired(inspected(WRITTEN["plain"], *operands(), target="cuda:90")) == []
    monkeypatch.setattr(match_attention, "SMALLEST", ROWS * COLUMNS + 1)
    assert fired(inspected(WRITTEN["plain"], *operands())) == []


def test_origins_of_the_fused_call() -> None:
    c = inspected(WRITTEN["masked_fill"], *operands())
    called = ("flash_attention", "flex_attention")  # the library's, or ours
    steps = c.graphs[0].forward.loops.steps
    (flash,) = (s for s in steps if any(name in getattr(s, "op", "") for name in called))
    nodes = {n.name: n for n in c.graphs[0].forward.rewrites.module.graph.nodes}
    stands_for = {name for origin in flash.origins for name in nodes[origin].meta["lab_from"]}
    assert {"bmm", "bmm_1", "amax", "where"} <= stands_for
