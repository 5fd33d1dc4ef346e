"""Masks that are known: the loop is cut where they change, and the pieces compute the same."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F

sys.path.insert(0, str(Path(__file__).parent))
Compiled = importlib.import_module("cpp_backend").Compiled

x, y = torch.randn(40, 300), torch.randn(40, 700)
CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...], int]] = {
    "cat": (lambda a, b: torch.cat([a.relu(), b * 2], 1), (x, y), 2),
    "cat of three": (lambda a, b: torch.cat([a, b, a + 1], 1).exp(), (x, y), 3),
    "cat of flat tensors": (lambda a, b: torch.cat([a, b * 2]), (x[0], y[0]), 2),
    "pad": (lambda a: F.pad(a, (3, 5, 1, 2), value=1.5), (x,), 3),
    "pad of pad": (lambda a: F.pad(F.pad(a, (3, 5)) + 1, (2, 2)), (x,), 5),
    "columns by number": (lambda a: torch.where(torch.arange(300) >= 70, a, -a), (x,), 2),
    "one column": (lambda a: torch.where(torch.arange(300) == 70, a, -a), (x,), 3),
    "too many pieces": (lambda a: torch.cat([a[:, :70]] * 7, 1), (x,), 1),
    "too short": (lambda a: F.pad(a[:, :9], (1, 1)), (x,), 1),
}


@pytest.mark.parametrize("name", CASES)
def test_pieces(name: str) -> None:
    function, args, pieces = CASES[name]
    compiled = Compiled()
    torch.testing.assert_close(compiled(function)(*args), function(*args))
    text = "\n".join(str(kernel.code) for kernel in compiled.kernels)
    assert text.count("simd") == pieces, text
    if pieces in (2, 3) and name != "pad":
        assert "if" not in text and "?" not in text, text
