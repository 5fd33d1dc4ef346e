"""`python -m tests.programs.reports [WORD ...]`: a table of what each backend does with programs.

With words, only the programs are run whose name or kind has one of them.  `--backends` chooses the
columns, `--page FILE` writes the table as markdown too.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import torch

from tests.programs.reports.judge import BACKENDS, verdict
from tests.programs.reports.programs import CASES

HEAD = """# Programs after public bug reports

This page shows how often each backend of `torch.compile` disagrees with eager mode, on small
programs that we wrote after public bug reports. Values, dtypes, shapes, effects on arguments and
gradients are compared; where floats differ, float64 decides. `aot_eager` runs the graphs of
AOTAutograd in eager mode, so what it gets wrong is wrong before code generation. `refused` means
that eager mode and the backend both raise an error, `raises` that only the backend does. The torch
version is {version}, on a CPU.

`python -m tests.programs.reports --page docs/reports.md` makes this page.

"""
ISSUES = "https://github.com/pytorch/pytorch/issues"
NAMES = {"inductor_lab": "ours", "inductor": "stock"}


def main() -> None:
    """Print the table, line by line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("words", nargs="*")
    parser.add_argument("--backends", default=",".join(BACKENDS))
    parser.add_argument("--page", type=Path)
    given = parser.parse_args()
    columns = given.backends.split(",")
    names = [NAMES.get(column, column) for column in columns]
    rows = table_head("program", "kind", "report", *names)
    counts = {column: Counter[str]() for column in columns}
    print("\n".join(rows))
    for case in CASES.values():
        if given.words and not any(w in f"{case.name} {case.kind}" for w in given.words):
            continue
        said = [verdict(case, backend).replace("|", "/")[:100] for backend in columns]
        for column, one in zip(columns, said, strict=True):
            counts[column][kind_of(one)] += 1
        report = f"[{case.issue}]({ISSUES}/{case.issue})" if case.issue else ""
        rows.append(f"| {case.name} | {case.kind} | {report} | {' | '.join(said)} |")
        print(rows[-1], flush=True)
    print("\n".join(summary := summary_of(counts)))
    if given.page is not None:
        version = torch.__version__.partition("+")[0]
        page = HEAD.format(version=version) + "\n".join([*summary, "", *rows]) + "\n"
        given.page.write_text(page, encoding="utf-8")


def table_head(*names: str) -> list[str]:
    return [f"| {' | '.join(names)} |", "|---" * len(names) + "|"]


def kind_of(said: str) -> str:
    """ "right", "refused", "raises", or "wrong"."""
    if said in ("right", "refused"):
        return said
    return "raises" if said.startswith("raises ") else "wrong"


def summary_of(counts: Mapping[str, Counter[str]]) -> list[str]:
    """How many programs of each kind each backend has."""
    kinds = ("right", "refused", "raises", "wrong")
    rows = [f"| {NAMES.get(name, name)} | {' | '.join(str(found[kind]) for kind in kinds)} |"
            for name, found in counts.items()]  # fmt: skip
    return [*table_head("backend", *kinds), *rows]


if __name__ == "__main__":
    main()
