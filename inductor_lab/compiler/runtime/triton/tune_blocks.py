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
from functools import cached_property, partial
from pathlib import Path
from statistics import median
from typing import Any

import torch
import triton

from inductor_lab.compiler.base.errors import CacheRefused
from inductor_lab.compiler.base.options import Options
from inductor_lab.compiler.codegen.kernel import Kernel
from inductor_lab.compiler.codegen.tree.build import build_tree
from inductor_lab.compiler.codegen.triton.blocks import alternatives, blocks_of, with_atomics
from inductor_lab.compiler.codegen.triton.kernel_module import module_text
from inductor_lab.compiler.codegen.triton.matmul_kernel import product_in, tiles_of
from inductor_lab.compiler.codegen.triton.printer import triton_kernel
from inductor_lab.compiler.codegen.triton.shared_rows import can_share_rows
from inductor_lab.compiler.runtime.cache.kernel_cache import open_cache
from inductor_lab.compiler.runtime.triton.launch import Launcher, load_kernel

ROUNDS = 16
CACHES, FILLS = 2, 8
"""Between two launches so many times the caches' size is written, so often that Python is done with
the next launch before the GPU is."""
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
        if len(self.candidates) == 1:
            return self.usual
        try:
            seconds = self.seconds(arguments)
        except torch.OutOfMemoryError:
            warnings.warn(f"no memory to measure the blocks of {self.kernel.name}", stacklevel=4)
            return self.usual
        self.choice = BlockChoice(self.kernel.name, tuple(seconds.items()))
        return self.candidates[self.choice.chosen]

    @cached_property
    def candidates(self) -> dict[str, Launcher]:
        """By their blocks, the model's own choice first."""
        others = {said(kernel): Launcher(kernel) for kernel in variants(self.kernel)}
        return {said(self.kernel): self.usual, **others}

    def seconds(self, arguments: Sequence[Any]) -> dict[str, float]:
        """Of each candidate; from disk, if they were measured there."""

        def build(folder: Path) -> None:
            (folder / ANSWER).write_text(json.dumps(timed(self.candidates, arguments)), "ascii")

        if self.cache:
            with contextlib.suppress(CacheRefused, OSError):
                folder = open_cache().entry(self._question(self.candidates), build)
                found: dict[str, float] = json.loads((folder / ANSWER).read_text("ascii"))
                return found
        return timed(self.candidates, arguments)

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
    make = partial(triton_kernel, group, buffers, kernel.name, device=kernel.device)
    if (product := product_in(group)) is not None:
        return [make(blocks=tile) for tile in tiles_of(product, kernel.device)[1:]]
    tree = build_tree(with_atomics(group, buffers), buffers)
    usual = blocks_of(tree, shared=can_share_rows(kernel.device))
    return [make(blocks=blocks) for blocks in alternatives(usual)]


def said(kernel: Kernel) -> str:
    """Blocks and warps of a kernel as text."""
    blocks = [f"{name} {size}" for name, size in kernel.launch["constants"].items()]
    stages = f", {kernel.launch['num_stages']} stages" if "num_stages" in kernel.launch else ""
    return ", ".join([*blocks, f"{kernel.launch['num_warps']} warps{stages}"])


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
    return seconds_of_each(working, given)


def seconds_of_each(
    candidates: Mapping[str, Callable[..., Any]], given: Sequence[Any],
    before: Mapping[str, Callable[[], object]] | None = None,
) -> dict[str, float]:  # fmt: skip
    """Median seconds of each candidate, in turns, by the GPU's own clock.

    What the last one left in the caches is overwritten, for a kernel's neighbours in a graph do so
    too; `before` a candidate something may be brought there.
    """
    others = torch.empty(CACHES * _cache_bytes(), dtype=torch.uint8, device="cuda")
    took: dict[str, list[float]] = {name: [] for name in candidates}
    for number in range(ROUNDS):
        for name, run in candidates.items():
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            for _ in range(FILLS):
                others.zero_()
            if before is not None:
                before[name]()
            start.record()
            run(*given)
            end.record()
            end.synchronize()
            if number:  # the first call prepares
                took[name].append(max(start.elapsed_time(end), 1e-6) / 1e3)
    return {name: median(times) for name, times in took.items()}


def _cache_bytes() -> int:
    about: Any = torch.cuda.get_device_properties()
    return int(about.L2_cache_size)


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
