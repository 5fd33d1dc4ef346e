"""Arguments by keyword, and gradients."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

import inductor_lab as lab
from inductor_lab.bench.machine import Ceilings, machine
from inductor_lab.cli import main
from inductor_lab.compiler.base.errors import BadArguments
from inductor_lab.debug.judge.candidate import Candidate
from inductor_lab.debug.judge.judge import Judge
from inductor_lab.debug.untrusted.confine import confinable
from tests.judge import candidates

pytestmark = pytest.mark.skipif(not confinable(), reason="no Landlock on this machine")
ROOF = Ceilings(machine(), ((1 << 20, 1e12),), {"float32": 1e13})
X = torch.randn(33, 40, generator=torch.Generator().manual_seed(1))
ROW = torch.randn(40, generator=torch.Generator().manual_seed(2))


def scaled(x: torch.Tensor, *, dim: int = -1, weight: torch.Tensor | None = None) -> torch.Tensor:
    found = torch.softmax(2 * x, dim)
    return found if weight is None else found * weight


SCALED = """
import torch
def candidate(x, *, dim=-1, weight=None):
    e = torch.exp(2 * (x - x.amax(dim, keepdim=True)))
    found = e / e.sum(dim, keepdim=True)
    return found if weight is None else found * weight
"""
WITH_GRADIENT = """
import torch
class Softmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        e = torch.exp(2 * (x - x.amax(-1, keepdim=True)))
        found = e / e.sum(-1, keepdim=True)
        ctx.save_for_backward(found)
        return found
    @staticmethod
    def backward(ctx, by):
        (found,) = ctx.saved_tensors
        return 2 * found * (by - (by * found).sum(-1, keepdim=True))
def candidate(x):
    return Softmax.apply(x)
"""
WITHOUT_GRADIENT = """
import torch
def candidate(x):
    return torch.softmax(2 * x.detach(), -1)
"""


def softmax(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(2 * x, -1)


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    with Judge(roof=ROOF) as made:
        yield made


def test_arguments_by_keyword(judge: Judge) -> None:
    given = [lab.case(X, dim=0), lab.case(X, weight=ROW)]
    found = judge.judge(scaled, SCALED, given, seconds=0.05)
    assert found.accepted and found.timings.rounds, str(found)
    assert sum(each.kind == "given" for each in found.checked) == 2
    ignores = SCALED.replace("dim=-1, weight", "dim=-1, other=-1, weight").replace("(dim,", "(-1,")
    found = judge.judge(scaled, ignores, given, seconds=None)
    assert not found.accepted and found.reasons[0].startswith("given")
    found = judge.judge(scaled, SCALED.replace(", weight=None", ""), given[1:], seconds=None)
    assert "TypeError" in found.reasons[0]


def test_an_inspected_call_is_a_case(judge: Judge) -> None:
    c = lab.inspect(scaled, X, dim=0)
    assert judge.judge(scaled, SCALED, [c.call], seconds=None).accepted


def test_effects_on_arguments_by_keyword(judge: Judge) -> None:
    def update(x: torch.Tensor, *, into: torch.Tensor) -> torch.Tensor:
        return into.mul_(2).add_(x)

    case = lab.case(X, into=X.clone())
    forgets = "def candidate(x, *, into):\n    return 2 * into + x\n"
    assert judge.judge(update, "def candidate(x, *, into):\n    return into.add_(into).add_(x)\n",
                       [case], seconds=0.05).accepted  # fmt: skip
    found = judge.judge(update, forgets, [case], seconds=None)
    assert "into after the call" in str(found)


def test_gradients_are_judged(judge: Judge) -> None:
    found = judge.judge(softmax, WITH_GRADIENT, [(X,)], gradients=True, seconds=0.05)
    assert found.accepted and found.timings.rounds, str(found)
    wrong = WITH_GRADIENT.replace("by - (by * found)", "by - 0.999 * (by * found)")
    assert judge.judge(softmax, wrong, [(X,)], seconds=None).accepted
    for text in (wrong, WITHOUT_GRADIENT):
        found = judge.judge(softmax, text, [(X,)], gradients=True, seconds=None)
        assert not found.accepted and "the gradient of x is" in found.reasons[0], str(found)


def test_gradients_of_arguments_by_keyword(judge: Judge) -> None:
    given = [lab.case(X, weight=ROW)]
    assert judge.judge(scaled, SCALED, given, gradients=True, seconds=None).accepted
    wrong = SCALED.replace("found * weight", "found * weight.detach()")
    found = judge.judge(scaled, wrong, given, gradients=True, seconds=None)
    assert "the gradient of weight is" in found.reasons[0]


def test_a_compiled_candidate_has_gradients(judge: Judge) -> None:
    found = judge.judge(softmax, candidates.OURS, [(X,)], gradients=True, seconds=None)
    assert found.accepted, str(found)


def test_functions_in_cpp_have_no_gradients(judge: Judge) -> None:
    with pytest.raises(BadArguments, match="no gradients"):
        judge.judge(softmax, Candidate(candidates.CPP, language="cpp"), [(X,)], gradients=True)


def test_the_command_takes_keywords_and_gradients(tmp_path: Path, capsys) -> None:
    own, candidate = tmp_path / "reference.py", tmp_path / "candidate.py"
    own.write_text("import torch\n\ndef f(x, *, dim):\n    return torch.softmax(2 * x, dim)\n")
    candidate.write_text(SCALED)
    given = ["--args", "__import__('inductor_lab').case(torch.randn(5, 6), dim=0)"]
    command = ["judge", str(candidate), f"{own}:f", *given, "--no-timing", "--gradients"]
    assert main(command) == 0
    candidate.write_text(SCALED.replace("2 * (x", "2 * (x.detach()"))
    assert main(command) == 1
    assert "the gradient of x" in capsys.readouterr().out
