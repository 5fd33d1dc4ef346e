"""Predictions of the guard playground equal what TorchDynamo does in the call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import inductor_lab as lab
from inductor_lab.debug.recompiles.call_again import call_with_edits, predict_call

FACTOR = 3


def scaled(scale: float) -> Callable[..., Any]:
    return lambda x: torch.sin(x) * scale


def branching(x: torch.Tensor, n: int) -> torch.Tensor:
    return x * n if x.shape[0] > 3 else x + n


def by_word(x: torch.Tensor, mode: str = "sin") -> torch.Tensor:
    return x.sin() if mode == "sin" else x.cos()


def by_flag(x: torch.Tensor, flag: bool) -> torch.Tensor:
    return -x if flag else x.exp()


def with_global(x: torch.Tensor) -> torch.Tensor:
    return x * FACTOR


def of_two(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return x + y


def of_array(a: np.ndarray) -> np.ndarray:
    return np.sin(a) + 1


def with_float(x: torch.Tensor, rate: float) -> torch.Tensor:
    return x.clamp(max=rate)


PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "closure": (scaled(2.0), (torch.ones(6, 4),)),
    "branch": (branching, (torch.ones(6, 4), 5)),
    "word": (by_word, (torch.ones(6), "sin")),
    "flag": (by_flag, (torch.ones(5, 2), True)),
    "global": (with_global, (torch.ones(7),)),
    "two tensors": (of_two, (torch.ones(4, 4), torch.ones(4))),
    "array": (of_array, (np.ones(8, np.float32),)),
    "float": (with_float, (torch.ones(9), 0.5)),
}
EXTRA: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "product": lambda x: x @ x.mT,
    "rows": lambda x: x.sum(-1) if x.size(0) % 2 else x.amax(-1),
    "even": lambda x: x.reshape(-1)[::2],
    "gradient": lambda x: x.detach() if x.requires_grad else x * 2,
    "dtype": lambda x: x.float() if x.dtype != torch.float32 else x.relu(),
    "dimensions": lambda x: x.sum() if x.dim() > 2 else x.softmax(-1),
    "contiguous": lambda x: x.view(-1) if x.is_contiguous() else x.reshape(-1),
    "empty": lambda x: x if x.numel() == 0 else x.mean(),
}
PROGRAMS |= {name: (function, (torch.ones(6, 4),)) for name, function in EXTRA.items()}

SIZES: list[list[int]] = [[6, 4], [50, 4], [2, 4], [7, 5], [1, 4], [6, 4, 1], [8], [0], []]
OF_TENSORS: list[dict[str, Any]] = [
    *({"size": size} for size in SIZES), {"dtype": "float64"}, {"requires_grad": True},
]  # fmt: skip
VALUES: dict[type, list[Any]] = {
    int: [5, 6, 0, 1, -2], float: [0.5, 0.25, 2.0], bool: [True, False], str: ["sin", "other"]
}


def edits_of(name: str, value: Any) -> list[dict[str, dict[str, Any]]]:
    source = f"L['{name}']"
    if isinstance(value, torch.Tensor):
        return [{source: facts} for facts in OF_TENSORS]
    if isinstance(value, np.ndarray):
        return [{source: facts} for facts in OF_TENSORS[:-1]]
    return [{source: {"value": each}} for each in VALUES[type(value)]]


OUTSIDE = {
    "closure": [{"L['scale']": {"value": value}} for value in (2.0, 2.5)],
    "global": [{"G['FACTOR']": {"value": value}} for value in (3, 4)],
}


def every_edit(program: str) -> list[dict[str, dict[str, Any]]]:
    function, args = PROGRAMS[program]
    names = function.__code__.co_varnames
    own = [edit for name, value in zip(names, args, strict=False) for edit in edits_of(name, value)]
    return own + OUTSIDE.get(program, [])


def called(program: str) -> tuple[Any, ...]:
    function, args = PROGRAMS[program]
    return (function, *args)


@pytest.mark.parametrize("dynamic", [None, True, False], ids=["default", "dynamic", "static"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_prediction_equals_the_result_of_torchdynamo(program: str, dynamic: bool | None) -> None:
    """Each edit in sequence, so that later edits are checked against several compiled versions."""
    compilation = lab.inspect(*called(program), options={"dynamic": dynamic})
    first = predict_call(compilation, {})
    assert first is not None and first.hit is not None
    answers = []
    for edit in every_edit(program):
        predicted = predict_call(compilation, edit)
        assert predicted is not None
        try:
            again = call_with_edits(compilation, edit)
        except Exception:  # eager mode refuses these values too
            continue
        assert (predicted.hit is not None) == again.hit, (edit, predicted, again.reasons)
        answers.append(again.hit)
        after = predict_call(compilation, edit)
        kept = again.hit or bool(again.capture.bytecode)
        assert after is not None and (after.hit is not None) == kept, "the call compiled a version"
    assert len(answers) > 1


def test_later_versions_are_checked() -> None:
    """The first version was compiled for one size, the second for every size."""
    compilation = lab.inspect(by_word, torch.ones(10))
    size = {"L['x']": {"size": [20]}}
    missed = predict_call(compilation, size)
    assert missed is not None and missed.hit is None
    assert any("expected 10, actual 20" in reason for reason in missed.reasons.values())
    compilation.again(torch.ones(30))
    found = predict_call(compilation, size)
    assert found is not None and found.hit is not None


def test_a_prediction_runs_nothing_and_restores_values() -> None:
    calls: list[int] = []

    def counting(x: torch.Tensor) -> torch.Tensor:
        calls.append(x.shape[0])
        return x * FACTOR

    compilation = lab.inspect(counting, torch.ones(3))
    before = list(calls)
    predict_call(compilation, {"G['FACTOR']": {"value": 9}})
    assert calls == before and FACTOR == 3


def test_a_module_has_no_prediction() -> None:
    assert predict_call(lab.inspect(torch.nn.Linear(2, 2), torch.ones(1, 2)), {}) is None
