"""Every private name of torch that the compiler uses, in two tables (`torch_names.toml`).

required   the compiler needs all of them: otherwise importing this raises ImportError, which lists
           all that are missing
optional   each belongs to a feature, which is off if one of its names is missing

Names are looked up when `torch_api` or `torch_aot` is imported, never later, and nothing in torch
is changed.  `inductor-lab doctor` prints both tables.
"""

from __future__ import annotations

import importlib
import re
import tomllib
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import torch

OLDEST, NEWEST = (2, 11), (2, 15)
"""The minor versions of torch that `python -m tests.versions` has run the tests with."""
SUPPORTED = f"{OLDEST[0]}.{OLDEST[1]} to {NEWEST[0]}.{NEWEST[1]}"


class Feature(NamedTuple):
    """A feature that needs names of torch that may be missing.

    without   the difference if the feature is off, in words for users
    names     all names that it needs
    gpu       a CPU build of torch has none of the names, and does not need them
    """

    without: str
    names: tuple[str, ...]
    gpu: bool = False


_TABLES = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
REQUIRED: list[str] = _TABLES["required"]
FEATURES = {
    name: Feature(row["without"], tuple(row["names"]), row.get("gpu", False))
    for name, row in _TABLES["optional"].items()
}
OPTIONAL = {
    name: feature
    for name, feature in FEATURES.items()
    if torch.backends.cuda.is_built() or not feature.gpu
}
"""Feature → its names, for features that this build of torch can have."""


def _find(name: str) -> Any:
    """The object with a dotted name; None if this torch does not have it."""
    parts = name.split(".")
    for first in range(len(parts), 0, -1):
        try:
            found: Any = importlib.import_module(".".join(parts[:first]))
            for part in parts[first:]:
                found = getattr(found, part)
        except ModuleNotFoundError:
            continue
        except (ImportError, AttributeError):
            break
        return found
    return None


def _found(names: Iterable[str]) -> dict[str, Any]:
    return {name: _find(name) for name in names}


_LACKING = [name for name, found in _found(REQUIRED).items() if found is None]
if _LACKING:
    raise ImportError(
        f"torch {torch.__version__} lacks names that inductor_lab needs:"
        f" {', '.join(_LACKING)}\n  install a tested version of torch: {SUPPORTED}"
    )


def minor(version: str) -> tuple[int, int]:
    """The minor version of a release: (2, 15) of "2.15.0+cu130"."""
    numbers = re.match(r"(\d+)\.(\d+)", version)
    return (int(numbers[1]), int(numbers[2])) if numbers else OLDEST


def warn_if_newer(version: str) -> None:
    """Warn about a torch release that is newer than all tested ones."""
    if minor(version) > NEWEST:
        warnings.warn(
            f"inductor_lab was tested with torch {SUPPORTED}; this is torch {version}."
            " Features that need names this torch lacks are off: see `inductor-lab doctor`.",
            stacklevel=2,
        )


warn_if_newer(torch.__version__)

_HERE = _found(dict.fromkeys(name for feature in FEATURES.values() for name in feature.names))


def optional(name: str, otherwise: Any = None) -> Any:
    """The object with an optional name, or `otherwise`; KeyError if the name is in no table."""
    return otherwise if _HERE[name] is None else _HERE[name]


def missing(feature: str) -> tuple[str, ...]:
    """The names that a feature needs and this torch lacks; if there are none, the feature is on."""
    return tuple(name for name in OPTIONAL[feature].names if _HERE[name] is None)
