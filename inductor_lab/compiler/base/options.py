"""All options of a compilation, as one frozen value."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, get_args

from inductor_lab.compiler.base.errors import BadOption, UnknownTarget, unknown_name
from inductor_lab.compiler.base.option_types import check_types

Mode = Literal["default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs"]
MODES: tuple[str, ...] = get_args(Mode)
TARGETS = re.compile(r"cuda:\d+|hip:gfx\w+")
LARGEST_POOL = 1_000_000


@dataclass(frozen=True)
class FusionOptions:
    """What-if switches of the scheduler.

    `combos` puts small independent kernels into one (`schedule/fusion/combo.py`). `off` names rules
    (`"bytes_saved"`) to disable; `force` and `forbid` are pairs of buffer names, producer first
    (`[("buf0", "buf3")]`).  A pair applies to every part that has it, or to the part that it names
    (`("buf0", "buf3", "backward")`, `("buf0", "buf3", "g1.forward")`; graphs are numbered by
    `lab.inspect`).  A forced pair must still be legal.
    """

    enabled: bool = True
    combos: bool = True
    off: tuple[str, ...] = ()
    force: tuple[tuple[str, ...], ...] = ()
    forbid: tuple[tuple[str, ...], ...] = ()

    def __post_init__(self) -> None:
        check_types(self, "fusion.")
        for name in ("force", "forbid"):
            for pair in getattr(self, name):
                if len(pair) not in (2, 3):
                    raise BadOption(f"fusion.{name}", pair, "two buffers, and optionally a part")

    def within(self, part: str) -> FusionOptions:
        """The options for one part (`"g0.backward"`), without the pairs of other parts."""
        return replace(self, force=within(self.force, part), forbid=within(self.forbid, part))


def within(pairs: tuple[tuple[str, ...], ...], part: str) -> tuple[tuple[str, ...], ...]:
    """The pairs of one part (`"g0.backward"`), without the name of the part."""
    return tuple(pair[:2] for pair in pairs if len(pair) == 2 or f".{part}".endswith(f".{pair[2]}"))


@dataclass(frozen=True)
class Options:
    """Options of `lab.compile`, `lab.inspect` and `torch.compile(..., backend="inductor_lab")`.

    mode            one of `MODES`, as in torch.compile; on a GPU "reduce-overhead" and
                    "max-autotune" record CUDA graphs, and both "max-autotune" modes measure the
                    block sizes of kernels; on a CPU all modes generate the same code (modes other
                    than the default warn once)
    dynamic         None (torch decides), True or False
    fullgraph       raise on a graph break
    target          None: the device of the tensors; `"cuda:90"`, `"hip:gfx942"`: compile for it
                    without running (Triton programs for CPU example tensors)
    language        None: C++ for CPU tensors and Triton for GPUs; `"triton"` on CPU runs Triton's
                    interpreter
    require_cuda_graphs  raise NotReplayed where a part of a call is not replayed as a CUDA graph:
                    at compile time, or at a call if the reason is known only then; needs one of
                    the modes that record them
    strict          raise MissingLowering where an op would fall back to ATen for lack of a lowering
    memory_budget   1 saves what the min-cut chooses, 0 recomputes everything recomputable
    rewrites_off    names of rewrite passes or rules to leave out
    passes_off      names of passes to leave out, or "all": the simplest correct form at each level,
                    FX graph, loop program, schedule and loop tree (docs/rules.md lists them)
    accelerators_off  names of accelerators to leave out (a correct compiler needs none), or "all":
                    `attention`, `bare_calls`, `convolutions`, `libraries`, `matmul_kernels`,
                    `packed_weights`, `pool`, `warm_graphs` (`accelerators.py`)
    fusion          `FusionOptions`, or a dict of its fields
    emulate_precision_casts  True rounds float16 and bfloat16 after every operation, as in eager
                    mode; False computes in float32 inside a kernel and rounds when it stores
    fallback_random  use the random numbers of eager mode, drawn by ATen's operators in the same
                    order; torch's own option of this name has the same effect
    cache           use kernels, graphs and measurements of earlier compilations from disk
    matmul          "measured": each large matrix product runs in the fastest library on this
                    machine, ATen's own or oneDNN; on a GPU with mode="max-autotune" in a generated
                    kernel if that is faster; "aten": as in eager mode, for equal bits on all
                    machines; "triton": products of 16-bit matrices are generated kernels on a GPU
    pack_weights    parameters may also be kept in the order of that library, if that is faster
                    (only without gradients; it doubles their memory, and `lab.release_memory()`
                    frees it)
    check_bounds    check every load and store of a generated kernel against its buffer, and raise
                    OutOfBounds if it is outside: slow, for debugging wrong results (C++ and
                    interpreted Triton)
    memory_pool     large CPU tensors come from memory that stays mapped, at most this many times
                    what the largest call needs (`lab.release_memory()` frees it); 0: torch's
                    allocator
    """

    mode: Mode = "default"
    dynamic: bool | None = None
    fullgraph: bool = False
    target: str | None = None
    language: Literal["cpp", "triton"] | None = None
    require_cuda_graphs: bool = False
    strict: bool = False
    memory_budget: float = 1.0
    rewrites_off: tuple[str, ...] = ()
    passes_off: tuple[str, ...] = ()
    accelerators_off: tuple[str, ...] = ()
    fusion: FusionOptions = field(default_factory=FusionOptions)
    emulate_precision_casts: bool = True
    fallback_random: bool = False
    cache: bool = True
    matmul: Literal["measured", "aten", "triton"] = "measured"
    pack_weights: bool = True
    check_bounds: bool = False
    memory_pool: float = 2.0

    def __post_init__(self) -> None:
        check_types(self)
        if self.target is not None and not TARGETS.fullmatch(self.target):
            raise UnknownTarget(
                f"unknown target {self.target!r}",
                todo='name a GPU: "cuda:90" (compute capability 9.0), "hip:gfx942"',
            )
        if not 0.0 <= self.memory_budget <= 1.0:
            raise BadOption("memory_budget", self.memory_budget, "a number from 0 to 1")
        if not 0.0 <= self.memory_pool <= LARGEST_POOL:
            raise BadOption("memory_pool", self.memory_pool, f"a number from 0 to {LARGEST_POOL:,}")

    @staticmethod
    def make(given: Mapping[str, Any] | None = None, **more: Any) -> Options:
        """Build from the `options=` dict of torch.compile; raises BadOption for what is wrong."""
        if not isinstance(given, Mapping | None):
            raise BadOption("options", given, 'a dict, such as {"memory_budget": 0.5}')
        merged = {**(given or {}), **{k: v for k, v in more.items() if v is not None}}
        merged = {k: _frozen(v) if k != "fusion" else _fusion(v) for k, v in merged.items()}
        for off in ("passes_off", "accelerators_off"):
            if isinstance(merged.get(off), str) and merged[off] == "all":
                merged[off] = ("all",)
        _check_names(Options, merged)
        return Options(**merged)


def names(option: str, given: Any) -> tuple[Any, ...]:
    """Several names for an option; raises BadOption for a string, whose items would be letters."""
    if isinstance(given, str):
        raise BadOption(option, given, f"a list of names, such as [{given!r}]")
    return tuple(given)


def _check_names(kind: type, given: Mapping[Any, Any], path: str = "") -> None:
    """Raises BadOption for an unknown name, with the closest valid name."""
    from inductor_lab.compiler.base.inductor_options import hint

    known = [field.name for field in fields(kind)]
    for name, value in given.items():
        if name not in known:
            what, todo = unknown_name("option", name, known, path)
            if inductor := hint(str(name)):
                what, todo = f"unknown option {path + str(name)!r}", f"{inductor}\n  {todo}"
            raise BadOption(f"{path}{name}", value, todo=todo, what=what)


def _fusion(given: Any) -> Any:
    """`FusionOptions` from a dict of its fields, or from True or False; `check_types` checks other
    values."""
    if isinstance(given, bool):
        return FusionOptions(enabled=given)
    if not isinstance(given, Mapping):
        return given
    _check_names(FusionOptions, given, "fusion.")
    return FusionOptions(**{k: _frozen(v) for k, v in given.items()})


def _frozen(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return tuple(_frozen(v) for v in value)
    return value
