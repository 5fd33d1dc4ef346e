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
from transformers.models.auto.modeling_auto import MODEL_MAPPING_NAMES

from tests.models.sources import MOST_PARAMETERS, Example, as_dtype, parameters_of

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
       "patch_size state_size num_groups n_group chunk_size mamba_chunk_size",
    99: "vocab_size",
}  # fmt: skip
"""Size → the names of configuration entries that get it."""
SMALL = {name: size for size, names in SIZES.items() for name in names.split()}
CHANCE = ("drop", "mask_time_prob", "mask_feature_prob", "jitter")
"""Parts of names of entries that make a model random; they become 0."""
DEEPEST = 3
"""Configurations inside of configurations are shrunk so deep."""
LISTS = {"depths": 1, "hidden_sizes": 16, "embed_dims": 16}
"""Lists with an entry for each stage, and their first entry; sizes double from stage to stage."""


KEPT = (
    (),
    ("image_size", "patch_size", "hidden_sizes", "depths", "num_channels"),
    ("head_dim", "qk_rope_head_dim", "qk_nope_head_dim", "v_head_dim", "n_group", "topk_group",
     "num_key_value_heads", "num_groups", "state_size"),
    tuple(name for name in SMALL if "layer" not in name and "vocab" not in name),
)  # fmt: skip
"""Entries that keep their default size, in one attempt after the other; in the last one, only the
numbers of layers and words are small."""


def names() -> list[str]:
    """All model types."""
    return [*MODEL_MAPPING_NAMES]


def small_model(model_type: str, dtype: torch.dtype = torch.float32) -> Example:
    """A small model of a type, and inputs; raises the first error if no attempt runs."""
    errors: list[Exception] = []
    for kept in KEPT:
        torch.manual_seed(0)
        try:
            config = CONFIG_MAPPING[model_type]()
            shrink(config, kept)
            with torch.device("meta"):
                count = parameters_of(hf.AutoModel.from_config(config))
            if count > MOST_PARAMETERS:
                raise ValueError(f"{count:,} parameters")
            model = hf.AutoModel.from_config(config).to(dtype).eval()
            attempts = inputs_for(model, config)
        except Exception as error:
            errors.append(error)
            continue
        for inputs in attempts:
            given = as_dtype(inputs, dtype)
            try:
                with torch.no_grad():
                    model(**given)
            except Exception as error:
                errors.append(error)
            else:
                return Example(model, given)
    raise errors[0]


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


def inputs_for(model: torch.nn.Module, config: Any) -> list[dict[str, Any]]:
    """Inputs by the names of the parameters of `forward`: all, then fewer."""
    names = inspect.signature(model.forward).parameters
    vocabulary = max(int(getattr(config.get_text_config(), "vocab_size", 99) or 99), 8)
    size, channels = _of_images(config)
    words = torch.randint(2, min(vocabulary, 99), (2, 12))
    made = {
        "input_ids": lambda: words,
        "decoder_input_ids": lambda: torch.randint(2, min(vocabulary, 99), (2, 7)),
        "pixel_values": lambda: torch.randn(2, channels, size, size),
        "input_values": lambda: torch.randn(2, 2000),
        "input_features": lambda: torch.randn(2, getattr(config, "num_mel_bins", 80), 128),
        "bbox": lambda: torch.randint(0, 50, (2, 12, 1)).expand(2, 12, 4).contiguous(),
        "visual_feats": lambda: torch.randn(2, 5, getattr(config, "visual_feat_dim", 8)),
        "visual_pos": lambda: torch.rand(2, 5, 4),
        "query_embeds": lambda: torch.randn(2, 6, config.hidden_size),
        "qformer_input_ids": lambda: words,
    }
    main = getattr(model, "main_input_name", "input_ids")
    asked = [name for name in made if name in names]
    plain = {"use_cache": False} if "use_cache" in names else {}
    several = [*asked, *([main] if main in made and main not in asked else [])]
    choices = [several, [main, "decoder_input_ids"], [main], ["input_ids"]]
    return [{name: made[name]() for name in choice if name in made and name in names} | plain
            for choice in choices]  # fmt: skip


def _of_images(config: Any) -> tuple[int, int]:
    vision = getattr(config, "vision_config", config)
    size = getattr(vision, "image_size", 64)
    size = size[0] if isinstance(size, list | tuple) else size
    return (size if isinstance(size, int) else 64), getattr(vision, "num_channels", 3) or 3
