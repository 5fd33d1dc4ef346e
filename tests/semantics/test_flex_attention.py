"""`flex_attention`: the user's functions become loop nests; results equal those of eager mode."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor
from torch.nn.attention.flex_attention import AuxRequest, create_block_mask, flex_attention

import inductor_lab as lab
from inductor_lab.compiler.accelerate import flash, flash_inner
from inductor_lab.compiler.base.errors import RunsUncompiled
from inductor_lab.compiler.ir.program import ExternCall
from inductor_lab.compiler.records import CompiledPart
from inductor_lab.compiler.runtime.executable import cpp_function
from tests.scripts import script

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
LANGUAGES = [None, "triton", *(["cpp"] if DEVICE == "cpu" else [])]
"""Languages of kernels that store no matrix of scores; Triton's interpreter runs them on a CPU."""
LENGTH = 160
WORDS = torch.arange(LENGTH, device=DEVICE) // 50
"""The number of the document of each token."""


def causal(b: Any, h: Any, i: Any, j: Any) -> Any:
    return i >= j


def window(b: Any, h: Any, i: Any, j: Any) -> Any:
    return (i >= j) & (i - j < 20)


def same_document(b: Any, h: Any, i: Any, j: Any) -> Any:
    return (WORDS[i] == WORDS[j]) & (i >= j)


def later_rows(b: Any, h: Any, i: Any, j: Any) -> Any:
    """In some rows everything is masked."""
    return (i > 10) & (i != 100) & (i >= j - 3) & (h >= 0) & (b >= 0)


def capped(score: Any, b: Any, h: Any, i: Any, j: Any) -> Any:
    return 20 * torch.tanh(score / 20)


def alibi(score: Any, b: Any, h: Any, i: Any, j: Any) -> Any:
    return score + (j - i) * torch.exp2(-(h + 1.0)) + 0.1 * b


@pytest.fixture(autouse=True)
def gradients_without_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """torch rejects gradients on the CPU, although it could compute them."""
    monkeypatch.setattr("torch.nn.attention.flex_attention._validate_device", lambda *given: None)


class Case(NamedTuple):
    score_mod: Callable[..., Any] | None = None
    mask_mod: Callable[..., Any] | None = None
    heads: tuple[int, int] = (4, 4)
    batch: tuple[int, int] = (2, 2)
    lengths: tuple[int, int] = (LENGTH, LENGTH)
    width: tuple[int, int] = (16, 16)


CASES = {
    "plain": Case(),
    "causal": Case(None, causal),
    "window": Case(None, window),
    "documents": Case(None, same_document),
    "masked rows": Case(capped, later_rows),
    "capped": Case(capped),
    "alibi": Case(alibi, causal),
    "shared keys": Case(alibi, causal, heads=(6, 2)),
    "one batch of keys": Case(alibi, causal, batch=(3, 1)),
    "few queries": Case(alibi, None, lengths=(5, LENGTH)),
    "one query": Case(alibi, None, lengths=(1, LENGTH)),
    "other width": Case(None, causal, width=(16, 24)),
}


def _given(case: Case, dtype: torch.dtype = torch.float64) -> list[Tensor]:
    torch.manual_seed(0)
    shapes = [
        (case.batch[0], case.lengths[0], case.heads[0], case.width[0]),
        (case.batch[1], case.lengths[1], case.heads[1], case.width[0]),
        (case.batch[1], case.lengths[1], case.heads[1], case.width[1]),
    ]
    made = (torch.randn(shape, dtype=dtype, device=DEVICE) for shape in shapes)
    return [x.transpose(1, 2).requires_grad_() for x in made]


def _function(case: Case) -> Callable[..., Any]:
    mask = case.mask_mod and create_block_mask(
        case.mask_mod, case.batch[0], case.heads[0], *case.lengths, device=DEVICE
    )

    def attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        shared = case.heads[0] != case.heads[1]
        out: Any = flex_attention(q, k, v, case.score_mod, mask, enable_gqa=shared)
        return out

    return attention


def _with_gradients(function: Callable[..., Tensor], given: list[Tensor]) -> list[Tensor]:
    result = function(*given)
    torch.manual_seed(1)
    direction = torch.randn(result.shape, dtype=torch.float64, device=DEVICE).to(result.dtype)
    return [result, *torch.autograd.grad(result, given, direction)]


def steps(result: Tensor) -> list[int]:
    """The relevant strides: a dimension of size 1 may have any stride."""
    return [step for step, size in zip(result.stride(), result.shape, strict=True) if size > 1]


