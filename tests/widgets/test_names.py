"""What people see has the user's names: parameters, their own lines, paths from where they are."""

from __future__ import annotations

import os
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import inductor_lab as lab
from inductor_lab.compiler.capture.span import outside_torch, shown_file
from inductor_lab.widgets.model import document
from tests.widgets.reading import rows


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.c_attn = nn.Linear(8, 8)
        self.scale = nn.Parameter(torch.ones(8))
        self.register_buffer("mask", torch.ones(8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.c_attn(x).sin() * self.scale + self.mask


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.h = nn.ModuleList([Block(), Block()])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for block in self.h:
            x = block(x)
        return x


NAMES = {f"h.{n}.{name}" for n in range(2) for name in ("c_attn.weight", "c_attn.bias", "scale")}


@pytest.fixture(scope="module")
def shown() -> dict:
    return document(lab.inspect(Net(), torch.randn(4, 8)))


@pytest.mark.parametrize("pane", ["captured", "joint", "forward.graph", "forward.loops"])
def test_parameters_have_their_names_in_graphs(shown: dict, pane: str) -> None:
    (graph,) = [v for v in shown["panes"][f"g0.{pane}"]["views"] if v["kind"] == "graph"]
    labels = {item[1] for item in graph["items"]}
    assert {"x", *NAMES} <= labels
    assert not any(label.startswith(("primals_", "l_self_")) for label in labels)


def test_tables_and_trail_have_them_too(shown: dict) -> None:
    saved = shown["panes"]["g0.joint.cut"]["views"][0]
    assert "h.1.c_attn.weight" in {row["cells"][0] for row in rows(saved)}
    assert NAMES | {"h.0.mask"} <= set(shown["links"]["label"])


def test_names_of_a_function_and_of_a_loaded_file(tmp_path: Path) -> None:
    net, weight = Block(), torch.randn(8)

    def loss(x: torch.Tensor, *, scale: torch.Tensor) -> torch.Tensor:
        return (net(x) * scale * weight).sum()

    c = lab.inspect(loss, torch.randn(2, 8), scale=torch.randn(8))
    labels = set(document(c)["links"]["label"])
    assert {"x", "scale", "weight", "net.c_attn.weight"} <= labels
    loaded = lab.load(c.save(tmp_path / "c.lab.json"))
    assert document(loaded)["links"] == document(c)["links"]


def test_an_array_is_called_as_the_user_calls_it() -> None:
    c = lab.inspect(lambda x: np.exp(x) + 1, np.ones(8, np.float32))
    assert document(c)["subtitle"] == "(x: f32[8])  cpu"


@pytest.mark.parametrize("net", [
    nn.GELU(), nn.Sequential(nn.Linear(8, 8), nn.GELU()),
    nn.TransformerEncoderLayer(8, 2, 16, batch_first=True),
])  # fmt: skip
def test_a_module_of_torch_leads_to_the_line_that_calls_it(net: nn.Module) -> None:
    c = lab.inspect(net, torch.randn(2, 4, 8))  # this line
    assert "# this line" in c.source.text
    shown = document(c)
    blocks = shown["panes"]["source"]["views"][0]["blocks"]
    assert len(blocks) == 1 and blocks[0]["title"] == shown_file(__file__)
    kinds, parents = shown["links"]["kind"], shown["links"]["parents"]
    nodes = [parents[i] for i, kind in enumerate(kinds) if kind == "node" and parents[i]]
    assert nodes and kinds.count("source") == 1


def test_paths_are_relative_to_where_people_are(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "notebooks").mkdir()
    monkeypatch.chdir(tmp_path / "notebooks")
    assert shown_file(str(tmp_path / "model.py")) == os.path.join("..", "model.py")
    assert shown_file("/usr/lib/python3/x.py") == "/usr/lib/python3/x.py"
    installed = "/home/me/.venv/lib/python3.12/site-packages"
    assert shown_file(f"{installed}/transformers/activations.py") == "transformers/activations.py"
    assert not outside_torch(shown_file(f"{installed}/torch/nn/functional.py"))


class Shifted(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = torch.nn.LayerNorm(3)
        self.inner.shift = 1e-6

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(x) + self.inner.shift


def test_numbers_of_modules_are_no_arguments_in_the_header() -> None:
    """With dynamic sizes TorchDynamo hands a module's floats in as tensors."""
    module = Shifted()
    for function in (module, lambda x: module(x)):
        c = lab.inspect(function, torch.ones(4, 3), options={"dynamic": True})
        assert re.fullmatch(r"\(x: f32\[\w+, 3\]\)  cpu", document(c)["subtitle"])
