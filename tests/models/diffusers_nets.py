"""Small models of the diffusers library, and the blocks of its U-nets, with sizes written here."""

from __future__ import annotations

from typing import Any

import diffusers
import torch
from diffusers.models.unets import unet_2d_blocks

from tests.models.sources import Example, as_dtype, without_chance

BATCH, WIDTH, SIDE, WORDS, TIME = 2, 32, 16, 6, 64
NORM = {"norm_num_groups": 8}
UNET = {"sample_size": SIDE, "block_out_channels": (16, 32), "layers_per_block": 1, **NORM}
CODER = {"block_out_channels": (16, 32), "layers_per_block": 1, **NORM,
         "down_block_types": ("DownEncoderBlock2D",) * 2,
         "up_block_types": ("UpDecoderBlock2D",) * 2}  # fmt: skip
HEADS = {"num_attention_heads": 2, "attention_head_dim": 16, "num_layers": 2}
CROSS = {**UNET, "cross_attention_dim": WIDTH, "attention_head_dim": 4}
ATTENDS = {"down_block_types": ("CrossAttnDownBlock2D", "DownBlock2D"),
           "up_block_types": ("UpBlock2D", "CrossAttnUpBlock2D")}  # fmt: skip
BLOCK = {"in_channels": WIDTH, "out_channels": WIDTH, "temb_channels": TIME, "num_layers": 1}
UP = {**BLOCK, "prev_output_channel": WIDTH}
CODING = {"in_channels": WIDTH, "out_channels": WIDTH, "num_layers": 1}
GROUPS = {"resnet_groups": 8}
ATTENTION = {"attention_head_dim": 8}
CONDITION = {"cross_attention_dim": WIDTH}


def images(channels: int = 4) -> tuple[int, ...]:
    return BATCH, channels, SIDE, SIDE


def frames(channels: int = 4, number: int = 4) -> tuple[int, ...]:
    return BATCH, channels, number, SIDE, SIDE


def words(width: int = WIDTH) -> tuple[int, ...]:
    return BATCH, WORDS, width


HIDDEN = {"hidden_states": images(WIDTH)}
TIMED = {**HIDDEN, "temb": (BATCH, TIME)}
SKIPS = {"res_hidden_states_tuple": [images(WIDTH)]}
ASKED = {"encoder_hidden_states": words()}
STEP = {"timestep": 1000}

