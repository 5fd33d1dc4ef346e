"""`lab.memory`: the memory of one training step in eager mode, with stock and with our compiler.

    print(lab.memory(step, x))

```
step on cpu: bytes alive in one step
              peak     kept for backward  before the step  peak at
eager         8.9 MB   2.4 MB             3.7 MB           backward train.py:4
stock         8.1 MB   2.4 MB             3.7 MB           backward train.py:4
inductor_lab  11.1 MB  1.3 MB             3.7 MB           backward train.py:3
```

The step runs several times, in processes of their own where that is possible (`runs.py`), so the
caller's parameters, gradients and random numbers do not change.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from inductor_lab.api.arguments import expect
from inductor_lab.api.expect_data import expect_data
from inductor_lab.compiler.base.errors import BadOption
from inductor_lab.compiler.base.options import Options
from inductor_lab.debug.memory.runs import (
    TOO_LITTLE,
    Step,
    StepFailed,
    compiled_run,
    eager_step,
    measured,
    start_profiler_once,
)
from inductor_lab.debug.memory.step_memory import MemoryRun, StepMemory, Who
from inductor_lab.debug.memory.trials import Tried, try_budgets, try_edits

COMPILERS: tuple[Who, ...] = ("eager", "stock", "inductor_lab")


def memory(
    fn: Callable[..., Any],
    /,
    *args: Any,
    compilers: Sequence[str] = COMPILERS,
    suggest: bool = True,
    limit: float = 300.0,
    **kwargs: Any,
) -> StepMemory:
    """Measure the memory of one step, and say who keeps each byte at its peak.

    `fn(*args)` is a function, a module, or a training step.  If a result requires a gradient and
    `fn` runs no backward itself, its backward is a part of the step.

    compilers  some of `"eager"`, `"stock"`, `"inductor_lab"`
    suggest    try changes that may lower a peak: `del`, `checkpoint`, a smaller memory budget
    limit      seconds for each compile and each run

    Eager mode runs twice, and once for each suggestion; compiled code runs three times.  A function
    that writes files, starts processes or opens connections is refused.
    """
    expect("memory", "fn", fn, Callable[..., Any])
    expect_data("memory", fn, (args, kwargs))
    for name in compilers:
        if name not in COMPILERS:
            raise BadOption("compilers", name, "some of 'eager', 'stock', 'inductor_lab'")
    return measure_step(Step(fn, args, kwargs), Options.make(None), compilers, suggest, limit)


def measure_step(
    step: Step,
    options: Options,
    compilers: Sequence[str] = COMPILERS,
    suggest: bool = False,
    limit: float = 300.0,
) -> StepMemory:
    """`memory` with the options of a compilation."""
    start_profiler_once()
    tried, runs = list[Tried](), list[MemoryRun]()
    plan, failure = None, ""
    try:
        eager = measured("eager", step, lambda look_at: eager_step(step, look_at), limit)
        step = replace(step, runs_backward=eager.runs_backward)
    except StepFailed as failed:
        eager, failure = None, str(failed)
    if "eager" in compilers:
        runs.append(eager.run if eager else MemoryRun("eager", failure=failure))
        if eager and suggest:
            tried.append(try_edits(step, eager, limit))
    for who in COMPILERS[1:]:
        if who not in compilers:
            continue
        if failure and not failure.startswith(TOO_LITTLE):
            runs.append(MemoryRun(who, failure="not run, because eager mode fails"))
            continue
        found = compiled_run(who, step, options, limit)
        runs.append(found.run)
        plan = found.plan or plan
        if suggest and found.once:
            tried.append(try_budgets(step, found, options, limit))
    suggestions = [each for one in tried for each in one.found]
    suggestions.sort(key=lambda s: s.after_bytes / s.before_bytes)
    return StepMemory(step.name, str(step.state().device), tuple(runs), tuple(suggestions),
                      sum(one.count for one in tried), plan)  # fmt: skip
