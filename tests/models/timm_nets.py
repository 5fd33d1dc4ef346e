"""The smallest model of each family of the timm library."""

from __future__ import annotations

from functools import partial

import timm
import torch

from tests.models.images import image_model, smallest
from tests.models.sources import Example


def names() -> list[str]:
    """Families: the modules of `timm.models`."""
    return timm.list_modules()


def small_model(family: str, dtype: torch.dtype = torch.float32) -> Example:
    variant = smallest(timm.list_models(module=family), timm.create_model)
    channels, side, _ = timm.get_pretrained_cfg(variant).input_size

    def images(batch: int, side: int) -> tuple[torch.Tensor]:
        return (torch.randn(batch, channels, side, side),)

    make = partial(timm.create_model, variant)
    return image_model(variant, make, "img_size", side, images, dtype)
