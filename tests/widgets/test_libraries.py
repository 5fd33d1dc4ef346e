"""The explorer and documents show the measured libraries, and the steps that run in one call."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

import inductor_lab as lab
from inductor_lab.compiler.accelerate import matmul_libraries, own_products
from inductor_lab.widgets.model import document
from tests.saved.schemas import valid
from tests.widgets.reading import rows

OWN = "inductor_lab packed"
SECONDS = {"ATen": 4e-3, "oneDNN": 3e-3, "oneDNN packed": 2e-3, OWN: 1e-3}

pytestmark = pytest.mark.skipif(
    not own_products.knows(torch.float32), reason="this machine has no vectors that it knows"
)


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> lab.Compilation:
    """Two layers whose products our own library computes, because fake times say so."""
    monkeypatch.setenv("INDUCTOR_LAB_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(matmul_libraries, "timed", lambda candidates: SECONDS)
    torch.manual_seed(0)
    layers = [torch.nn.Linear(256, 256), torch.nn.ReLU(), torch.nn.Linear(256, 512)]
    with torch.no_grad():
        return lab.inspect(torch.nn.Sequential(*layers), torch.randn(128, 256))


def views_of(c: lab.Compilation, pane: str) -> dict[str, Any]:
    return {view["name"]: view for view in document(c)["panes"][f"g0.forward.{pane}"]["views"]}


def test_the_libraries_of_products(compiled: lab.Compilation) -> None:
    first, second = rows(views_of(compiled, "schedule")["libraries"])
    assert first["cells"] == ["addmm", "(128, 256) × (256, 256)", "float32", OWN, "1 ms"]
    assert second["cells"] == ["addmm", "(128, 256) × (256, 512)", "float32", OWN, "1 ms"]
    assert ["oneDNN packed", "2 ms"] in first["more"] and len(first["more"]) == len(SECONDS)
    small = lab.inspect(lambda x: x @ x, torch.randn(4, 4))
    assert "libraries" not in views_of(small, "schedule")


def test_the_program_that_calls_steps_at_once(compiled: lab.Compilation) -> None:
    views = views_of(compiled, "host")
    assert [*views] == ["text", "steps in one call"]
    text = [line[0] for line in views["steps in one call"]["blocks"][0]["lines"]]
    assert sum(line.strip().startswith("run_0(") for line in text) == 1
    assert [*views_of(lab.inspect(torch.sin, torch.ones(3)), "host")] == ["text"]


def test_documents_have_both(compiled: lab.Compilation, tmp_path: Path) -> None:
    part = valid(compiled.to_dict())["graphs"][0]["parts"][0]
    assert len(part["libraries"]) == 2
    first = part["libraries"][0]
    assert first["sizes"] == [128, 256, 256] and first["chosen"] == OWN
    assert {each["name"]: each["seconds"] for each in first["measured"]} == SECONDS
    (program,) = [each for each in part["texts"] if each["id"] == "g0.forward.host_in_runs"]
    assert "run_0(" in program["text"]
    compiled.save(tmp_path / "saved.lab.json")
    loaded = lab.load(tmp_path / "saved.lab.json")
    assert loaded.to_dict()["graphs"][0]["parts"][0] == part
