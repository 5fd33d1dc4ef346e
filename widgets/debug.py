"""Pages of the debugging tools: blame, the comparison of backends, the minifier, the stepper."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from textwrap import dedent

from inductor_lab.compiler.base.display import bytes_text
from inductor_lab.debug.backends import Backends
from inductor_lab.debug.blame.blame_result import Blame, Born, ValueRow
from inductor_lab.debug.explore.steps import BufferState, Step, Steps
from inductor_lab.debug.minify.minified import Minified
from inductor_lab.notebook.language import say, translate
from inductor_lab.widgets.markup import Tree, element, said_heads, table, written
from inductor_lab.widgets.page import bench_style, debug_style

Debugged = Blame | Backends | Minified | Steps
GOOD = ("right", "rounding", "agrees", "equal", "unknown", "")


def html(value: Debugged) -> str:
    """HTML for a cell's output; readable without a script."""
    return f"<style>{bench_style()}{debug_style()}</style>{written(tree(value))}"


def tree(value: Debugged, live: bool = False, at: int | None = None) -> Tree:
    """The page of a value; `at` is the number of statements of a stepper that are shown."""
    match value:
        case Blame():
            parts: Iterable[Tree] = _blame(value)
        case Backends():
            parts = _backends(value)
        case Minified():
            parts = _minified(value)
        case Steps():
            parts = _steps(value, live, value.done if at is None else value.done[:at])
    return element("div", {"class": "lab-bench"}, *parts)


# ---- blame --------------------------------------------------------------------------------------


def _blame(found: Blame) -> Iterator[Tree]:
    yield element("h1", {}, f"{found.name}: {say(found.verdict)}")
    yield element("p", {"class": "lab-verdict"}, translate(found.summary))
    places = dedent(str(found.fault or "").partition("\n")[2])  # the first line is the summary
    if places:
        yield element("pre", {"class": "lab-code"}, places)
    yield _table(
        said_heads(("stage", "", "verdict", ">ULP", "details")),
        ((r.where, r.stage, r.verdict, _number(r.ulp), translate(r.says)) for r in found.stages),
    )
    if found.results:
        yield element("h2", {}, say("results"))
        rows = (
            (translate(name), j.kind, _number(j.in_ulp), _number(j.eager_ulp), translate(str(j)))
            for name, j in found.results.items()
        )
        heads = ("", "verdict", ">ULP, inductor_lab", ">ULP, eager", "details")
        yield _table(said_heads(heads), rows)
    for born in found.births:
        yield element("p", {}, _born(born))
    for where, rows_of in groupby(found.values, key=lambda row: row.where):
        yield _values(where, list(rows_of))
    for note in found.notes:
        yield element("p", {"class": "lab-machine"}, translate(note))


def _values(where: str, rows: list[ValueRow]) -> Tree:
    """The distance of each value from float64 after each stage: how errors grow."""
    stages = list(dict.fromkeys(stage for row in rows for stage in row.ulp))
    cells = (
        (row.node, row.buffer, *(_cell(row, stage) for stage in stages),
         f"{row.span}  {row.span.code}" if row.span else "")
        for row in rows
    )  # fmt: skip
    value, buffer, yours = said_heads(("value", "buffer", "line"))
    heads = (value, buffer, *(f">{stage}, ULP" for stage in stages), yours)
    title = element("summary", {}, translate(f"values of {where}, in ULP from float64"))
    return element("details", {}, title, _table(heads, cells))


def _cell(row: ValueRow, stage: str) -> str:
    kind, ulp = row.kinds.get(stage, ""), row.ulp.get(stage)
    return kind if kind not in GOOD else _number(ulp)


def _born(born: Born) -> str:
    head, separator, where = str(born).partition(")  ")
    return translate(head + ")" * bool(separator)) + separator.removeprefix(")") + where


def _number(ulp: float | None) -> str:
    return "" if ulp is None else f"{ulp:.3g}"