@pytest.mark.parametrize("name", CASES)
def test_values_gradients_and_strides_equal_eager_mode(name: str) -> None:
    case = CASES[name]
    expected = _with_gradients(_function(case), _given(case))
    compiled = lab.compile(_function(case), fullgraph=True)
    # the sums of exponentials are saved in float32 for the backward
    for result, wanted in zip(_with_gradients(compiled, _given(case)), expected, strict=True):
        torch.testing.assert_close(result, wanted, rtol=1e-5, atol=1e-5)
        assert steps(result) == steps(wanted)
    with torch.no_grad():
        torch.testing.assert_close(compiled(*_given(case)), expected[0], rtol=1e-9, atol=1e-9)


def test_gradients_of_captured_tensors() -> None:
    case, words = Case(), LENGTH
    mask = create_block_mask(same_document, 2, 4, words, words, device=DEVICE)

    def attention(q: Tensor, k: Tensor, v: Tensor, table: Tensor, slopes: Tensor) -> Tensor:
        def biased(score: Any, b: Any, h: Any, i: Any, j: Any) -> Any:
            return score * slopes[h] + table[h, i - j + words]

        out: Any = flex_attention(q, k, v, biased, mask)
        return out

    def given() -> list[Tensor]:
        torch.manual_seed(2)
        table = torch.randn(4, 2 * words, dtype=torch.float64, device=DEVICE, requires_grad=True)
        slopes = torch.rand(4, dtype=torch.float64, device=DEVICE, requires_grad=True)
        return [*_given(case), table, slopes]

    expected = _with_gradients(attention, given())
    compiled = lab.compile(attention, fullgraph=True)
    for result, wanted in zip(_with_gradients(compiled, given()), expected, strict=True):
        torch.testing.assert_close(result, wanted, rtol=1e-5, atol=1e-5)


def rule_of(part: CompiledPart) -> str:
    """The way the only attention call was compiled."""
    (step,) = (step for step in part.rewrites.steps if step.name == "flex_attention")
    (fired,) = step.fired
    return fired.rule


HALF = (torch.float16, torch.bfloat16)
CASES_AND_DTYPES = [
    *((name, torch.float32) for name in CASES),
    *((name, dtype) for name in ("documents", "shared keys") for dtype in HALF),
]


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(("name", "dtype"), CASES_AND_DTYPES)
def test_errors_are_as_small_as_those_of_eager_mode(
    name: str, dtype: torch.dtype, language: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flash, "DEVICES", {DEVICE: language})
    case = CASES[name]
    given = [x.detach().to(dtype).requires_grad_() for x in _given(case)]
    exact = [x.detach().double().requires_grad_() for x in given]
    right = _with_gradients(_function(case), exact)
    eager = _with_gradients(_function(case), given)
    ours = _with_gradients(lab.compile(_function(case)), given)
    for one, other, wanted in zip(ours, eager, right, strict=True):
        assert one.dtype is dtype
        bound = 2 * (other.double() - wanted).abs().max() + 1e-5
        assert (one.double() - wanted).abs().max() <= bound


