"""The sweep over all model types: small models are reached, and a wrong result is reported."""

from __future__ import annotations

import pytest
import torch

from tests.models import sweep
from tests.models.__main__ import table
from tests.models.shrink import MOST_PARAMETERS, small_model
from tests.models.sweep import Outcome, check_model, difference


@pytest.mark.parametrize("name", ["bert", "swin", "t5", "wav2vec2", "qwen3_moe"])
def test_small_models_are_reached(name: str) -> None:
    model, inputs = small_model(name)
    assert sum(each.numel() for each in model.parameters()) <= MOST_PARAMETERS
    assert {each.shape[0] for each in inputs.values() if torch.is_tensor(each)} == {2}


def test_a_wrong_result_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    assert check_model("bert") == Outcome("bert", "agrees", "agrees")
    model, _ = small_model("bert")
    broken = lambda *args, **kwargs: model(*args, **kwargs).last_hidden_state * 1.01  # noqa: E731
    monkeypatch.setattr(sweep.lab, "compile", lambda model: broken)
    found = check_model("bert")
    assert found.evaluation == "differs" and found.why, str(found)


def test_without_float64_weights_are_perturbed() -> None:
    model = torch.nn.Linear(4, 4)
    inputs = {"input": torch.randn(2, 4)}

    def run(model: torch.nn.Module, inputs: dict[str, torch.Tensor]) -> list[torch.Tensor]:
        if model.weight.dtype is torch.float64:
            raise RuntimeError("float32 only")
        return [model(**inputs).detach()]

    eager = run(model, inputs)
    expected, error, named = sweep.reference(model, inputs, run, eager)
    assert expected is eager and 0 < error < 1e-5 and "perturbed" in named


def test_a_model_that_does_not_run_is_not_reached() -> None:
    assert check_model("no_such_model").evaluation == "not reached"


def test_differences_are_relative_to_each_tensor() -> None:
    ones, nan = torch.ones(3), torch.full((3,), torch.nan)
    assert difference([ones, nan], [ones, nan]) == 0
    assert difference([ones * 1.5], [ones]) == 0.5 and difference([ones], [nan]) == float("inf")
    with pytest.raises(sweep.Differs, match="number of results"):
        difference([ones], [ones, ones])


def test_the_table_counts_each_kind() -> None:
    found = [Outcome("b", "agrees", "differs", "why"), Outcome("a", "agrees", "not reached")]
    lines = table(found).splitlines()
    assert lines[2] == "| float32, evaluation | 2 | 0 | 0 | 0 | 0 |"
    assert lines[3] == "| float32, training | 0 | 1 | 0 | 0 | 1 |"
    assert lines[-2].startswith("| a | float32 |")


def test_models_run_in_bfloat16() -> None:
    found = check_model("bert", torch.bfloat16)
    assert found == Outcome("bert", "agrees", "agrees", "", "bfloat16")
