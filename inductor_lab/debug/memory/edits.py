"""Candidate edits that may lower a peak of eager mode.  Each is a guess; `trials.py` tries it.

    unused = x @ w                      unused = x @ w
    total = unused.sum()                total = unused.sum()
                                        del unused
    y = self.block(x)                   y = checkpoint(self.block, x, use_reentrant=False)
"""

from __future__ import annotations

import ast
import linecache
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from types import CodeType

from inductor_lab.compiler.base.display import bytes_text
from inductor_lab.compiler.capture.span import shown_file
from inductor_lab.debug.advice.source_text import FUNCTIONS, Change, Source, diff
from inductor_lab.debug.memory.step_memory import Holder, MemoryRun

MOST_EDITS = 3
"""The number of candidates of each kind."""
CHECKPOINT = "from torch.utils.checkpoint import checkpoint"
_SMALL = 0.02
"""Holders of a smaller share of the peak are not worth an edit."""
_NOT_WRAPPED = ("torch.", "F.", "functional.", "checkpoint", "super")


@dataclass(frozen=True)
class Edit:
    """An edited file: the function at `line` has the new code."""

    name: str
    what: str
    file: str
    line: int
    text: str

    @property
    def before(self) -> str:
        return "".join(linecache.getlines(self.file))

    @property
    def diff(self) -> str:
        return diff(shown_file(self.file), self.before, self.text)


def candidates(run: MemoryRun) -> Iterator[Edit]:
    """The candidates for the peak of a run in eager mode, the largest first."""
    worth = [h for h in run.holders if h.nbytes > _SMALL * run.peak_bytes and h.lines]
    yield from _deletions([h for h in worth if h.kind == "variable"])
    if run.peak_bytes > run.base_bytes:
        yield from _checkpoints([h for h in run.holders if h.kind == "saved" and h.lines])


def _source(file: str) -> Source | None:
    text = "".join(linecache.getlines(file))
    try:
        source = Source(text)
        return source if text and source.tree else None
    except SyntaxError:
        return None


# ---- del ----------------------------------------------------------------------------------------


def _deletions(variables: list[Holder]) -> Iterator[Edit]:
    """`del x` after the last use of each variable that is not used after the peak."""
    found: list[tuple[Holder, Change, Source, str, int]] = []
    for holder in variables[:MOST_EDITS]:
        (file, line), *_ = holder.lines
        source = _source(file)
        change = _deletion(source, line, holder.name) if source is not None else None
        if source is not None and change is not None:
            found.append((holder, change, source, file, line))
    here = [each for each in found if each[3:] == found[0][3:]]
    if len(here) > 1:
        names = ", ".join(each[0].name for each in here)
        text = here[0][2].changed([each[1] for each in here])
        if text is not None:
            yield Edit("del", f"delete {names} after the last use", *here[0][3:], text)
    for holder, change, source, file, line in found:
        text = source.changed([change])
        if text is not None:
            size = bytes_text(holder.nbytes)
            what = f"delete {holder.name} ({size}) after its last use"
            yield Edit("del", what, file, line, text)


def _deletion(source: Source, line: int, name: str) -> Change | None:
    function = _function_at(source, line)
    if function is None or not name.isidentifier():
        return None
    uses = [n for n in ast.walk(function) if isinstance(n, ast.Name) and n.id == name]
    last = max(uses, key=lambda n: n.lineno, default=None)
    if last is None or last.lineno >= line:
        return None
    statement = source.statement(last)
    if statement is None or isinstance(statement, ast.Return | ast.Raise):
        return None
    return source.after(statement, f"del {name}")


def _function_at(source: Source, line: int) -> ast.AST | None:
    """The innermost function that contains a line."""
    found = [n for n in ast.walk(source.tree)
             if isinstance(n, FUNCTIONS) and n.lineno <= line <= (n.end_lineno or n.lineno)]
    return max(found, key=lambda n: n.lineno, default=None)


# ---- checkpoint --------------------------------------------------------------------------------


def _checkpoints(saved: list[Holder]) -> Iterator[Edit]:
    """`checkpoint` at the calls under which most bytes are saved."""
    under: Counter[tuple[str, int]] = Counter()
    for holder in saved:
        for place in dict.fromkeys(holder.lines):
            under[place] += holder.nbytes
    tried = 0
    for (file, line), nbytes in under.most_common():
        source = _source(file)
        call = _call_at(source, line) if source is not None else None
        if source is None or call is None:
            continue
        given = [source.segment(part) for part in (call.func, *call.args, *call.keywords)]
        new = f"checkpoint({', '.join(given)}, use_reentrant=False)"
        changes = [source.replace(call, new)]
        if CHECKPOINT not in source.text:
            changes.append(source.after_imports(CHECKPOINT))
        text = source.changed(changes)
        if text is not None:
            what = (f"compute {source.segment(call.func)} again in the backward instead of saving "
                    f"{bytes_text(nbytes)}")  # fmt: skip
            yield Edit("checkpoint", what, file, line, text)
            tried += 1
        if tried == MOST_EDITS:
            return


def _call_at(source: Source, line: int) -> ast.Call | None:
    """The outermost call in a line of a function that is not a function of torch."""
    if _function_at(source, line) is None:
        return None
    calls = [n for n in ast.walk(source.tree)
             if isinstance(n, ast.Call) and n.lineno <= line <= (n.end_lineno or n.lineno)]
    for call in calls:  # outer calls come first
        wrapped = source.segment(call.func)
        if call.args and not wrapped.startswith(_NOT_WRAPPED) and not _is_method(source, call):
            return call
    return None


def _is_method(source: Source, call: ast.Call) -> bool:
    """Is it a method of a value, such as `f(x).sum()`, not of `self` or a module?"""
    at = call.func
    while isinstance(at, ast.Attribute | ast.Subscript):
        at = at.value
    return not isinstance(at, ast.Name)


# ---- the code of an edited function ------------------------------------------------------------


def edited_code(edit: Edit) -> tuple[CodeType, CodeType] | None:
    """The old and the new code of the edited function; None if it has no counterpart."""
    old = [c for c in _codes(compile(edit.before, edit.file, "exec"))
           if any(line == edit.line for *_, line in c.co_lines())]  # fmt: skip
    if not old:
        return None
    before = max(old, key=lambda c: c.co_firstlineno)
    new = [c for c in _codes(compile(edit.text, edit.file, "exec"))
           if c.co_qualname == before.co_qualname]  # fmt: skip
    same = [c for c in _codes(compile(edit.before, edit.file, "exec"))
            if c.co_qualname == before.co_qualname]  # fmt: skip
    if len(new) != len(same):
        return None
    after = new[[c.co_firstlineno for c in same].index(before.co_firstlineno)]
    return (before, after) if before.co_freevars == after.co_freevars else None


def _codes(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _codes(constant)
