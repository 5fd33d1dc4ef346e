"""Operators in torch's own Python references are accepted: honest candidates that are not eager."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch.testing._internal.common_methods_invocations import python_ref_db

from inductor_lab.bench.machine import Ceilings, machine
from inductor_lab.debug.judge.judge import Judge
from inductor_lab.debug.untrusted.confine import confinable

pytestmark = pytest.mark.skipif(not confinable(), reason="no Landlock on this machine")
ROOF = Ceilings(machine(), ((1 << 20, 1e12),), {"float32": 1e13})
QUICK = ("abs", "nn.functional.celu", "nn.functional.softmin", "maximum", "cat", "std")
FURTHER = ("triu", "fill", "neg", "eq", "vdot", "fft.ifft2", "special.ndtr")


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    with Judge(roof=ROOF) as made:
        yield made


def accepted(judge: Judge, name: str) -> None:
    entry = next(one for one in python_ref_db if one.name == f"_refs.{name}")
    sample = next(iter(entry.sample_inputs("cpu", torch.float32)))
    kwargs = dict(sample.kwargs)

    def reference(*args: Any) -> Any:
        return entry.torch_opinfo.op(*args, **kwargs)

    module, function = entry.op.__module__, entry.op.__name__
    text = (f"import torch\nfrom {module} import {function} as f\n"
            f"def candidate(*args):\n    return f(*args, **{kwargs!r})\n")  # fmt: skip
    found = judge.judge(reference, text, [(sample.input, *sample.args)], seconds=None)
    assert found.accepted, str(found)
    assert found.checked[0].result == "right", str(found)


@pytest.mark.parametrize("name", QUICK)
def test_an_operator_is_accepted(judge: Judge, name: str) -> None:
    accepted(judge, name)


@pytest.mark.parametrize("name", FURTHER)
def test_a_further_operator_is_accepted(judge: Judge, name: str) -> None:
    accepted(judge, name)
