"""Writes to part of a tensor on a GPU are as in eager mode, in the storage of the tensor."""

from __future__ import annotations

import pytest
import torch

import inductor_lab as lab
from benchmarks.partial_writes import KINDS, LARGE, Given

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU"),
]
MODES = ("default", "reduce-overhead")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", KINDS)
def test_writes_are_as_in_eager_mode(name: str, mode: str) -> None:
    kind = KINDS[name]
    make = Given((16, 128, 256), "cuda")
    ours = [make.c, *kind.make(make)]
    theirs = [v.clone() if isinstance(v, torch.Tensor) else v for v in ours]
    compiled = lab.compile(kind.function, mode=mode, dynamic=kind.dynamic or None)
    for _ in range(4):  # with a recording, the third call replays it
        found, expected = compiled(*ours), kind.function(*theirs)
        for a, b in zip([found, *ours], [expected, *theirs], strict=True):
            if isinstance(b, torch.Tensor):
                torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", [n for n in KINDS if not n.startswith("custom_operator")])
def test_a_write_reads_and_writes_only_its_elements(name: str) -> None:
    kind = KINDS[name]
    make = Given(LARGE, "cuda")
    options = {"dynamic": True} if kind.dynamic else {}
    compilation = lab.inspect(kind.function, make.c, *kind.make(make), options=options)
    part = compilation.graphs[0].forward
    if name != "set_mask_of_planes":
        assert all(write.in_place for write in part.loops.partial_writes), part.schedule
        assert ".copy_(" not in str(part.host)
