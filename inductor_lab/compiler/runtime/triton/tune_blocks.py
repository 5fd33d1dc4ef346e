"""Measures which block sizes are the fastest for a Triton kernel: `mode="max-autotune"`.

    triton_fused_softmax_0   XBLOCK 1, RBLOCK 4096, 16 warps   0.136 ms
                             XBLOCK 2, RBLOCK 4096, 16 warps   0.129 ms, chosen

Candidates are measured with the arguments of the first call, because a kernel can read indices from
them.  A kernel can also overwrite its inputs.  Therefore measurements use copies of the arguments.
The results are stored on disk for each kernel, GPU and Triton version.

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
"""Between two launches, memory of `CACHES` times the cache size is overwritten `FILLS` times.  This
is long enough for Python to enqueue the next launch before the GPU finishes."""
MARGIN = 0.97
"""An alternative must take less than this fraction of the time of the predicted choice."""
ANSWER = "seconds.json"


@dataclass(frozen=True, repr=False)
class BlockChoice:
    """The measured seconds of a kernel for each choice of blocks, the predicted choice first."""

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
    """Launches a kernel with the blocks that were the fastest in its first call."""

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
            message = f"not enough memory to measure the blocks of {self.kernel.name}"
            warnings.warn(message, stacklevel=4)
            return self.usual
        self.choice = BlockChoice(self.kernel.name, tuple(seconds.items()))
        return self.candidates[self.choice.chosen]

    @cached_property
    def candidates(self) -> dict[str, Launcher]:
        """The launchers by their blocks, the predicted choice first."""
        others = {block_text(kernel): Launcher(kernel) for kernel in variants(self.kernel)}
        return {block_text(self.kernel): self.usual, **others}

    def seconds(self, arguments: Sequence[Any]) -> dict[str, float]:
        """Return the seconds of each candidate, from disk if they were measured before."""

        def build(folder: Path) -> None:
            (folder / ANSWER).write_text(json.dumps(timed(self.candidates, arguments)), "ascii")

        if self.cache:
            with contextlib.suppress(CacheRefused, OSError):
                folder = open_cache().entry(self._cache_key(self.candidates), build)
                found: dict[str, float] = json.loads((folder / ANSWER).read_text("ascii"))
                return found
        return timed(self.candidates, arguments)

    def _cache_key(self, candidates: Iterable[str]) -> tuple[str, ...]:
        """Return everything that the times depend on."""
        text = module_text(self.kernel).replace(self.kernel.name, "")
        what = hashlib.sha256(f"{text}{self.kernel.launch!r}".encode()).hexdigest()
        gpu = torch.cuda.get_device_name()
        return ("blocks", what, gpu, str(triton.__version__), str(torch.__version__), *candidates)


def tuned_kernel(kernel: Kernel, options: Options) -> Callable[..., None]:
    """Return the launcher of a kernel.

    It measures block sizes first if the mode requests it, and if the kernel runs on a GPU, has
    static sizes, and is not a combo.
    """
    alone = not kernel.group.combined and not kernel.device.startswith("cpu")
    fixed = all(parameter.symbol is None for parameter in kernel.parameters)
    if options.mode.startswith("max-autotune") and alone and fixed:
        return Tuned(kernel, options.cache)
    return load_kernel(kernel)


def variants(kernel: Kernel) -> list[Kernel]:
    """Return the same kernel with other blocks and numbers of warps."""
    group, buffers = kernel.group, kernel.buffers
    make = partial(triton_kernel, group, buffers, kernel.name, device=kernel.device)
    if (product := product_in(group)) is not None:
        return [make(blocks=tile) for tile in tiles_of(product, kernel.device)[1:]]
    tree = build_tree(with_atomics(group, buffers), buffers)
    usual = blocks_of(tree, shared=can_share_rows(kernel.device))
    return [make(blocks=blocks) for blocks in alternatives(usual)]


def block_text(kernel: Kernel) -> str:
    """Return the blocks and warps of a kernel as text."""
    blocks = [f"{name} {size}" for name, size in kernel.launch["constants"].items()]
    stages = f", {kernel.launch['num_stages']} stages" if "num_stages" in kernel.launch else ""
    return ", ".join([*blocks, f"{kernel.launch['num_warps']} warps{stages}"])


def timed(candidates: Mapping[str, Launcher], arguments: Sequence[Any]) -> dict[str, float]:
    """Return the median seconds of each candidate, interleaved, on copies of the arguments.

    Candidates that cannot be compiled, or need too many resources of the GPU, are omitted.
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
    """Return the median seconds of each candidate, interleaved, measured with CUDA events.

    The caches are overwritten before each run, as other kernels of a graph do.  The function in
    `before` can then load data into the caches.
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
            if number:  # the first call is a warm-up
                took[name].append(max(start.elapsed_time(end), 1e-6) / 1e3)
    return {name: median(times) for name, times in took.items()}


def _cache_bytes() -> int:
    about: Any = torch.cuda.get_device_properties()
    return int(about.L2_cache_size)


def copies(arguments: Sequence[Any]) -> list[Any]:
    """Copy the arguments.  Arguments that share memory share its copy."""
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
