"""A compiled graph on disk that has changed since it was written is not loaded."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import torch._functorch.config as functorch_config
from torch._dynamo.utils import counters
from torch.testing import assert_close

from inductor_lab.compiler.accelerate.warm_graphs import discard_damaged


def bent(x: torch.Tensor) -> torch.Tensor:
    return x.sin() * 2.5 + x.cos()


def hits() -> int:
    """Check the result of a call, and return the number of graphs that it finds on disk."""
    torch._dynamo.reset()
    counters.clear()
    x = torch.linspace(-1, 1, 100)
    with functorch_config.patch(enable_autograd_cache=True):
        assert_close(torch.compile(bent, backend="inductor_lab")(x), bent(x))
    return counters["aot_autograd"]["autograd_cache_hit"]


def test_a_changed_bit_in_the_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "torch"))
    monkeypatch.setenv("INDUCTOR_LAB_CACHE_DIR", str(tmp_path / "ours"))
    assert (hits(), hits()) == (0, 1)
    (entry,) = (path for path in (tmp_path / "torch" / "aotautograd").rglob("*") if path.is_file())
    written = entry.read_bytes()
    assert b"2.5" in written
    entry.write_bytes(written.replace(b"2.5", b"2.7"))
    assert (hits(), hits()) == (0, 1)
    assert not any(b"2.7" in path.read_bytes() for path in entry.parent.iterdir())


def test_files_with_other_names_are_not_deleted(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("of a torch that names them otherwise")
    (tmp_path / ("b" * 51)).write_text("changed")
    discard_damaged(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
