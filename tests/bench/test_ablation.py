"""Each pass can be disabled: the result stays correct, and the ablation measures the effect."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

import inductor_lab as lab
from inductor_lab.compiler.accelerators import LISTS
from inductor_lab.compiler.base.errors import BadOption, NotRunnable
from inductor_lab.compiler.base.passes import optional


def test_the_ablation_of_a_pooling_lists_its_passes() -> None:
    x = torch.randn(2, 8, 96, 96)
    compilation = lab.inspect(lambda x: F.max_pool2d(x, 3, 2, 1), x)
    table = compilation.ablation(seconds=0.1)
    rows = {row.name: row for row in table.rows}
    assert next(iter(rows)) == "nothing"
    assert list(rows)[-1] == "all"
    assert {"split", "windows", "lanes"} <= rows.keys()
    assert rows["windows"].bytes > rows["nothing"].bytes, "windows that overlap are read again"
    assert all(row.seconds > 0 for row in table.rows)
    assert "slowdown" in str(table)


def function(x: torch.Tensor, y: torch.Tensor, at: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """A function that passes of every level change."""
    scanned = (x.exp().cumsum(-1), x.sum(0), x.argmax(-1), x.amax(-1))
    written = x.clone()
    written[3] = 1.0
    _, kept = torch.var_mean(y * 1, dim=-1)
    picked = (x[at] * 2)[0]
    moved = (x @ y) + y[:64].sum() + x.view(-1).view(64, 1100).sum()
    half = (x.half() * 2).float()
    return (*scanned, x.softmax(-1), x + y.t(), half, written, kept, picked, moved)


ARGUMENTS = torch.randn(64, 1100), torch.randn(1100, 64), torch.tensor([1, 5])


def check_without(name: str) -> None:
    found = lab.inspect(function, *ARGUMENTS, options={"passes_off": [name]})
    for ours, eager in zip(found.result, function(*ARGUMENTS), strict=True):
        torch.testing.assert_close(ours, eager, rtol=1e-4, atol=1e-3)
    assert all(name not in part.passes for part in found.parts)


def test_passes_of_every_level_change_the_program() -> None:
    changed = set(lab.inspect(function, *ARGUMENTS).parts[0].passes)
    assert all(changed & table.keys() for table in LISTS.values())


@pytest.mark.parametrize("name", ["identities", "dead_steps", "fuse", "columns"])
def test_a_pass_of_each_level_can_be_disabled(name: str) -> None:
    assert any(name in table for table in LISTS.values())
    check_without(name)


@pytest.mark.parametrize("level", LISTS)
def test_every_pass_can_be_disabled(level: str) -> None:
    for name in sorted(optional(LISTS[level])):
        check_without(name)


def test_without_passes_each_level_has_its_simplest_form() -> None:
    x = torch.randn(64, 1000)
    found = lab.inspect(lambda x: x.softmax(-1) * 1, x, options={"passes_off": "all"})
    torch.testing.assert_close(found.result, x.softmax(-1))
    (part,) = found.parts
    assert not any(step.changed for step in part.rewrites.steps)
    assert len(part.kernels) == len(part.loops.nests) > 4, "each nest is a kernel"
    assert not any("omp" in str(kernel) for kernel in part.kernels)
    assert {name for trees in part.trees for name in trees.passes} == {"number"}


def test_an_ablation_that_cannot_run_is_refused(tmp_path) -> None:
    compilation = lab.inspect(lambda x: x + 1, torch.randn(8))
    with pytest.raises(BadOption, match="tilse"):
        compilation.what_if(passes_off=["tilse"])
    loaded = lab.load(compilation.save(tmp_path / "a.json"))
    assert str(loaded.parts[0].trees) == str(compilation.parts[0].trees)
    with pytest.raises(NotRunnable):
        loaded.ablation()
