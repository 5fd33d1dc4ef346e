"""Training steps of small transformers with the partitioner."""

from __future__ import annotations

import pytest
import torch
from transformers import GPT2Config, GPT2LMHeadModel

from tests.autograd.backend import compiled


def _gpt2(dropout: float) -> GPT2LMHeadModel:
    torch.manual_seed(0)
    shape = {"n_layer": 2, "n_embd": 32, "n_head": 2, "n_positions": 16, "vocab_size": 50}
    rates = {"resid_pdrop": dropout, "embd_pdrop": dropout, "attn_pdrop": dropout}
    return GPT2LMHeadModel(GPT2Config(**shape, **rates)).train()


def _losses(step, model, steps):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    ids = torch.arange(16)[None] % 7
    losses = []
    for _ in range(steps):
        loss = step(ids)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return losses


@pytest.mark.parametrize("budget", [1.0, 0.0])
def test_gpt2_trains_as_in_eager_mode(budget):
    reference = _gpt2(0.0)
    expected = _losses(lambda ids: reference(input_ids=ids, labels=ids).loss, reference, 3)
    model = _gpt2(0.0)
    ours, backend = compiled(lambda ids: model(input_ids=ids, labels=ids).loss, budget)
    got = _losses(ours, model, 3)
    torch.testing.assert_close(torch.tensor(got), torch.tensor(expected), rtol=1e-4, atol=0)
    assert got[-1] < got[0]
    made = backend.partitions[0]
    assert made.cut_bytes < made.bytes_if_all_saved


def test_gpt2_with_dropout_trains():
    model = _gpt2(0.1)
    ours, _ = compiled(lambda ids: model(input_ids=ids, labels=ids).loss)
    losses = _losses(ours, model, 5)
    assert losses[-1] < losses[0]
