"""Without the driver of CUDA, memory of a GPU is not shared, and the process says why."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from inductor_lab.debug.judge import cuda_driver, serve_candidate
from inductor_lab.debug.untrusted.confine import Limits, confinable
from inductor_lab.debug.untrusted.fresh import Fresh

CLASSES = "inductor_lab.debug.judge.serve_candidate:CLASSES"


def without_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_driver, "LIBRARY", "libcuda-that-is-not-here.so")
    cuda_driver._driver.cache_clear()


def test_an_error_of_the_driver_says_what_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    without_driver(monkeypatch)
    with pytest.raises(cuda_driver.CannotShare, match="driver is not here"):
        cuda_driver.allocate(1 << 20, 0)


def test_a_process_that_cannot_map_memory_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    without_driver(monkeypatch)
    monkeypatch.setattr(serve_candidate, "_SHARED", serve_candidate.Shared())
    monkeypatch.setattr(serve_candidate.torch.cuda, "current_device", lambda: 0)
    file = os.open(os.devnull, os.O_RDONLY)
    serve_candidate._share_device(file, 1 << 20)
    assert "driver is not here" in serve_candidate.refusal()
    assert not Path(f"/proc/self/fd/{file}").exists()


@pytest.mark.skipif(not confinable(), reason="no Landlock on this machine")
def test_a_process_gets_open_files(tmp_path: Path) -> None:
    """Also those that it could not open itself."""
    hidden = tmp_path / "hidden"
    hidden.write_text("content")
    with Fresh(("tests.judge.staged",)) as fresh, hidden.open("rb") as file:
        process = fresh.start("tests.judge.staged:reads", {}, Limits(30.0, 30.0), CLASSES,
                              [tmp_path], files=[file.fileno()])  # fmt: skip
        with process:
            process.begin()
            assert process.root() == "content"
