"""The saved programs of the labs, for a place without torch."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable
from pathlib import Path

import torch

import inductor_lab as lab
from inductor_lab.compiler.autograd.forward_value import ForwardValue
from inductor_lab.course.given import fusion, gradients, memory
from inductor_lab.course.given.saved_programs import file_of, values_file


def write_programs(folder: Path) -> None:
    """Compile the programs of labs 3, 5 and 8, and write what the labs read in place of that."""
    folder.mkdir(parents=True)
    for function in fusion.SIX:
        found = lab.inspect(function, *fusion.inputs_of_six())
        found.save(folder / file_of("fusion", function.__name__))
    for name, function in memory.BYTES.items():
        found = lab.inspect(function, torch.zeros(1000, 1000))
        found.save(folder / file_of("memory", name))
    for function in gradients.FOUR:
        found = gradients.compiled(function, None, (64, 32))
        found.save(folder / file_of("gradients", function.__name__))
        (folder / values_file(function.__name__)).write_text(_values(function), encoding="utf-8")


def _values(function: gradients.Program) -> str:
    """What a partitioner gets for a program, as JSON."""
    given: list[ForwardValue] = []

    def save_all(values: tuple[ForwardValue, ...]) -> Iterable[str]:
        given[:] = values
        return [value.name for value in values if value.needed]

    gradients.compiled(function, save_all, (64, 32))
    return json.dumps([dataclasses.asdict(value) for value in given], indent=1)
