"""Stock's kernels as data: ordered operations, buffers and recomputed values."""

from __future__ import annotations

import re

import torch

import inductor_lab as lab
from inductor_lab.saved.documents.outline import select
from tests.saved.schemas import valid
from tests.stock.functions import recomputing


def test_operations_are_in_the_order_of_the_code(attended):
    forward = attended.graphs[0].forward
    softmax = next(k for k in forward.generated if "softmax" in k.name)
    nodes = [operation.node for operation in softmax.operations]
    after = [member for node in forward.ir_after for member in node.members]
    assert nodes == [name for name in after if name in nodes] and len(nodes) == 5
    (largest,) = [o for o in softmax.operations if o.node == "op0"]
    assert (largest.nest, largest.axes, largest.reduce_axes) == ("reduction", (64,), (64,))
    said = re.findall(r"ops\.(\w+)\(", largest.text)
    assert said == ["load", "load", "add", "reduction", "store_reduction"]
    assert {"add", "amax"} == largest.origins
    roles = {operation.buffer: operation.role for operation in softmax.operations}
    assert roles["buf3"] == "stored" and roles["buf1"] == "register"  # a local array of a row


def test_buffers_have_the_roles_of_the_parameters(attended):
    for part in attended.parts:
        for kernel in part.generated:
            text = str(kernel.code)
            found = {(b.parameter, b.role) for b in kernel.buffers}
            for parameter, role in found:
                assert re.search(rf"\b{parameter}\b", text)
                assert role == "in" or not parameter.startswith("in_ptr")
            written = {b.buffer for b in kernel.buffers if b.role == "out"}
            computed = {b for o in kernel.operations if o.role == "stored" for b in [o.buffer]}
            assert written and len(computed) >= len(written)
    mm = next(k for k in attended.kernels if k.name == "extern_kernels.mm")
    assert mm.flops == 2 * 64**3 and not mm.operations


def test_a_kernel_prints_its_operations(attended):
    softmax = next(k for k in attended.kernels if "softmax" in k.name)
    text = str(softmax)
    assert "  in  primals_1 (in_ptr0): float32[64, 64]" in text and str(softmax.code) in text
    assert "op0: reduction buf0 (stored) over 64, reduces 64" in text


def test_kernels_are_valid_documents_and_survive_saving(attended, tmp_path, request):
    loaded = lab.load(attended.save(tmp_path / "stock.json"))
    assert [str(k) for k in loaded.kernels] == [str(k) for k in attended.kernels]
    keep = request.config.getoption("--update-golden")
    found = attended.to_dict()
    kernel = select(found, "g0.forward.kernel:0")
    valid(kernel, keep=keep)
    assert kernel["operations"] and kernel["buffers"] and kernel["flops"] > 0
    valid(select(found, kernel["operations"][0]["id"]), keep=keep)


def test_values_that_two_kernels_compute_are_reported():
    found = lab.inspect(recomputing, torch.ones(64, 32), compiler="stock")
    (forward,) = found.parts
    first, second = forward.generated
    for kernel, other in ((first, second), (second, first)):
        assert kernel.recomputed, str(found)
        assert {(r.value, r.also_in) for r in kernel.recomputed} == {("sin", (other.name,))}
        assert "ops.sin(" in "".join(operation.text for operation in kernel.operations)
    assert f"recomputed: sin, also in {second.name}" in str(first)
    assert not any(k.recomputed for k in forward.kernels if k.language == "extern")
