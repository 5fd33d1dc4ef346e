"""`lab.advise`: which edits of a program reduce its recompiles?

    print(lab.advise(train))

```
train: 8 compilations (7 recompiles) → 1
  mark_dynamic: the sizes that vary are dynamic from the first call
--- train.py
+++ train.py
@@ -9,2 +9,3 @@
     for batch in batches:
+        torch._dynamo.mark_dynamic(batch, 0)
         fast(batch)
tried 5 edits; every try calls f 20 times in a process of its own
```

Candidate edits come from the failed guards (`edits.py`).  Each is tried: the edited text runs in a
process of its own, and counts only if it compiles less and gives the same results.
"""

from __future__ import annotations

import inspect
import linecache
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import torch

from inductor_lab.api.arguments import checked
from inductor_lab.compiler.base.display import Shown, counted
from inductor_lab.compiler.base.errors import BadArguments
from inductor_lab.compiler.capture.span import shown_file
from inductor_lab.debug.advice.edits import Edit, Failures, candidates
from inductor_lab.debug.advice.source_text import Source, diff
from inductor_lab.debug.advice.trial import (
    Outcome,
    Program,
    compiled_run,
    eager_run,
    outcome_of,
    same_results,
    stop_if_trying,
)
from inductor_lab.debug.isolate import Ended, can_fork, run_isolated
from inductor_lab.saved.documents import tool_types
from inductor_lab.saved.documents.kinds import document

ROUNDS = 3
"""An edit is combined with at most two others."""
MOST_TRIES = 40


@dataclass(frozen=True)
class Verified:
    """An edit that was tried: it compiles less, and the results are the same.

    names        the names of the edit, several if edits were combined
    what         a sentence about each of them
    diff         a unified diff of the user's code, and `text`, all of the edited code
    compiles     the number of compilations with it
    eager_calls  calls that run in eager mode with it
    """

    names: tuple[str, ...]
    what: tuple[str, ...]
    diff: str
    compiles: int
    eager_calls: int
    text: str = field(default="", repr=False)

    def __str__(self) -> str:
        head = [f"  {name}: {what}" for name, what in zip(self.names, self.what, strict=True)]
        head += [f"  {counted(self.eager_calls, 'call')} in eager mode"] * bool(self.eager_calls)
        return "\n".join([*head, self.diff])


@dataclass(frozen=True, eq=False)
class Advice(Shown):
    """The verified edits of a program, the best first.

    compiles    the number of compilations without an edit, and `recompiles` of them
    calls       how often one run calls each compiled function
    tried       the number of edits that were tried
    runs        how often the program ran, each time in a process of its own
    refused     why nothing was tried; "" if edits were tried
    """

    name: str
    compiles: int
    recompiles: int
    calls: Mapping[str, int]
    edits: tuple[Verified, ...]
    tried: int
    runs: int
    refused: str = ""

    @property
    def best(self) -> Verified | None:
        return self.edits[0] if self.edits else None

    def __repr__(self) -> str:
        if self.refused:
            return f"{self.name}: no edit was tried: {self.refused}"
        now = f"{counted(self.compiles, 'compilation')} ({counted(self.recompiles, 'recompile')})"
        if not self.recompiles:
            return f"{self.name}: {now}: nothing to improve"
        found = f" → {self.best.compiles}" if self.best else ": no edit reduces them"
        return f"{self.name}: {now}{found}"

    def __str__(self) -> str:
        lines = [repr(self)]
        for number, each in enumerate(self.edits):
            lines += [f"or: {each.compiles}"] * bool(number)
            lines.append(str(each))
        calls = ", ".join(f"{name} {counted(n, 'time')}" for name, n in self.calls.items())
        made = f"; every run calls {calls}" if calls else ""
        lines.append(f"tried {counted(self.tried, 'edit')}; the program ran "
                     f"{counted(self.runs, 'time')}, each time in a process of its own{made}")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """The data as JSON (docs/json.md)."""
        return document(tool_types.Advice(
            id="advice", summary=repr(self), kind="advice", name=self.name,
            compiles=self.compiles, recompiles=self.recompiles, calls=dict(self.calls),
            tried=self.tried, runs=self.runs, refused=self.refused,
            edits=[tool_types.VerifiedEdit(names=list(each.names), what=list(each.what),
                                           diff=each.diff, compiles=each.compiles,
                                           eager_calls=each.eager_calls)
                   for each in self.edits],
        ))  # fmt: skip


