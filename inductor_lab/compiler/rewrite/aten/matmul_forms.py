"""Matrix products in the forms for which libraries are fast.

```
mm(a[4096, 768], b[768, 50257])    →    mm(a, pad(b))[:, :50257]        rows of whole vectors
addmm(bias, a, b)                  →    mm(a, b) + bias                 few rows of float32
convolution(x, w, bias)            →    convolution(x, w) + bias
mm(a: bf16, b: bf16)               →    mm(a: f32, b: f32): bf16        on a CPU
```

Tensor cores read and write 16 bytes at a time.  If the row size of a half-precision matrix is not a
multiple of that, the library uses a much slower kernel: the three products of a GPT-2 with its
50,257 words took 7.9 ms of a training step on an H200, and 1.2 ms with rows of 50,264 (torch 2.11,
2026-11-23, `python -m benchmarks.gpu`).  For few rows of float32, the kernel with a bias is half as
fast as the one without, and the addition can be fused with its consumers.  After a convolution the
library adds the bias in a separate kernel.

Libraries multiply 16-bit numbers fast on CPUs with instructions for it; on others a float32 product
of the converted matrices takes two thirds to a fifth of the time (AVX2, torch 2.13, 16 to 128 rows,
2026-11-26), a convolution a quarter.  It rounds no more often, because both accumulate in 32 bits.

Inductor: `fx_passes/pad_mm.py` (which measures) and `unfuse_bias_add_to_pointwise` in
`fx_passes/post_grad.py`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch.fx import Node

from inductor_lab.compiler.base.errors import working_on
from inductor_lab.compiler.capture.operands import items_of, operand
from inductor_lab.compiler.ir.library_ops import onednn_supports
from inductor_lab.compiler.ir.matmul_ops import COMMON, name_of
from inductor_lab.compiler.ir.rules import HALF
from inductor_lab.compiler.rewrite.insert_calls import Adder

aten = torch.ops.aten
OF_MATRICES = tuple(getattr(aten, name_of(op)).default for op in COMMON)
FEWEST_WIDENED = 16
"""The smallest number of rows and columns; for eight rows both forms take the same time, for one
row the 16-bit form takes a third of it."""
ALIGNED = 16
"""Bytes of a vector."""
PAYS = 120
"""Floating-point operations of a product per copied byte: an unaligned kernel does about 120 of
them in the time in which the memory reads and writes one byte (the H200 above)."""
FEW_ROWS = 1024
"""The largest number of rows of a float32 product whose bias is added separately (chosen, not
measured)."""


def better_products(graph: torch.fx.Graph, off: frozenset[str]) -> Iterator[tuple[str, Node, Node]]:
    """The rule, the product and its replacement, for each rule that applies."""
    rules = (("cuda", unfused_bias), ("cuda", padded_product), ("cpu", widened_product))
    for device, rule in rules:
        for node in products_of(graph, device) if rule.__name__ not in off else ():
            with working_on((node.name,)):
                new = rule(node)
            if new is not None:
                yield rule.__name__, node, new


def products_of(graph: torch.fx.Graph, device: str) -> list[Node]:
    """The products and convolutions of fixed sizes on a device of this type."""
    nodes = [n for op in (*OF_MATRICES, aten.convolution.default)
             for n in graph.find_nodes(op="call_function", target=op)]  # fmt: skip
    return [node for node in nodes if _is_known(node, device)]


def _is_known(node: Node, device: str) -> bool:
    values = [node.meta["val"], *(n.meta["val"] for n in node.all_input_nodes)]
    if not all(isinstance(v, torch.Tensor) for v in values):  # a factor is a symbolic number
        return False
    same = all(v.device.type == device and v.dtype == values[0].dtype for v in values)
    known = all(isinstance(n, int) for v in values for n in (*v.shape, *v.stride()))
    return same and known and not node.kwargs


def unfused_bias(node: Node) -> Node | None:
    """`bias + a @ b`, or the bias of a convolution, as a separate addition."""
    value, add = node.meta["val"], Adder(node, [node])
    if node.target is aten.convolution.default and node.args[2] is not None:
        x, weight, bias, *rest = node.args
        column = add(aten.view.default, bias, [-1] + [1] * (value.dim() - 2))
        return add(aten.add.Tensor, add(node.target, x, weight, None, *rest), column)
    few = value.dtype is torch.float32 and value.shape[0] <= FEW_ROWS
    if not few or node.target is not aten.addmm.default or operand(node).meta["val"].dim() > 1:
        return None
    bias, a, b = node.args
    return add(aten.add.Tensor, add(aten.mm.default, a, b), bias)


def padded_product(node: Node) -> Node | None:
    """The product with rows padded to whole vectors, without the padding of the result."""
    if node.target is not aten.mm.default:
        return None
    a, b = operand(node, 0), operand(node, 1)
    (m, k), n = a.meta["val"].shape, b.meta["val"].shape[1]
    vector = ALIGNED // node.meta["val"].dtype.itemsize
    in_rows = {n, k if _is_row_major(a) else m, n if _is_row_major(b) else k}
    room = {size: -size % vector for size in in_rows}
    if vector < 8 or not any(room.values()):
        return None
    more = [room.get(size, 0) for size in (m, k, n)]
    copied = [(m, n)] * bool(more[0] or more[2])
    copied += [(m, k)] * bool(more[0] or more[1]) + [(k, n)] * bool(more[1] or more[2])
    nbytes = node.meta["val"].dtype.itemsize * sum(map(math.prod, copied))
    if 2 * m * k * n < PAYS * nbytes:
        return None
    left, right = _padded(a, more[0], more[1]), _padded(b, more[1], more[2])
    add = Adder(node, [node])
    whole = add(aten.mm.default, left, right)
    for dim, (size, extra) in enumerate(((m, more[0]), (n, more[2]))):
        if extra:
            whole = add(aten.slice.Tensor, whole, dim, 0, size)
    if whole.meta["val"].stride() == node.meta["val"].stride():
        return whole
    return add(aten.clone.default, whole, memory_format=torch.contiguous_format)


def widened_product(node: Node) -> Node | None:
    """The product of 16-bit numbers in float32, if oneDNN has no 16-bit product for this CPU."""
    value = node.meta["val"]
    if value.dtype not in HALF or onednn_supports(value.dtype):
        return None
    if node.target in OF_MATRICES:
        a, b = (operand(node, len(node.args) + n).meta["val"] for n in (-2, -1))
        if min(*a.shape[-2:], b.shape[-1]) < FEWEST_WIDENED:
            return None
    add = Adder(node, [node])
    wide = [add(aten._to_copy.default, given, dtype=torch.float32)
            if isinstance(given, Node) else given for given in node.args]  # fmt: skip
    new = add(aten._to_copy.default, add(node.target, *wide), dtype=value.dtype)
    if new.meta["val"].stride() == value.stride():
        return new
    last = torch.channels_last if value.dim() == 4 else torch.channels_last_3d
    kept = torch.contiguous_format if value.is_contiguous() else last
    return add(aten.clone.default, new, memory_format=kept)


def _is_row_major(node: Node) -> bool:
    return bool(node.meta["val"].stride(1) == 1)


def _padded(node: Node, rows: int, columns: int) -> Node:
    """A matrix padded with rows and columns of zeros, in its memory order."""
    if not rows and not columns:
        return node
    if not _is_row_major(node):
        transposed = _padded(_transposed(node), columns, rows)
        return Adder(transposed.next, [transposed])(aten.permute.default, transposed, [1, 0])
    pad = [0, columns, 0, rows]
    for user in node.users:
        if user.target is aten.constant_pad_nd.default and items_of(user) == pad:
            return user
    return Adder(node.next, [node])(aten.constant_pad_nd.default, node, pad, 0.0)


def _transposed(node: Node) -> Node:
    """The matrix that this one is the transpose of."""
    if node.target in (aten.permute.default, aten.t.default, aten.transpose.int):
        (source,) = node.all_input_nodes
        if source.meta["val"].dim() == 2:
            return source
    return Adder(node.next, [node])(aten.permute.default, node, [1, 0])
