"""The sweep over all model types: small models are reached, and a wrong result is reported."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

import pytest
import torch
import transformers as hf

from tests.models import sweep
from tests.models.__main__ import main, read
from tests.models.images import image_model, smallest
from tests.models.page import page, table, versions
from tests.models.shrink import shrink, small_model
from tests.models.sources import MOST_PARAMETERS, Example, parameters_of, without_chance
from tests.models.sweep import Outcome, check_model, compare, difference, outcomes, results, tried


@pytest.mark.parametrize("name", ["bert", "swin", "t5", "wav2vec2", "qwen3_moe"])
def test_small_models_are_reached(name: str) -> None:
    example = small_model(name)
    assert parameters_of(example.model) <= MOST_PARAMETERS
    assert {each.shape[0] for each in example.inputs.values() if torch.is_tensor(each)} == {2}


def test_chunks_of_state_space_models_are_small() -> None:
    """With its default, a forward pass of falcon_h1 needs 17 GB for 12 words."""
    config = hf.FalconH1Config()
    shrink(config, ())
    assert config.mamba_chunk_size == 8


def test_a_wrong_result_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    known = [*outcomes("bert", torch.float32, "transformers")]
    assert known[-1] == Outcome("bert", "agrees", "agrees")
    # what counts if a phase does not end
    assert [(one.evaluation, one.training) for one in known[:-1]] == [
        ("not reached", "not reached"), ("raises", "not reached"), ("agrees", "not reached"),
        ("agrees", "raises"),
    ]  # fmt: skip
    model = small_model("bert").model
    broken = lambda *args, **kwargs: model(*args, **kwargs).last_hidden_state * 1.01  # noqa: E731
    monkeypatch.setattr(sweep.lab, "compile", lambda model, dynamic: broken)
    found = check_model("bert")
    assert found.evaluation == "differs" and found.why, str(found)


def test_nothing_is_compared_where_eager_mode_has_no_correct_digit() -> None:
    """The truth is zero."""
    model, inputs = torch.nn.Identity(), {"input": torch.randn(2, 4)}

    def run(model: torch.nn.Module, inputs: dict[str, torch.Tensor]) -> list[torch.Tensor]:
        (x,) = inputs.values()
        return [x.sum().reshape(1) * (x.dtype is torch.float32)]

    expected = run(model, inputs)
    assert sweep.judge(model, inputs, run, None, expected, expected) is None
    with pytest.raises(sweep.NotComparable, match="no correct digit"):
        sweep.judge(model, inputs, run, None, [expected[0] * 9], expected)
    found, why = tried(lambda: sweep.judge(model, inputs, run, None, [expected[0] * 9], expected))
    assert (found, why) == ("not reached", why) and "no correct digit" in why


def test_a_result_on_the_other_side_of_a_jump_agrees() -> None:
    """Eager mode is there too if weights change by a rounding."""
    model, inputs = torch.nn.Linear(64, 64, bias=False), {"input": torch.zeros(2)}
    torch.nn.init.ones_(model.weight)

    def run(model: torch.nn.Module, inputs: dict[str, torch.Tensor]) -> list[torch.Tensor]:
        return [torch.tensor([float((model.weight > 1).any()), 9.0])]

    expected = run(model, inputs)
    sweep.judge(model, inputs, run, None, [torch.tensor([1.0, 9.0])], expected)
    with pytest.raises(sweep.Differs):
        sweep.judge(model, inputs, run, None, [torch.tensor([9.0, 9.0])], expected)


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


class Layer(torch.nn.Module):
    """Compiled, it computes something else."""

    def __init__(self, when_compiled: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.layer, self.when_compiled = torch.nn.Linear(4, 4), when_compiled

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.layer(x)
        return self.when_compiled(x) if torch.compiler.is_compiling() else x


@pytest.mark.parametrize(
    ("when_compiled", "outcome"),
    [
        (lambda x: x, "agrees"),
        (lambda x: x * 2, "torch differs"),
        (lambda x: x.reshape(7), "torch raises"),
    ],
)
def test_faults_of_torch_are_reported_as_such(
    when_compiled: Callable[[torch.Tensor], torch.Tensor], outcome: str
) -> None:
    example = Example(Layer(when_compiled).eval(), {"x": torch.randn(2, 4)})
    assert tried(lambda: compare(example, results))[0] == outcome


def test_faults_of_ours_are_not_reported_as_torchs(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(x: torch.Tensor) -> torch.Tensor:
        raise ValueError("broken")

    example = Example(Layer(lambda x: x).eval(), {"x": torch.randn(2, 4)})
    monkeypatch.setattr(sweep.lab, "compile", lambda model, dynamic: broken)
    assert tried(lambda: compare(example, results)) == ("raises", "ValueError: broken")


@pytest.mark.parametrize("specialized", [False, True])
def test_recompiles_for_another_size_are_reported(specialized: bool) -> None:
    grow = lambda x: x * (2 if x.shape[0] == 2 else 3)  # noqa: E731
    model = torch.nn.Linear(4, 4)
    model.forward = grow if specialized else torch.sin
    name = "x" if specialized else "input"
    example = Example(model.eval(), {name: torch.randn(2, 4)}, {name: torch.randn(3, 4)})
    torch.compiler.reset()
    expected = "recompiles for another size, as aot_eager does" if specialized else ""
    assert compare(example, results) == expected


class Patches(torch.nn.Module):
    """Images of one size only, if it is given."""

    def __init__(self, image_size: int | None = None, rate: float = 0.5) -> None:
        super().__init__()
        self.size, self.drop_rate = image_size, rate
        self.layer, self.drop = torch.nn.Conv2d(3, 2, 8, 8), torch.nn.Dropout(rate)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.size not in (None, x.shape[-1]):
            raise ValueError("another size")
        return torch.nn.functional.dropout(self.drop(self.layer(x)), self.drop_rate)


def test_image_models_get_two_sizes() -> None:
    def images(batch: int, side: int) -> tuple[torch.Tensor]:
        return (torch.randn(batch, 3, side, side),)

    def free() -> torch.nn.Module:
        return Patches()

    shapes = {}
    for make in (Patches, free):
        found = image_model("patches", make, "image_size", 224, images, torch.float32)
        shapes[make] = [tuple(each["x"].shape) for each in (found.inputs, found.other)]
        assert torch.equal(*(found.model.train()(**found.inputs) for _ in range(2)))
    assert shapes == {
        Patches: [(2, 3, 64, 64), (3, 3, 64, 64)],
        free: [(2, 3, 64, 64), (3, 3, 96, 96)],
    }


def test_the_smallest_of_a_family_is_chosen() -> None:
    widths = {"wide": 8, "narrow": 2, "broken": -1}
    assert smallest(widths, lambda name: torch.nn.Linear(4, widths[name])) == "narrow"
    with pytest.raises(RuntimeError, match="-1"):
        smallest(["broken"], lambda name: torch.nn.Linear(4, widths[name]))
    with pytest.raises(ValueError, match="large, the smallest, has"):
        smallest(["large"], lambda name: torch.nn.Linear(MOST_PARAMETERS, 4))


def test_rates_are_zero() -> None:
    model = without_chance(torch.nn.Sequential(torch.nn.Dropout(0.5), torch.nn.LSTM(2, 2)))
    assert model[0].p == 0.0


FOUND = [
    Outcome("b", "agrees", "differs", "why", torch="2.11.0", version="5.17.0"),
    Outcome("a", "agrees", "not reached"),
    Outcome("c", "agrees", "agrees", "", "bfloat16", "timm", "c_small", "2.13.0", "1.0.0"),
]


def test_the_page_counts_each_kind_and_names_versions() -> None:
    lines = table(FOUND)
    assert lines[2] == "| transformers, float32, evaluation | 2 | 0 | 0 | 0 | 0 | 0 |"
    assert lines[3] == "| transformers, float32, training | 0 | 1 | 0 | 0 | 0 | 1 |"
    assert lines[4] == "| timm, bfloat16, evaluation | 1 | 0 | 0 | 0 | 0 | 0 |"
    text = page(FOUND)
    assert "1 row is from torch 2.11.0, transformers 5.17.0." in text
    assert [*versions("timm", FOUND[2:] * 21)] == ["21 rows are from torch 2.13.0, timm 1.0.0."]
    assert "1 row is from torch unknown, transformers unknown." in text
    assert text.endswith("| c (c_small) | bfloat16 | agrees | agrees |  |\n")


def test_a_page_from_several_files_of_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    again = replace(FOUND[0], training="agrees")
    for name, found in {"one.jsonl": FOUND, "two.jsonl": [again]}.items():
        lines = [json.dumps(asdict(one)) + "\n" for one in found]
        (tmp_path / name).write_text("".join(lines))
    assert read([tmp_path / "one.jsonl", tmp_path / "two.jsonl"]) == [again, *FOUND[1:]]
    files = [str(tmp_path / name) for name in ("one.jsonl", "two.jsonl", "page")]
    arguments = ["tests.models", "--no-run", "--results", *files[:2], "--page", files[2]]
    monkeypatch.setattr(sys, "argv", arguments)
    main()
    assert Path(files[2]).read_text() == page([again, *FOUND[1:]])


def test_models_after_files_of_results_are_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["tests.models", "--results", "one.jsonl", "bert"])
    with pytest.raises(SystemExit):
        main()
    assert "models come first" in capsys.readouterr().err


def test_a_library_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "timm", None)
    monkeypatch.delitem(sys.modules, "tests.models.timm_nets", raising=False)
    monkeypatch.setattr(sys, "argv", ["tests.models", "--library", "timm"])
    with pytest.raises(SystemExit, match="timm cannot be imported"):
        main()


def test_models_run_in_bfloat16() -> None:
    found = check_model("bert", torch.bfloat16)
    assert found == Outcome("bert", "agrees", "agrees", "", "bfloat16")
