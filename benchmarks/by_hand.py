"""A softmax of rows on a GPU: eager, ours, and CUDA C++ by hand, beside a copy of as many bytes.

python -m benchmarks.by_hand
"""

from __future__ import annotations

import torch

from inductor_lab.course.cuda import timed

SIZES = ((16384, 1000), (16384, 4096), (4096, 8192))


def main() -> None:
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}")
    for rows, columns in SIZES:
        found = ", ".join(
            f"{name} {1e6 * seconds:.1f} µs" for name, seconds in timed(rows, columns)
        )
        print(f"softmax ({rows}, {columns}): {found}")


if __name__ == "__main__":
    main()
