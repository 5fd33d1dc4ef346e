"""Whole models from `transformers` configs with random weights: nothing is downloaded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from benchmarks.workloads import Built, Workload
from inductor_lab.bench.demo import programs


def evaluated(model: torch.nn.Module, *args: torch.Tensor) -> Built:
    """The model's first result, without gradients."""
    model.eval()

    def run(*inputs: torch.Tensor) -> Any:
        with torch.no_grad():
            return model(*inputs)[0]

    return run, args


def tokens(*shape: int) -> torch.Tensor:
    return torch.randint(0, 30_000, shape, generator=torch.Generator().manual_seed(0))


def bert(batch: int) -> Built:
    from transformers import BertConfig, BertModel

    torch.manual_seed(0)
    return evaluated(BertModel(BertConfig()), tokens(batch, 128))


def gpt2() -> Built:
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(0)
    return evaluated(GPT2LMHeadModel(GPT2Config(use_cache=False)), tokens(1, 128))


def vit_small() -> Built:
    from transformers import ViTConfig, ViTForImageClassification

    torch.manual_seed(0)
    config = ViTConfig(hidden_size=384, num_attention_heads=6, intermediate_size=1536)
    return evaluated(ViTForImageClassification(config), torch.randn(1, 3, 224, 224))


def mobilebert() -> Built:
    from transformers import MobileBertConfig, MobileBertForQuestionAnswering

    torch.manual_seed(0)
    return evaluated(MobileBertForQuestionAnswering(MobileBertConfig()), tokens(4, 128))


def mini_gpt() -> Built:
    """Loss of a GPT of 6 layers and width 384, without dropout."""
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(0)
    config = GPT2Config(n_layer=6, n_embd=384, n_head=6, vocab_size=1000, n_positions=128,
                        resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, bos_token_id=0,
                        eos_token_id=0, use_cache=False)  # fmt: skip
    model = GPT2LMHeadModel(config).train()
    model.loss_type = "ForCausalLM"  # avoids a warning, at which TorchDynamo stops

    def loss(batch: torch.Tensor) -> torch.Tensor:
        return model(batch, labels=batch).loss

    return loss, (tokens(4, 128) % 1000,)


def _model(name: str, build: Callable[[], Built]) -> Workload:
    return Workload(name, build, "model")


MODELS = (
    _model("BERT-base 1x128", lambda: bert(1)),
    _model("BERT-base 4x128", lambda: bert(4)),
    _model("GPT-2 1x128", gpt2),
    _model("ViT-small", vit_small),
    _model("MobileBERT QA 4x128", mobilebert),
    _model("ResNet-18 4x224²", programs.resnet18),
    Workload("mini GPT training 4x128", mini_gpt, "training", gradient=True),
)
