"""Functions that the tests of this folder compile."""

from __future__ import annotations

import torch


def attend(x, y, w):
    a = torch.softmax(x + y, -1)
    b = (a @ w).relu()
    c = b.sum(0) + a.mean()
    return c, (x * 2).cumsum(0).t().contiguous()


def recomputing(x):
    """Stock computes the sine in two kernels, one before and one after the library call."""
    a = x.sin()
    b = a.t().contiguous() + 1
    return b, a.sum(1).cumsum(0)
