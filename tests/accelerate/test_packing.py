"""Packed weights are always up to date, however the parameter is modified."""

from __future__ import annotations

import copy
import gc
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import nn

import inductor_lab as lab
from inductor_lab.api.backend import backend_with
from inductor_lab.compiler.accelerate import matmul_libraries as matmul
from inductor_lab.compiler.accelerate import own_products
from inductor_lab.compiler.accelerate.packing import LIBRARIES as LIBRARY
from inductor_lab.compiler.accelerate.packing import (
    LINEAR,
    MOST_FORMS,
    PAYS,
    TRIES,
    WEIGHTS,
    packing_problem,
)
from inductor_lab.compiler.base.observer import Observer
from inductor_lab.compiler.base.options import Options
from inductor_lab.compiler.ir.library_ops import mkl_supports, onednn_supports
from inductor_lab.compiler.ir.program import ExternCall

pytestmark = pytest.mark.skipif(
    not torch.backends.mkldnn.is_available(), reason="this torch has no oneDNN"
)
ROWS, INNER, COLUMNS = 128, 320, 256
LIBRARIES = ["oneDNN"] + ["MKL"] * mkl_supports(torch.float32)
LIBRARIES += ["inductor_lab"] * own_products.knows(torch.float32)


@pytest.fixture(autouse=True)
def nothing_packed() -> Iterator[None]:
    torch._dynamo.reset()
    lab.release_memory()
    yield
    lab.release_memory()


@pytest.fixture(params=LIBRARIES)
def library(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path) -> str:
    """Fake times with which packed weights are chosen."""
    monkeypatch.setenv("INDUCTOR_LAB_CACHE_DIR", str(tmp_path))
    answer = {"ATen": 2.0, "oneDNN": 2.0, f"{request.param} packed": 1.0}
    monkeypatch.setattr(matmul, "timed", lambda product: answer)
    return request.param


@pytest.fixture
def layer() -> nn.Linear:
    torch.manual_seed(0)
    return nn.Linear(INNER, COLUMNS)


