"""A program that recompiles, for `test_trace_causes.py`: prints the failed guards that it saw.

    TORCH_TRACE=FOLDER python recompiling.py
"""

from __future__ import annotations

import json
import warnings

import torch

import inductor_lab as lab

LINEAR = torch.nn.Linear(3, 3)


def several(x, y, n, flag):
    if x.shape[0] > 5:
        x = x + 1
    return LINEAR(x) * n + y.sum() + (1 if flag else 2)


def broken(x):
    y = x + 1
    print("in the middle")
    return y * 2


def main() -> None:
    fast = torch.compile(several, backend="eager")
    with lab.recompiles() as seen:
        fast(torch.ones(4, 3), torch.ones(2, 2), 2, True)
        fast(torch.ones(5, 3), torch.ones(3, 4), 2.5, False)
        fast(torch.ones(7, 3), torch.ones(3, 4), 2.5, False)
        fast(torch.ones(1, 3), torch.ones(3, 4, dtype=torch.float64), 2.5, False)
        x = torch.ones(4, 3)
        torch._dynamo.maybe_mark_dynamic(x, 1)
        torch.compile(lambda x: LINEAR(x), backend="eager")(x)
        limited = torch.compile(broken, backend="eager", dynamic=False)
        with torch._dynamo.config.patch(recompile_limit=2):
            for size in (2, 3, 4):
                limited(torch.ones(size))
    print(json.dumps({
        "reasons": [[each.compile_id, r.failed, r.source, r.reason]
                    for each in seen.compiled for r in each.reasons],
        "varied": [str(each) for each in seen.varied],
        "breaks": [each.reason for each in seen.breaks],
    }))  # fmt: skip


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        main()
