"""A fixed choice of torch's operators against eager; `make opinfo` checks all of them."""

from __future__ import annotations

import pytest

from tests.opinfo import database, judge
from tests.opinfo.check import AGREE, EAGER, TORCH, Settings, Verdict, verdicts
from tests.opinfo.choice import FLOAT_OPS, INTEGER_OPS, REPRESENTATIVE
from tests.opinfo.table import Known, excused, known, table

SAMPLES = 3


def problems(found: list[Verdict]) -> list[str]:
    """What is wrong, one line each."""
    fine = (AGREE, EAGER, TORCH)
    bad = [v for v in found if v.verdict not in fine and not excused(v, known())]
    return [f"sample {v.sample}: {v.verdict}: {v.detail}" for v in bad]


@pytest.mark.parametrize("name", FLOAT_OPS)
def test_float32(name: str) -> None:
    found = list(verdicts(name, Settings(samples=SAMPLES)))
    assert found, "no samples"
    assert problems(found) == []


@pytest.mark.parametrize("name", INTEGER_OPS)
def test_int64(name: str) -> None:
    found = list(verdicts(name, Settings(dtype="int64", samples=SAMPLES)))
    assert found, "no samples"
    assert problems(found) == []


@pytest.mark.parametrize("name", REPRESENTATIVE[::5])
def test_triton(name: str) -> None:
    found = list(verdicts(name, Settings(language="triton", samples=2)))
    assert found, "no samples"
    assert problems(found) == []


def test_a_wrong_result_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.opinfo import roads

    def wrong(sample: database.Sample, *given: object) -> object:
        return lambda *tensors: sample.call(*tensors) + 1e-3

    monkeypatch.setattr(roads, "short", wrong)
    found = list(verdicts("amax", Settings(samples=2)))
    assert [v.verdict for v in found] == ["wrong", "wrong"]
    assert "amax" in table(found)


def test_a_known_difference_has_a_reason() -> None:
    names = set(database.names())
    for entry in known():
        assert entry.op in names, f"{entry.op} is not in torch's database"
        assert entry.reason, f"no reason for {entry.op}"
    one = Verdict("sin", "float16", 0, "wrong")
    assert excused(one, [Known("sin", "because", dtype="float16")])
    assert not excused(one, [Known("sin", "because", dtype="float32")])


def test_float64_decides_between_two_roundings() -> None:
    import torch

    eager, ours, exact = torch.tensor([1.001]), torch.tensor([1.0]), torch.tensor([1.0])
    assert judge.difference(ours, eager, {})
    assert judge.nearer(ours, eager, exact.double(), {})
    assert not judge.nearer(eager, ours, exact.double(), {})
