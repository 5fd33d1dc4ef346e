"""Functions that the tests of this folder compile."""

from __future__ import annotations

import torch


def attend(x, y, w):
    a = torch.softmax(x + y, -1)
    b = (a @ w).relu()
    c = b.sum(0) + a.mean()
    return c, (x * 2).cumsum(0).t().contiguous()
