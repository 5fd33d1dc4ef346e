"""A small configuration and inputs for any model type of the transformers library.

Sizes of a default configuration are replaced by small ones, by their names.  Model types whose
sizes must fit together in some other way are not reached; `sweep.py` reports why.
"""

from __future__ import annotations

import inspect
from collections.abc import Collection
from typing import Any

import torch
import transformers as hf
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

SIZES = {
    32: "hidden_size d_model n_embd embed_dim dim emb_dim word_embed_proj_dim decoder_hidden_size "
        "encoder_hidden_size embedding_size projection_dim text_embed_dim d_embed",
    64: "intermediate_size ffn_dim encoder_ffn_dim decoder_ffn_dim n_inner d_ff dim_feedforward "
        "moe_intermediate_size shared_expert_intermediate_size mlp_dim image_size "
        "max_position_embeddings n_positions num_mel_bins max_target_positions "
        "max_source_positions",
    2: "num_hidden_layers n_layer n_layers num_layers encoder_layers decoder_layers "
       "num_encoder_layers num_decoder_layers num_key_value_heads first_k_dense_replace "
       "num_experts_per_tok moe_topk top_k topk_group moe_k",
    4: "num_attention_heads n_head n_heads num_heads encoder_attention_heads "
       "decoder_attention_heads num_local_experts num_experts n_routed_experts",
    8: "head_dim d_kv qk_rope_head_dim qk_nope_head_dim v_head_dim kv_lora_rank q_lora_rank "
       "patch_size state_size num_groups n_group",
    99: "vocab_size",
}  # fmt: skip
"""Size → the names of configuration entries that get it."""
SMALL = {name: size for size, names in SIZES.items() for name in names.split()}
CHANCE = ("drop", "mask_time_prob", "mask_feature_prob", "jitter")
"""Parts of names of entries that make a model random; they become 0."""
MOST_PARAMETERS = 30_000_000
DEEPEST = 3
"""Configurations inside of configurations are shrunk so deep."""
LISTS = {"depths": 1, "hidden_sizes": 16, "embed_dims": 16}
"""Lists with an entry for each stage, and their first entry; sizes double from stage to stage."""


KEPT = (
    (),
    ("image_size", "patch_size", "hidden_sizes", "depths", "num_channels"),
    ("head_dim", "qk_rope_head_dim", "qk_nope_head_dim", "v_head_dim", "n_group", "topk_group",
     "num_key_value_heads", "num_groups", "state_size"),
)  # fmt: skip
"""Entries that keep their default size, in one attempt after the other."""


def small_model(model_type: str) -> tuple[torch.nn.Module, dict[str, Any]]:
    """A small model of a type, and inputs; raises the last error if no attempt runs."""
    for kept in KEPT:
        torch.manual_seed(0)
        config = CONFIG_MAPPING[model_type]()
        shrink(config, kept)
        try:
            with torch.device("meta"):
                count = sum(each.numel() for each in hf.AutoModel.from_config(config).parameters())
            if count > MOST_PARAMETERS:
                raise ValueError(f"{count:,} parameters")
            model = hf.AutoModel.from_config(config).eval()
            inputs = inputs_for(model, config)
            with torch.no_grad():
                model(**inputs)
            return model, inputs
        except Exception as error:
            failed = error
    raise failed


def shrink(config: Any, kept: Collection[str], depth: int = 0) -> None:
    for name, value in list(vars(config).items()):
        if isinstance(value, hf.PreTrainedConfig):
            if depth < DEEPEST and name not in kept:
                shrink(value, kept, depth + 1)
        elif name not in kept:
            setattr(config, name, small_value(config, name, value))
    for name in ("bos_token_id", "eos_token_id", "pad_token_id", "decoder_start_token_id"):
        if isinstance(getattr(config, name, None), int):
            setattr(config, name, min(getattr(config, name), 1))


def small_value(config: Any, name: str, value: Any) -> Any:
    """The entry of a small configuration for an entry of a default one."""
    if name == "apply_spec_augment":
        return False
    if isinstance(value, float) and any(part in name for part in CHANCE):
        return 0.0
    if type(value) is int and name in SMALL:
        stages = isinstance(getattr(config, "num_heads", None), list | tuple)
        # with stages, the sizes of all stages are multiples of embed_dim
        return value if name == "embed_dim" and stages else min(value, SMALL[name])
    if name in LISTS and isinstance(value, list | tuple):
        first = LISTS[name]
        return type(value)(first if name == "depths" else first << n for n in range(len(value)))
    if name == "layer_types" and isinstance(value, list):
        return value[: getattr(config, "num_hidden_layers", 2)]
    return value


def inputs_for(model: torch.nn.Module, config: Any) -> dict[str, Any]:
    """Inputs by the names of the parameters of `forward`."""
    names = inspect.signature(model.forward).parameters
    vocabulary = max(int(getattr(config.get_text_config(), "vocab_size", 99) or 99), 8)
    size, channels = _of_images(config)
    made = {
        "input_ids": lambda: torch.randint(2, min(vocabulary, 99), (2, 12)),
        "decoder_input_ids": lambda: torch.randint(2, min(vocabulary, 99), (2, 7)),
        "pixel_values": lambda: torch.randn(2, channels, size, size),
        "input_values": lambda: torch.randn(2, 2000),
        "input_features": lambda: torch.randn(2, getattr(config, "num_mel_bins", 80), 128),
    }
    main = getattr(model, "main_input_name", "input_ids")
    found = {main: made[main]()} if main in made else {}
    for name in ("input_ids", "decoder_input_ids", "pixel_values"):
        if name in names and name not in found:
            found[name] = made[name]()
    return found


def _of_images(config: Any) -> tuple[int, int]:
    vision = getattr(config, "vision_config", config)
    size = getattr(vision, "image_size", 64)
    size = size[0] if isinstance(size, list | tuple) else size
    return (size if isinstance(size, int) else 64), getattr(vision, "num_channels", 3) or 3
