"""Leagues: a class competes in a decision of a compiler, ranked by what the compiler counts.

    inductor-lab course league scheduler submissions --secret secret_seed

    rank  team   bytes moved  kernels
       1  greedy      61,440       23
       2  pairs       83,968       31
    broken: case 3: the results are wrong

`submissions` has a Python file for each team, which defines the function of the league.  It runs in
a confined process on hidden programs, drawn from the secret.  Bytes, kernels and cache misses are
counted and not measured, so every machine gives the same ranking.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from inductor_lab.api.backend import inspect
from inductor_lab.api.override import override
from inductor_lab.compiler.base.errors import BadArguments, unknown_name
from inductor_lab.course.capstone.programs import (
    GATES,
    LARGE,
    POINTWISE,
    REDUCTIONS,
    VIEWS,
    Program,
    drawn,
)
from inductor_lab.course.exercise import expected, explained
from inductor_lab.course.grading import Grader
from inductor_lab.course.labs.cpp import Transposed, transposed_misses, wrong_tile
from inductor_lab.course.labs.memory import works
from inductor_lab.course.language import say
from inductor_lab.debug.isolate import run_isolated
from inductor_lab.debug.untrusted.remote import Process, Raised, Stopped
from inductor_lab.notebook.columns import padded

LIMIT = 300.0
"""Seconds for a submission."""
COUNT = 12
"""Hidden cases of a league."""
Score = tuple[int, ...]


class Disqualified(Exception):
    """A result that is not legal or not right; the message says why."""


@dataclass(frozen=True)
class League:
    """A competition.

    function  the name of the submitted function
    counts    what is counted, the most important first; less is better
    cases     hidden cases, drawn from the secret
    score     the counts of one case; raises Disqualified
    """

    function: str
    counts: tuple[str, ...]
    cases: Callable[[random.Random], Iterator[Any]]
    score: Callable[[Any, Any], Score]


@dataclass(frozen=True)
class Standing:
    """A team's sum of the counts over all cases, or why there is none."""

    team: str
    score: Score = ()
    wrong: str = ""


# ---- the leagues ---------------------------------------------------------------------------------


