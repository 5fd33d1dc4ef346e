"""The smallest model of each family of torchvision: images, video, optical flow and detection.

Quantized models are left out: they have whole numbers for weights, and are not trained.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
import torchvision.models as vision

from tests.models.images import Make, image_model
from tests.models.sources import Example, as_dtype, without_chance

SIDES = {"inception": 299}
"""Families whose default images do not have a side of 224."""
FRAMES = 16
UPDATES = 2
"""Of the flow, instead of 12."""
ALL = 1 << 20
"""Detectors train on all boxes instead of on random ones."""
CLASSES = 5


def names() -> list[str]:
    """Families: modules, named after their place in `torchvision.models`."""
    found = {family_of(name): None for name in vision.list_models()}
    return [family for family in found if not family.startswith("quantization.")]


def family_of(name: str) -> str:
    return vision.get_model_builder(name).__module__.removeprefix("torchvision.models.")


def published_parameters(name: str) -> int:
    """The number of parameters, by the description of the published weights."""
    return int(vision.get_model_weights(name).DEFAULT.meta["num_params"])


def maker(name: str) -> Make:
    """The function that makes a model with random weights; some also load those of a part."""
    parts = family_of(name).startswith(("segmentation.", "detection."))
    return partial(vision.get_model, name, weights=None,
                   **({"weights_backbone": None} if parts else {}))  # fmt: skip


def small_model(family: str, dtype: torch.dtype = torch.float32) -> Example:
    several = [name for name in vision.list_models() if family_of(name) == family]
    name = min(several, key=published_parameters)
    kind = family.partition(".")[0]
    if kind == "detection":
        return detector(name, family, dtype)

    def images(batch: int, side: int) -> tuple[Any, ...]:
        if kind == "video":
            return (torch.randn(batch, 3, FRAMES, side, side),)
        image = torch.randn(batch, 3, side, side)
        return (image, image.roll(1, -1), UPDATES) if kind == "optical_flow" else (image,)

    return image_model(name, maker(name), "image_size", SIDES.get(family, 224), images, dtype)


def detector(name: str, family: str, dtype: torch.dtype) -> Example:
    """With two images, and the boxes in them, which a model ignores in evaluation mode."""
    torch.manual_seed(0)
    sampled = {f"{part}_batch_size_per_image": ALL for part in ("rpn", "box")}
    more = {"min_size": 64, "max_size": 96} if not family.startswith("detection.ssd") else {}
    model = maker(name)(num_classes=CLASSES, **more, **(sampled if "rcnn" in family else {}))
    targets = [
        {
            "boxes": torch.tensor([[4.0, 6.0, 40.0, 50.0], [20.0, 10.0, 60.0, 44.0]]),
            "labels": torch.tensor([1, 3]),
            "masks": torch.randint(0, 2, (2, 64, 64), dtype=torch.uint8),
            "keypoints": torch.tensor([[[10.0, 20.0, 1.0]] * 17] * 2),
        }
        for _ in range(2)
    ]
    inputs = {"images": [torch.rand(3, 64, 64), torch.rand(3, 64, 64)], "targets": targets}
    return Example(without_chance(model).to(dtype).eval(), as_dtype(inputs, dtype), variant=name)
