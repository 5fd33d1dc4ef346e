"""A small image model with inputs of two sizes: the families of timm and torchvision."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterable
from typing import Any

import torch

from tests.models.sources import (
    MOST_PARAMETERS,
    Example,
    as_dtype,
    parameters_of,
    without_chance,
)

SIDES = (64, 96)
"""Sides of images that are tried, before a model's default one."""
MORE = 32
"""The second images have sides longer by so much, if the model accepts them."""

Make = Callable[..., torch.nn.Module]
Images = Callable[[int, int], tuple[Any, ...]]


def smallest(names: Iterable[str], make: Make) -> str:
    """The model of a family with the fewest parameters, which are counted without memory.

    Raises the last error if none can be made, and ValueError if it has too many.
    """
    counts: dict[str, int] = {}
    wrong: Exception = ValueError("a family without models")
    for name in names:
        try:
            with torch.device("meta"):
                counts[name] = parameters_of(make(name))
        except Exception as error:
            wrong = error
    if not counts:
        raise wrong
    found = min(counts, key=lambda name: counts[name])
    if counts[found] > MOST_PARAMETERS:
        raise ValueError(f"{found}, the smallest, has {counts[found]:,} parameters")
    return found


def image_model(
    name: str, make: Make, argument: str, side: int, images: Images, dtype: torch.dtype
) -> Example:
    """The model for the smallest images that it computes in evaluation and in training.

    `argument` is the name of the size of images in `make`, `side` the default of it;
    `images(batch, side)` are positional arguments.  Raises the first error if no attempt runs.
    """
    errors: list[Exception] = []
    for training in (True, False):
        for each in (*SIDES, side):
            for arguments in ({argument: each}, {}):
                torch.manual_seed(0)
                try:
                    model = without_chance(make(**arguments)).to(dtype).eval()
                    inputs = named(model, images(2, each), dtype)
                    call(model, inputs, training)
                except Exception as error:
                    errors.append(error)
                    continue
                sizes = [(3, each + MORE), (3, each)]
                others = [named(model, images(*size), dtype) for size in sizes]
                return Example(model, inputs, first_accepted(model, others), name)
    raise errors[0]


def named(model: torch.nn.Module, values: tuple[Any, ...], dtype: torch.dtype) -> dict[str, Any]:
    """Values by the names of the first parameters of a model."""
    parameters = inspect.signature(model.forward).parameters
    return as_dtype(dict(zip(parameters, values, strict=False)), dtype)


def call(model: torch.nn.Module, inputs: dict[str, Any], training: bool = False) -> None:
    """Call a model in evaluation mode, and with `training` a copy in that mode too."""
    with torch.no_grad():
        model(**inputs)
        if training:
            copy.deepcopy(model).train()(**inputs)


def first_accepted(
    model: torch.nn.Module, several: list[dict[str, Any]]
) -> dict[str, Any] | None:
    for inputs in several:
        try:
            call(model, inputs)
        except Exception:  # a model chooses which error it raises for a size
            continue
        return inputs
    return None