@checked
def advise(program: Callable[..., Any], *args: Any, limit: float = 60.0) -> Advice:
    """Find edits of the file of `program` that reduce its recompiles, and try each of them.

    `program(*args)` makes the calls, for example the loop over some batches, and returns what must
    stay equal.  It is a function at the top level of a file or cell.  For each try, the file is
    executed up to this call, in a process of its own with at most `limit` seconds.  A program that
    writes files, starts processes or opens connections, or whose results differ between two runs,
    is refused.  `print(advice)` shows the edits; `advice.edits` has them as data.
    """
    stop_if_trying()
    return advise_program(_program(program, args), program.__name__, limit)


def advise_calls(
    function: Callable[..., Any], calls: list[tuple[Any, ...]], compiler: str, limit: float = 60.0
) -> Advice:
    """Advice for a loop that makes these calls of `function`."""
    name = getattr(function, "__name__", "function")
    width = {len(args) for args in calls}
    names = _parameters(function, width.pop()) if len(width) == 1 else None
    target, given = (", ".join(names), ", ".join(names)) if names else ("args", "*args")
    comma = "," if names and len(names) == 1 else ""
    lab = "torch.compile" if compiler == "stock" else "lab.compile"
    text = (
        "import torch\n"
        "import inductor_lab as lab\n\n\n"
        "def loop():\n"
        f"    fast = {lab}({name})\n"
        "    results = []\n"
        f"    for {target}{comma} in calls:\n"
        f"        results.append(fast({given}))\n"
        "    return results\n"
    )
    path = f"<the calls of {name}>"
    made = Program(path, text, "loop", (), {name: function, "calls": calls})
    return advise_program(made, name, limit)


def _parameters(function: Callable[..., Any], count: int) -> list[str] | None:
    try:
        names = list(inspect.signature(function).parameters)[:count]
    except (TypeError, ValueError):
        return None
    return names if len(names) == count else None


def _program(function: Callable[..., Any], args: tuple[Any, ...]) -> Program:
    name = getattr(function, "__qualname__", "")
    path = inspect.getsourcefile(function) if inspect.isfunction(function) else None
    linecache.checkcache(path)
    text = "".join(linecache.getlines(path)) if path else ""
    if not text or not name.isidentifier():
        raise BadArguments(
            f"the source of {name or function!r} is not a function at the top level of a file",
            todo="put the calls into a function of a file or cell, and give that function",
        )
    module = sys.modules.get(function.__module__)
    in_cell = module is not None and getattr(module, "__file__", None) != path
    names = dict(function.__globals__) if in_cell else {}
    return Program(path or "", text, name, args, names)


def advise_program(program: Program, name: str, limit: float) -> Advice:
    """Try candidate edits of a program until none of them improves it further."""
    refuse = partial(Advice, name, 0, 0, {}, (), 0)
    if not can_fork():
        return refuse(0, "this process cannot be forked (Windows, or CUDA is in use)")
    _load_dynamo()
    eager = run_isolated(eager_run(program), limit)
    known = outcome_of(eager)
    if known is None:
        return refuse(1, f"the program {eager} (in the first run it may write no file)")
    if known.effects:
        return refuse(1, f"the program cannot be repeated: it {known.effects[0]}")
    if not known.results or all(each is None for each in known.results):
        return refuse(1, "the program returns nothing: return what must stay equal")
    first = run_isolated(compiled_run(program), limit)
    base = outcome_of(first)
    if base is None:
        return refuse(2, f"the compiled program {first}")
    if not same_results(known, base):
        again = outcome_of(run_isolated(eager_run(program), limit))
        if again is None or not same_results(known, again):
            return refuse(3, "the program cannot be repeated: two runs have different results")
        return refuse(3, "the results of the compiled program are not those of eager mode: "
                      "see lab.blame")  # fmt: skip
    return _Search(program, name, limit, known, base).advice()