def test_gradients_of_captured_tensors_need_a_matrix_of_scores(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(flash, "DEVICES", {DEVICE: "triton"})
    case = Case()

    def attention(q: Tensor, k: Tensor, v: Tensor, table: Tensor) -> Tensor:
        out: Any = flex_attention(q, k, v, lambda s, b, h, i, j: s + table[h, i - j])
        return out

    def given(dtype: torch.dtype) -> list[Tensor]:
        torch.manual_seed(2)
        table = torch.randn(4, LENGTH, dtype=torch.float64, device=DEVICE)
        return [x.detach().to(dtype).requires_grad_() for x in (*_given(case), table)]

    expected = _with_gradients(attention, given(torch.float64))
    ours = _with_gradients(lab.compile(attention), given(torch.float32))
    for result, wanted in zip(ours, expected, strict=True):
        torch.testing.assert_close(result.double(), wanted, rtol=1e-4, atol=1e-4)
    graph = lab.inspect(attention, *given(torch.float32)).graphs[0]
    assert graph.backward is not None
    fired = [rule_of(part) for part in (graph.forward, graph.backward)]
    assert fired == ["flash_attention", "flex_attention"]
    (kernels,) = (f for f in graph.forward.loops.callees.values() if isinstance(f, flash.Flash))
    assert "tl.dot" in str(kernels)
    options = {"rewrites_off": ("flash_attention",)}
    off = lab.inspect(attention, *given(torch.float32), options=options)
    assert rule_of(off.graphs[0].forward) == "flex_attention"


def test_equal_layers_share_one_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flash, "DEVICES", {DEVICE: "triton"})
    mask = create_block_mask(causal, None, None, 64, 64, device=DEVICE)

    def layers(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        once: Any = flex_attention(q, k, v, capped, mask)
        twice: Any = flex_attention(once, k, v, capped, mask)
        return twice

    q, k, v = (x.detach().float().contiguous() for x in _given(Case(lengths=(64, 64))))
    c = lab.inspect(layers, q, k, v)
    torch.testing.assert_close(c.result, layers(q, k, v))
    calls = [f for f in c.graphs[0].forward.loops.callees.values() if isinstance(f, flash.Flash)]
    assert len(calls) == 2 and calls[0].launches == calls[1].launches


def test_kernels_compile_for_a_gpu_target(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(flash, "DEVICES", {DEVICE: "triton"})
    case = CASES["documents"]
    c = lab.inspect(_function(case), *(x.detach().half().requires_grad_() for x in _given(case)))
    c.save(tmp_path / "flex.lab.json")
    (graph,) = lab.load(tmp_path / "flex.lab.json").graphs
    assert graph.backward is not None
    kernels = [*graph.forward.written, *graph.backward.written]
    assert [kernel.name.rpartition("attention")[2] for kernel in kernels] == [
        "", "_backward_of_queries", "_backward_of_keys",
    ]  # fmt: skip
    assert str(kernels[0]) in str(graph.forward)
    for kernel in kernels:
        assert "wgmma" in str(kernel.ladder("cuda:90")["ptx"])


def test_logsumexp_results() -> None:
    def attention(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        out, aux = flex_attention(q, k, v, alibi, return_aux=AuxRequest(lse=True))
        return out, aux.lse

    q, k, v = (x.detach() for x in _given(Case(), torch.float32))
    for result, wanted in zip(lab.compile(attention)(q, k, v), attention(q, k, v), strict=True):
        torch.testing.assert_close(result, wanted)


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("mask_mod", [None, window], ids=["all", "window"])
def test_symbolic_lengths(
    mask_mod: Any, language: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flash, "DEVICES", {DEVICE: language})

    def attention(q: Tensor, k: Tensor, v: Tensor, mask: Any) -> Tensor:
        out: Any = flex_attention(q, k, v, alibi, mask)
        return out

    compiled = lab.compile(attention, fullgraph=True)
    run, symbolic = flash.Flash.__call__, 0

    def noted(kernels: flash.Flash, *given: Tensor) -> Any:
        nonlocal symbolic
        symbolic += bool(kernels.symbol_sources)
        return run(kernels, *given)

    monkeypatch.setattr(flash.Flash, "__call__", noted)
    for batch, length in ((2, 64), (3, 130), (4, 7)):
        case = Case(lengths=(length, length), batch=(batch, batch))
        mask = mask_mod and create_block_mask(mask_mod, None, None, length, length, device=DEVICE)
        expected = _with_gradients(partial(attention, mask=mask), _given(case))
        given = [x.detach().float().requires_grad_() for x in _given(case)]
        results = _with_gradients(partial(compiled, mask=mask), given)
        for result, wanted in zip(results, expected, strict=True):
            torch.testing.assert_close(result.double(), wanted, rtol=1e-4, atol=1e-4)
    # from the second call on; on a CPU only in the forward
    assert symbolic == {"triton": 4, "cpp": 2, None: 0}[language]


def test_the_users_functions_are_fused_into_loop_nests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flash, "DEVICES", {})
    case = Case(capped, causal)
    q, k, v = (x.detach() for x in _given(case, torch.float32))
    part = lab.inspect(_function(case), q, k, v).graphs[0].forward
    assert rule_of(part) == "flex_attention"
    calls = [step.op for step in part.loops.steps if isinstance(step, ExternCall)]
    assert sum("bmm" in op for op in calls) == 2  # torch 2.11 also copies numbers to a GPU
    assert "tanh" in "".join(str(kernel.code) for kernel in part.kernels)


def flashes(part: CompiledPart) -> list[flash.Flash]:
    return [f for f in part.loops.callees.values() if isinstance(f, flash.Flash)]


ON_A_CPU = pytest.mark.skipif(DEVICE != "cpu", reason="C++ kernels are for a CPU")


@ON_A_CPU
def test_no_matrix_of_scores_on_a_cpu() -> None:
    length = 1024
    mask = create_block_mask(window, None, None, length, length, device="cpu")
    q, k, v = (torch.randn(1, 2, length, 16) for _ in range(3))
    c = lab.inspect(lambda q, k, v: flex_attention(q, k, v, alibi, mask), q, k, v)
    part = c.graphs[0].forward
    assert rule_of(part) == "flash_attention" and [k.language for k in part.written] == ["cpp"]
    assert max(b.layout.storage_size for b in part.loops.buffers.values()) < length**2 / 4
    text = str(part.written[0])
    assert "#pragma omp parallel" in text and text in str(part)


@ON_A_CPU
@pytest.mark.parametrize("lengths", [(1, 300), (17, 70), (100, 1), (130, 257)])
@pytest.mark.parametrize("block", [(128, 128), (100, 36), (16, 200)])
def test_any_length_and_any_block_on_a_cpu(
    lengths: tuple[int, int], block: tuple[int, int]
) -> None:
    """The user's functions are called only for valid positions."""
    table = torch.randn(*lengths)

    def biased(score: Any, b: Any, h: Any, i: Any, j: Any) -> Any:
        return score + table[i, j]

    def mask_mod(b: Any, h: Any, i: Any, j: Any) -> Any:
        return (table[i, j] > -1) & ((i + 3 * h) % 50 >= j % 40)

    mask = create_block_mask(mask_mod, None, 4, *lengths, device="cpu", BLOCK_SIZE=block)

    def attention(q: Tensor, k: Tensor, v: Tensor) -> Any:
        return flex_attention(q, k, v, biased, mask, enable_gqa=True)

    q, k, v = (x.detach() for x in _given(Case(heads=(4, 2), lengths=lengths, width=(10, 24))))
    part = lab.inspect(attention, *(x.float() for x in (q, k, v))).graphs[0].forward
    assert rule_of(part) == "flash_attention"
    ours = lab.compile(attention)(*(x.float() for x in (q, k, v)))
    torch.testing.assert_close(ours.double(), attention(q, k, v), rtol=1e-5, atol=1e-5)


@ON_A_CPU
def test_masked_blocks_are_skipped() -> None:
    """Values that only skipped blocks would read are NaN."""
    length = 512
    mask = create_block_mask(window, None, None, length, length, device="cpu")
    q, k, v = (torch.randn(1, 1, length, 16) for _ in range(3))
    right = flex_attention(q, k, v, None, mask)
    for x in (k, v):
        x[:, :, :128] = torch.nan
    ours = lab.compile(lambda q, k, v: flex_attention(q, k, v, None, mask))(q, k, v)
    torch.testing.assert_close(ours[:, :, 256:], right[:, :, 256:])
    assert ours[:, :, :147].isnan().all()


@ON_A_CPU
def test_a_users_index_out_of_range_raises_on_a_cpu() -> None:
    table = torch.randn(LENGTH - 1)

    def attention(q: Tensor, k: Tensor, v: Tensor) -> Any:
        return flex_attention(q, k, v, lambda s, b, h, i, j: s + table[j])

    q, k, v = (x.detach().float() for x in _given(Case()))
    line = r"return flex_attention\(q, k, v, lambda"
    with pytest.raises(lab.errors.IndexOutOfRange, match=line):
        lab.compile(attention)(q, k, v)


@ON_A_CPU
def test_check_bounds_checks_each_access() -> None:
    table = torch.randn(LENGTH)

    def attention(q: Tensor, k: Tensor, v: Tensor) -> Any:
        return flex_attention(q, k, v, lambda s, b, h, i, j: s + table[j])

    q, k, v = (x.detach().float() for x in _given(Case()))
    part = lab.inspect(attention, q, k, v, options={"check_bounds": True}).graphs[0].forward
    assert rule_of(part) == "flex_attention" and not part.written
    read = [p for kernel in part.kernels for p in kernel.parameters if p.symbol is None]
    assert read and all(p.checked for p in read)
    (name,) = [n for n in part.loops.inputs if part.loops.buffers[n].layout.size == (LENGTH,)]
    kernel = next(k for k in part.kernels if name in [p.buffer for p in k.parameters])
    sizes = {p.buffer: part.loops.buffers[p.buffer].layout.storage_size for p in kernel.parameters}
    sizes[name] -= 1  # the kernel assumes that it is longer
    with pytest.raises(lab.errors.OutOfBounds, match=f"reaches element {LENGTH - 1} of {name}"):
        cpp_function(part.executable.library, [kernel], {})(*map(torch.zeros, sizes.values()))


@ON_A_CPU
@pytest.mark.parametrize("alone", [True, False])
def test_with_suppressed_errors_attention_runs_in_eager_mode(
    alone: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The compiler rejects only the attention kernel."""
    broken = script(
        tmp_path / "broken-g++",
        'for given; do case "$given" in\n'
        '*.cpp) grep -q "lab_flash<" "$given" && refused=1;; esac; done\n'
        '[ "$refused" ] || exec g++ "$@"\n'
        'echo "kernel.cpp:1:1: error: not today" >&2; exit 1',
    )
    monkeypatch.setenv("CXX", str(broken))

    def attention(q: Tensor, k: Tensor, v: Tensor) -> Any:
        found = flex_attention(q, k, v, lambda s, b, h, i, j: s * 1.0625 - i)
        return found if alone else found.sin() * 2

    q, k, v = (torch.randn(1, 2, 40, 8) for _ in range(3))
    torch._dynamo.reset()
    with pytest.raises(lab.errors.CompileFailed, match="not today"):
        lab.compile(attention)(q, k, v)
    torch._dynamo.reset()
    with torch._dynamo.config.patch(suppress_errors=True):
        with pytest.warns(RunsUncompiled, match="attention runs uncompiled: .*could not compile"):
            ours = lab.compile(attention)(q, k, v)
    torch.testing.assert_close(ours, attention(q, k, v))


@pytest.mark.parametrize("language", LANGUAGES[1:])
def test_the_block_size_of_a_mask_is_an_int_with_symbolic_sizes(
    language: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flash, "DEVICES", {DEVICE: language})

    def attention(q: Tensor, k: Tensor, v: Tensor, mask: Any) -> Any:
        return flex_attention(q, k, v, None, mask)

    calls: list[flash.Flash] = []
    run = flash.Flash.__call__

    def noted(kernels: flash.Flash, *given: Tensor) -> Any:
        calls.append(kernels)
        return run(kernels, *given)

    monkeypatch.setattr(flash.Flash, "__call__", noted)
    compiled = lab.compile(attention, dynamic=True)
    for length, size in ((150, 64), (350, 64), (350, 32)):
        mask = create_block_mask(
            causal, None, None, length, length, device=DEVICE, BLOCK_SIZE=size
        )
        q, k, v = (x.detach().float() for x in _given(Case(lengths=(length, length))))
        torch.testing.assert_close(compiled(q, k, v, mask), attention(q, k, v, mask))
    assert len(calls) == 3 and calls[0] is calls[1] and calls[1] is not calls[2]


@pytest.mark.parametrize("language", LANGUAGES[1:])
def test_equal_calls_trace_the_users_functions_once(
    language: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flash, "DEVICES", {DEVICE: language})
    traced, trace = [], flash_inner.inner_of

    def noted(making: Any, functions: Any, masked: bool, *more: Any) -> Any:
        traced.append(masked)
        return trace(making, functions, masked, *more)

    monkeypatch.setattr(flash_inner, "inner_of", noted)
    mask = create_block_mask(causal, None, None, LENGTH, LENGTH, device=DEVICE)

    def times(factor: float) -> Any:  # no default argument: torch 2.11 would use the first one
        return lambda s, b, h, i, j: s * factor

    def layers(q: Tensor, k: Tensor, v: Tensor) -> Any:
        for factor in (2.0, 2.0, 3.0, 2.0):
            q = flex_attention(q, k, v, times(factor), mask)
        return q

    q, k, v = (x.detach().float() for x in _given(Case()))
    torch.testing.assert_close(lab.compile(layers)(q, k, v), layers(q, k, v))
    assert sorted(traced) == [False, False, True, True]  # for each of two factors


@pytest.mark.parametrize("language", LANGUAGES[1:])
def test_attention_kernels_count_as_generated_code_with_all_flops(
    language: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flash, "DEVICES", {DEVICE: language})
    given = [x.detach().float().requires_grad_(language == "triton") for x in _given(Case())]
    c = lab.inspect(_function(CASES["causal"]), *given)
    graph, products = c.graphs[0], 2 * 2 * 4 * LENGTH**2 * 16
    assert c.coverage.calls == 0 and c.coverage.share == 1
    assert graph.forward.schedule.after.flops == 2 * products
    if graph.backward is not None:
        assert graph.backward.schedule.after.flops >= 5 * products
    c = c.measure(0)
    (took,) = (t for t in c.graphs[0].forward.times if "flex_attention" in t.name)
    assert took.generated and took.flops == 2 * products
