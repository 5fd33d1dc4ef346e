"""Writes through views whose elements share memory, or that leave parts of their base out."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

from tests.programs.reports.case import count, made, report, wave

Tensor = torch.Tensor
KIND = "a write through a view with elements that share memory"
GAPS = "a write through windows with gaps between them"
STRIDED = "a write through as_strided"
ROW = made((4,))
MATRIX = made((4, 6))


@report(KIND, ROW, 197448)
def zeros_an_expanded_view(x: Tensor) -> Any:
    x.expand(3, -1).zero_()
    return x + 1


@report(KIND, ROW, 197448)
def adds_to_a_row_of_an_expanded_view(x: Tensor) -> Any:
    e = x.expand(3, -1)
    e[1].add_(4)
    return e.sum(0), x + 1


@report(KIND, ROW, 197448)
def sets_an_item_of_an_expanded_view(x: Tensor) -> Any:
    e = x.unsqueeze(0).expand(3, -1)
    e[0, 1:3] = 7.0
    return x * 2, e


@report(KIND, ROW, 197448)
def multiplies_a_slice_of_an_expanded_copy(x: Tensor) -> Any:
    y = x + 1
    y[None].expand(3, -1)[0:1, 1:3].mul_(-2)
    return y


@report(KIND, lambda: (wave(4), torch.tensor([True, False, True, False])), 197448)
def scatters_by_a_mask_into_an_expanded_view(x: Tensor, mask: Tensor) -> Any:
    y = x * 2
    y.expand(2, -1)[:1].masked_scatter_(mask, torch.ones(4))
    return y, x


@report(KIND, lambda: (wave(6), torch.tensor([False, True, False, True])), 197448)
def puts_by_a_mask_into_an_expanded_view(x: Tensor, mask: Tensor) -> Any:
    head = x[2:3]
    wide = head.expand(4)
    wide.index_put_((mask,), torch.tensor([5.0, 5.0]))
    return head, wide.sum(), x + 1


@report(KIND, made((4,), (3, 4)))
def copies_a_row_into_an_expanded_view(x: Tensor, y: Tensor) -> Any:
    e = x.expand(3, -1)
    e[2].copy_(y[0])
    return x.sin(), e * y


@report(KIND, made((4,), (2, 4)))
def writes_inside_a_checkpoint(x: Tensor, y: Tensor) -> Any:
    z = x * 1
    e = z.expand(2, -1)

    def inside(e: Tensor, y: Tensor) -> Tensor:
        e[0].mul_(3)
        return e * y

    return checkpoint(inside, e, y, use_reentrant=False), z


@report(KIND, made((4,)))
def expands_and_writes_inside_a_checkpoint(x: Tensor) -> Any:
    def inside(x: Tensor) -> Tensor:
        y = x * 2
        y.expand(3, -1)[1].add_(1)
        return y

    return checkpoint(inside, x, use_reentrant=False).sin()


@report(KIND, made((4,)), gradients=True)
def writes_an_expanded_view_with_gradients(x: Tensor) -> Any:
    y = x * 2
    y.expand(3, -1)[1].mul_(y.detach() + 2)
    return y.sin()


@report(KIND, lambda: [(wave(n),) for n in (4, 5, 7)], dynamic=True)
def writes_an_expanded_view_of_symbolic_size(x: Tensor) -> Any:
    y = x + 1
    y.expand(y.shape[0], -1)[0].add_(y * 2)
    return y


@report(KIND, lambda: (wave(4).expand(3, -1),))
def writes_a_row_of_an_argument_that_is_expanded(e: Tensor) -> Any:
    e[1].mul_(2)
    return e + 1


@report(KIND, lambda: (wave(4).expand(3, -1),))
def zeros_an_argument_that_is_expanded(e: Tensor) -> Any:
    y = e + 1
    e.zero_()
    return y, e * 2


@report(KIND, lambda: ((x := wave(4)), x.expand(3, -1)))
def writes_an_argument_and_reads_another_that_expands_it(x: Tensor, e: Tensor) -> Any:
    x.mul_(2)
    return e + 1


@report(KIND, lambda: ((x := wave(4)), x.expand(3, -1)))
def writes_an_expanded_argument_and_reads_another(x: Tensor, e: Tensor) -> Any:
    e[0].mul_(2)
    return x + 1


@report(KIND, made((5,)))
def doubles_an_overlapping_window(x: Tensor) -> Any:
    y = x + 0
    w = y.unfold(0, 3, 2)
    w[0].mul_(2)
    return y, w


@report(KIND, MATRIX, 165409)
def takes_absolute_values_of_overlapping_windows(x: Tensor) -> Any:
    y = x + x
    return y.unfold(1, 3, 1).abs_(), y


@report(KIND, made((5,)))
def fills_a_row_of_windows_of_an_argument(x: Tensor) -> Any:
    x.unfold(0, 2, 1)[1].fill_(9)
    return x * 2


@report(GAPS, MATRIX, 198102)
def adds_through_windows_with_gaps(x: Tensor) -> Any:
    v = x.unfold(1, 1, 5)
    v.add_(v)
    return x


@report(GAPS, MATRIX, 198102)
def fills_windows_with_gaps_of_a_flat_view(x: Tensor) -> Any:
    y = x * 1
    y.view(24).unfold(0, 8, 24).fill_(3)
    return y.sum(1), y


@report(GAPS, MATRIX, 198102)
def writes_windows_that_leave_a_rest(x: Tensor) -> Any:
    y = x.clone()
    y.unfold(1, 4, 4)[..., 0].zero_()
    return y


@report(GAPS, MATRIX, gradients=True)
def writes_windows_with_gaps_with_gradients(x: Tensor) -> Any:
    y = x * 2
    y.unfold(1, 2, 4).mul_(3)
    return y * x


@report(STRIDED, made((9,)))
def adds_through_a_strided_view(x: Tensor) -> Any:
    x.as_strided((3,), (3,)).add_(10)
    return x * 2


@report(STRIDED, made((9,)))
def adds_to_a_row_of_overlapping_strides(x: Tensor) -> Any:
    y = x + 0
    y.as_strided((3, 3), (1, 1))[1].add_(1)
    return y


@report(STRIDED, made((4, 4)))
def writes_the_diagonal_through_strides(x: Tensor) -> Any:
    y = x.clone()
    y.as_strided((4,), (5,)).zero_()
    return y, x


@report(STRIDED, made((4, 4)))
def writes_strides_of_a_slice_beyond_it(x: Tensor) -> Any:
    y = x.clone()
    y[:2, :2].as_strided((8,), (2,)).zero_()
    return y


@report(STRIDED, made((4, 4)))
def reads_strides_of_a_slice_after_a_write(x: Tensor) -> Any:
    y = x.clone()
    s = y[1:]
    s[0].mul_(2)
    return s.as_strided((6,), (2,)), y


@report(STRIDED, made((4, 4)))
def writes_the_base_and_reads_strides(x: Tensor) -> Any:
    y = x.clone()
    v = y.as_strided((2, 3), (4, 1))
    y.add_(1)
    return v * 2


@report(STRIDED, made((4, 4)))
def copies_strides_after_a_write(x: Tensor) -> Any:
    y = x.t().contiguous()
    y[0] += 1
    return torch.as_strided_copy(y, (3, 2), (2, 3), 1), y


@report(STRIDED, made((6,)))
def reads_overlapping_strides_of_a_written_argument(x: Tensor) -> Any:
    x[1:3].mul_(5)
    return x.as_strided((3, 3), (1, 1)) + 1, x


@report(STRIDED, made((1, 1)), 197431, strides=False)
def strides_every_second_column_of_a_repeated_tensor(x: Tensor) -> Any:
    wide = x.repeat(3, 2)
    return wide[:, ::2].as_strided((3, 2), wide.stride())


@report(STRIDED, made((3, 4)))
def strides_of_a_transposed_sum(x: Tensor) -> Any:
    y = x.t() + 1
    return y.as_strided((4, 3), (3, 1)), y


@report(STRIDED, made((6,)), gradients=True)
def adds_to_an_overlapping_strided_view(x: Tensor) -> Any:
    v = (x * 2).as_strided((4, 3), (1, 1))
    return v + v.t()[0:1, :3].sum() + 1


@report(STRIDED, made((3, 4)), gradients=True)
def adds_through_strides_with_gradients(x: Tensor) -> Any:
    y = x * 2
    y.as_strided((3,), (5,)).add_(y[:, 0].detach())
    return y.sin()


@report(STRIDED, lambda: count(9))
def resizes_an_overlapping_view(x: Tensor) -> Any:
    v = x.as_strided((3, 3), (1, 1))
    return torch.ops.aten.resize(v, [2, 2]), v.unfold(1, 2, 1).sum(-1)


@report("a write into a view of another dtype", made((4, 4)))
def writes_bits_of_a_slice(x: Tensor) -> Any:
    y = x.clone()
    y[1:3].view(torch.int32).bitwise_and_(0x7FFFFFFF)
    return y, y[1:].view(torch.int32)


@report(
    "a write into a part of complex numbers", lambda: (torch.complex(wave(4), wave(4, phase=1)),)
)
def writes_real_and_imaginary_parts(z: Tensor) -> Any:
    w = z * 2
    w.real.mul_(3)
    w.imag[1:].zero_()
    torch.view_as_real(z)[:, 0] = 1
    return w, z.conj()


@report("a write into diagonals", made((4, 4)), gradients=True)
def writes_diagonals(x: Tensor) -> Any:
    y = x * 1
    y.diagonal().mul_(2)
    y.diagonal(1)[1:].zero_()
    y.t().triu_(-1)
    return y


@report("a write into parts that are split", made((6, 4)))
def writes_parts_of_a_split(x: Tensor) -> Any:
    y = x * 1
    a, b, c = y.chunk(3)
    a.add_(b)
    c.copy_(a * 2)
    for row in y.unbind(1)[:2]:
        row.mul_(2)
    return y, b


@report("a write by an inplace argument", made((4, 3)))
def activates_a_slice_in_place(x: Tensor) -> Any:
    y = x * 2
    F.relu(y[1:], inplace=True)
    F.silu(y.expand(2, 4, 3)[0, :1], inplace=True)
    F.relu_(y[:, :1])
    return y


@report("a write by an out argument", made((4,), (4,)))
def writes_into_an_expanded_row_as_out(x: Tensor, y: Tensor) -> Any:
    z = x * 1
    torch.add(x, y, out=z.expand(2, -1)[0])
    return z


@report("a write of a whole list", made((4,), (4,)))
def writes_rows_of_an_expanded_view_by_foreach(x: Tensor, y: Tensor) -> Any:
    z = x * 1
    torch._foreach_add_([z.expand(2, -1)[0], y], 1.0)
    return z, y
