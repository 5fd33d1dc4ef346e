"""Everything a person can choose about a compilation: one frozen value, passed down."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from inductor_lab.errors import BadOption, UnknownTarget

MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")
TARGETS = re.compile(r"cuda:\d+|hip:gfx\w+")


@dataclass(frozen=True)
class FusionOptions:
    """What-if switches of the scheduler.

    `combos` puts small independent kernels into one (`schedule/combo.py`).
    `off` names rules (`"bytes_saved"`) that are not to be asked; `force` and `forbid` are pairs of
    buffer names, producer first (`[("buf0", "buf3")]`).  A pair holds in every part that has it, or
    in the one that it names (`("buf0", "buf3", "backward")`, `("buf0", "buf3", "g1.forward")`;
    graphs are numbered by `lab.inspect`).  A forced pair still must be legal.
    """

    enabled: bool = True
    combos: bool = True
    off: tuple[str, ...] = ()
    force: tuple[tuple[str, ...], ...] = ()
    forbid: tuple[tuple[str, ...], ...] = ()

    def within(self, part: str) -> FusionOptions:
        """The options for one part (`"g0.backward"`): pairs of other parts are left out."""
        return replace(self, force=_within(self.force, part), forbid=_within(self.forbid, part))


def _within(pairs: tuple[tuple[str, ...], ...], part: str) -> tuple[tuple[str, ...], ...]:
    return tuple(
        pair[:2] for pair in pairs if len(pair) == 2 or f".{part}".endswith(f".{pair[2]}")
    )


@dataclass(frozen=True)
class Options:
    """Options of `lab.compile`, `lab.inspect` and `torch.compile(..., backend="inductor_lab")`.

    mode            one of `MODES`, as torch.compile has them; all make the same code so far
    dynamic         None (torch decides), True or False
    fullgraph       raise on a graph break
    target          None: the device of the tensors; `"cuda:90"`, `"hip:gfx942"`: compile for it
                    without running (Triton programs for CPU example tensors)
    language        None: C++ for CPU tensors and Triton for GPUs; `"triton"` on CPU runs Triton's
                    interpreter
    strict          raise MissingLowering where an op would fall back to ATen for lack of a lowering
    memory_budget   1 saves what the min-cut chooses, 0 recomputes everything recomputable
    rewrites_off    names of rewrite passes or rules to leave out
    fusion          `FusionOptions`, or a dict of its fields
    emulate_precision_casts  True rounds float16 and bfloat16 after every operation, as eager does;
                    False keeps float32 inside of a kernel and rounds what it stores
    cache           use what was compiled before and is on disk: libraries, and whole graphs
    matmul          "measured": each large matrix product goes to the library that is faster on this
                    machine, ATen's own or oneDNN; "aten": as eager
    pack_weights    parameters may be kept in the order of that library too, where that is faster
                    (without gradients only; it doubles their memory, `lab.release_memory()` gives
                    it back)
    memory_pool     big CPU tensors come from memory that stays mapped, at most this many times what
                    the largest call needs (`lab.release_memory()` empties it); 0: torch's allocator
    """

    mode: str = "default"
    dynamic: bool | None = None
    fullgraph: bool = False
    target: str | None = None
    language: str | None = None
    strict: bool = False
    memory_budget: float = 1.0
    rewrites_off: tuple[str, ...] = ()
    fusion: FusionOptions = field(default_factory=FusionOptions)
    emulate_precision_casts: bool = True
    cache: bool = True
    matmul: str = "measured"
    pack_weights: bool = True
    memory_pool: float = 2.0

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise BadOption("mode", self.mode, f"one of {', '.join(MODES)}")
        if self.language not in (None, "cpp", "triton"):
            raise BadOption("language", self.language, "None, 'cpp' or 'triton'")
        if self.target is not None and not TARGETS.fullmatch(self.target):
            raise UnknownTarget(
                f"the target {self.target!r} is not known",
                todo='name a GPU: "cuda:90" (compute capability 9.0), "hip:gfx942"',
            )
        if not 0.0 <= self.memory_budget <= 1.0:
            raise BadOption("memory_budget", self.memory_budget, "a number from 0 to 1")
        if self.matmul not in ("measured", "aten"):
            raise BadOption("matmul", self.matmul, "'measured' or 'aten'")
        if not self.memory_pool >= 0.0:
            raise BadOption("memory_pool", self.memory_pool, "a number, 0 or larger")

    @staticmethod
    def make(given: Mapping[str, Any] | None = None, **more: Any) -> Options:
        """Build from the `options=` dict of torch.compile; unknown names raise BadOption."""
        merged = {**(given or {}), **{k: v for k, v in more.items() if v is not None}}
        merged = {k: _frozen(v) if k != "fusion" else _fusion(v) for k, v in merged.items()}
        known = [f.name for f in fields(Options)]
        for name, value in merged.items():
            if name not in known:
                raise BadOption(name, value, f"no such option; there are {', '.join(known)}")
        return Options(**merged)


def _fusion(given: Any) -> FusionOptions:
    if isinstance(given, FusionOptions):
        return given
    if isinstance(given, bool):
        return FusionOptions(enabled=given)
    known = [f.name for f in fields(FusionOptions)]
    for name, value in given.items():
        if name not in known:
            raise BadOption(f"fusion.{name}", value, f"there are {', '.join(known)}")
    return FusionOptions(**{k: _frozen(v) for k, v in given.items()})


def _frozen(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return tuple(_frozen(v) for v in value)
    return value
