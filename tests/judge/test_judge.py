"""Honest candidates are accepted, wrong ones are rejected with the case and the reason."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from jsonschema import Draft202012Validator

from inductor_lab.bench.machine import Ceilings, machine
from inductor_lab.cli import main
from inductor_lab.compiler.base.errors import BadArguments
from inductor_lab.debug.judge.candidate import Candidate, candidate_of
from inductor_lab.debug.judge.cold_memory import evictor
from inductor_lab.debug.judge.judge import Judge
from inductor_lab.debug.untrusted.confine import confinable
from inductor_lab.saved.documents.kinds import schema
from tests.judge import candidates

pytestmark = pytest.mark.skipif(not confinable(), reason="no Landlock on this machine")
ROOF = Ceilings(machine(), ((1 << 20, 1e12),), {"float32": 1e13})
X = torch.randn(33, 40, generator=torch.Generator().manual_seed(1))
SCALE = 2
REFERENCE_FILE = """
import torch

def f(x):
    return torch.softmax(2 * x, -1)

def example_inputs():
    return (torch.arange(60.0).view(6, 10).sin(),)
"""


def reference(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(2 * x, -1)


def scaled(x: torch.Tensor) -> torch.Tensor:
    return SCALE * x


def by_function(x: torch.Tensor) -> torch.Tensor:
    e = torch.exp(scaled(x) - scaled(x).amax(-1, keepdim=True))
    return e / e.sum(-1, keepdim=True)


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    with Judge(roof=ROOF) as made:
        yield made


def test_python_is_accepted_and_timed(judge: Judge) -> None:
    found = judge.judge(reference, candidates.PYTHON, [(X,)], seconds=0.1)
    assert found.accepted, str(found)
    assert {"given", "values", "sizes", "empty", "strides", "dtypes", "special values"} <= {
        each.kind for each in found.checked
    }
    assert found.timings.rounds >= 3 and found.bound > 0
    assert found.deterministic and found.ulp is not None
    found_dict = found.to_dict()
    assert not list(Draft202012Validator(schema("judgement")).iter_errors(found_dict))
    assert found_dict["accepted"] and found_dict["speed"]["rounds"] == found.timings.rounds


@pytest.mark.skipif(evictor() is None, reason="no instruction here evicts a cache line")
def test_a_candidate_is_timed_with_warm_and_cold_caches(judge: Judge) -> None:
    found = judge.judge(reference, candidates.PYTHON, [(X,)], seconds=0.1)
    names = ("candidate", "reference")
    assert {*found.timings.seconds} == {*names, *(f"{name} with cold caches" for name in names)}
    assert len({len(times) for times in found.timings.seconds.values()}) == 1
    assert str(found).count("reference with cold caches") == 1, str(found)
    speed = found.to_dict()["speed"]
    cold = found.timings.median_ms("candidate with cold caches")
    assert speed["cold_candidate_seconds"] == pytest.approx(cold / 1e3)
    assert speed["cold_verdict"] in str(found)


@pytest.mark.parametrize("candidate", [
    candidates.TRITON, Candidate(candidates.CPP, language="cpp"), by_function,
], ids=["triton", "cpp", "function"])  # fmt: skip
def test_other_languages_are_accepted(judge: Judge, candidate: object) -> None:
    if candidate is candidates.TRITON:
        pytest.importorskip("triton")
    found = judge.judge(reference, candidate, [(X,)], seconds=None)
    assert found.accepted, str(found)
    assert sum(each.result == "right" for each in found.checked) > 5, str(found)


def test_compiled_by_us_is_accepted(judge: Judge) -> None:
    found = judge.judge(reference, candidates.OURS, [(X,)], seconds=None)
    assert found.accepted, str(found)


def test_a_missing_mask_is_found(judge: Judge) -> None:
    pytest.importorskip("triton")
    found = judge.judge(reference, candidates.TRITON_WITHOUT_A_MASK, [(X,)], seconds=None)
    assert not found.accepted
    assert found.reasons


def test_effects_on_arguments_are_compared(judge: Judge) -> None:
    def update(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x.mul_(2).add_(y)

    own = "def candidate(x, y):\n    return x.add_(x).add_(y)\n"
    fresh = "def candidate(x, y):\n    return 2 * x + y\n"
    assert judge.judge(update, own, [(X, X.clone())], seconds=0.05).accepted
    found = judge.judge(update, fresh, [(X, X.clone())], seconds=None)
    assert not found.accepted and "not written" in str(found)


def test_a_given_case_must_be_computed_and_a_derived_case_may_be_refused(judge: Judge) -> None:
    refuses = "def candidate(x):\n    raise ValueError('not today')\n"
    found = judge.judge(reference, refuses, [(X,)], seconds=None)
    assert not found.accepted and "ValueError: not today" in found.reasons[0]
    only = ("import torch\ndef candidate(x):\n    assert x.shape == (33, 40)\n"
            "    return torch.softmax(2 * x, -1)\n")  # fmt: skip
    found = judge.judge(reference, only, [(X,)], seconds=None)
    assert found.accepted and "refused" in str(found)


def test_a_time_below_the_bound_is_rejected() -> None:
    slow = Ceilings(machine(), ((1 << 20, 1e3),), {"float32": 1e13})
    with Judge(roof=slow) as judge:
        found = judge.judge(reference, candidates.PYTHON, [(X,)], seconds=0.05)
    assert "faster than this machine can move the bytes" in found.reasons[0]


def test_bad_arguments() -> None:
    with pytest.raises(BadArguments, match="is not a candidate"):
        candidate_of(3)
    with pytest.raises(BadArguments, match="variables of the function that made it"):
        candidate_of((lambda y: lambda x: x + y)(3))
    with Judge() as judge:
        for function, cases, told in (
            (reference, [], "no case"),
            (torch.rand_like, [(X,)], "two results"),
            (lambda x: x @ x, [(X,)], "fails on case 0"),
        ):
            with pytest.raises(BadArguments, match=told):
                judge.judge(function, "", cases)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own = tmp_path / "reference.py"
    own.write_text(REFERENCE_FILE)
    good, bad = tmp_path / "good.py", tmp_path / "bad.py"
    good.write_text(candidates.PYTHON.replace("def candidate", "def mine"))
    bad.write_text("def candidate(x):\n    return x\n")
    assert main(["judge", str(good), f"{own}:f", "--name", "mine", "--no-timing"]) == 0
    assert "mine: accepted" in capsys.readouterr().out
    assert main(["judge", str(bad), f"{own}:f", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["accepted"] is False
    assert main(["judge", str(tmp_path / "none.py"), f"{own}:f"]) == 2
