"""The fastest library computes each matrix product, and all libraries give the same result."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

import inductor_lab as lab
from inductor_lab.compiler.accelerate import matmul_libraries as matmul
from inductor_lab.compiler.ir import library_ops
from inductor_lab.compiler.ir.program import ExternCall

pytestmark = pytest.mark.skipif(
    not torch.backends.mkldnn.is_available(), reason="this torch has no oneDNN"
)
M, K, N = 256, 320, 256


@pytest.fixture
def onednn_wins(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    """Fake times with which oneDNN is chosen on every machine."""
    monkeypatch.setenv("INDUCTOR_LAB_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(matmul, "timed", lambda product: {"ATen": 2.0, "oneDNN": 1.0})


def calls_of(c: lab.Compilation) -> set[str]:
    steps = c.graphs[0].forward.schedule.steps
    return {step.op for step in steps if isinstance(step, ExternCall)}


def operands(dtype: torch.dtype = torch.float32) -> dict[str, torch.Tensor]:
    torch.manual_seed(0)
    sizes = {"a": (M, K), "at": (K, M), "w": (N, K), "b": (K, N), "bias": (N,), "wide": (M, 2 * K)}
    return {name: torch.randn(size).to(dtype) for name, size in sizes.items()}


PRODUCTS: dict[str, Callable[[dict[str, torch.Tensor]], torch.Tensor]] = {
    "linear": lambda t: torch.nn.functional.linear(t["a"], t["w"], t["bias"]),
    "no bias": lambda t: torch.nn.functional.linear(t["a"], t["w"]),
    "mm": lambda t: t["a"] @ t["b"],
    "transposed": lambda t: t["at"].t() @ t["w"].t(),
    "slices": lambda t: t["wide"][:, K:] @ t["b"],
    "every other column": lambda t: t["wide"][:, ::2] @ t["b"],
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", PRODUCTS)
def test_onednn_computes_the_same(name: str, dtype: torch.dtype, onednn_wins: None) -> None:
    if not library_ops.onednn_supports(dtype):
        pytest.skip("not on this CPU")
    given = operands(dtype)
    c = lab.inspect(PRODUCTS[name], given)
    assert calls_of(c) == {matmul.ONEDNN}
    exact = PRODUCTS[name]({key: value.double() for key, value in given.items()})
    bound = 2e-6 if dtype is torch.float32 else 1e-2
    error = (c.result.double() - exact).abs().max() / exact.abs().max()
    assert error < bound
    (choice,) = c.graphs[0].forward.libraries
    assert choice.chosen == "oneDNN" and f"({M}, {K}) x ({K}, {N})" in str(choice)
    torch.testing.assert_close(c.graphs[0].forward.schedule.run(*c.graphs[0].inputs)[0], c.result)


def test_a_training_step_uses_changed_weights(onednn_wins: None) -> None:
    torch.manual_seed(0)
    layer, x = torch.nn.Linear(K, N), torch.randn(M, K)
    twin = torch.nn.Linear(K, N)
    twin.load_state_dict(layer.state_dict())
    fast = lab.compile(layer)
    for model, forward in ((layer, fast), (twin, twin)):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            forward(x).square().mean().backward()
            optimizer.step()
    torch.testing.assert_close(layer.weight, twin.weight)
    torch.testing.assert_close(fast(x), twin(x), rtol=1e-4, atol=1e-5)


def test_products_that_onednn_cannot_compute_stay_with_aten(onednn_wins: None) -> None:
    t = operands(torch.float64)
    assert calls_of(lab.inspect(lambda a, b: a @ b, t["a"], t["b"])) == {"aten.mm.default"}
    t = operands()
    square = torch.randn(M, N)
    wide = lab.inspect(lambda s, a, b: torch.addmm(s, a, b), square, t["a"], t["b"])
    scaled = lab.inspect(lambda s, a, b: torch.addmm(s, a, b, alpha=2), t["bias"], t["a"], t["b"])
    small = lab.inspect(lambda a, b: a @ b, t["a"][:8, :8], t["b"][:8, :8])
    for c in (wide, scaled, small):
        assert calls_of(c) <= {"aten.addmm.default", "aten.mm.default"}


def test_real_matrices_are_multiplied(monkeypatch, tmp_path) -> None:
    """During a compile, torch creates fake tensors, whose products take no time."""
    monkeypatch.setenv("INDUCTOR_LAB_CACHE_DIR", str(tmp_path))
    made = []
    real = matmul._random
    monkeypatch.setattr(matmul, "_random", lambda *of: made.append(real(*of)) or made[-1])
    with torch.no_grad():
        lab.inspect(PRODUCTS["linear"], operands())
    assert [type(tensor) for tensor in made] == [torch.Tensor] * 3


def test_products_are_measured_once_unless_switched_off(monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("INDUCTOR_LAB_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(matmul, "STEADY", 1e9)
    asked = []
    real = matmul.timed
    monkeypatch.setattr(matmul, "timed", lambda product: asked.append(product) or real(product))
    t = operands()
    for _ in range(2):
        (choice,) = lab.inspect(PRODUCTS["mm"], t).graphs[0].forward.libraries
    assert len(asked) == 1 and all(seconds > 0 for _, seconds in choice.seconds)
    plain = lab.inspect(PRODUCTS["mm"], t, options={"matmul": "aten"})
    assert plain.graphs[0].forward.libraries == () and calls_of(plain) == {"aten.mm.default"}
    with pytest.raises(lab.LabError, match="matmul"):
        lab.Options(matmul="fastest")


def test_times_of_a_busy_machine_are_not_stored(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """They are measured again, here three times, and by the next compile; then they are stored."""
    monkeypatch.setenv("INDUCTOR_LAB_CACHE_DIR", str(tmp_path))
    turns, busy = itertools.count(), True

    def product() -> None:
        time.sleep(0.02 if busy and next(turns) % 3 else 0.002)

    ways = {"ATen": matmul.Candidate(product), "oneDNN": matmul.Candidate(product)}
    asked = []
    monkeypatch.setattr(matmul, "candidates_of", lambda product: asked.append(product) or ways)
    real = matmul.interleaved_times
    measured = []
    monkeypatch.setattr(matmul, "interleaved_times", lambda ways: measured.append(1) or real(ways))
    for compiles in (1, 2):
        (choice,) = lab.inspect(PRODUCTS["mm"], operands()).graphs[0].forward.libraries
        assert choice.seconds and (len(asked), len(measured)) == (compiles, 3 * compiles)
        assert not list(tmp_path.rglob(matmul.ANSWER))
    busy = False
    monkeypatch.setattr(matmul, "STEADY", 1e9)
    for _ in range(2):
        lab.inspect(PRODUCTS["mm"], operands())
    assert len(asked) == 3 and len(list(tmp_path.rglob(matmul.ANSWER))) == 1
    for more in (1, 2):
        lab.inspect(PRODUCTS["mm"], operands(), options={"cache": False})
        assert len(asked) == 3 + more, "it neither reads the disk nor writes to it"
    assert len(list(tmp_path.rglob(matmul.ANSWER))) == 1


def test_equal_products_of_a_graph_share_a_choice_that_can_be_printed(
    onednn_wins: None,
) -> None:
    t = operands()
    c = lab.inspect(lambda a, b: (a @ b, (a + 1) @ b, a.t() @ a), t["a"], t["b"])
    (first, second) = c.graphs[0].forward.libraries
    assert str(c.graphs[0].forward.libraries) == f"(<{first}>, <{second}>)"
    assert "ATen 2000.000 ms, oneDNN 1000.000 ms: oneDNN" in repr(first)


def test_an_alternative_must_be_faster_by_a_margin() -> None:
    def chosen(**seconds: float) -> tuple[str, str]:
        ways = tuple((way.replace("_", " "), took) for way, took in seconds.items())
        choice = matmul.Choice("mm", (M, K, N), "float32", ways)
        return choice.plain, choice.chosen

    assert chosen(ATen=1.0, oneDNN=0.95) == ("ATen", "ATen")
    assert chosen(ATen=1.0, oneDNN=0.8) == ("oneDNN", "oneDNN")
    assert chosen(ATen=1.0, oneDNN=0.8, oneDNN_packed=0.78) == ("oneDNN", "oneDNN")
    assert chosen(ATen=1.0, oneDNN=1.2, oneDNN_packed=0.9, MKL_packed=0.8) == ("ATen", "MKL packed")


def test_one_row_times_a_large_matrix_matters(onednn_wins: None) -> None:
    row, small, large = torch.randn(1, 64), torch.randn(64, 64), torch.randn(64, 32_768)
    assert calls_of(lab.inspect(lambda a, b: a @ b, row, large)) == {matmul.ONEDNN}
    assert calls_of(lab.inspect(lambda a, b: a @ b, row, small)) == {"aten.mm.default"}
