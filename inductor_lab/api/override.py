"""What a user may change in the compiler for a while, and how a cache knows that it is changed.

    with lab.override(cpp={"neg": "2 * {0}"}):     # silently wrong: a lesson in debugging
        c = lab.inspect(f, x)

DESIGN, rule 6.  Inductor: `torch._inductor.lowering.lowerings` and others are changed for good.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from inductor_lab.api.arguments import checked, expect
from inductor_lab.compiler.base.errors import BadArguments
from inductor_lab.compiler.base.passes import Pass
from inductor_lab.compiler.ir.ops import OPS
from inductor_lab.compiler.lower.registry import Lowering
from inductor_lab.compiler.lower.registry import lowers as _lowers
from inductor_lab.compiler.overrides import GIVEN, PHASES_GIVEN, TABLES
from inductor_lab.compiler.rewrite.aten.identities import BY_TARGET
from inductor_lab.compiler.torch_door import torch_api
from inductor_lab.compiler.torch_door.torch_api import OperatorBase, OpOverloadPacket


@checked
@contextmanager
def override(**changes: Mapping[Any, Any] | Callable[..., Any]) -> Iterator[None]:
    """Change tables of the compiler while a block runs: `cpp={"neg": "2 * {0}"}`.

    `schedule=mine`, `partition=mine`: use your function as a phase
    (see `schedule/user_schedule.py` and `autograd/user_partition.py`).
    Its result is verified; an illegal one raises Refused with the reason.

    A new value is added or replaces the old one; None removes the entry.  The tables are
    those of `TABLES`.  What the block itself registers (`@lab.lowers`, `@identity`, ...) is undone
    as well.

    Every compiled function of the process recompiles at its next call, in the block and after it
    (`torch.compiler.reset`).  A `Compilation` that was made in the block keeps the code
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
    for key, value in entries.items():
        if name.endswith("_pass") and not isinstance(value, Pass | None):
            raise BadArguments(f"{key} is no Pass", todo="compiler/base/passes.py says what one is")
        if name == "phase" and key not in GIVEN:
            raise BadArguments(f"no phase {key!r} can be given", todo=f"one of {', '.join(GIVEN)}")
        if name in ("cpp", "triton") and str(key).split(".")[0] not in OPS:
            raise BadArguments(f"there is no operation {key!r}", todo=f"one of {', '.join(OPS)}")
        if name in ("lowering", "definition") and not isinstance(key, OperatorBase):
            raise BadArguments(f"{key} is no overload", todo="such as torch.ops.aten.sin.default")


def lowers(*operators: Any) -> Callable[[Lowering], Lowering]:
    """Register a lowering for operators, from the next compile on.  Running a notebook cell again
    replaces the lowering that the cell registered.

        @lab.lowers(torch.ops.aten.erfinv)
        def erfinv(build, x):
            ...

    An operator packet means all its overloads that write to no argument.  Raises ValueError for an
    operator that has a lowering: `lab.override(lowering={...})` replaces it temporarily.
    """
    expect("lowers", "operators", operators, tuple[OperatorBase | OpOverloadPacket, ...])
    overloads = []
    for operator in operators:
        packet = isinstance(operator, OpOverloadPacket)
        every = [getattr(operator, name) for name in operator.overloads()] if packet else [operator]
        overloads += [one for one in every if not (packet and one._schema.is_mutable)]
    return _lowers(*overloads)
