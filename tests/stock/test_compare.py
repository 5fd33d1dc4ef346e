"""`lab.compare(ours, stock)`: kernels, bytes and code of both compilers for each line."""

from __future__ import annotations

import pytest
import torch

import inductor_lab as lab
from inductor_lab.errors import BadArguments, UnknownName
from tests.stock.functions import attend

FIRST = attend.__code__.co_firstlineno


@pytest.fixture(scope="module")
def both(attended):
    inputs = [torch.randn(64, 64, requires_grad=True) for _ in range(3)]
    return lab.compare(lab.inspect(attend, *inputs), attended)


def test_every_line_has_the_work_of_both(both):
    assert [found.line for found in both.lines] == [FIRST + n for n in (1, 2, 3, 4)]
    assert both.lines[0].code == "a = torch.softmax(x + y, -1)"
    for found in both.lines:
        assert found.ours and found.stock
    product = both.lines[1]
    assert any(not work.generated for work in product.ours)
    assert "extern_kernels.mm" in {work.name for work in product.stock}


def test_code_stands_beside_code(both):
    ours, stock = both.code(FIRST + 1)
    assert "lab_exp" in ours and ".exp(" in stock
    assert "lab_exp" not in both.code(FIRST + 4)[0]
    with pytest.raises(UnknownName, match=str(FIRST + 1)):
        both.code(10_000)


def test_totals_and_the_page(both):
    assert sum(work.generated for work in both.stock) == 6
    assert "stock" in str(both) and "kernels moving" in repr(both)
    page = both._repr_html_()
    assert "torch.softmax" in page and "extern_kernels.mm" in page and "<script" not in page


def test_two_of_one_kind_are_refused(attended):
    with pytest.raises(BadArguments, match="one of stock's"):
        lab.compare(attended, attended)
