"""`python -m tests.stock.all_programs [NAME ...]`: every demo program compiled by stock.

Prints how many statements of stock's kernels lead to a line of the user's; the exit code is 1 if
these are fewer than 95 % for a program.  BERT, ResNet-18 and GPT-2 take stock a minute or two each.
"""

from __future__ import annotations

import sys

import inductor_lab as lab
from inductor_lab.bench.demo.programs import PROGRAMS

LEAST = 0.95


def main(names: list[str]) -> int:
    low = []
    for program in PROGRAMS:
        if names and program.name not in names:
            continue
        function, arguments = program.make()
        found = lab.inspect(function, *arguments, compiler="stock")
        total, linked = found.statements
        kernels = len([k for k in found.kernels if k.language != "extern"])
        print(f"{program.name:10} {kernels:4} kernels  {linked:5} of {total:5} statements "
              f"({found.linked_share:.1%})  {found.total_seconds:6.1f} s", flush=True)
        if found.linked_share < LEAST:
            low.append(program.name)
    return 1 if low else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
