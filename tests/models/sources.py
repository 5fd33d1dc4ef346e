"""Where the models of a sweep come from: a library has names, and a small model for each name."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import torch
from torch.utils._pytree import tree_map_only

LIBRARIES = {
    "transformers": "tests.models.shrink",
    "timm": "tests.models.timm_nets",
    "torchvision": "tests.models.torchvision_nets",
    "diffusers": "tests.models.diffusers_nets",
}
"""Library → a module of ours with `names()` and `small_model(name, dtype)`, an Example."""

RATES = ("drop", "jitter")
"""Parts of names of attributes that are probabilities; those of a module `Dropout` are called p."""


@dataclass(frozen=True)
class Example:
    """A model in evaluation mode, and what it is called with.

    With `other`, inputs of other sizes, it is compiled with symbolic sizes and called with both.
    `variant` names the member of a family that was chosen.
    """

    model: torch.nn.Module
    inputs: Mapping[str, Any]
    other: Mapping[str, Any] | None = None
    variant: str = ""


def module_of(library: str) -> ModuleType:
    """Raises ImportError if the library is not installed."""
    return importlib.import_module(LIBRARIES[library])


def as_dtype(inputs: Any, dtype: torch.dtype) -> Any:
    return tree_map_only(
        torch.Tensor, lambda x: x.to(dtype) if x.is_floating_point() else x, inputs
    )


def without_chance(model: torch.nn.Module) -> torch.nn.Module:
    """The same model with all rates of dropout and stochastic depth 0."""
    for module in model.modules():
        kind = type(module).__name__
        for name, value in list(vars(module).items()):
            named = name == "p" and ("Drop" in kind or "Stochastic" in kind)
            if isinstance(value, float) and (named or any(part in name for part in RATES)):
                setattr(module, name, 0.0)
    return model


MOST_PARAMETERS = 120_000_000
"""A larger model is not reached."""


def parameters_of(model: torch.nn.Module) -> int:
    return sum(each.numel() for each in model.parameters())
