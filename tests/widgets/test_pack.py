"""Documents come out of their packing as they went in, and stay small for each node they show."""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import inductor_lab as lab
from inductor_lab.widgets.model import document
from inductor_lab.widgets.pack import packed, unpacked
from inductor_lab.widgets.page import document_for_html

texts = st.sampled_from([  # those that packing writes itself, too
    "", "~", "~~", "~0", "~:0", "~|", "~*", "~#", "a\nb", "\n", "a long text, twice", "1",
    "layer.12.attention of 07, 3.14 (256)", "layer.3.attention of 07, 0.5 (64)",
    "layer.3.attention of ~, 0.5 (1234567890123)", "layer.3.attention of 9, 0.5 (64)\nlayer.4",
])  # fmt: skip
values = st.recursive(
    st.one_of(texts, st.integers(0, 3), st.booleans(), st.none(), st.floats(0, 1)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=5), st.dictionaries(texts, inner, max_size=4)
    ),
    max_leaves=40,
)


@settings(max_examples=200, deadline=None)
@given(value=values)
def test_unpacking_restores_the_document(value: Any) -> None:
    several = {"a": [value] * 12, "b": value, "c": [1, True, 1.0, [value] * 9]}
    made = unpacked(json.loads(json.dumps(packed(several))))
    assert json.dumps(made) == json.dumps(several), "types too: 1 is not True"


def test_texts_that_differ_in_numbers_have_one_form() -> None:
    lines = [f"layer.{n}.attention.weight: float32[{64 * n}, 1024], 1e-05" for n in range(40)]
    made = packed(lines)
    assert made["shared"] == ["layer.~.attention.weight: float~[~, ~], ~e-05"]
    assert made["data"][2] == ["~#", "~0", 2, 32, 128, 1024, 1] and unpacked(made) == lines


def test_objects_are_never_shared() -> None:
    one, two = unpacked(packed([{"state": "the same text", "list": ["x", "y"]}] * 2))
    assert one == two and one is not two


class Block(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.up = torch.nn.LayerNorm(16), torch.nn.Linear(16, 32)
        self.down = torch.nn.Linear(32, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.down(torch.nn.functional.gelu(self.up(self.norm(x))))


@pytest.mark.parametrize("trained", [False, True], ids=["eval", "train"])
def test_documents_stay_small(trained: bool) -> None:
    """Bytes for each node of all graphs: 4.8 kB before packing, about 1.5 with it."""
    net = torch.nn.Sequential(*(Block() for _ in range(6))).requires_grad_(trained)
    c = lab.inspect(net, torch.randn(4, 16))
    shown = document(c)
    nodes = sum(kind == "node" for kind in shown["links"]["kind"])
    whole = len(json.dumps(shown, ensure_ascii=False, separators=(",", ":")).encode())
    size = len(document_for_html(shown).encode())
    assert nodes > 80
    assert size < 0.62 * whole, (size, whole)
    assert size < 2400 * nodes, (size, nodes)