MODELS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "UNet2DModel": (
        {**UNET, "down_block_types": ("DownBlock2D", "AttnDownBlock2D"), "attention_head_dim": 4,
         "up_block_types": ("AttnUpBlock2D", "UpBlock2D")},
        {"sample": images(3), **STEP},
    ),
    "UNet2DConditionModel": ({**CROSS, **ATTENDS}, {"sample": images(), **STEP, **ASKED}),
    "UNet3DConditionModel": (
        {**CROSS, "down_block_types": ("CrossAttnDownBlock3D", "DownBlock3D"),
         "up_block_types": ("UpBlock3D", "CrossAttnUpBlock3D")},
        {"sample": frames(), **STEP, **ASKED},
    ),
    "UNet1DModel": (
        {"sample_size": 64, "block_out_channels": (32, 64), "in_channels": 2, "out_channels": 2,
         "down_block_types": ("DownBlock1DNoSkip", "AttnDownBlock1D"), "extra_in_channels": 64,
         "up_block_types": ("AttnUpBlock1D", "UpBlock1DNoSkip"), "layers_per_block": 1},
        {"sample": (BATCH, 2, 64), **STEP},
    ),
    "ControlNetModel": (
        {**{key: CROSS[key] for key in CROSS if key != "sample_size"},
         "down_block_types": ATTENDS["down_block_types"],
         "conditioning_embedding_out_channels": (8, 16)},
        {"sample": images(), **STEP, **ASKED, "controlnet_cond": (BATCH, 3, 2 * SIDE, 2 * SIDE)},
    ),
    "T2IAdapter": (
        {"channels": [16, 32], "num_res_blocks": 1, "downscale_factor": 2},
        {"x": images(3)},
    ),
    "AutoencoderKL": (CODER, {"sample": images(3)}),
    "AutoencoderTiny": (
        {"encoder_block_out_channels": (8, 8), "decoder_block_out_channels": (8, 8),
         "num_encoder_blocks": (1, 1), "num_decoder_blocks": (1, 1)},
        {"sample": images(3)},
    ),
    "AutoencoderDC": (
        {"latent_channels": 4, "attention_head_dim": 4, "encoder_block_out_channels": (8, 16),
         "decoder_block_out_channels": (8, 16), "encoder_layers_per_block": (1, 1),
         "decoder_layers_per_block": (1, 1), "encoder_qkv_multiscales": ((), (5,)),
         "decoder_qkv_multiscales": ((), (5,)), "decoder_norm_types": "rms_norm",
         "decoder_act_fns": "silu", "downsample_block_type": "conv",
         "encoder_block_types": ("ResBlock", "EfficientViTBlock"),
         "decoder_block_types": ("ResBlock", "EfficientViTBlock")},
        {"sample": images(3)},
    ),
    "AutoencoderKLTemporalDecoder": (
        {"block_out_channels": (32, 32), "layers_per_block": 1,
         "down_block_types": CODER["down_block_types"]},
        {"sample": images(3), "num_frames": BATCH},
    ),
    "AutoencoderOobleck": (
        {"encoder_hidden_size": 8, "downsampling_ratios": [2, 4], "decoder_channels": 8,
         "channel_multiples": [1, 2], "decoder_input_channels": 4},
        {"sample": (BATCH, 2, 64)},
    ),
    "VQModel": ({**CODER, "num_vq_embeddings": 20, "latent_channels": 3}, {"sample": images(3)}),
    "Transformer2DModel": (
        {**HEADS, **NORM, "in_channels": 16, **CONDITION},
        {"hidden_states": images(16), **ASKED},
    ),
    "DiTTransformer2DModel": (
        {**HEADS, **NORM, "sample_size": SIDE, "num_embeds_ada_norm": 10},
        {"hidden_states": images(), "timestep": 10, "class_labels": 10},
    ),
    "PixArtTransformer2DModel": (
        {**HEADS, **NORM, "sample_size": SIDE, "cross_attention_dim": WIDTH,
         "caption_channels": WIDTH, "use_additional_conditions": False},
        {"hidden_states": images(), **STEP, **ASKED,
         "added_cond_kwargs": {"resolution": None, "aspect_ratio": None}},
    ),
    "SD3Transformer2DModel": (
        {**HEADS, "sample_size": SIDE, "in_channels": 4, "out_channels": 4,
         "joint_attention_dim": WIDTH, "caption_projection_dim": 32, "pooled_projection_dim": 16,
         "pos_embed_max_size": SIDE},
        {"hidden_states": images(), **STEP, **ASKED, "pooled_projections": (BATCH, 16)},
    ),
    "FluxTransformer2DModel": (
        {**HEADS, "in_channels": 4, "num_single_layers": 1, "joint_attention_dim": WIDTH,
         "pooled_projection_dim": 16, "axes_dims_rope": (4, 4, 8)},
        {"hidden_states": (BATCH, 16, 4), **STEP, **ASKED, "pooled_projections": (BATCH, 16),
         "img_ids": (16, 3), "txt_ids": (WORDS, 3)},
    ),
    "AuraFlowTransformer2DModel": (
        {"sample_size": SIDE, "num_attention_heads": 2, "attention_head_dim": 16, "in_channels": 4,
         "num_mmdit_layers": 1, "num_single_dit_layers": 1, "joint_attention_dim": WIDTH,
         "caption_projection_dim": 32, "pos_embed_max_size": 64},
        {"hidden_states": images(), "timestep": (BATCH,), **ASKED},
    ),
    "SanaTransformer2DModel": (
        {**HEADS, "in_channels": 4, "out_channels": 4, "num_layers": 1, "caption_channels": WIDTH,
         "num_cross_attention_heads": 2, "cross_attention_head_dim": 16, "sample_size": SIDE,
         "cross_attention_dim": WIDTH},
        {"hidden_states": images(), **STEP, **ASKED},
    ),
    "Lumina2Transformer2DModel": (
        {"sample_size": SIDE, "in_channels": 4, "hidden_size": 32, "num_layers": 1,
         "num_refiner_layers": 1, "num_attention_heads": 2, "num_kv_heads": 1, "multiple_of": 16,
         "axes_dim_rope": (4, 4, 8), "axes_lens": (32, 32, 32), "cap_feat_dim": WIDTH},
        {"hidden_states": images(), "timestep": (BATCH,), **ASKED,
         "encoder_attention_mask": "mask"},
    ),
    "CogVideoXTransformer3DModel": (
        {**HEADS, "in_channels": 4, "out_channels": 4, "num_layers": 1, "time_embed_dim": 8,
         "text_embed_dim": WIDTH, "sample_width": SIDE, "sample_height": SIDE, "sample_frames": 5,
         "max_text_seq_length": WORDS},
        {"hidden_states": (BATCH, 2, 4, SIDE, SIDE), **STEP, **ASKED},
    ),
    "LatteTransformer3DModel": (
        {**HEADS, "sample_size": SIDE, "in_channels": 4, "num_layers": 1, "patch_size": 2,
         "cross_attention_dim": WIDTH, "caption_channels": WIDTH, "norm_type": "ada_norm_single",
         "norm_elementwise_affine": False, "video_length": 4},
        {"hidden_states": frames(), **STEP, **ASKED},
    ),
    "LTXVideoTransformer3DModel": (
        {**HEADS, "in_channels": 8, "out_channels": 8, "num_layers": 1, "caption_channels": WIDTH,
         "cross_attention_dim": 32},
        {"hidden_states": (BATCH, 2 * 4 * 4, 8), **STEP, **ASKED, "num_frames": 2, "height": 4,
         "width": 4, "encoder_attention_mask": "mask"},
    ),
    "WanTransformer3DModel": (
        {**HEADS, "in_channels": 4, "out_channels": 4, "num_layers": 1, "text_dim": WIDTH,
         "freq_dim": 16, "ffn_dim": 32, "rope_max_seq_len": 32},
        {"hidden_states": frames(), **STEP, **ASKED},
    ),
    "StableAudioDiTModel": (
        {**HEADS, "sample_size": 16, "in_channels": 4, "out_channels": 4, "num_layers": 1,
         "num_key_value_attention_heads": 1, "cross_attention_dim": WIDTH,
         "cross_attention_input_dim": WIDTH, "time_proj_dim": 16, "global_states_input_dim": 16},
        {"hidden_states": (BATCH, 4, 16), "timestep": (BATCH,), **ASKED,
         "global_hidden_states": (BATCH, 1, 16)},
    ),
    "PriorTransformer": (
        {**HEADS, "embedding_dim": 16, "num_embeddings": WORDS, "additional_embeddings": 4},
        {"hidden_states": (BATCH, 16), **STEP, "proj_embedding": (BATCH, 16),
         "encoder_hidden_states": words(16)},
    ),
}  # fmt: skip
"""Class of diffusers → its configuration, and the shapes of its inputs."""

