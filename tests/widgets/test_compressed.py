"""Documents are decompressed as they were compressed, and stay small for each node they show."""

from __future__ import annotations

import base64
import gzip

import pytest
import torch

import inductor_lab as lab
from inductor_lab.widgets import compressed
from inductor_lab.widgets.compressed import unzipped, zipped
from inductor_lab.widgets.model import document


class Block(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.up = torch.nn.LayerNorm(16), torch.nn.Linear(16, 32)
        self.down = torch.nn.Linear(32, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.down(torch.nn.functional.gelu(self.up(self.norm(x))))


@pytest.mark.parametrize("trained", [False, True], ids=["eval", "train"])
def test_documents_come_back_and_stay_small(trained: bool) -> None:
    """About 400 bytes for each node of all graphs; without compression, about 4.8 kB."""
    net = torch.nn.Sequential(*(Block() for _ in range(6))).requires_grad_(trained)
    shown = document(lab.inspect(net, torch.randn(4, 16)))
    nodes = sum(kind == "node" for kind in shown["links"]["kind"])
    text = zipped(shown)
    assert unzipped(text) == shown
    assert nodes > 80
    assert len(text) < 600 * nodes, (len(text), nodes)
    assert not set(text) & set("<>&'\"\\\n"), "in a page, it ends no script and no text"


def test_other_text_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def of(text: bytes) -> str:
        return base64.b64encode(gzip.compress(text)).decode()

    for damaged in ("", "{}", "H4sI", of(b"{}"), of(b"[1]"), of(b"{"), of(b'{"panes": {}}')[:-9]):
        with pytest.raises(ValueError):
            unzipped(damaged)
    monkeypatch.setattr(compressed, "LARGEST", 100)
    assert unzipped(of(b'{"panes": {}}')) == {"panes": {}}
    with pytest.raises(ValueError, match="too large"):
        unzipped(of(b'{"panes": "' + b"x" * 10_000_000 + b'"}'))
