"""The eight programs of `inductor-lab demo`.

Each is an ordinary function or module with its arguments, and does not refer to the compiler.
Models come from `transformers` configs with random weights: nothing is downloaded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch


@contextmanager
def _seeded() -> Iterator[None]:
    """Use seed 0 for random numbers in the block, without changing the user's generator state."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        yield


@dataclass(frozen=True)
class Program:
    """`make()` returns (function, arguments) with fixed random numbers.

    gradient   the job includes the gradient of the summed output for all arguments that require it
    tolerance  largest allowed |compiled - eager| relative to 1 + |eager|
    """

    name: str
    title: str
    make: Callable[[], tuple[Callable[..., Any], tuple[Any, ...]]]
    gradient: bool = False
    tolerance: float = 1e-5


def trig(x: torch.Tensor) -> torch.Tensor:
    return torch.sin(x) ** 2 + torch.cos(x) ** 2


def neg_maximum_cat(x1: torch.Tensor, x2: torch.Tensor) -> torch.Tensor:
    a = torch.neg(x1)
    b = torch.maximum(x2, a)
    return torch.cat([b], dim=0)


def add_add_mul_add(
    a: torch.Tensor, b: torch.Tensor, c: torch.Tensor, d: torch.Tensor, e: torch.Tensor
) -> torch.Tensor:
    return (a + b + c) * d + e


def scale_and_sin(x: torch.Tensor) -> torch.Tensor:
    return ((x + 1) * 2).sin()


def numpy_layer(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    x = (x - x.mean()) / x.std()
    w = (w - w.mean()) / w.std()
    outer = np.sum(x[:, :, None] * w[:, None, :], axis=(1, 2))
    clipped = np.clip(outer, -10.0, 10.0)
    penalty = 0.01 * np.sum(w**2) / w.size
    result: np.ndarray = np.exp(clipped / 10.0) + penalty
    return result


def _floats(*shape: int, seed: int = 0, grad: bool = False) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator).requires_grad_(grad)


def _bytes(*shape: int, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(256, shape, dtype=torch.uint8, generator=generator)


def _arrays() -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(0)
    first = generator.standard_normal((1024, 640), dtype=np.float32)
    return first, generator.standard_normal((1024, 640), dtype=np.float32)


def bert() -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """BERT-base, batch 1 x 128 tokens, eval."""
    from transformers import BertConfig, BertModel

    with _seeded():
        model = BertModel(BertConfig()).eval()
        tokens = torch.randint(0, 30_000, (1, 128))

    def encode(tokens: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            states: torch.Tensor = model(tokens).last_hidden_state
            return states

    return encode, (tokens,)


def resnet18() -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """ResNet-18 (basic layers, depths 2, 2, 2, 2), batch 4 x 3 x 224 x 224, eval."""
    from transformers import ResNetConfig, ResNetForImageClassification

    config = ResNetConfig(layer_type="basic", depths=[2, 2, 2, 2], hidden_sizes=[64, 128, 256, 512])
    with _seeded():
        model = ResNetForImageClassification(config).eval()
        images = torch.randn(4, 3, 224, 224)

    def classify(images: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            logits: torch.Tensor = model(images).logits
            return logits

    return classify, (images,)


def small_gpt2() -> tuple[torch.nn.Module, torch.Tensor]:
    """A GPT-2 with 4 layers and width 256, without dropout, and a batch of tokens."""
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(
        n_layer=4,
        n_embd=256,
        n_head=4,
        vocab_size=1000,
        n_positions=128,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        bos_token_id=0,
        eos_token_id=0,
    )
    with _seeded():
        model = GPT2LMHeadModel(config).train()
        tokens = torch.randint(0, 1000, (4, 64))
    model.loss_type = "ForCausalLM"  # without it, the model warns, which is a graph break
    return model, tokens


def gpt2_loss() -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """The loss of `small_gpt2` as a function of its tokens."""
    model, tokens = small_gpt2()

    def loss(tokens: torch.Tensor) -> torch.Tensor:
        value: torch.Tensor = model(tokens, labels=tokens).loss
        return value

    return loss, (tokens,)


PROGRAMS = (
    Program("trig", "sin(x)**2 + cos(x)**2, with gradient",
            lambda: (trig, (_floats(1000, grad=True),)), gradient=True),
    Program("uint8", "neg, maximum, cat on uint8 (1, 8) and (8390, 8)",
            lambda: (neg_maximum_cat, (_bytes(1, 8), _bytes(8390, 8, seed=1)))),
    Program("add_mul", "(a + b + c) * d + e on (16384, 512)",
            lambda: (add_add_mul_add, tuple(_floats(16384, 512, seed=s) for s in range(5)))),
    Program("scale_sin", "((x + 1) * 2).sin() on 10 million floats",
            lambda: (scale_and_sin, (_floats(10_000_000),))),
    Program("numpy", "NumPy: normalize (1024, 640), outer product, clip, exp",
            lambda: (numpy_layer, _arrays()), tolerance=1e-4),
    Program("bert", "BERT-base, 1 x 128 tokens, eval", bert, tolerance=1e-4),
    Program("resnet18", "ResNet-18, 4 x 3 x 224 x 224, eval", resnet18, tolerance=1e-4),
    Program("gpt2", "ten AdamW steps of a small GPT-2", gpt2_loss, gradient=True, tolerance=1e-4),
)  # fmt: skip
"""The programs, in the order in which the demo runs them."""
