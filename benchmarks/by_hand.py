"""A softmax of rows on a GPU: eager, ours, and handwritten CUDA C++, compared with a copy.

python -m benchmarks.by_hand
"""

from __future__ import annotations

import torch

from inductor_lab.course.cuda import timed

SIZES = ((16384, 1000), (16384, 4096), (4096, 8192))


def main() -> None:
    for rows, columns in SIZES:
        where, times = timed(rows, columns)
        found = ", ".join(f"{name} {1e6 * seconds:.1f} µs" for name, seconds in times)
        print(f"{where}, torch {torch.__version__}: softmax ({rows}, {columns}): {found}")


if __name__ == "__main__":
    main()