def _table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> Tree:
    """A table in which cells that report an error are highlighted."""
    made = table(heads, rows)
    body = made[3]
    for line in body[2:]:
        for cell in line[2:]:
            if len(cell) > 2 and cell[2] in BAD:
                cell[1] = {**cell[1], "class": f"{cell[1].get('class', '')} lab-bad".strip()}
            if len(cell) > 2 and cell[2] in (*GOOD, *BAD):
                cell[2] = say(cell[2])
    return element("div", {"class": "lab-table"}, made)


BAD = ("wrong", "raises", "crashes", "hangs", "race", "not deterministic", "stale", "NaN", "inf",
       "sign of zero", "shape", "dtype", "not written", "written")  # fmt: skip
"""Verdicts that report an error."""

# ---- the comparison of backends, and the minifier -----------------------------------------------


def _backends(found: Backends) -> Iterator[Tree]:
    yield element("h1", {}, found.name)
    yield element("p", {"class": "lab-verdict"}, translate(found.summary))
    rows = ((r.backend, r.verdict, f"{r.seconds:.1f} s", translate(r.says)) for r in found.rungs)
    yield _table(said_heads(("backend", "verdict", ">time with compilation", "details")), rows)


def _minified(found: Minified) -> Iterator[Tree]:
    yield element("h1", {}, f"{found.name}: {translate(found.symptom)}")
    how = "" if found.complete else say("; interrupted: the smallest so far")
    yield element("p", {"class": "lab-verdict"}, f"{translate(str(found.candidate))}{how}")
    rows = (
        (*map(translate, (t.strategy, t.before, t.after)), str(t.tries), f"{t.seconds:.1f} s")
        for t in found.log
    )
    yield _table(said_heads(("strategy", "before", "after", ">attempts", ">took")), rows)
    yield element("pre", {"class": "lab-code"}, found.script)


# ---- stepping ------------------------------------------------------------------------------------


def _steps(steps: Steps, live: bool, done: Sequence[Step]) -> Iterator[Tree]:
    last = done[-1] if done else None
    running = next((r for r in steps.parts if last is None or r.where == last.where), None)
    yield element("h1", {}, f"{steps.name}{': ' + running.where if running else ''}")
    if live and (not steps.finished or len(done) < len(steps.done)):
        yield element("div", {"class": "lab-steps"}, *map(_button, BUTTONS))
    if running is not None:
        yield element("p", {"class": "lab-machine"}, steps.file)
        lines = str(running.part.host).splitlines()
        here = last.line if last is not None else 0
        shown = (f"{n:4d}  {line}\n" for n, line in enumerate(lines, 1))
        yield element(
            "pre", {"class": "lab-code"},
            *(element("b", {"aria-current": "step"}, text) if n == here else text
              for n, text in enumerate(shown, 1)),
        )  # fmt: skip
    if last is not None:
        where = f"{last.span}  {last.span.code}" if last.span else say("no line of your code")
        yield element("p", {}, say(
            "line {n} computes {where}; live buffers: {held}",
            n=last.line, where=where, held=bytes_text(last.held),
        ))  # fmt: skip
    heads = ("buffer", "type", ">size", ">minimum", ">maximum", ">NaN", ">inf", "histogram",
             "first elements")  # fmt: skip
    yield _table(said_heads(heads), map(_buffer, latest_buffers(done)))


BUTTONS = {"next": "Next line", "kernel": "Next kernel", "rest": "Run to the end"}


def _button(word: str) -> Tree:
    return element("button", {"type": "button", "data-do": word}, say(BUTTONS[word]))


def latest_buffers(done: Sequence[Step]) -> list[BufferState]:
    """The live buffers of the current part with their latest contents."""
    known: dict[str, BufferState] = {}
    where = done[-1].where if done else ""
    for step in done:
        if step.where == where:
            known.update({state.name: state for state in step.made})
            for name in step.freed:
                known.pop(name, None)
    return list(known.values())


def _buffer(state: BufferState) -> tuple[str, ...]:
    low, high = ("" if v is None else f"{v:.4g}" for v in (state.low, state.high))
    shape = ", ".join(map(str, state.shape))
    strange = (str(count or "") for count in (state.nan, state.inf))
    kind = f"{state.dtype}[{shape}]"
    return (state.name, kind, bytes_text(state.nbytes), low, high, *strange, state.bars,
            ", ".join(state.first))  # fmt: skip
