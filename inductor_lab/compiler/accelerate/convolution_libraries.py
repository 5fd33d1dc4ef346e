"""Measures which library is the fastest for a convolution with a packed weight, once for each size.

oneDNN is the one that torch includes; `own_convolutions.py` is ours.  They are timed as matrix
products are (`matmul_libraries.py`), on random images, with the weight read from memory.

Inductor: `select_algorithm.py` and `kernel/conv.py` measure templates, on GPUs only.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

import torch

from inductor_lab.compiler.accelerate.matmul_libraries import Candidate, machine, measured
from inductor_lab.compiler.accelerate.packing import CONVOLUTION_LIBRARIES, Window
from inductor_lab.compiler.ir.program import BufferView, ExternCall, Layout
from inductor_lab.compiler.library_choice import OWN, Choice
from inductor_lab.compiler.schedule.fusion.fuse import ScheduleFacts
from inductor_lab.compiler.schedule.schedule import Schedule

CONVOLUTION = "inductor_lab.convolution.default"


def choose_convolutions(schedule: Schedule, facts: ScheduleFacts) -> Schedule:
    """The schedule with the fastest library for each convolution whose weight is packed."""
    options = facts.options
    if options.matmul != "measured" or options.target is not None:
        return schedule
    choices: dict[tuple[str, ...], Choice] = {}
    steps = list(schedule.steps)
    for position, step in enumerate(steps):
        if not isinstance(step, ExternCall) or step.op != CONVOLUTION or None in step.outputs:
            continue
        x, weight, _, bias, *window = step.args
        assert isinstance(x, BufferView) and isinstance(weight, BufferView), "tensors"
        moves = Window(*window)
        known = {name for name, library in CONVOLUTION_LIBRARIES.items() if library.knows(moves)}
        if len(known) == 1:
            continue
        layouts = x.layout, weight.layout
        question = ("convolution packed", *sorted(known), repr((layouts, moves, bias is None)),
                    *machine())  # fmt: skip
        choice = choices.get(question)
        if choice is None:
            candidates = partial(candidates_of, *layouts, moves, bias is not None)
            seconds = measured(question, candidates, options.cache)
            result = schedule.program.buffers[str(step.outputs[0])].layout
            sizes = product_sizes(result, weight.layout)
            choice = Choice("convolution", sizes, "float32", tuple(seconds.items()))
            choices[question] = choice
        if choice.chosen == OWN:
            steps[position] = replace(step, args=(*step.args, choice.packed))
    facts.choices.extend(choices.values())
    return replace(schedule, steps=tuple(steps))


def product_sizes(result: Layout, weight: Layout) -> tuple[int, int, int]:
    """The sizes (m, k, n) of the product of all windows with the weight."""
    images, kernels, rows, columns = map(int, result.size)
    return images * rows * columns, math.prod(map(int, weight.size[1:])), kernels


def candidates_of(
    images: Layout, weights: Layout, window: Window, has_bias: bool
) -> dict[str, Candidate]:
    """The call of each library, on random images and weights."""
    x, weight = (torch.empty_strided(one.size, one.stride).normal_() for one in (images, weights))
    weight = weight.contiguous(memory_format=torch.channels_last)
    bias = torch.randn(len(weight)) if has_bias else None
    found: dict[str, Candidate] = {}
    for name, library in CONVOLUTION_LIBRARIES.items():
        packed = library.pack(weight, window, x.shape)
        run = partial(library.convolve, x, packed, weight, bias, window)
        found[f"{name} packed"] = Candidate(run, packed)
    return found