def _programs(draw: random.Random) -> Iterator[Program]:
    for number in range(COUNT):
        yield drawn(draw, (POINTWISE, REDUCTIONS, VIEWS, GATES), 2 + number // 2, LARGE)


def _scheduled(schedule: Any, case: Program) -> Score:
    """`schedule(program)`: groups of buffers, as in exercise 5.5."""
    inputs = case.inputs()
    with override(schedule=schedule):
        found = inspect(case.function(), *inputs)
    for mine, right in zip(found.result, case.results(), strict=True):
        if not torch.allclose(mine, right):
            raise Disqualified(say("the results are wrong"))
    after = [part.schedule.after for part in found.parts]
    return sum(int(one.bytes) for one in after), sum(one.kernels for one in after)


def _partitioned(partition: Any, case: Program) -> Score:
    """`partition(values)`: names to save for the backward, as in exercise 3.5."""
    inputs = [one.requires_grad_() for one in case.inputs()]
    function = case.function()
    with override(partition=partition):
        found = inspect(lambda *given: function(*given)[0].sum(), *inputs)
    moved = sum(int(part.schedule.after.bytes) for part in found.parts)
    return moved, sum(int(one.partition.cut_bytes) for one in found.graphs if one.partition)


@dataclass(frozen=True)
class Sized:
    """Buffers with the first and the last step in which they are needed, and their bytes."""

    lives: Mapping[str, tuple[int, int]]
    nbytes: Mapping[str, int]


def _sized(draw: random.Random) -> Iterator[Sized]:
    for work in works(draw, 80 + COUNT):
        yield Sized(work.lives, {name: 64 * draw.randint(1, 40) for name in work.lives})


def _large(draw: random.Random) -> Iterator[Sized]:
    yield from list(_sized(draw))[-COUNT:]


def placed(place: Any, case: Sized) -> Score:
    """`place(lives, nbytes)`: the offset of each buffer in one block of memory."""
    found = place(dict(case.lives), dict(case.nbytes))
    wrong = expected(dict, found)
    if wrong:
        raise Disqualified(wrong)
    names = list(case.lives)
    for number, one in enumerate(names):
        if type(found.get(one)) is not int or found[one] < 0:
            raise Disqualified(say("{n} has no offset", n=one))
        for other in names[:number]:
            (a, b), (c, d) = case.lives[one], case.lives[other]
            below = found[one] + case.nbytes[one] <= found[other]
            above = found[other] + case.nbytes[other] <= found[one]
            if a <= d and c <= b and not below and not above:
                raise Disqualified(say("{a} and {b} overlap, and both are alive in step {s}",
                                       a=other, b=one, s=max(a, c)))  # fmt: skip
    return (max(found[name] + case.nbytes[name] for name in names),)


def _matrices(draw: random.Random) -> Iterator[Transposed]:
    for number in range(COUNT):
        line, lines = draw.choice([8, 16]), draw.choice([5, 6, 9, 12, 20, 34])
        rows, columns = (draw.randint(line, line * (2 + number // 4)) for _ in range(2))
        yield Transposed(rows, columns, lines, line)


def _tiled(tile_sizes: Any, case: Transposed) -> Score:
    """`tile_sizes(rows, columns, lines, line)`: as in exercise 6.5."""
    found = tile_sizes(case.rows, case.columns, case.lines, case.line)
    wrong = wrong_tile(found)
    if wrong:
        raise Disqualified(wrong)
    return (transposed_misses(case, found),)


LEAGUES: Mapping[str, League] = {
    "scheduler": League("schedule", ("bytes moved", "kernels"), _programs, _scheduled),
    "partitioner": League("partition", ("bytes moved", "bytes saved"), _programs,
                          _partitioned),
    "memory": League("place", ("peak bytes",), _large, placed),
    "tiles": League("tile_sizes", ("cache misses",), _matrices, _tiled),
}  # fmt: skip


# ---- judging -------------------------------------------------------------------------------------


def league(name: str, folder: Path, secret: str, hidden: Sequence[Path] = ()) -> list[Standing]:
    """The standings of all files of a folder, the best first; equal counts keep the names' order.

    Raises BadArguments for an unknown league, or a folder without Python files.
    """
    if name not in LEAGUES:
        what, todo = unknown_name(say("league"), name, list(LEAGUES))
        raise BadArguments(what, todo=todo)
    files = sorted(folder.glob("*.py"))
    if not files:
        what = say("{f} has no Python file", f=folder)
        raise BadArguments(what, todo=say("name the folder with a file for each team"))
    asked = LEAGUES[name]
    with Grader(f"{secret} {name}", [folder, *hidden]) as grader:
        found = [_standing(asked, grader, file) for file in files]
    return sorted(found, key=lambda one: (bool(one.wrong), one.score))


def _standing(asked: League, grader: Grader, file: Path) -> Standing:
    """Judged in a copy of this process, because the judge compiles."""
    text = file.read_text(encoding="utf-8", errors="replace")

    def start() -> Process:
        return grader.process([text], asked.function, LIMIT)

    ended = run_isolated(lambda _: _judged(asked, start, grader.secret), 2 * LIMIT)
    if ended.how != "returned":
        return Standing(file.stem, wrong=f"{ended.how}: {ended.kind}")
    score, wrong = ended.value
    return Standing(file.stem, () if wrong else tuple(score), wrong)


def _judged(asked: League, start: Callable[[], Process], secret: str) -> tuple[Score, str]:
    total = (0,) * len(asked.counts)
    with start() as process:
        try:
            solution = process.begin()
            for number, case in enumerate(asked.cases(random.Random(secret))):
                wrong, score = _tried(asked, solution, case)
                if wrong:
                    return (), say("case {n}: {w}", n=number, w=wrong)
                total = tuple(a + b for a, b in zip(total, score, strict=True))
        except Stopped as stopped:
            return (), say("its process ended: {k}", k=stopped.kind or stopped.how)
        except Raised as raised:
            return (), f"{raised.kind}: {raised.text}"
        except NotImplementedError:
            return (), say("not begun yet: replace the last line of the stub")
    return total, ""


def _tried(asked: League, solution: Any, case: Any) -> tuple[str, Score]:
    try:
        return "", asked.score(solution, case)
    except Disqualified as reason:
        return str(reason), ()
    except Exception as error:
        return explained(error, solution).partition("\n")[0], ()


def table(name: str, standings: Sequence[Standing]) -> str:
    """The standings as text; equal scores share a rank."""
    heads = [say("rank"), say("team"), *map(say, LEAGUES[name].counts)]
    rows = [heads]
    for one in standings:
        if not one.wrong:
            rank = 1 + sum(other.score < one.score for other in standings if not other.wrong)
            rows.append([str(rank), one.team, *(f"{count:,}" for count in one.score)])
    widths = [max(len(row[k]) for row in rows) for k in range(len(heads))]
    lines = []
    for row in rows:
        cells = (padded(cell, width, right=k != 1)  # numbers, but for the team
                 for k, (cell, width) in enumerate(zip(row, widths, strict=True)))  # fmt: skip
        lines.append("  ".join(cells))
    lines += [f"{one.team}: {one.wrong}" for one in standings if one.wrong]
    return "\n".join(lines)
