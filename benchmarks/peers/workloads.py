"""Models for inference and kernels, each with the same inputs and weights in every process."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import torch

from benchmarks import workloads
from benchmarks.models import tokens

Made = tuple[torch.nn.Module, tuple[torch.Tensor, ...]]


@dataclass(frozen=True)
class Work:
    """`build()` returns a module in float32, with its arguments; the same ones each time.

    dtype  what all systems compute in; inputs that are floats have it too
    """

    name: str
    build: Callable[[], Made]
    kind: Literal["model", "kernel"] = "model"
    dtype: torch.dtype = torch.float32

    def made(self, dtype: torch.dtype | None = None) -> Made:
        """The module and its arguments in `dtype` (by default its own)."""
        wanted = dtype or self.dtype
        module, args = self.build()
        return module.to(wanted), tuple(a.to(wanted) if a.is_floating_point() else a for a in args)


class First(torch.nn.Module):
    """A model that returns its first result."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.model = model.eval()

    def forward(self, *args: torch.Tensor) -> Any:
        return self.model(*args, return_dict=False)[0]


class Function(torch.nn.Module):
    """A function as a module without weights."""

    def __init__(self, fn: Callable[..., Any]) -> None:
        super().__init__()
        self.fn = fn

    def forward(self, *args: torch.Tensor) -> Any:
        return self.fn(*args)


def _images(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(1))


def bert(batch: int) -> Made:
    from transformers import BertConfig, BertModel

    return First(BertModel(BertConfig())), (tokens(batch, 128),)


def mobilebert() -> Made:
    from transformers import MobileBertConfig, MobileBertModel

    return First(MobileBertModel(MobileBertConfig())), (tokens(4, 128),)


def resnet18() -> Made:
    from transformers import ResNetConfig, ResNetForImageClassification

    config = ResNetConfig(layer_type="basic", depths=[2, 2, 2, 2], hidden_sizes=[64, 128, 256, 512])
    return First(ResNetForImageClassification(config)), (_images(4, 3, 224, 224),)


def vit_small() -> Made:
    from transformers import ViTConfig, ViTForImageClassification

    config = ViTConfig(hidden_size=384, num_attention_heads=6, intermediate_size=1536)
    return First(ViTForImageClassification(config)), (_images(2, 3, 224, 224),)


def llama() -> Made:
    from transformers import LlamaConfig, LlamaModel

    config = LlamaConfig(hidden_size=512, intermediate_size=1376, num_hidden_layers=6,
                         num_attention_heads=8, vocab_size=32_000, use_cache=False)  # fmt: skip
    return First(LlamaModel(config)), (tokens(1, 128),)


def t5_encoder() -> Made:
    from transformers import T5Config, T5EncoderModel

    config = T5Config(d_model=512, d_ff=2048, num_layers=6, num_heads=8)
    return First(T5EncoderModel(config)), (tokens(1, 128),)


def whisper_encoder() -> Made:
    from transformers import WhisperConfig
    from transformers.models.whisper.modeling_whisper import WhisperEncoder

    config = WhisperConfig(d_model=384, encoder_layers=4, encoder_attention_heads=6,
                           encoder_ffn_dim=1536, max_source_positions=1500)  # fmt: skip
    return First(WhisperEncoder(config)), (_images(1, 80, 3000),)


def convnext() -> Made:
    from transformers import ConvNextConfig, ConvNextModel

    return First(ConvNextModel(ConvNextConfig())), (_images(1, 3, 224, 224),)


def _seeded(build: Callable[[], Made]) -> Callable[[], Made]:
    def made() -> Made:
        torch.manual_seed(0)
        return build()

    return made


def _model(name: str, build: Callable[[], Made], dtype: torch.dtype = torch.float32) -> Work:
    return Work(name, _seeded(build), "model", dtype)


MODELS = (
    _model("BERT-base 1x128", lambda: bert(1)),
    _model("MobileBERT 4x128", mobilebert),
    _model("ResNet-18 4x3x224²", resnet18),
    _model("ViT-small 2x3x224²", vit_small),
    _model("LLaMA, 6 layers, 1x128", llama),
    _model("T5 encoder 1x128", t5_encoder),
    _model("Whisper encoder 1x80x3000", whisper_encoder),
    _model("ConvNeXt-tiny 1x3x224²", convnext),
    _model("BERT-base 4x128 bf16", lambda: bert(4), torch.bfloat16),
    _model("ViT-small 2x3x224² bf16", vit_small, torch.bfloat16),
    _model("LLaMA, 6 layers, 1x128 bf16", llama, torch.bfloat16),
)


def rotary(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    half = x.shape[-1] // 2
    turned = torch.cat((-x[..., half:], x[..., :half]), -1)
    return x * cos + turned * sin


def _of(work: workloads.Workload) -> Work:
    def build() -> Made:
        fn, args = work.build()
        return Function(fn), args

    return Work(work.name, build, "kernel")


def _kernel(name: str, fn: Callable[..., Any], *shapes: tuple[int, ...]) -> Work:
    def build() -> Made:
        made = torch.Generator().manual_seed(0)
        return Function(fn), tuple(torch.randn(shape, generator=made) for shape in shapes)

    return Work(name, build, "kernel")


LEFT_OUT = ("sin + cos of a scalar", "Adam step, 148 tensors", "NumPy function (1024, 640)")
"""Kernels of `benchmarks.cpu` that measure a call, an optimizer, and NumPy."""
KERNELS = (
    *(_of(one) for one in (*workloads.KERNELS, *workloads.OPERATORS)
      if not one.gradient and one.name not in LEFT_OUT),
    _kernel("rotary (8, 512, 16, 64)", rotary, (8, 512, 16, 64), (512, 1, 64), (512, 1, 64)),
    _kernel("row sum (4096, 2048)", lambda x: x.sum(1), (4096, 2048)),
)  # fmt: skip
WORK = {one.name: one for one in (*MODELS, *KERNELS)}