def rows(dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(ROWS, INNER).to(dtype)


def assert_up_to_date(fast: Callable[..., torch.Tensor], eager: nn.Module) -> None:
    """Check that the compiled module computes the current result of eager mode."""
    x = rows(next(eager.parameters()).dtype)
    with torch.no_grad():
        exact = copy.deepcopy(eager).double()(x.double())
        error = (fast(x).double() - exact).abs().max() / exact.abs().max()
    assert error < (1e-5 if x.dtype is torch.float32 else 1e-2)


def packed_bytes(layer: nn.Linear) -> int:
    return layer.weight.nbytes


WRITES: dict[str, Callable[[nn.Linear], object]] = {
    "no_grad": lambda m: m.weight.detach().add_(1),
    "data.copy_": lambda m: m.weight.data.copy_(torch.ones(COLUMNS, INNER)),
    "data, one row": lambda m: m.weight.data[3].mul_(-4),
    "data =": lambda m: setattr(m.weight, "data", torch.ones(COLUMNS, INNER)),
    "load_state_dict": lambda m: m.load_state_dict(nn.Linear(INNER, COLUMNS).state_dict()),
    "load_state_dict, assigned": lambda m: m.load_state_dict(
        nn.Linear(INNER, COLUMNS).state_dict(), assign=True
    ),
    "a new parameter": lambda m: setattr(m, "weight", nn.Parameter(torch.ones(COLUMNS, INNER))),
    "NumPy": lambda m: m.weight.detach().numpy().fill(0.5),
    "DLPack": lambda m: torch.from_dlpack(m.weight.detach()).mul_(2),
    "storage": lambda m: m.weight.untyped_storage().copy_(
        torch.ones(COLUMNS, INNER).untyped_storage()
    ),
    "shared memory": lambda m: m.share_memory().weight.data.add_(1),
    "init": lambda m: nn.init.xavier_normal_(m.weight),
    "foreach": lambda m: torch._foreach_add_([m.weight.data], 1),
}


@pytest.mark.parametrize("write", WRITES)
def test_a_modified_weight_is_repacked(write: str, library: str, layer: nn.Linear) -> None:
    fast = lab.compile(layer)
    assert_up_to_date(fast, layer)
    assert WEIGHTS.nbytes == packed_bytes(layer)
    for _ in range(2):
        WRITES[write](layer)
        assert_up_to_date(fast, layer)


def test_many_numbers_of_rows_keep_few_packed_forms(library: str, layer: nn.Linear) -> None:
    """The most recently used forms are kept.  Alternating sizes do not repack each time."""
    fast, sizes = lab.compile(layer, dynamic=False), (130, 140, 150, 160)
    with torch.no_grad():
        for n in sizes:
            x = torch.randn(n, INNER)
            torch.testing.assert_close(fast(x), layer(x), rtol=1e-4, atol=1e-4)
            assert WEIGHTS.nbytes <= MOST_FORMS * packed_bytes(layer)
        (packed,) = WEIGHTS._packed.values()
        for n in sizes * 10:
            fast(torch.randn(n, INNER))
        assert packed.uses["packings"] <= TRIES + packed.uses["calls"] // PAYS
        assert WEIGHTS.nbytes == MOST_FORMS * packed_bytes(layer)


def test_writes_through_an_earlier_array_are_noticed(library: str, layer: nn.Linear) -> None:
    """The array refers to a tensor with the same storage, so the weight is not packed."""
    array = layer.weight.detach().numpy()
    fast = lab.compile(layer)
    for _ in range(3):
        assert_up_to_date(fast, layer)
        assert WEIGHTS.nbytes == 0
        array += 1
    assert layer.weight.detach().numpy() is not array
    assert (layer.weight.detach().numpy() == array).all()


def test_weights_that_must_not_be_packed(library: str, layer: nn.Linear) -> None:
    weight = layer.weight
    assert packing_problem(weight) is None
    alias = weight.detach()
    assert "shares its memory" in str(packing_problem(weight))
    del alias
    frozen = nn.Parameter(torch.ones(2, 2), requires_grad=False)
    part = nn.Parameter(torch.ones(4, 2)[2:])
    assert "NumPy" in str(packing_problem(frozen))
    assert "NumPy" in str(packing_problem(torch.ones(2, 2)))
    assert "part" in str(packing_problem(part))
    shared = nn.Parameter(torch.ones(2, 2))
    shared.share_memory_()
    assert "process" in str(packing_problem(shared))


def test_memory_that_torch_did_not_allocate(library: str) -> None:
    import numpy

    array = numpy.ones((COLUMNS, INNER), dtype="float32")
    layer = nn.Linear(INNER, COLUMNS)
    layer.weight = nn.Parameter(torch.from_numpy(array))
    fast = lab.compile(layer)
    assert_up_to_date(fast, layer)
    array *= 3
    assert_up_to_date(fast, layer)
    assert WEIGHTS.nbytes == 0


@pytest.mark.parametrize("optimizer", [torch.optim.SGD, torch.optim.AdamW])
def test_training_with_evaluation_between(library: str, layer: nn.Linear, optimizer) -> None:
    twin = copy.deepcopy(layer)
    fast = lab.compile(layer)
    for model, forward in ((layer, fast), (twin, twin)):
        torch.manual_seed(1)
        steps = optimizer(model.parameters(), lr=0.01)
        for _ in range(TRIES + 3):
            steps.zero_grad()
            forward(rows()).square().mean().backward()
            steps.step()
            assert_up_to_date(forward, model)
    torch.testing.assert_close(layer.weight, twin.weight, rtol=1e-4, atol=1e-5)


def test_weights_that_often_change_are_not_packed(library: str, layer: nn.Linear) -> None:
    fast = lab.compile(layer)
    held = []
    for _ in range(TRIES + 2):
        assert_up_to_date(fast, layer)
        held.append(WEIGHTS.nbytes)
        layer.weight.data.add_(1)
    assert held == [packed_bytes(layer)] * TRIES + [0] * 2


def test_weights_that_rarely_change_are_packed(library: str, layer: nn.Linear) -> None:
    fast = lab.compile(layer)
    for _ in range(TRIES + 2):
        for _ in range(PAYS):
            assert_up_to_date(fast, layer)
        assert WEIGHTS.nbytes == packed_bytes(layer)
        layer.weight.data.add_(1)


def test_the_copy_is_freed_with_the_model(library: str, layer: nn.Linear) -> None:
    other = nn.Linear(INNER, COLUMNS)
    forward = lab.compile(lambda layer, x: layer(x))
    for model in (layer, other, layer, other):
        assert_up_to_date(lambda x, model=model: forward(model, x), model)
    assert WEIGHTS.nbytes == 2 * packed_bytes(layer)
    del other, model
    gc.collect()
    assert WEIGHTS.nbytes == packed_bytes(layer)
    assert lab.release_memory() >= packed_bytes(layer)
    assert WEIGHTS.nbytes == 0
    assert_up_to_date(lambda x: forward(layer, x), layer)
    assert WEIGHTS.nbytes == packed_bytes(layer)


def test_threads_share_one_copy(library: str, layer: nn.Linear) -> None:
    fast = lab.compile(layer)
    assert_up_to_date(fast, layer)
    failed = []

    def work() -> None:
        try:
            for _ in range(20):
                assert_up_to_date(fast, layer)
        except BaseException as error:
            failed.append(error)

    for _ in range(2):
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        layer.weight.data.add_(1)
    assert failed == []


def test_packing_can_be_switched_off(library: str, layer: nn.Linear) -> None:
    assert_up_to_date(lab.compile(layer, options={"pack_weights": False}), layer)
    assert WEIGHTS.nbytes == 0


def test_a_weight_that_a_kernel_also_reads_is_not_packed(library: str, layer: nn.Linear) -> None:
    fast = lab.compile(lambda x: layer(x) + layer.weight.sum())
    with torch.no_grad():
        torch.testing.assert_close(
            fast(x := rows()), layer(x) + layer.weight.sum(), rtol=1e-4, atol=1e-4
        )
    assert WEIGHTS.nbytes == 0


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", ["linear", "no bias", "addmm", "mm", "long rows"])
def test_packed_products_are_right(name: str, dtype: torch.dtype, library: str) -> None:
    """Tests both matrices in both orientations."""
    if not LIBRARY[library].knows(dtype):
        pytest.skip("not on this CPU")
    torch.manual_seed(0)
    weight = nn.Parameter(torch.randn(COLUMNS, INNER).to(dtype))
    other = nn.Parameter(torch.randn(INNER, COLUMNS).to(dtype))
    bias = torch.randn(COLUMNS).to(dtype)
    x, long = rows(dtype), torch.randn(INNER, 2 * ROWS).to(dtype)
    linear = nn.functional.linear
    product: Callable[..., torch.Tensor] = {
        "linear": lambda weight, other, bias, x, long: linear(x, weight, bias),
        "no bias": lambda weight, other, bias, x, long: linear(x, weight),
        "addmm": lambda weight, other, bias, x, long: torch.addmm(bias, x, other),
        "mm": lambda weight, other, bias, x, long: long[:, ::2].t() @ other,
        "long rows": lambda weight, other, bias, x, long: linear(long[:, 1 : ROWS + 1].t(), weight),
    }[name]
    given = (weight, other, bias, x, long)
    fast = lab.compile(product)
    with torch.no_grad():
        exact = product(*(tensor.double() for tensor in given))
        for _ in range(2):
            error = (fast(*given).double() - exact).abs().max() / exact.abs().max()
            assert error < (2e-6 if dtype is torch.float32 else 1e-2)
    assert WEIGHTS.nbytes == weight.nbytes


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_every_candidate_can_be_timed(dtype: torch.dtype, monkeypatch, tmp_path, layer) -> None:
    monkeypatch.setenv("INDUCTOR_LAB_CACHE_DIR", str(tmp_path))
    if not onednn_supports(dtype):
        pytest.skip("not on this CPU")
    with torch.no_grad():
        (choice,) = lab.inspect(layer.to(dtype), rows(dtype)).graphs[0].forward.libraries
    packed = {f"{name} packed" for name in LIBRARIES if LIBRARY[name].knows(dtype)}
    assert {way for way, _ in choice.seconds} == {"ATen", "oneDNN", *packed}


def test_the_schedule_shows_the_packed_call(library: str, layer: nn.Linear) -> None:
    x = rows()
    with torch.no_grad():
        c = lab.inspect(layer, x)
        part = c.graphs[0].forward
        (call,) = part.schedule.steps
        assert call.op == LINEAR and call.args[3:] == (False, library, "ATen")
        assert f"{library} packed 1000.000 ms: {library} packed" in str(part.libraries[0])
        torch.testing.assert_close(part.schedule.run(*c.graphs[0].inputs)[0], layer(x))
    trained = lab.inspect(layer, x).graphs[0].forward
    assert {step.op for step in trained.schedule.steps} == {"aten.addmm.default"}


def test_tools_time_the_packed_calls(library: str, layer: nn.Linear) -> None:
    """What a compilation keeps of its inputs must not prevent packing."""
    with torch.no_grad():
        c = lab.inspect(layer, rows())
        assert WEIGHTS.nbytes > 0
        lab.release_memory()
        (row,) = c.profile(3).rows
    assert row.name == LINEAR and WEIGHTS.nbytes > 0


def test_weights_are_not_packed_in_training(library: str, layer: nn.Linear) -> None:
    operators: list[str] = []

    class Watching(Observer):
        def left(self, phase: str, result: Any) -> None:
            if phase.endswith("schedule"):
                steps = result.steps
                operators.extend(step.op for step in steps if isinstance(step, ExternCall))

    compiled = torch.compile(layer, backend=backend_with(Options(), Watching()))
    compiled(rows()).sum().backward()
    assert operators and LINEAR not in operators
    torch.compiler.reset()
    with torch.no_grad():
        compiled(rows())
    assert operators[-1] == LINEAR
