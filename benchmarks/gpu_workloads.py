"""The GPU workloads: kernels with the sizes of real layers, and complete models.

A workload is created on the GPU from a seed, so it is the same in every process.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
"""Without a GPU all of this runs on the CPU, where it takes long and says nothing about speed."""
Built = tuple[Callable[..., Any], tuple[Any, ...]]


@dataclass(frozen=True)
class GpuWorkload:
    """`build()` returns a function or module and its arguments.

    gradient   forward and backward are timed together
    streams    it should be memory-bound: it is compared with a copy of as many bytes
    first      the first call is also timed, in separate processes
    graphs     it is also timed with CUDA graphs
    """

    name: str
    build: Callable[[], Built]
    kind: str = "kernel"
    gradient: bool = False
    streams: bool = True
    first: bool = False
    graphs: bool = False


def floats(*shape: int, grad: bool = False, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    generator = torch.Generator(DEVICE).manual_seed(sum(shape))
    made = torch.randn(*shape, generator=generator, device=DEVICE).to(dtype)
    return made.requires_grad_(grad)


def whole(high: int, *shape: int) -> torch.Tensor:
    generator = torch.Generator(DEVICE).manual_seed(7)
    return torch.randint(0, high, shape, generator=generator, device=DEVICE)


def rms_norm(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * w


def layer_norm_gelu(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return F.gelu(F.layer_norm(x, (x.shape[-1],), w, b))


def rotary(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    half = x.shape[-1] // 2
    return x * cos + torch.cat([-x[..., half:], x[..., :half]], -1) * sin


def embedding_norm(i: torch.Tensor, table: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return rms_norm(F.embedding(i, table), w)


def batch_norm_relu(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return F.relu(F.batch_norm(x, None, None, w, b, training=True))


def group_norm_silu(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return F.silu(F.group_norm(x, 32, w, b))


def _kernel(name: str, fn: Callable[..., Any], make: Callable[[], Any], **more: Any) -> GpuWorkload:
    return GpuWorkload(name, lambda: (fn, tuple(make())), **more)


BF16 = torch.bfloat16
KERNELS = (
    _kernel("((x+1)*2).sin(), 64 M", lambda x: ((x + 1) * 2).sin(), lambda: [floats(1 << 26)],
            first=True),
    _kernel("add-add-mul-add (16384, 2048)", lambda a, b, c, d, e: (a + b + c) * d + e,
            lambda: [floats(16384, 2048) for _ in range(5)]),
    _kernel("sin²+cos² fwd+bwd, 16 M", lambda x: x.sin() ** 2 + x.cos() ** 2,
            lambda: [floats(1 << 24, grad=True)], gradient=True),
    _kernel("softmax (16384, 4096)", lambda x: torch.softmax(x, -1), lambda: [floats(16384, 4096)],
            first=True),
    _kernel("softmax (1024, 131072)", lambda x: torch.softmax(x, -1),
            lambda: [floats(1024, 131072)]),
    _kernel("layer norm + GELU (16384, 4096)", layer_norm_gelu,
            lambda: [floats(16384, 4096), floats(4096), floats(4096)]),
    _kernel("RMS norm bf16 (16384, 4096)", rms_norm,
            lambda: [floats(16384, 4096, dtype=BF16), floats(4096, dtype=BF16)]),
    _kernel("layer norm fwd+bwd (8192, 2048)", lambda x, w, b: F.layer_norm(x, (2048,), w, b),
            lambda: [floats(8192, 2048, grad=True), floats(2048, grad=True),
                     floats(2048, grad=True)], gradient=True),
    _kernel("row sum (16384, 8192)", lambda x: x.sum(1), lambda: [floats(16384, 8192)]),
    _kernel("column sum (65536, 2048)", lambda x: x.sum(0), lambda: [floats(65536, 2048)]),
    _kernel("sum of squares, 128 M", lambda x: (x * x).sum(), lambda: [floats(1 << 27)]),
    _kernel("batch norm train + ReLU (64, 256, 56, 56)", batch_norm_relu,
            lambda: [floats(64, 256, 56, 56), floats(256), floats(256)]),
    _kernel("batch norm train + ReLU fwd+bwd (64, 128, 28, 28)", batch_norm_relu,
            lambda: [floats(64, 128, 28, 28, grad=True), floats(128, grad=True),
                     floats(128, grad=True)], gradient=True),
    _kernel("group norm + SiLU fp16 (16, 320, 64, 64)", group_norm_silu,
            lambda: [floats(16, 320, 64, 64, dtype=torch.float16),
                     floats(320, dtype=torch.float16), floats(320, dtype=torch.float16)]),
    _kernel("cumsum of rows (16384, 4096)", lambda x: x.cumsum(1), lambda: [floats(16384, 4096)]),
    _kernel("argmax of rows (16384, 8192)", lambda x: x.argmax(1), lambda: [floats(16384, 8192)]),
    _kernel("x + y.T (8192, 8192)", lambda x, y: x + y.t(),
            lambda: [floats(8192, 8192), floats(8192, 8192)]),
    _kernel("permute + copy (64, 1024, 1024)", lambda x: x.permute(2, 0, 1).contiguous() * 1.5,
            lambda: [floats(64, 1024, 1024)]),
    _kernel("cross entropy fwd+bwd (8192, 32000)", F.cross_entropy,
            lambda: [floats(8192, 32000, grad=True), whole(32000, 8192)], gradient=True),
    _kernel("rotary bf16 (8, 32, 2048, 128)", rotary,
            lambda: [floats(8, 32, 2048, 128, dtype=BF16), floats(2048, 128, dtype=BF16),
                     floats(2048, 128, dtype=BF16)]),
    _kernel("SwiGLU bf16 (16384, 8192)", lambda a, b: F.silu(a) * b,
            lambda: [floats(16384, 8192, dtype=BF16), floats(16384, 8192, dtype=BF16)]),
    _kernel("embedding + RMS norm (16384 of 32000, 4096)", embedding_norm,
            lambda: [whole(32000, 16384), floats(32000, 4096), floats(4096)], streams=False),
    _kernel("GELU + residual bf16 (16384, 4096)", lambda x, y: F.gelu(x).add(y).mul(0.9),
            lambda: [floats(16384, 4096, dtype=BF16), floats(16384, 4096, dtype=BF16)]),
)  # fmt: skip


# ---- attention with user-defined functions ---------------------------------------------------


def flex(*shape: int, within: int) -> Built:
    """ALiBi; each token attends to the `within` tokens before it."""
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    _, heads, length, _ = shape
    mask = create_block_mask(
        lambda b, h, i, j: (i >= j) & (i - j < within), None, None, length, length, device=DEVICE
    )
    slopes = torch.exp2(-torch.arange(1, heads + 1, device=DEVICE) / 2)

    def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> Any:
        return flex_attention(q, k, v, lambda s, b, h, i, j: s + slopes[h] * (j - i), mask)

    return attention, tuple(floats(*shape, grad=True, dtype=BF16) for _ in range(3))


FLEX = tuple(
    GpuWorkload(f"flex attention {name} {''.join('fwd+bwd ' * both)}bf16 {shape}",
                partial(flex, *shape, within=within), gradient=both, streams=False)
    for name, shape, within in (
        ("causal", (4, 16, 2048, 64), 2048), ("of a window", (1, 16, 8192, 64), 256),
    )
    for both in (False, True)
)  # fmt: skip


# ---- models ----------------------------------------------------------------------------------


class First(torch.nn.Module):
    """The first result of a model, without gradients."""

    def __init__(self, model: torch.nn.Module, **given: torch.Tensor) -> None:
        super().__init__()
        self.model, self.given = model.eval(), given

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            return self.model(*inputs, **self.given)[0]


class Loss(torch.nn.Module):
    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.model = model.train()

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        return self.model(batch, labels=batch).loss


class Classified(torch.nn.Module):
    """The loss of images with labels, in bfloat16 for the ops that autocast selects."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.model = model.train()

    def forward(self, images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        with torch.autocast(DEVICE, BF16):
            return F.cross_entropy(self.model(images).logits, labels)


def bert(batch: int, length: int, dtype: torch.dtype, masked: bool = False) -> Built:
    from transformers import BertConfig, BertModel

    torch.manual_seed(0)
    model, given = BertModel(BertConfig()).to(DEVICE, dtype), {}
    if masked:
        given["attention_mask"] = torch.ones(batch, length, dtype=torch.long, device=DEVICE)
        given["attention_mask"][0, length // 2 :] = 0
    return First(model, **given), (whole(30_000, batch, length),)


def gpt2_training(batch: int, length: int) -> Built:
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(0)
    config = GPT2Config(resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, use_cache=False)
    model = GPT2LMHeadModel(config)
    model.loss_type = "ForCausalLM"
    return Loss(model.to(DEVICE, BF16)), (whole(50_000, batch, length),)


def llama(batch: int, length: int) -> Built:
    from transformers import LlamaConfig, LlamaModel

    torch.manual_seed(0)
    config = LlamaConfig(
        hidden_size=1024, intermediate_size=2816, num_hidden_layers=8,
        num_attention_heads=16, num_key_value_heads=4, use_cache=False,
    )  # fmt: skip
    return First(LlamaModel(config).to(DEVICE, BF16)), (whole(32_000, batch, length),)


def resnet18(batch: int) -> Built:
    from transformers import ResNetConfig, ResNetForImageClassification

    torch.manual_seed(0)
    config = ResNetConfig(layer_type="basic", depths=[2, 2, 2, 2], hidden_sizes=[64, 128, 256, 512])
    return First(ResNetForImageClassification(config).to(DEVICE)), (floats(batch, 3, 224, 224),)


def resnet50_training(batch: int) -> Built:
    from transformers import ResNetConfig, ResNetForImageClassification

    torch.manual_seed(0)
    model = ResNetForImageClassification(ResNetConfig(num_labels=1000)).to(DEVICE)
    return Classified(model), (floats(batch, 3, 224, 224), whole(1000, batch))


def vit(batch: int) -> Built:
    from transformers import ViTConfig, ViTForImageClassification

    torch.manual_seed(0)
    model = ViTForImageClassification(ViTConfig()).to(DEVICE, torch.float16)
    return First(model), (floats(batch, 3, 224, 224, dtype=torch.float16),)


def _model(name: str, build: Callable[[], Built], **more: Any) -> GpuWorkload:
    return GpuWorkload(name, build, kind="model", streams=False, **more)


MODELS = (
    _model("BERT-base 16x512 fp16", lambda: bert(16, 512, torch.float16), first=True),
    _model("BERT-base 16x512 fp16, mask", lambda: bert(16, 512, torch.float16, True)),
    _model("GPT-2 training bf16 4x1024", lambda: gpt2_training(4, 1024), gradient=True, first=True),
    _model("BERT-base 1x128 fp32", lambda: bert(1, 128, torch.float32), graphs=True),
    _model("ResNet-18 16x3x224²", lambda: resnet18(16), first=True, graphs=True),
)
MORE_MODELS = (
    _model("ResNet-50 training bf16 64x3x224²", lambda: resnet50_training(64), gradient=True),
    _model("LLaMA 8 layers bf16 4x1024", lambda: llama(4, 1024)),
    _model("ViT-base fp16 32", lambda: vit(32)),
)

WORKLOADS: Mapping[str, GpuWorkload] = {w.name: w for w in (*MODELS, *KERNELS, *MORE_MODELS, *FLEX)}
"""In the order of their worth, should time be short."""
