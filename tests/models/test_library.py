"""Models of the transformers library compute and train as they do in eager mode."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import transformers as hf

import inductor_lab as lab
from tests.models.compare import check_eval, check_step
from tests.models.library import MODELS, llama_config, tokens


@pytest.fixture(autouse=True)
def seeded() -> None:
    torch.manual_seed(0)
    torch.compiler.reset()


@pytest.mark.parametrize("name", MODELS)
def test_output(name: str) -> None:
    model, inputs = MODELS[name]()
    check_eval(model, inputs)


@pytest.mark.parametrize("name", MODELS)
def test_gradients(name: str) -> None:
    model, inputs = MODELS[name]()
    check_step(model, inputs)


def generated(forward: Callable[..., hf.modeling_outputs.ModelOutput], model: hf.LlamaForCausalLM):
    """8 tokens, the most likely ones, with keys and values written in place into a static cache."""
    prompt = tokens(1, 5)
    cache = hf.StaticCache(config=model.config, max_cache_len=16)
    given, at, found = prompt, torch.arange(5), []
    for _ in range(8):
        logits = forward(
            input_ids=given, past_key_values=cache, position_ids=at[None], use_cache=True
        ).logits
        found.append(logits[:, -1])
        given, at = logits[:, -1:].argmax(-1), at[-1:] + 1
    return torch.stack(found), cache


def test_llama_generates_with_a_static_cache() -> None:
    model = hf.LlamaForCausalLM(llama_config()).eval()
    with torch.no_grad():
        torch.manual_seed(1)
        expected, cache = generated(model, model)
        torch.manual_seed(1)
        found, ours = generated(lab.compile(model), model)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
    for one, other in zip(ours.layers, cache.layers, strict=True):
        torch.testing.assert_close(one.keys, other.keys, rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(one.values, other.values, rtol=1e-4, atol=1e-5)
