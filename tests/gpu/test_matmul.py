"""Matrix products by our own kernels on a GPU."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

import inductor_lab as lab

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU"),
]
EVERY = {"matmul": "triton"}
TUNED = {"mode": "max-autotune-no-cudagraphs"}


def layer(x, w, b, r):
    return F.gelu(F.linear(x, w, b)) + r


def gated(x, w, v, r):
    return F.silu(x @ w.mT) * (x @ v.mT) + r


def attention(x, w, v, r):
    scores = torch.softmax((x @ w[: x.shape[-1]].mT).float(), -1).to(x.dtype)
    return scores.mT @ scores


def randoms(dtype, rows, terms, columns):
    generator = torch.Generator("cuda").manual_seed(rows)

    def made(*size):
        return torch.randn(*size, generator=generator, device="cuda").to(dtype)

    weights = [made(columns, terms) / terms**0.5 for _ in range(2)]
    return [made(4, rows, terms), *weights, made(4, rows, columns)]


def agrees(function, given, options):
    found = lab.compile(function, options=options)(*given)
    wanted, ideal = function(*given), function(*(tensor.double() for tensor in given))
    torch.compiler.reset()
    error, usual = ((made.double() - ideal).abs().max().item() for made in (found, wanted))
    assert error <= 1.5 * usual + 1e-3
    return found


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("sizes", [(512, 768, 768), (100, 72, 200), (33, 300, 1025), (5, 512, 64)],
                         ids=str)  # fmt: skip
@pytest.mark.parametrize("function", [gated, attention])
def test_our_kernels_compute_all_products(function, sizes, dtype):
    agrees(function, randoms(dtype, *sizes), EVERY)


@pytest.mark.parametrize("sizes", [(512, 768, 3072), (3, 513, 250)], ids=str)
def test_with_a_bias(sizes):
    x, w, v, r = randoms(torch.float16, *sizes)
    agrees(layer, [x, w, v[:, 0].contiguous(), r], EVERY)


def test_every_tile_computes_the_same(tmp_path: Path, monkeypatch):
    from inductor_lab.compiler.runtime.triton.launch import load_kernel
    from inductor_lab.compiler.runtime.triton.tune_blocks import variants

    monkeypatch.setenv("INDUCTOR_LAB_CACHE_DIR", str(tmp_path))
    x, w, v, r = randoms(torch.bfloat16, 300, 520, 1100)
    given = [x, w, v[:, 0].contiguous(), r]
    c = lab.inspect(layer, *given, options=EVERY)
    (kernel,) = c.graphs[0].forward.kernels
    ideal = layer(*(tensor.double() for tensor in given))
    usual = (layer(*given).double() - ideal).abs().max().item()
    known = dict(zip(c.graphs[0].forward.loops.inputs, given, strict=True))
    for other in (kernel, *variants(kernel)):
        out = torch.full_like(r, 7.0)
        load_kernel(other)(*(known.get(p.buffer, out) for p in other.parameters))
        assert (out.double() - ideal).abs().max().item() <= 1.5 * usual


def test_the_faster_products_are_chosen(tmp_path: Path, monkeypatch):
    monkeypatch.setenv("INDUCTOR_LAB_CACHE_DIR", str(tmp_path))
    given = randoms(torch.float16, 512, 768, 768)
    c = lab.inspect(gated, *given, options=TUNED)
    choices = c.graphs[0].forward.libraries
    assert choices
    for choice in choices:
        took = dict(choice.seconds)
        assert set(took) == {"ATen", "Triton"} and min(took.values()) > 0
        assert (choice.chosen == "Triton") == (took["Triton"] < 0.95 * took["ATen"])
    ours = sum("tl.dot" in str(kernel) for kernel in c.graphs[0].forward.kernels)
    assert bool(ours) == any(choice.chosen == "Triton" for choice in choices)
    agrees(gated, given, TUNED)


@pytest.mark.parametrize("rows", [1, 3])
def test_the_library_computes_products_with_few_rows(rows):
    x, w = torch.randn(rows, 256, device="cuda").half(), torch.randn(256, 64, device="cuda").half()
    c = lab.inspect(lambda x: (x @ w).relu(), x, options=TUNED)
    assert not c.graphs[0].forward.libraries
    assert "tl.dot" not in "".join(map(str, c.graphs[0].forward.kernels))


def test_kernels_that_check_indices_are_not_measured():
    table, w = torch.randn(100, 64, device="cuda").half(), torch.randn(64, 64, device="cuda").half()
    at = torch.randint(0, 100, (64, 64), device="cuda")
    agrees(lambda t, w, i=at: (t[:64] @ w).gather(1, i[:, :64] % 64) + t[i[0]], [table, w], TUNED)
