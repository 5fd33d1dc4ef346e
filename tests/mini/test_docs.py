"""The outputs that docs/mini.md shows are those of the compiler."""

from __future__ import annotations

import doctest

import torch

from tests.project.test_layering import ROOT


def test_the_page_shows_what_the_compiler_prints() -> None:
    torch.compiler.reset()
    page = str(ROOT / "docs" / "mini.md")
    failed, tried = doctest.testfile(page, module_relative=False, encoding="utf-8")
    assert failed == 0 and tried > 6
