"""Tiny models of the transformers library with random weights, and inputs for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import transformers as hf

Inputs = dict[str, torch.Tensor]
MODELS: dict[str, Callable[[], tuple[torch.nn.Module, Inputs]]] = {}

TEXT = {
    "vocab_size": 64,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "bos_token_id": 0,
    "eos_token_id": 1,
    "pad_token_id": 0,
}
IMAGE = {"image_size": 32, "patch_size": 8, "num_channels": 3}


def tiny(make: Callable[[], tuple[torch.nn.Module, Inputs]]) -> Any:
    if make.__name__ in MODELS:
        raise ValueError(f"two models are called {make.__name__}")
    MODELS[make.__name__] = make
    return make


def tokens(rows: int = 2, columns: int = 12) -> torch.Tensor:
    return torch.randint(2, 64, (rows, columns))


def images(size: int = 32) -> Inputs:
    return {"pixel_values": torch.randn(2, 3, size, size)}


@tiny
def bert() -> tuple[torch.nn.Module, Inputs]:
    mask = torch.ones(2, 12, dtype=torch.long)
    mask[0, 8:] = 0
    config = hf.BertConfig(
        **TEXT, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0
    )
    return hf.BertForMaskedLM(config), {"input_ids": tokens(), "attention_mask": mask}


@tiny
def gpt2() -> tuple[torch.nn.Module, Inputs]:
    config = hf.GPT2Config(
        vocab_size=64, n_positions=16, n_embd=32, n_layer=2, n_head=4,
        resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, bos_token_id=0, eos_token_id=1,
        use_cache=False,
    )  # fmt: skip
    return hf.GPT2LMHeadModel(config), {"input_ids": tokens(), "labels": tokens()}


def llama_config() -> hf.LlamaConfig:
    return hf.LlamaConfig(**TEXT, num_key_value_heads=2, max_position_embeddings=64)


@tiny
def llama() -> tuple[torch.nn.Module, Inputs]:
    model = hf.LlamaForCausalLM(llama_config())
    model.config.use_cache = False
    return model, {"input_ids": tokens(), "labels": tokens()}


@tiny
def t5() -> tuple[torch.nn.Module, Inputs]:
    config = hf.T5Config(
        vocab_size=64, d_model=32, d_kv=8, d_ff=64, num_layers=1, num_decoder_layers=1,
        num_heads=4, dropout_rate=0.0, decoder_start_token_id=0, use_cache=False,
    )  # fmt: skip
    return hf.T5ForConditionalGeneration(config), {"input_ids": tokens(), "labels": tokens()}


@tiny
def vit() -> tuple[torch.nn.Module, Inputs]:
    config = hf.ViTConfig(
        **IMAGE, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
    )  # fmt: skip
    return hf.ViTForImageClassification(config), images()


@tiny
def resnet() -> tuple[torch.nn.Module, Inputs]:
    config = hf.ResNetConfig(
        layer_type="bottleneck", depths=[1, 1], hidden_sizes=[8, 16], embedding_size=4
    )
    return hf.ResNetForImageClassification(config), images()


@tiny
def mobilebert() -> tuple[torch.nn.Module, Inputs]:
    config = hf.MobileBertConfig(
        vocab_size=64, hidden_size=32, embedding_size=16, num_hidden_layers=2,
        num_attention_heads=4, intermediate_size=32, intra_bottleneck_size=16,
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, num_feedforward_networks=2,
    )  # fmt: skip
    return hf.MobileBertForSequenceClassification(config), {"input_ids": tokens()}


@tiny
def whisper_encoder() -> tuple[torch.nn.Module, Inputs]:
    config = hf.WhisperConfig(
        d_model=32, encoder_layers=2, encoder_attention_heads=4, encoder_ffn_dim=64,
        decoder_attention_heads=4, decoder_layers=1,
        num_mel_bins=8, max_source_positions=20, vocab_size=64, dropout=0.0,
        pad_token_id=0, bos_token_id=0, eos_token_id=1, decoder_start_token_id=0,
    )  # fmt: skip
    encoder = hf.WhisperModel(config).get_encoder()
    return encoder, {"input_features": torch.randn(2, 8, 40)}


@tiny
def clip() -> tuple[torch.nn.Module, Inputs]:
    layers = {k: TEXT[k] for k in TEXT if k.startswith(("hidden", "num", "inter"))}
    config = hf.CLIPConfig(
        text_config={**TEXT, "max_position_embeddings": 16, "projection_dim": 16},
        vision_config={**IMAGE, **layers, "projection_dim": 16},
        projection_dim=16,
    )
    return hf.CLIPModel(config), {"input_ids": tokens(), **images()}


@tiny
def mamba() -> tuple[torch.nn.Module, Inputs]:
    config = hf.MambaConfig(
        vocab_size=64, hidden_size=32, state_size=4, num_hidden_layers=1, time_step_rank=4,
        bos_token_id=0, eos_token_id=1, pad_token_id=0, use_cache=False,
    )  # fmt: skip
    return hf.MambaForCausalLM(config), {"input_ids": tokens(2, 6)}


@tiny
def convnext() -> tuple[torch.nn.Module, Inputs]:
    config = hf.ConvNextConfig(
        hidden_sizes=[8, 16], depths=[1, 1], num_stages=2, patch_size=4, drop_path_rate=0.0
    )
    return hf.ConvNextForImageClassification(config), images()


@tiny
def mixtral() -> tuple[torch.nn.Module, Inputs]:
    config = hf.MixtralConfig(
        **TEXT, num_key_value_heads=2, num_local_experts=4, num_experts_per_tok=2,
        max_position_embeddings=64, use_cache=False,
    )  # fmt: skip
    return hf.MixtralForCausalLM(config), {"input_ids": tokens(), "labels": tokens()}
