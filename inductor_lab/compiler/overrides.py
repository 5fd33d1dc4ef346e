"""What a user may change in the compiler for a while, and how a cache knows that it is changed.

    with lab.override(cpp={"neg": "2 * {0}"}):     # silently wrong: a lesson in debugging
        c = lab.inspect(f, x)

DESIGN, rule 6.  Inductor: `torch._inductor.lowering.lowerings` and others are changed for good.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch

from inductor_lab.api.arguments import checked, expect
from inductor_lab.compiler.accelerate import convolutions, flex_attention, masked_attention
from inductor_lab.compiler.autograd import partition
from inductor_lab.compiler.base.errors import BadArguments
from inductor_lab.compiler.codegen import generate
from inductor_lab.compiler.codegen.cpp.cpp_ops import CPP_OPS
from inductor_lab.compiler.codegen.host import host_program
from inductor_lab.compiler.codegen.triton.triton_ops import TRITON_OPS
from inductor_lab.compiler.fingerprint import THEIRS, Opaque, content
from inductor_lab.compiler.ir.ops import OPS
from inductor_lab.compiler.lower.graph import lowered
from inductor_lab.compiler.lower.registry import LOWERINGS, Lowering
from inductor_lab.compiler.lower.registry import lowers as _lowers
from inductor_lab.compiler.rewrite.aten.identities import BY_TARGET, RULES
from inductor_lab.compiler.rewrite.decompose.decompositions import decomposition_table
from inductor_lab.compiler.rewrite.decompose.own_definitions import DEFINITIONS
from inductor_lab.compiler.rewrite.passes import PASSES
from inductor_lab.compiler.schedule import keep_precision
from inductor_lab.compiler.schedule.fusion import combo, fuse, legality, profit
from inductor_lab.compiler.schedule.fusion.rules import LEGALITY, PROFIT
from inductor_lab.compiler.torch_door import torch_api
from inductor_lab.compiler.torch_door.torch_api import OperatorBase, OpOverloadPacket

FILLED = (
    convolutions, flex_attention, masked_attention, legality, profit, fuse, keep_precision,
    partition, generate, host_program,
)  # fmt: skip
"""Modules whose import fills tables, and those that import all others of the phases."""

PHASES_GIVEN: dict[str, Callable[..., Any]] = {}
"""Phases that a user replaces: `schedule` (`schedule/user_schedule.py`) and `partition`
(`autograd/user_partition.py`)."""

GIVEN = ("schedule", "partition")
TABLES: dict[str, dict[Any, Any]] = {
    "cpp": CPP_OPS,
    "triton": TRITON_OPS,
    "lowering": LOWERINGS,
    "definition": DEFINITIONS,
    "rewrite": RULES,
    "rewrite_pass": PASSES,
    "legality": LEGALITY,
    "profit": PROFIT,
    "combo_legality": combo.LEGALITY,
    "combo_profit": combo.PROFIT,
    "phase": PHASES_GIVEN,
}
"""By name, what `override` changes: the texts of operations in both languages; by ATen overload,
lowerings and definitions in simpler operators; by name, rewrite rules and passes, and what must and
should hold for a fusion."""

PHASES = ("ir", "autograd", "rewrite", "lower", "schedule", "codegen")


@checked
@contextmanager
def override(**changes: Mapping[Any, Any] | Callable[..., Any]) -> Iterator[None]:
    """Change tables of the compiler while a block runs: `cpp={"neg": "2 * {0}"}`.

    `schedule=mine`, `partition=mine`: a phase is done by a function of yours
    (`schedule/user_schedule.py`, `autograd/user_partition.py` say what it is given and returns).
    Its result is verified, and Refused is raised, with the reason, for one that is not legal.

    A key's new value is added or takes the old one's place; None takes it away.  The tables are
    those of `TABLES`.  What the block itself registers (`@lab.lowers`, `@identity`, ...) is undone
    as well.

    Every compiled function of the process compiles again when it is called next, in the block and
    after it (`torch.compiler.reset`).  A `Compilation` that was made in the block keeps the code
    that it was compiled to.  Raises BadArguments for a table or an operation that does not exist.
    """
    tables = {name: entries for name, entries in changes.items() if not callable(entries)}
    given = {name: entries for name, entries in changes.items() if callable(entries)}
    for name, entries in ({**tables, "phase": given} if given else tables).items():
        _check(name, entries)
    saved = [(table, dict(table)) for table in TABLES.values()]
    targets = {target: list(names) for target, names in BY_TARGET.items()}
    torch_api.reset()
    try:
        PHASES_GIVEN.update(given)
        for name, entries in tables.items():
            TABLES[name].update(entries)
            for key in [key for key, value in entries.items() if value is None]:
                del TABLES[name][key]
        yield
    finally:
        for table, before in [*saved, (BY_TARGET, targets)]:
            table.clear()
            table.update(before)
        torch_api.reset()


def _check(name: str, entries: Mapping[Any, Any]) -> None:
    if name not in TABLES:
        raise BadArguments(f"there is no table {name!r}", todo=f"one of {', '.join(TABLES)}")
    for key in entries:
        if name == "phase" and key not in GIVEN:
            raise BadArguments(f"no phase {key!r} can be given", todo=f"one of {', '.join(GIVEN)}")
        if name in ("cpp", "triton") and str(key).split(".")[0] not in OPS:
            raise BadArguments(f"there is no operation {key!r}", todo=f"one of {', '.join(OPS)}")
        if name in ("lowering", "definition") and not isinstance(key, OperatorBase):
            raise BadArguments(f"{key} is no overload", todo="such as torch.ops.aten.sin.default")


def lowers(*operators: Any) -> Callable[[Lowering], Lowering]:
    """Register a lowering for some operators, from the next compile on; a function that the cell it
    stands in defines again takes its own place.

        @lab.lowers(torch.ops.aten.erfinv)
        def erfinv(build, x):
            ...

    An operator without an overload stands for all that write to no argument.  Raises ValueError
    for one that has a lowering: `lab.override(lowering={...})` replaces it for a while.
    """
    expect("lowers", "operators", operators, tuple[OperatorBase | OpOverloadPacket, ...])
    overloads = []
    for operator in operators:
        packet = isinstance(operator, OpOverloadPacket)
        every = [getattr(operator, name) for name in operator.overloads()] if packet else [operator]
        overloads += [one for one in every if not (packet and one._schema.is_mutable)]
    return _lowers(*overloads)


_AT_IMPORT = {
    name: {key: (value, value.copy() if isinstance(value, dict) else None)
           for key, value in vars(module).items() if not key.startswith("__")}
    for name, module in list(sys.modules.items())
    if name.startswith(tuple(f"inductor_lab.compiler.{phase}." for phase in PHASES))
}  # fmt: skip


_MADE: dict[str, Any] = {}
"""The decomposition table that was made last, and of what."""


def definitions() -> dict[Any, Any]:
    """The decomposition table of what has no lowering, made anew where somebody has registered a
    lowering or a definition, here or in torch."""
    tables = torch_api.known_decompositions(), DEFINITIONS
    made_of = lowered(), hasattr(torch.ops.prims, "fma"), [tuple(t.items()) for t in tables]
    if _MADE.get("of") != made_of:
        _MADE.update(of=made_of, table=decomposition_table(lowered()))
    return dict(_MADE["table"])


def changed_at_run_time() -> str | None:
    """A word for what is in the tables, and for every other name and table of a phase that is not
    what its module made of it; None where that cannot be said of another process."""
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
"""Tables as they were read last, and their contents, where these are all ours and torch's."""


def _table(name: str, table: Mapping[Any, Any]) -> str:
    entries = tuple(table.items())
    known = _READ.get(name)
    if known is not None and known[0] == entries:
        return known[1]
    words = content(entries)
    if THEIRS not in words:
        _READ[name] = entries, words
    return words
