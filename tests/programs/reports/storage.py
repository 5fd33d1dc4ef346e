"""Arguments that share memory, `.data`, and views of what was written."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from tests.programs.reports.case import count, report, wave

Tensor = torch.Tensor
SHARED = "arguments that share memory, one of them written"
DATA = "a write through .data"


def base_and_rows() -> tuple[Tensor, Tensor]:
    base = count(4, 6)
    return base, base[1:]


@report(SHARED, base_and_rows, 198095)
def a_row_of_an_argument_after_its_base_is_written(t: Tensor, a: Tensor) -> Any:
    t.add_(100)
    return a[0]


@report(SHARED, base_and_rows, 198095)
def a_flat_view_of_an_argument_after_its_base_is_written(t: Tensor, a: Tensor) -> Any:
    t.mul_(3)
    return a.view(-1), a.t()


@report(SHARED, base_and_rows, 198095)
def the_base_viewed_after_its_rows_are_written(t: Tensor, a: Tensor) -> Any:
    a[0] += 5
    return t.view(2, 12), a[1:, 2]


@report(SHARED, lambda: ((b := count(4, 6)).t(), b[:, 1:3]), 198095)
def columns_of_a_transposed_argument(t: Tensor, a: Tensor) -> Any:
    t.add_(1)
    return a[1:], a.sum(), t[0]


@report(SHARED, lambda: ((b := wave(8))[:5], b[3:]), 139789)
def two_overlapping_slices(x: Tensor, y: Tensor) -> Any:
    x.mul_(2)
    y.add_(1)
    return x + 1, y * 2, y[:2]


@report(SHARED, lambda: [(wave(4), wave(4, phase=1)), ((b := wave(8))[:4], b[2:6])], 139789)
def slices_that_overlap_in_the_second_call(x: Tensor, y: Tensor) -> Any:
    x.mul_(2)
    return x + y


@report(SHARED, lambda: ((b := wave(6)), b), 139789)
def one_tensor_given_twice(x: Tensor, y: Tensor) -> Any:
    x.add_(1)
    return y * 2, y[1:]


@report(SHARED, lambda: ((b := wave(4, 4)), b[1], b[:, 2]), 198095)
def three_arguments_of_one_storage(b: Tensor, row: Tensor, column: Tensor) -> Any:
    row.zero_()
    column.add_(1)
    return b.diagonal(), row[2:], column.unsqueeze(0)


@report(SHARED, lambda: ((b := wave(8)), b[2:6]), 198095)
def a_view_made_of_a_slice_before_the_write(b: Tensor, s: Tensor) -> Any:
    v = s.view(2, 2)
    b.fill_(3)
    return v, v.t() + 1


@report(SHARED, lambda: ((b := wave(8)), b[2:6]), 198095, gradients=True)
def slices_with_gradients(b: Tensor, s: Tensor) -> Any:
    b = b * 1
    b[:2].mul_(s[:2])
    return b.view(2, 4)[1], s[1:]


@report(SHARED, lambda: ((b := torch.arange(8)), b.view(torch.int32)[3:9]), 198095)
def bytes_of_an_argument_after_a_write(b: Tensor, i: Tensor) -> Any:
    b.add_(1)
    return i[1:], i + 1


@report(SHARED, lambda: ((b := torch.complex(wave(4), wave(4, phase=2))), b.real, b.imag[1:]))
def parts_of_a_complex_argument(z: Tensor, real: Tensor, imag: Tensor) -> Any:
    real.mul_(2)
    z.add_(1)
    return imag[0:2], real.view(2, 2), z.conj()


@report(SHARED, lambda: ((b := wave(4, 4)), b.detach()))
def a_detached_twin(b: Tensor, d: Tensor) -> Any:
    d.mul_(2)
    return b[1:], d.t(), b.view(16)


@report(SHARED, lambda: ((b := wave(4)), b.expand(3, -1)[1:]))
def an_expanded_twin_is_returned(b: Tensor, e: Tensor) -> Any:
    b.add_(1)
    return e[0], e.sum(0)


@report(SHARED, lambda: ((b := wave(4, 5)), b[::2, 1::2]))
def steps_of_an_argument(b: Tensor, s: Tensor) -> Any:
    b.neg_()
    return s[1], s.flatten()


@report(SHARED, lambda: [((b := count(n, 3)), b[1:]) for n in (4, 6, 5)], 198095, dynamic=True)
def rows_of_symbolic_many(b: Tensor, rows: Tensor) -> Any:
    b.add_(rows.shape[0])
    return rows[0], rows.view(-1)


class FillsAndCounts(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(2.0))
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))

    def forward(self, x: Tensor) -> Tensor:
        self.scale.data.fill_(0.5)
        self.calls += 1
        return torch.pow(x + 0, 1)


THREE = lambda: [(wave(4, phase=k),) for k in range(3)]  # noqa: E731


@report(DATA, THREE, 197738, build=True)
def a_parameter_filled_through_data_and_a_counter() -> nn.Module:
    return FillsAndCounts()


class Data(nn.Module):
    def __init__(self, body: Any) -> None:
        super().__init__()
        self.weight = nn.Parameter(wave(4))
        self.register_buffer("seen", torch.zeros(4))
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))
        self.body = body

    def forward(self, x: Tensor) -> Any:
        return self.body(self, x)


def module(body: Any) -> Any:
    def build() -> nn.Module:
        return Data(body)

    build.__name__ = body.__name__
    return build


def _clamped(self: Any, x: Tensor) -> Any:
    self.weight.data.clamp_(-0.5, 0.5)
    self.calls.add_(1)
    return x * self.weight


def _data_replaced(self: Any, x: Tensor) -> Any:
    self.weight.data = x * 2
    self.calls += 1
    return self.weight + 1


def _data_of_input(self: Any, x: Tensor) -> Any:
    x.data.mul_(2)
    self.seen.add_(x.detach())
    return x + 1, self.seen * 2


def _copied_without_gradients(self: Any, x: Tensor) -> Any:
    with torch.no_grad():
        self.weight.copy_(x)
        self.calls += 1
    return self.weight * x


def _data_written_and_returned(self: Any, x: Tensor) -> Any:
    d = self.weight.data
    d[1:].add_(1)
    self.calls += 1
    return d, x


def _only_the_counter(self: Any, x: Tensor) -> Any:
    self.weight.data[0] = 9.0
    self.calls += 1
    return self.calls


def _views_of_data(self: Any, x: Tensor) -> Any:
    self.weight.data.view(2, 2).t()[0].zero_()
    self.seen += self.weight.detach()
    self.calls += 1
    return x.sin(), x[1:]


def _data_of_an_intermediate(self: Any, x: Tensor) -> Any:
    y = x * self.weight
    y.data.add_(1)
    self.calls += 1
    return y.sin()


for _body in (
    _clamped,
    _data_replaced,
    _data_of_input,
    _copied_without_gradients,
    _data_written_and_returned,
    _only_the_counter,
    _views_of_data,
    _data_of_an_intermediate,
):
    _body.__name__ = f"data{_body.__name__}" if "data" not in _body.__name__ else _body.__name__[1:]
    report(DATA, THREE, 197738, build=True)(module(_body))
    _trained = module(_body)
    _trained.__name__ = f"{_body.__name__}_with_gradients"
    report(DATA, THREE, 197738, build=True, gradients=True)(_trained)
