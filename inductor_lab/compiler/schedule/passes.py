"""The passes over a schedule, in order, and the stage that applies them.

    fuse             buf0 = x + 1; buf1 = sin(buf0)      →  one kernel: buf1 = sin(x + 1)
    share_storage    buf2 = empty(..); buf0 is dead      →  buf2 in the storage of buf0
    combos           two small kernels that are ready    →  one kernel with both
    groups           clusters of nests                   →  groups in order, with a memory plan
    keep_precision   bf16(sin(f32(bf16(..))))            →  bf16(sin(..))

Inductor: `scheduler.py`, `memory.py`.
"""

from __future__ import annotations

from collections.abc import Callable

from inductor_lab.compiler.base.errors import BadOption
from inductor_lab.compiler.base.options import FusionOptions, Options
from inductor_lab.compiler.base.passes import Pass, apply_passes, switched_off, table_of
from inductor_lab.compiler.ir.program import LoopProgram
from inductor_lab.compiler.schedule.fusion import combo
from inductor_lab.compiler.schedule.fusion.fuse import (
    Draft,
    ScheduleFacts,
    combos,
    draft_of,
    finish,
    fuse,
    share_storage,
)
from inductor_lab.compiler.schedule.fusion.rules import PROFIT
from inductor_lab.compiler.schedule.keep_precision import keep_precision
from inductor_lab.compiler.schedule.schedule import Schedule

PASSES = table_of(
    Pass("fuse", "put loop nests into one kernel", fuse),
    Pass("share_storage", "let buffers take the storage of dead ones", share_storage),
    Pass("combos", "run small independent kernels as one", combos),
    Pass("groups", "order the kernels and plan their memory", finish, needed=True),
    Pass("keep_precision", "keep 16-bit values in float32 inside a kernel, if asked for",
         lambda schedule, facts: schedule if facts.options.emulate_precision_casts
         else keep_precision(schedule)),
)  # fmt: skip

LIBRARIES_AS_THEY_ARE = Options(matmul="aten")


def schedule_program(
    program: LoopProgram,
    fusion: FusionOptions,
    facts: ScheduleFacts | None = None,
    changed: Callable[[str, Schedule], object] | None = None,
) -> Schedule:
    """Decide which nests become one kernel, the order of kernels, and the storage of buffers.

    Nests that reach no output are dropped.  `changed` is called with the name and the result of
    each pass that changed the schedule.  Raises BadOption if `fusion.off` names no profit rule.
    """
    BadOption.refuse_unknown("fusion.off", fusion.off, (*PROFIT, *combo.PROFIT))
    facts = facts or ScheduleFacts(LIBRARIES_AS_THEY_ARE, fusion)
    facts.fusion = fusion

    def seen(name: str, made: Draft | Schedule) -> None:
        if changed is not None:
            changed(name, finish(made, facts) if isinstance(made, Draft) else made)

    off = switched_off(PASSES, facts.options.passes_off)
    made: Draft | Schedule = draft_of(program, fusion)
    seen("build", made)
    made = apply_passes(PASSES.values(), made, facts, off, seen)
    assert isinstance(made, Schedule), "the pass `groups` makes a schedule"
    return made
