"""Which blocks a Triton kernel has, measured: `mode="max-autotune"`.

    triton_fused_softmax_0   XBLOCK 1, RBLOCK 4096, 16 warps   0.136 ms
                             XBLOCK 2, RBLOCK 4096, 16 warps   0.129 ms, chosen

The first call has the arguments that others are measured with: a kernel may read from places that
are among them.  It may write over what it has read too, so all runs but the last one get copies of
their memory.  What was found is kept on disk for this kernel, GPU and Triton.

Inductor: `CachingAutotuner` in `runtime/triton_heuristics.py`.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import torch
import triton

from inductor_lab.codegen.build import build_tree
from inductor_lab.codegen.kernel import Kernel
from inductor_lab.codegen.triton import triton_kernel
from inductor_lab.codegen.triton_blocks import blocks_of, others, with_atomics
from inductor_lab.codegen.triton_module import module_text
from inductor_lab.codegen.triton_shared import may_share
from inductor_lab.errors import CacheRefused
from inductor_lab.options import Options
from inductor_lab.runtime.cache import open_cache
from inductor_lab.runtime.triton_launch import Launcher, load_kernel

ROUNDS = 7
SAMPLE = 5e-4
"""Seconds; quicker kernels are launched several times for each."""
MOST_LAUNCHES = 50
MARGIN = 0.97
"""Others must take less than this share of the time: a tie keeps what the model chooses."""
ANSWER = "seconds.json"


@dataclass(frozen=True, repr=False)
class BlockChoice:
    """One kernel, the seconds with each choice of blocks that was measured, the model's own first,
    and which was chosen."""

    kernel: str
    seconds: tuple[tuple[str, float], ...]

    @property
    def chosen(self) -> str:
        (own, usual), *_ = self.seconds
        best, took = min(self.seconds, key=lambda measured: measured[1])
        return best if took < MARGIN * usual else own

    def __str__(self) -> str:
        rows = [f"{blocks:40} {seconds * 1e3:9.4f} ms{', chosen' * (blocks == self.chosen)}"
                for blocks, seconds in sorted(self.seconds, key=lambda row: row[1])]  # fmt: skip
        return "\n".join([self.kernel, *(f"    {row}" for row in rows)])

    def __repr__(self) -> str:
        return f"<{self.kernel}: {self.chosen}>"


class Tuned:
    """Launches a kernel with the blocks that are the fastest in its first call."""

    def __init__(self, kernel: Kernel, cache: bool) -> None:
        self.usual = Launcher(kernel)
        self.usual.begin()
        self.kernel, self.cache = kernel, cache
        self.choice: BlockChoice | None = None
        self._launcher: Launcher | None = None

    def __call__(self, *arguments: Any) -> None:
        if self._launcher is not None:
            return self._launcher(*arguments)
        if torch.cuda.is_current_stream_capturing():
            return self.usual(*arguments)
        self._launcher = self._chosen(arguments)
        return self._launcher(*arguments)

    def _chosen(self, arguments: Sequence[Any]) -> Launcher:
        made = {said(kernel): Launcher(kernel) for kernel in variants(self.kernel)}
        candidates = {said(self.kernel): self.usual, **made}
        if not made:
            return self.usual
        try:
            seconds = self._seconds(candidates, arguments)
        except torch.OutOfMemoryError:
            warnings.warn(f"no memory to measure the blocks of {self.kernel.name}", stacklevel=4)
            return self.usual
        self.choice = BlockChoice(self.kernel.name, tuple(seconds.items()))
        return candidates[self.choice.chosen]

    def _seconds(
        self, candidates: Mapping[str, Launcher], arguments: Sequence[Any]
    ) -> dict[str, float]:
        """From disk, if they were measured there."""

        def build(folder: Path) -> None:
            (folder / ANSWER).write_text(json.dumps(timed(candidates, arguments)), "ascii")

        if self.cache:
            with contextlib.suppress(CacheRefused, OSError):
                folder = open_cache().entry(self._question(candidates), build)
                found: dict[str, float] = json.loads((folder / ANSWER).read_text("ascii"))
                return found
        return timed(candidates, arguments)

    def _question(self, candidates: Iterable[str]) -> tuple[str, ...]:
        """All that the times depend on."""
        text = module_text(self.kernel).replace(self.kernel.name, "")
        what = hashlib.sha256(f"{text}{self.kernel.launch!r}".encode()).hexdigest()
        gpu = torch.cuda.get_device_name()
        return ("blocks", what, gpu, str(triton.__version__), str(torch.__version__), *candidates)


def tuned_kernel(kernel: Kernel, options: Options) -> Callable[..., None]:
    """The launcher of a kernel, which measures its blocks first if the mode asks for it, and the
    kernel is for a GPU, of fixed sizes, and no combo."""
    alone = not kernel.group.combined and not kernel.device.startswith("cpu")
    fixed = all(parameter.symbol is None for parameter in kernel.parameters)
    if options.mode.startswith("max-autotune") and alone and fixed:
        return Tuned(kernel, options.cache)
    return load_kernel(kernel)


def variants(kernel: Kernel) -> list[Kernel]:
    """The same kernel with other blocks and numbers of warps."""
    group, buffers = kernel.group, kernel.buffers
    tree = build_tree(with_atomics(group, buffers), buffers)
    usual = blocks_of(tree, shared=may_share(kernel.device))
    make = partial(triton_kernel, group, buffers, kernel.name, device=kernel.device)
    return [make(blocks=blocks) for blocks in others(usual)]


def said(kernel: Kernel) -> str:
    """Blocks and warps of a kernel as text."""
    blocks = [f"{name} {size}" for name, size in kernel.launch["constants"].items()]
    return ", ".join([*blocks, f"{kernel.launch['num_warps']} warps"])


def timed(candidates: Mapping[str, Launcher], arguments: Sequence[Any]) -> dict[str, float]:
    """Median seconds of each candidate, in turns, on copies of the arguments' memory.

    What cannot be compiled, or needs more of a processor than there is, is left out.
    """
    for candidate in candidates.values():
        candidate.begin()
    given = copies(arguments)
    working: dict[str, Launcher] = {}
    for name, candidate in candidates.items():
        try:
            candidate(*given)
            working[name] = candidate
        except (triton.runtime.errors.OutOfResources, RuntimeError):
            if name == next(iter(candidates)):
                raise
    once = {name: seconds_of(run, given, 1) for name, run in working.items()}
    count = max(1, min(MOST_LAUNCHES, int(SAMPLE / min(once.values()))))
    took: dict[str, list[float]] = {name: [] for name in working}
    for _ in range(ROUNDS):
        for name, run in working.items():
            took[name].append(seconds_of(run, given, count))
    return {name: median(times) for name, times in took.items()}


def seconds_of(run: Callable[..., None], given: Sequence[Any], count: int) -> float:
    """Seconds of one of `count` launches, by the GPU's own clock."""
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    for _ in range(count):
        run(*given)
    end.record()
    end.synchronize()
    took: float = start.elapsed_time(end)
    return max(took, 1e-6) / 1e3 / count


def copies(arguments: Sequence[Any]) -> list[Any]:
    """The arguments with memory of their own; those that share some share its copy."""
    made: dict[int, torch.UntypedStorage] = {}
    found: list[Any] = []
    for given in arguments:
        if not isinstance(given, torch.Tensor):
            found.append(given)
            continue
        storage = given.untyped_storage()
        where = storage.data_ptr()
        if where not in made:
            made[where] = storage.clone()
        own = torch.empty(0, dtype=given.dtype, device=given.device)
        found.append(own.set_(made[where], given.storage_offset(), given.shape, given.stride()))
    return found