def _load_dynamo() -> None:
    """Import TorchDynamo here, so that no process of a try does it, or writes a file for it."""
    torch.compile(lambda x: x + 1, backend="eager")(torch.ones(2))
    tempfile.gettempdir()  # the first call writes into the folder


@dataclass
class _Tried:
    edit: Edit
    outcome: Outcome


class _Search:
    """Combines edits: each round tries all candidates for the best text so far.

    An edit may be a step towards another one: a loop that changes a size and a number compiles as
    often as before if only the size is dynamic, but fewer guards fail.
    """

    def __init__(
        self, program: Program, name: str, limit: float, eager: Outcome, base: Outcome
    ) -> None:
        self.program, self.name, self.limit = program, name, limit
        self.eager, self.base = eager, base
        self.calls = sum(base.calls.values()) + base.eager_calls
        self.seen = {program.text}
        self.runs, self.tried = 2, 0

    def advice(self) -> Advice:
        found: list[Verified] = []
        names: tuple[str, ...] = ()
        what: tuple[str, ...] = ()
        text, outcome = self.program.text, self.base
        for _ in range(ROUNDS):
            if not outcome.recompiled:
                break
            tried = self._round(text, outcome)
            found += [self._verified(each, names, what) for each in tried
                      if each.outcome.compiles < outcome.compiles]  # fmt: skip
            best = min(tried, key=lambda each: _rank(each.outcome), default=None)
            if best is None or best.outcome.eager_calls or _rank(best.outcome) >= _rank(outcome):
                break
            text, outcome = best.edit.text, best.outcome
            names, what = (*names, best.edit.name), (*what, best.edit.what)
        found.sort(key=lambda each: (each.eager_calls > 0, each.compiles, len(each.names)))
        return Advice(self.name, self.base.compiles, self.base.recompiled, self.base.calls,
                      tuple(found), self.tried, self.runs)  # fmt: skip

    def _round(self, text: str, outcome: Outcome) -> list[_Tried]:
        """The edits that compile no more than a text, in the order of the rules."""
        kept: list[_Tried] = []
        for edit in candidates(Failures(Source(text), self.program.path, outcome)):
            if edit.text in self.seen or self.tried >= MOST_TRIES:
                continue
            self.seen.add(edit.text)
            self.tried += 1
            result = self._try(edit)
            if result is not None and 0 < result.compiles <= outcome.compiles:
                kept.append(_Tried(edit, result))
                if not result.recompiled and not result.eager_calls:
                    break
        return kept

    def _try(self, edit: Edit) -> Outcome | None:
        """The outcome of an edit that keeps the results, and compiled code for most calls."""
        self.runs += 1
        ended: Ended = run_isolated(compiled_run(replace(self.program, text=edit.text)), self.limit)
        outcome = outcome_of(ended)
        if outcome is None or not same_results(self.eager, outcome):
            return None
        eager_calls = max(self.calls - sum(outcome.calls.values()), outcome.eager_calls, 0)
        if eager_calls > max(self.calls // 2, self.base.eager_calls):
            return None
        return replace(outcome, eager_calls=eager_calls)

    def _verified(
        self, each: _Tried, names: tuple[str, ...], what: tuple[str, ...]
    ) -> Verified:
        shown = shown_file(self.program.path)
        return Verified((*names, each.edit.name), (*what, each.edit.what),
                        diff(shown, self.program.text, each.edit.text), each.outcome.compiles,
                        each.outcome.eager_calls, each.edit.text)  # fmt: skip


def _rank(outcome: Outcome) -> tuple[bool, int, int]:
    """Calls in eager mode are the worst, then compilations, then guards that fail."""
    guards = {(guard.kind, guard.source) for guard in outcome.recompiles}
    return outcome.eager_calls > 0, outcome.compiles, len(guards)
