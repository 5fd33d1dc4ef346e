"""What each pass over loop trees gives: the call without it is right, and what it loads is told."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

import inductor_lab as lab
from inductor_lab.bench.ablation import tree_bytes
from inductor_lab.compiler.base.errors import BadOption, NotRunnable


def test_the_passes_of_a_pooling_are_told() -> None:
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


def test_every_pass_may_be_left_out() -> None:
    def function(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        scanned = (x.exp().cumsum(-1), x.sum(0), x.argmax(-1), x.amax(-1))
        return (*scanned, x.softmax(-1), x + y.t(), (x.half() * 2).float(), x.sum())

    args = torch.randn(64, 1100), torch.randn(1100, 64)
    for name in (*lab.inspect(function, *args).parts[0].trees[0].passes, "columns", "tiles"):
        if name in ("number", "sums", "checks"):
            continue
        found = lab.inspect(function, *args, options={"passes_off": [name]})
        torch.testing.assert_close(found.result, function(*args))
        assert all(name not in trees.passes for trees in found.parts[0].trees)


def test_without_any_pass_there_are_simple_loops() -> None:
    x = torch.randn(64, 1000)
    found = lab.inspect(lambda x: x.softmax(-1), x, options={"passes_off": "all"})
    torch.testing.assert_close(found.result, x.softmax(-1))
    (kernel,), (trees,) = found.parts[0].kernels, found.parts[0].trees
    assert "omp" not in str(kernel)
    assert trees.passes == ("number",)
    assert tree_bytes(trees.steps[-1].tree) == 4 * 64 * 1000 * 4


def test_what_cannot_be_taken_out_is_refused(tmp_path) -> None:
    compilation = lab.inspect(lambda x: x + 1, torch.randn(8))
    with pytest.raises(BadOption, match="tilse"):
        compilation.what_if(passes_off=["tilse"])
    loaded = lab.load(compilation.save(tmp_path / "a.json"))
    assert str(loaded.parts[0].trees) == str(compilation.parts[0].trees)
    with pytest.raises(NotRunnable):
        loaded.ablation()