BLOCKS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "DownBlock2D": ({**BLOCK, **GROUPS}, TIMED),
    "AttnDownBlock2D": ({**BLOCK, **GROUPS, **ATTENTION}, TIMED),
    "CrossAttnDownBlock2D": ({**BLOCK, **GROUPS, **CONDITION, "num_attention_heads": 4},
                             {**TIMED, **ASKED}),
    "SimpleCrossAttnDownBlock2D": ({**BLOCK, **GROUPS, **ATTENTION, **CONDITION},
                                   {**TIMED, **ASKED}),
    "ResnetDownsampleBlock2D": ({**BLOCK, **GROUPS}, TIMED),
    "SkipDownBlock2D": (BLOCK, {**TIMED, "skip_sample": images(3)}),
    "AttnSkipDownBlock2D": ({**BLOCK, **ATTENTION}, {**TIMED, "skip_sample": images(3)}),
    "KDownBlock2D": ({**BLOCK, "resnet_group_size": 8}, TIMED),
    "DownEncoderBlock2D": ({**CODING, **GROUPS}, HIDDEN),
    "AttnDownEncoderBlock2D": ({**CODING, **GROUPS, **ATTENTION}, HIDDEN),
    "UNetMidBlock2D": ({"in_channels": WIDTH, "temb_channels": TIME, **GROUPS, **ATTENTION},
                       TIMED),
    "UNetMidBlock2DCrossAttn": (
        {"in_channels": WIDTH, "temb_channels": TIME, **GROUPS, **CONDITION,
         "num_attention_heads": 4},
        {**TIMED, **ASKED},
    ),
    "UNetMidBlock2DSimpleCrossAttn": (
        {"in_channels": WIDTH, "temb_channels": TIME, **GROUPS, **CONDITION, **ATTENTION},
        {**TIMED, **ASKED},
    ),
    "UpBlock2D": ({**UP, **GROUPS}, {**TIMED, **SKIPS}),
    "AttnUpBlock2D": ({**UP, **GROUPS, **ATTENTION}, {**TIMED, **SKIPS}),
    "CrossAttnUpBlock2D": ({**UP, **GROUPS, **CONDITION, "num_attention_heads": 4},
                           {**TIMED, **SKIPS, **ASKED}),
    "SimpleCrossAttnUpBlock2D": ({**UP, **GROUPS, **CONDITION, **ATTENTION},
                                 {**TIMED, **SKIPS, **ASKED}),
    "ResnetUpsampleBlock2D": ({**UP, **GROUPS}, {**TIMED, **SKIPS}),
    "SkipUpBlock2D": (UP, {**TIMED, **SKIPS}),
    "AttnSkipUpBlock2D": ({**UP, **ATTENTION}, {**TIMED, **SKIPS}),
    "UpDecoderBlock2D": ({**CODING, **GROUPS}, HIDDEN),
    "AttnUpDecoderBlock2D": ({**CODING, **GROUPS, **ATTENTION}, HIDDEN),
    "AutoencoderTinyBlock": ({"in_channels": WIDTH, "out_channels": WIDTH, "act_fn": "relu"},
                             {"x": images(WIDTH)}),
}  # fmt: skip
"""Block of a U-net → its arguments, and the shapes of its inputs."""


def names() -> list[str]:
    return [*MODELS, *BLOCKS]


def small_model(name: str, dtype: torch.dtype = torch.float32) -> Example:
    torch.manual_seed(0)
    known = MODELS.get(name) or BLOCKS[name]
    model = getattr(diffusers if name in MODELS else unet_2d_blocks, name)(**known[0])
    inputs = {key: value_of(key, value) for key, value in known[1].items()}
    return Example(without_chance(model).to(dtype).eval(), as_dtype(inputs, dtype))


def value_of(name: str, given: Any) -> Any:
    """Normal random numbers of a shape, whole numbers below one, a mask; anything else as given."""
    if isinstance(given, list):
        return tuple(value_of(name, each) for each in given)
    if isinstance(given, tuple):
        return torch.randn(given)
    if given == "mask":
        return torch.ones(BATCH, WORDS, dtype=torch.bool)
    return torch.randint(given, (BATCH,)) if name in ("timestep", "class_labels") else given
