"""The tables of the compiler that `lab.override` changes, and their part of cache keys."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from importlib import import_module
from typing import Any

import torch

from inductor_lab.compiler import accelerators
from inductor_lab.compiler.autograd import partition
from inductor_lab.compiler.base.passes import Later
from inductor_lab.compiler.codegen import generate
from inductor_lab.compiler.codegen.cpp.cpp_ops import CPP_OPS
from inductor_lab.compiler.codegen.host import host_program
from inductor_lab.compiler.fingerprint import THEIRS, Opaque, content
from inductor_lab.compiler.lower.graph import lowered
from inductor_lab.compiler.lower.registry import LOWERINGS
from inductor_lab.compiler.rewrite.aten.identities import BY_TARGET, RULES
from inductor_lab.compiler.rewrite.decompose.decompositions import decomposition_table
from inductor_lab.compiler.rewrite.decompose.own_definitions import DEFINITIONS
from inductor_lab.compiler.schedule import keep_precision
from inductor_lab.compiler.schedule.fusion import combo, fuse, legality, profit
from inductor_lab.compiler.schedule.fusion.rules import LEGALITY, PROFIT
from inductor_lab.compiler.torch_door import torch_api

TRITON_OPS: dict[Any, Any] = {}
with suppress(ModuleNotFoundError):  # a CPU needs neither Triton nor codegen/triton
    from inductor_lab.compiler.codegen.triton import printer as _printer  # noqa: F401
    from inductor_lab.compiler.codegen.triton.triton_ops import TRITON_OPS

FILLED = (
    accelerators, legality, profit, fuse, keep_precision, partition, generate, host_program,
)  # fmt: skip
"""Imported because they fill tables, or because they import all other modules of the phases."""

PHASES_GIVEN: dict[str, Callable[..., Any]] = {}
"""Phases that a user has replaced: `schedule` (`schedule/user_schedule.py`) and `partition`
(`autograd/user_partition.py`)."""

GIVEN = ("schedule", "partition")
TABLES: dict[str, dict[Any, Any]] = {
    "cpp": CPP_OPS,
    "triton": TRITON_OPS,
    "lowering": LOWERINGS,
    "definition": DEFINITIONS,
    "rewrite": RULES,
    **{f"{level}_pass": passes for level, passes in accelerators.LISTS.items()},
    "legality": LEGALITY,
    "profit": PROFIT,
    "combo_legality": combo.LEGALITY,
    "combo_profit": combo.PROFIT,
    "phase": PHASES_GIVEN,
}
"""The tables that `override` changes, by name: the texts of operations in both languages; lowerings
and definitions by ATen overload; rewrite rules, passes of each level (values of
type `Pass`) and fusion rules, by name."""

if accelerators.ACCELERATORS:  # one of them keeps graphs on disk, under a key that covers changes
    for _step in (step for table in accelerators.LISTS.values() for step in table.values()):
        if isinstance(_step.apply, Later):
            import_module(_step.apply.module)

PHASES = ("ir", "autograd", "rewrite", "lower", "schedule", "codegen")


_AT_IMPORT = {
    name: {key: (value, value.copy() if isinstance(value, dict) else None)
           for key, value in vars(module).items() if not key.startswith("__")}
    for name, module in list(sys.modules.items())
    if name.startswith(tuple(f"inductor_lab.compiler.{phase}." for phase in PHASES))
}  # fmt: skip


_MADE: dict[str, Any] = {}
"""The decomposition table that was built last, and the tables that it was built from."""


def definitions() -> dict[Any, Any]:
    """Return the decomposition table for operators without a lowering.

    It is rebuilt if a lowering or a definition has been registered, here or in torch.
    """
    tables = torch_api.known_decompositions(), DEFINITIONS
    made_of = lowered(), hasattr(torch.ops.prims, "fma"), [tuple(t.items()) for t in tables]
    if _MADE.get("of") != made_of:
        _MADE.update(of=made_of, table=decomposition_table(lowered()))
    return dict(_MADE["table"])


def changed_at_run_time() -> str | None:
    """Return a hash of the tables, and of every global of a phase that has changed since import.

    Returns None if the contents cannot be compared between processes.
    """
    tables = {**TABLES, "target": BY_TARGET, "decomposition": definitions()}
    try:
        words = [f"{name} {_table(name, table)}" for name, table in tables.items()]
        words += [f"{name} {content(value)}" for name, value in _patched()]
    except Opaque:
        return None
    return hashlib.sha256("\n".join(words).encode()).hexdigest()


def _patched() -> Iterator[tuple[str, Any]]:
    ours = {id(table) for table in (*TABLES.values(), BY_TARGET)}
    for module, before in _AT_IMPORT.items():
        now = vars(sys.modules[module])
        for name, (value, copy) in before.items():
            found = now.get(name)
            if found is not value or (copy is not None and id(found) not in ours and found != copy):
                yield f"{module}.{name}", found


_READ: dict[str, tuple[tuple[Any, ...], str]] = {}
"""Caches the contents of tables without user functions."""


def _table(name: str, table: Mapping[Any, Any]) -> str:
    entries = tuple(table.items())
    known = _READ.get(name)
    if known is not None and known[0] == entries:
        return known[1]
    words = content(entries)
    if THEIRS not in words:
        _READ[name] = entries, words
    return words
