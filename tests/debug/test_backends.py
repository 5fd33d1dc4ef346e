"""The ladder of backends: which is the first that does not do what eager does."""

from __future__ import annotations

import pytest
import torch

import inductor_lab as lab
from inductor_lab.debug.faults import CATALOGUE
from inductor_lab.errors import BadArguments

QUICK = ("eager", "aot_eager", "ours")


def test_all_agree() -> None:
    layer = torch.nn.Sequential(torch.nn.Linear(5, 7), torch.nn.BatchNorm1d(7), torch.nn.GELU())
    before = layer[1].running_mean.clone()
    found = lab.backends(layer, torch.randn(6, 5, requires_grad=True))
    assert [rung.verdict for rung in found.rungs] == ["agrees"] * 6, str(found)
    assert found.first_wrong is None and "every backend agrees" in str(found)
    assert torch.equal(layer[1].running_mean, before), "the model is as it was"


@pytest.mark.parametrize(
    ("fault", "verdict"),
    [("wrong_neg", "wrong"), ("neg_without_text", "raises"), ("unaligned_load", "crashes"),
     ("wrong_gradient", "wrong"), ("dropped_write", "wrong")],
)  # fmt: skip
def test_the_first_that_is_wrong(fault: str, verdict: str) -> None:
    function, arguments, *_ = CATALOGUE[fault].example()
    with CATALOGUE[fault]():
        found = lab.backends(function, *arguments, only=QUICK)
    assert [rung.backend for rung in found.rungs] == list(QUICK)
    wrong = found.first_wrong
    assert wrong is not None and (wrong.backend, wrong.verdict) == ("ours", verdict), str(found)


def test_a_hang_has_a_limit() -> None:
    function, arguments, *_ = CATALOGUE["endless_loop"].example()
    with lab.faults.endless_loop():
        found = lab.backends(function, *arguments, only=("ours",), limit=6.0)
    assert found.rungs[0].verdict == "hangs"


def test_a_wrong_name() -> None:
    with pytest.raises(BadArguments, match="no backend 'inductr'"):
        lab.backends(torch.sin, torch.ones(1), only=("inductr",))
