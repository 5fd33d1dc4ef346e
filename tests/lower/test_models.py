"""Small models, forward and backward, as loop programs, compared with eager mode."""

from __future__ import annotations

import copy

import torch
from transformers import (
    BertConfig,
    BertModel,
    GPT2Config,
    GPT2LMHeadModel,
    ResNetConfig,
    ResNetForImageClassification,
)

from tests.lower.lowering import Lowered, assert_same

ATTENTION = "aten._scaled_dot_product_flash_attention_for_cpu.default"


def test_bert_needs_only_matmuls_and_attention() -> None:
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=64,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
    )
    model = BertModel(config).eval()
    tokens = torch.randint(0, 64, (1, 12))
    lowered = Lowered()
    with torch.no_grad():
        actual, expected = lowered.dynamo(model)(tokens), model(tokens)
    assert_same(actual[0], expected[0], rtol=1e-4, atol=1e-5)
    assert_same(actual[1], expected[1], rtol=1e-4, atol=1e-5)
    assert set(lowered.externs()) == {"aten.addmm.default", ATTENTION}


def test_gpt2_trains() -> None:
    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=64,
        n_positions=16,
        n_embd=32,
        n_layer=2,
        n_head=4,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        bos_token_id=0,
        eos_token_id=0,
    )
    model = GPT2LMHeadModel(config)
    tokens = torch.randint(0, 64, (2, 12))

    def loss(tokens: torch.Tensor) -> torch.Tensor:
        logits = model(tokens).logits[:, :-1]
        return torch.nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())

    weights = list(model.parameters())
    lowered = Lowered()
    actual = lowered.dynamo(loss)(tokens)
    expected = loss(tokens)
    assert_same(actual, expected, rtol=1e-5, atol=1e-5)
    gradients = torch.autograd.grad(actual, weights)
    for one, other in zip(gradients, torch.autograd.grad(expected, weights), strict=True):
        assert_same(one, other, rtol=1e-3, atol=1e-5)
    assert set(lowered.externs()) == {
        "aten.addmm.default",
        "aten.mm.default",
        ATTENTION,
        ATTENTION.replace(".default", "_backward.default"),
    }


def test_resnet_in_both_modes() -> None:
    torch.manual_seed(0)
    config = ResNetConfig(
        layer_type="basic",
        depths=[1, 1, 1, 1],
        hidden_sizes=[4, 8, 8, 16],
        embedding_size=4,
        num_labels=10,
    )
    model = ResNetForImageClassification(config).eval()
    images = torch.randn(2, 3, 32, 32)
    lowered = Lowered()
    with torch.no_grad():
        actual, expected = lowered.dynamo(model)(images)[0], model(images)[0]
    assert_same(actual, expected, rtol=1e-4, atol=1e-5)
    assert set(lowered.externs()) == {"aten.convolution.default", "aten.addmm.default"}

    model.train()
    other = copy.deepcopy(model)
    actual, expected = Lowered().dynamo(model)(images)[0], other(images)[0]
    assert_same(actual, expected, rtol=1e-4, atol=1e-5)
    for one, two in zip(model.buffers(), other.buffers(), strict=True):
        assert_same(one, two, rtol=1e-4, atol=1e-5)
    gradients = torch.autograd.grad(actual.sum(), list(model.parameters()))
    for one, two in zip(
        gradients, torch.autograd.grad(expected.sum(), list(other.parameters())), strict=True
    ):
        torch.testing.assert_close(one, two, rtol=1e-2, atol=1e-3)
