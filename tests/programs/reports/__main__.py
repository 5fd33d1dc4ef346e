"""`python -m tests.programs.reports [WORD ...]`: a table of what each backend does with programs.

With words, only the programs are run whose name or kind has one of them.  `--backends` chooses the
columns, `--page FILE` writes the table as markdown too.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from tests.programs.reports.judge import BACKENDS, verdict
from tests.programs.reports.programs import CASES

HEAD = """# Programs after public bug reports

`python -m tests.programs.reports --page docs/reports.md` makes this page. Each program is compared
with eager mode in values, dtypes, shapes, effects on arguments and gradients; float64 decides where
floats differ.

"""


def main() -> None:
    """Print the table, line by line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("words", nargs="*")
    parser.add_argument("--backends", default=",".join(BACKENDS))
    parser.add_argument("--page", type=Path)
    given = parser.parse_args()
    columns = given.backends.split(",")
    names = [
        ("ours" if c == "inductor_lab" else "stock" if c == "inductor" else c) for c in columns
    ]
    rows = [f"| program | kind | report | {' | '.join(names)} |", "|---" * (3 + len(names)) + "|"]
    print("\n".join(rows))
    for case in CASES.values():
        if given.words and not any(w in f"{case.name} {case.kind}" for w in given.words):
            continue
        said = [verdict(case, backend).replace("|", "/")[:100] for backend in columns]
        number = str(case.issue or "")
        rows.append(f"| {case.name} | {case.kind} | {number} | {' | '.join(said)} |")
        print(rows[-1], flush=True)
    if given.page is not None:
        given.page.write_text(HEAD + "\n".join(rows) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
