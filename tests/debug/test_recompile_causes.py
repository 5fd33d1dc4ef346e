"""All failed guards of a recompile, with their origins; what varied; specialized sizes; limits."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

import inductor_lab as lab
from inductor_lab.debug.recompiles.watch_recompiles import Recompiles

SCALE = 1.5
LINEAR = torch.nn.Linear(3, 3)


def several(x: torch.Tensor, n: int, table: dict[str, float]) -> torch.Tensor:
    return x * n + table["a"] + SCALE


def through_library(x: torch.Tensor) -> torch.Tensor:
    return LINEAR(x) + 1


def with_break(x: torch.Tensor) -> torch.Tensor:
    y = x + 1
    print("", end="")
    return y * 2


@pytest.fixture(autouse=True)
def _reset() -> Iterator[None]:
    torch.compiler.reset()
    yield
    torch.compiler.reset()


def compiled(function: object, backend: str = "eager", dynamic: bool | None = None) -> object:
    return torch.compile(function, backend=backend, dynamic=dynamic)  # type: ignore[call-overload]


def of_source(seen: Recompiles, source: str) -> list[str]:
    return [reason.reason for reason in seen.compiled[-1].reasons if reason.source == source]


def test_all_failed_guards_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    fast = compiled(several)
    with lab.recompiles() as seen:
        fast(torch.ones(4, 2), 2, {"a": 1.0})
        monkeypatch.setattr(f"{__name__}.SCALE", 2.5)
        fast(torch.ones(5, 7), 3, {"a": 4.0})
    assert of_source(seen, "L['n']") == ["n == 2"]
    assert of_source(seen, "L['table']['a']") == ["table['a'] == 1.0"]
    assert of_source(seen, "G['SCALE']") == ["G['SCALE'] == 1.5"]
    sizes = [reason.partition("mismatch at ")[2] for reason in of_source(seen, "L['x']")]
    assert sizes == ["index 0. expected 4, actual 5", "index 1. expected 2, actual 7"]
    (line,) = {reason.span.line for reason in seen.compiled[-1].reasons if reason.span}
    assert line == several.__code__.co_firstlineno + 1
    varied = {each.source: [value for _, value in each.seen] for each in seen.varied}
    assert varied == {
        "L['x']": ["float32[4, 2]", "float32[5, 7]"], "L['n']": ["2", "3"],
        "L['table']['a']": ["1.0", "4.0"], "G['SCALE']": ["1.5", "2.5"],
    }  # fmt: skip


def test_guards_are_reported_besides_a_change_of_torchs_state() -> None:
    fast = compiled(several)
    with lab.recompiles() as seen:
        fast(torch.ones(4), 2, {"a": 1.0})
        with torch.no_grad():
            fast(torch.ones(4), 3, {"a": 1.0})
    reasons = [reason.reason for reason in seen.compiled[-1].reasons]
    assert any("grad_mode" in reason for reason in reasons) and "n == 2" in reasons


@pytest.mark.parametrize("backend", ["inductor_lab", "inductor"])
def test_a_guard_of_library_code_has_the_users_call(backend: str) -> None:
    fast = compiled(through_library, backend)
    with lab.recompiles() as seen:
        fast(torch.ones(4, 3))
        fast(torch.ones(5, 3))
    (reason,) = seen.compiled[-1].reasons
    assert reason.span is not None and reason.span.code == "return LINEAR(x) + 1"
    assert reason.via is not None and reason.via.file == "torch/nn/modules/linear.py"
    assert f"(through {reason.via})" in str(seen)


def test_a_specialized_size_has_the_chain_of_conditions() -> None:
    def chain(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        z = x + y
        if y.shape[0] == 4:
            z = z + 1
        return z

    x, y = torch.ones(4), torch.ones(4)
    torch._dynamo.maybe_mark_dynamic(x, 0)
    torch._dynamo.maybe_mark_dynamic(y, 0)
    with lab.recompiles() as seen:
        compiled(chain)(x, y)
    found = {each.source: each for each in seen.compiled[0].specialized}
    assert found, "the size is constant"
    for each in found.values():
        assert each.value == "4" and each.span is not None
        assert each.span.code == "if y.shape[0] == 4:"
        assert "z = x + y" in str(each) and "Eq(" in str(each)


def test_restarts_and_limits_are_reported() -> None:
    fast = compiled(with_break, dynamic=False)
    with torch._dynamo.config.patch(recompile_limit=2), lab.recompiles() as seen:
        for size in (2, 3, 4):
            fast(torch.ones(size))
    named = [each for each in seen.compiled if each.function == "with_break"]
    assert named[0].restarts and not named[0].limit
    refused = [each for each in named if each.refused]
    assert refused and all("limit" in each.limit for each in refused)
    assert "restarted: " in str(seen) and "limit reached: " in str(seen)


def test_the_causes_are_data() -> None:
    fast = compiled(through_library)
    with lab.recompiles() as seen:
        for size in (4, 5):
            fast(torch.ones(size, 3))
    data = seen.to_dict()
    assert data["varied"] == [{"source": "x", "compile_ids": [e.compile_id for e in seen.compiled],
                               "values": ["float32[4, 3]", "float32[5, 3]"]}]  # fmt: skip
    reason = data["compiled"][1]["reasons"][0]
    assert reason["type"] == "TENSOR_MATCH" and reason["via"]["file"].startswith("torch/")
