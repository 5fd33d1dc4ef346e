"""Saved compilations in place of new ones: programs of the labs where torch is missing.

`make lite` puts them next to the labs that run in a browser.
"""

from __future__ import annotations

import json
from pathlib import Path

import inductor_lab as lab
from inductor_lab.api.compilation import Compilation
from inductor_lab.compiler.autograd.forward_value import ForwardValue
from inductor_lab.compiler.base.errors import NeedsTorch

FOLDER = "programs"
"""Next to the notebook, or in a folder above it."""


def file_of(chapter: str, name: str) -> str:
    """The name of the file of a program: `fusion-waves.lab.json`."""
    return f"{chapter}-{name}.lab.json"


def saved_program(chapter: str, name: str) -> Compilation:
    """The saved compilation of a program of a lab; raises NeedsTorch if it is not there."""
    found: Compilation = lab.load(_path(file_of(chapter, name)))
    return found


def saved_values(name: str) -> tuple[ForwardValue, ...]:
    """What a partitioner gets for a program of lab 3; raises NeedsTorch if it is not there."""
    rows = json.loads(_path(values_file(name)).read_text(encoding="utf-8"))
    return tuple(ForwardValue(**{**row, "inputs": tuple(row["inputs"])}) for row in rows)


def values_file(name: str) -> str:
    """The name of the file of `saved_values`."""
    return f"values-{name}.json"


def _path(name: str) -> Path:
    here = Path.cwd()
    for folder in (here, *here.parents):
        path = folder / FOLDER / name
        if path.exists():
            return path
    raise NeedsTorch
