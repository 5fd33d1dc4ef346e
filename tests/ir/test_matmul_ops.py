"""The table of matrix products agrees with the schemas of torch."""

from __future__ import annotations

import pytest
import torch

from inductor_lab.compiler.ir.interpret import find_operator
from inductor_lab.compiler.ir.library_ops import onednn_supports
from inductor_lab.compiler.ir.matmul_ops import COMMON, MATMULS, UNBATCHED, name_of


@pytest.mark.parametrize("op", MATMULS)
def test_the_first_matrix_is_where_the_table_says(op: str) -> None:
    names = [argument.name for argument in find_operator(op)._schema.arguments]
    first = MATMULS[op].first
    assert names[first : first + 2] in (["self", "mat2"], ["mat1", "mat2"], ["batch1", "batch2"])
    assert MATMULS[op].batched is name_of(op).endswith("bmm")


def test_parts_of_the_table() -> None:
    assert [name_of(op) for op in COMMON] == ["mm", "addmm", "bmm"]
    assert [name_of(op) for op in UNBATCHED] == ["mm", "addmm"]


def test_without_onednn_no_dtype_is_supported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.backends.mkldnn, "is_available", lambda: False)
    dtypes = (torch.float32, torch.bfloat16, torch.float16, torch.float64)
    assert not any(map(onednn_supports, dtypes))
