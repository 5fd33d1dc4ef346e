"""The results of random programs as a page: how many were checked in each way, and what failed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tests.fuzz.check import BEFORE, CRASHES, FAILS_TOO, KNOWN, ROUNDED, SKIPPED, STOCK

if TYPE_CHECKING:
    from tests.fuzz.run import Batch

HEAD = """# Random programs

This page shows how many random programs compute the same with inductor_lab as in eager mode, for
each variant of compiling them ([checking.md](checking.md) describes programs and variants). {count}
programs were checked, with the {seeds}, on {machine} with torch {versions}.

`python -m tests.fuzz.run --programs N --seed N --page docs/random_programs.md` makes this page.
The columns:

- *agree*: all results, and the results of every stage, agree with eager mode;
- *failures*: programs with wrong results, or that inductor_lab refuses and `aot_eager` does not;
- *aot_eager too*: programs that raise an error with inductor_lab, and also with
  `backend="aot_eager"`, before our compiler runs;
- *torch*: programs that stock TorchInductor refuses with the same message, or that `torch.compile`
  is known to refuse;
- *jump*: programs whose results change by more than a rounding if a value changes by a rounding;
- *not compared*: programs that eager mode refuses or that end its process, or without a result that
  can be compared.

"""
COLUMNS = ("programs", "agree", "failures", "aot_eager too", "torch", "jump", "not compared")


def page(batches: Sequence[Batch]) -> str:
    """The page as Markdown; `batches` are finished ones, or were stopped."""
    seeds = sorted({batch.seed // 1_000_000 for batch in batches})
    named = f"seed{'s' if len(seeds) > 1 else ''} {', '.join(map(str, seeds))}"
    versions = ", ".join(sorted({batch.torch or "of an unknown version" for batch in batches}))
    gpus = {batch.way.startswith("gpu") for batch in batches}
    machine = {(False,): "a CPU", (True,): "a GPU"}.get(tuple(sorted(gpus)), "a CPU and a GPU")
    count = sum(batch.checked for batch in batches)
    head = HEAD.format(count=count, seeds=named, machine=machine, versions=versions)
    rows = [f"| variant | {' | '.join(COLUMNS)} |", "|---" + "|---:" * len(COLUMNS) + "|"]
    total: Counter[str] = Counter()
    for way in dict.fromkeys(batch.way for batch in batches):
        counts = counts_of([batch for batch in batches if batch.way == way])
        total += counts
        rows.append(row(way, counts))
    lines = [*rows, row("all", total), *failures_of(batches)]
    return head + "\n".join(lines) + "\n"


def row(name: str, counts: Counter[str]) -> str:
    return f"| {name} | {' | '.join(str(counts[column]) for column in COLUMNS)} |"


def counts_of(batches: Sequence[Batch]) -> Counter[str]:
    """The numbers of programs in the columns; "agree" is what the others leave."""
    excused: Counter[str] = Counter()
    for batch in batches:
        excused.update(batch.excused)
    texts = [text for batch in batches for text in batch.failures]
    too = sum(is_before(text) for text in texts)
    counts = Counter({
        "programs": sum(batch.checked for batch in batches),
        "failures": len(texts) - too,
        "aot_eager too": excused[BEFORE] + too,
        "torch": excused[STOCK] + excused[KNOWN],
        "jump": excused[ROUNDED],
        "not compared": excused[SKIPPED] + excused[CRASHES],
    })  # fmt: skip
    counts["agree"] = 2 * counts["programs"] - counts.total()
    return counts


def is_before(text: str) -> bool:
    """Does the text of a failure say that `aot_eager` fails too?  For wrong results that is no
    excuse."""
    first = text.splitlines()[0]
    return f"[aot_eager {FAILS_TOO}" in first and not first.startswith("Wrong: Wrong:")


def failures_of(batches: Sequence[Batch]) -> list[str]:
    """The first line of each failure that is not `aot_eager`'s."""
    rows = [
        f"| {batch.seed} | {batch.way} | {text.splitlines()[0].replace('|', '/')} |"
        for batch in batches
        for text in batch.failures
        if not is_before(text)
    ]
    head = ["", "## Failures", "", "| seed of the batch | variant | error |", "|---|---|---|"]
    return [*head, *rows] if rows else []
