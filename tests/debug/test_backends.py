"""The comparison of backends: the first one that disagrees with eager mode."""

from __future__ import annotations

import pytest
import torch

import inductor_lab as lab
from inductor_lab.compiler.base.errors import BadArguments
from inductor_lab.debug.faults import CATALOGUE

QUICK = ("eager", "aot_eager", "inductor_lab")


def test_all_backends_agree() -> None:
    """Six backends forward (stock takes seconds for each kernel of C++), three with gradients."""
    layer = torch.nn.Sequential(torch.nn.BatchNorm1d(5), torch.nn.GELU())
    before = layer[0].running_mean.clone()
    with torch.no_grad():
        found = lab.backends(layer, torch.randn(6, 5))
    assert [rung.verdict for rung in found.rungs] == ["agrees"] * 6, str(found)
    assert found.first_wrong is None and "every backend agrees" in str(found)
    trained = lab.backends(layer, torch.randn(6, 5, requires_grad=True), only=QUICK)
    assert [rung.verdict for rung in trained.rungs] == ["agrees"] * 3, str(trained)
    assert torch.equal(layer[0].running_mean, before), "the model is as it was"


@pytest.mark.parametrize(
    ("fault", "verdict"),
    [("wrong_neg", "wrong"), ("neg_without_text", "raises"), ("unaligned_load", "crashes"),
     ("wrong_gradient", "wrong"), ("dropped_write", "wrong")],
)  # fmt: skip
def test_the_first_wrong_backend_is_reported(fault: str, verdict: str) -> None:
    function, arguments, *_ = CATALOGUE[fault].example()
    with CATALOGUE[fault]():
        found = lab.backends(function, *arguments, only=QUICK)
    assert [rung.backend for rung in found.rungs] == list(QUICK)
    wrong = found.first_wrong
    assert wrong is not None, str(found)
    assert (wrong.backend, wrong.verdict) == ("inductor_lab", verdict), str(found)


def test_the_unoptimized_backend_runs_no_loop_tree_passes() -> None:
    function, arguments, *_ = CATALOGUE["lost_tail"].example()
    only = ("inductor_lab (unoptimized)", "inductor_lab")
    with CATALOGUE["lost_tail"]():
        found = lab.backends(function, *arguments, only=only)
    assert [rung.verdict for rung in found.rungs] == ["agrees", "wrong"], str(found)


def test_a_hanging_backend_is_stopped_at_the_limit() -> None:
    function, arguments, *_ = CATALOGUE["endless_loop"].example()
    with lab.faults.endless_loop():
        found = lab.backends(function, *arguments, only=("inductor_lab",), limit=2.5)
    assert found.rungs[0].verdict == "hangs"


def test_an_unknown_backend_is_refused() -> None:
    with pytest.raises(BadArguments, match="unknown backend 'inductr'; did you mean 'inductor"):
        lab.backends(torch.sin, torch.ones(1), only=("inductr",))
