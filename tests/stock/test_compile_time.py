"""What a compile by stock costs, cold and warm."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import torch._functorch.config

import inductor_lab as lab
from inductor_lab.compiler.base.errors import NotRunnable
from inductor_lab.compiler.base.observer import Phase
from inductor_lab.stock.compile_time import CompileTime, phase_costs
from inductor_lab.stock.stock_compilation import StockCompilation
from tests.saved.schemas import valid


@pytest.fixture(scope="module")
def cost(attended: StockCompilation) -> CompileTime:
    with torch._functorch.config.patch(enable_autograd_cache=True):
        return attended.compile_time()


def test_the_warm_compile_uses_the_caches_of_the_cold_one(cost: CompileTime) -> None:
    assert {"fx_graph miss", "aotautograd miss"} <= {*cost.cold.caches}
    assert {"fx_graph hit", "aotautograd hit"} == {*cost.warm.caches} and not cost.warm.reasons


def test_phases_and_memory(cost: CompileTime) -> None:
    known = {phase.name: phase for phase in cost.cold.phases}
    assert known["Scheduler.__init__"].compiler == "TorchInductor"
    assert known["Scheduler.__init__"].calls == 2, "forward and backward"
    assert known["compile_file"].seconds > 0.1, "the C++ compiler ran"
    assert "compile_file" not in {phase.name for phase in cost.warm.phases}
    assert sum(phase.own for phase in known.values()) <= cost.cold.seconds
    assert cost.cold.peak is None or cost.cold.peak > 1 << 20


def test_the_text_and_the_document(cost: CompileTime) -> None:
    text = str(cost)
    assert "  warm  " in text and "fx_graph hit" in text and "compile_file" in text
    found = valid(cost.to_dict())
    assert found["cold"]["phases"][0]["own_seconds"] >= found["cold"]["phases"][1]["own_seconds"]


def test_a_bypassed_cache_has_a_reason(attended: StockCompilation) -> None:
    from torch._inductor import config  # noqa: TID251

    unhashed = config.patch(post_grad_custom_post_pass=lambda graph: None)
    with unhashed, torch._functorch.config.patch(enable_autograd_cache=True):
        warm = attended.compile_time().warm
    assert {"fx_graph bypass", "aotautograd bypass"} & {*warm.caches}
    assert any("bypassed: " in reason for reason in warm.reasons)


def test_what_cannot_be_compiled_again(attended: StockCompilation, tmp_path: Path) -> None:
    with pytest.raises(NotRunnable):
        lab.load(attended.save(tmp_path / "a.lab.json")).compile_time()
    with pytest.raises(NotRunnable, match="still running after"):
        attended.compile_time(limit=0.01)


def test_own_seconds_are_without_the_phases_inside() -> None:
    phases = [Phase("outer", "TorchDynamo", 0.0, 10.0), Phase("inner", "TorchInductor", 1.0, 4.0),
              Phase("leaf", "TorchInductor", 2.0, 1.0), Phase("inner", "TorchInductor", 6.0, 2.0),
              Phase("after", "TorchDynamo", 10.0, 1.0)]  # fmt: skip
    found = {cost.name: (cost.seconds, cost.own, cost.calls) for cost in phase_costs(phases)}
    assert found == {"outer": (10.0, 4.0, 1), "inner": (6.0, 5.0, 2), "leaf": (1.0, 1.0, 1),
                     "after": (1.0, 1.0, 1)}  # fmt: skip
