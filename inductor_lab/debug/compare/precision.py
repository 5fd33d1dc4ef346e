"""Rounding or an error?  Compare our values with those of eager mode, with float64 as reference.

The tolerance is not a constant, because it depends on the computation.  It is found in three steps:

1. The *unit* of an element is one ULP of its dtype, plus the change of the float64 result when
   every intermediate value is perturbed randomly by half a unit (Monte Carlo arithmetic: D. S.
   Parker, 1997).  This change is large where digits cancel.
2. The worst distance of eager mode from float64, in these units, measures the rounding error of the
   dtype and the algorithm.
3. Our value is wrong if its distance is several times larger.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import torch

from inductor_lab.saved.documents import tool_types
from inductor_lab.saved.documents.kinds import finite

Kind: TypeAlias = Literal[
    "equal", "rounding", "wrong", "NaN", "inf", "sign of zero", "shape", "dtype", "not written",
    "written",
]
FACTOR = 8.0
"""The allowed ratio of our distance from float64 to eager mode's distance, ..."""
LEAST_UNITS = 4.0
"""... where eager mode's distance counts as at least this many units."""
BITS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
"""An integer dtype for each number of bytes."""
CANCELLED = 1000.0
"""Digits have cancelled if intermediate rounding errors reach this many ULP of the result.

The difference of such an element is reported as a number: a 0 in float64 has no ULP of its own."""


@dataclass(frozen=True)
class Judged:
    """The verdict about one tensor.

    ulp, eager_ulp   worst distance from float64 in ULP (of elements that are finite everywhere and
                     whose digits have not cancelled)
    off, eager_off   worst absolute distance of elements whose digits have cancelled
    units            our worst distance in units that include the rounding error
    place            index of the worst element, where `got` and `expected` are read
    """

    kind: Kind
    ulp: float = 0.0
    eager_ulp: float = 0.0
    units: float = 0.0
    place: tuple[int, ...] = ()
    got: str = ""
    expected: str = ""
    wrong: int = 0
    total: int = 0
    off: float = 0.0
    eager_off: float = 0.0

    def as_data(self) -> tool_types.Judged:
        """What documents contain of it."""
        return tool_types.Judged(
            kind=self.kind, ulp=finite(self.ulp), eager_ulp=finite(self.eager_ulp),
            place=list(self.place), got=self.got, expected=self.expected, wrong=self.wrong,
            total=self.total,
        )  # fmt: skip

    @property
    def distance(self) -> str:
        """`2 ULP from float64, eager 3`; elements whose digits have cancelled are separate."""
        in_ulp = f"{self.ulp:.3g} ULP from float64, eager {self.eager_ulp:.3g}"
        if not (self.off or self.eager_off):
            return in_ulp
        cancelled = f"{self.off:.2g} from float64 where digits cancel, eager {self.eager_off:.2g}"
        return f"{in_ulp}; {cancelled}" if self.ulp or self.eager_ulp else cancelled

    @property
    def in_ulp(self) -> float | None:
        """`ulp`; None if only elements whose digits have cancelled differ."""
        return None if self.off and not self.ulp else self.ulp

    @property
    def right(self) -> bool:
        return self.kind in ("equal", "rounding")

    def __str__(self) -> str:
        if self.kind == "equal":
            return "equal"
        if self.kind == "rounding":
            return f"rounding: {self.distance}"
        if self.kind == "not written":
            return "not written, as eager mode does"
        if self.kind == "written":
            return "written, which eager mode does not do"
        if self.kind in ("shape", "dtype"):
            return f"{self.kind}: got {self.got}, expected {self.expected}"
        at = f"[{', '.join(map(str, self.place))}]"
        what = f"got {self.got}, expected {self.expected} at {at}"
        return f"{self.kind}: {what}, {self.wrong} of {self.total} elements"


def judge(
    got: torch.Tensor,
    peer: torch.Tensor,
    truth: torch.Tensor | None = None,
    spread: torch.Tensor | None = None,
) -> Judged:
    """Compare `got` with `peer` (from eager mode or an interpreter, in the same dtype).

    `truth` is the float64 result and `spread` its change under perturbation (see above).  Without
    them, `peer` is the reference.
    """
    if got.shape != peer.shape:
        return Judged("shape", got=str(tuple(got.shape)), expected=str(tuple(peer.shape)))
    if got.dtype != peer.dtype:
        return Judged("dtype", got=str(got.dtype), expected=str(peer.dtype))
    got, peer = _plain(got), _plain(peer)
    if got.dtype.is_complex:
        reference = None if truth is None else torch.view_as_real(_plain(truth).resolve_conj())
        spread = None if spread is None else spread.unsqueeze(-1)
        return judge(torch.view_as_real(got), torch.view_as_real(peer), reference, spread)
    if not got.dtype.is_floating_point:
        return _discrete(got, peer, truth, spread)
    if _same_bits(got, peer) and truth is None:
        return Judged("equal", total=got.numel())
    return _floats(got, peer, truth, spread)


def _plain(value: torch.Tensor) -> torch.Tensor:
    value = value.detach().resolve_conj().resolve_neg()
    return value.to_dense() if value.layout is not torch.strided else value.cpu()


def _same_bits(first: torch.Tensor, second: torch.Tensor) -> bool:
    kind = BITS[first.dtype.itemsize]
    return torch.equal(first.contiguous().view(kind), second.contiguous().view(kind))


def _discrete(
    got: torch.Tensor, peer: torch.Tensor, truth: torch.Tensor | None, spread: torch.Tensor | None
) -> Judged:
    """Integers and booleans must be equal, except where an earlier rounding decides them."""
    bad = got.ne(peer)
    undecided = torch.zeros_like(bad)
    if truth is not None and truth.shape == got.shape:
        truth = _plain(truth).to(got.dtype)
        undecided = truth.ne(peer)
        bad &= got.ne(truth)
    if spread is not None and spread.shape == got.shape:
        undecided |= _plain(spread).ne(0)
    if bool((bad & ~undecided).any()):
        return _at("wrong", bad & ~undecided, got, peer)
    return Judged("rounding" if bool(bad.any()) else "equal", total=got.numel())


def _floats(
    got: torch.Tensor, peer: torch.Tensor, truth: torch.Tensor | None, spread: torch.Tensor | None
) -> Judged:
    exact = peer.double() if truth is None else _plain(truth).double()
    rounded = exact.to(got.dtype)
    strange = got.isnan() & ~peer.isnan() & ~rounded.isnan()
    strange |= ~got.isnan() & peer.isnan() & rounded.isnan()
    if bool(strange.any()):
        return _at("NaN", strange, got, peer)
    strange = got.isinf() & ~peer.isinf() & ~rounded.isinf() & ~peer.isnan()
    strange |= ~got.isinf() & peer.isinf() & rounded.isinf() & ~got.isnan()
    strange |= got.isinf() & peer.isinf() & got.ne(peer)
    if bool(strange.any()):
        return _at("inf", strange, got, peer)
    signed = (got == 0) & (peer == 0) & (exact == 0) & (got.signbit() != peer.signbit())
    signed &= peer.signbit() == exact.signbit()
    finite = got.isfinite() & peer.isfinite() & exact.isfinite()
    size = ulp_of(exact, got.dtype)
    zero = torch.zeros_like(exact)
    off = torch.where(finite, (got.double() - exact).abs(), zero)
    eager_off = torch.where(finite, (peer.double() - exact).abs(), zero)
    reach = size if spread is None else size + _plain(spread).double().nan_to_num(posinf=0.0)
    units, eager_units = _worst(off / reach), _worst(eager_off / reach)
    cancelled = reach > CANCELLED * size
    ulp, eager_ulp = (_worst((x / size).masked_fill(cancelled, 0.0)) for x in (off, eager_off))
    limit = FACTOR * max(eager_units, LEAST_UNITS)
    if units > limit:
        bad = off / reach > limit
        return _at("wrong", bad, got, peer, off / reach, ulp, eager_ulp, units)
    if bool(signed.any()):
        return _at("sign of zero", signed, got, peer)
    kind: Kind = "equal" if _same_bits(got, peer) else "rounding"
    return Judged(
        kind, ulp, eager_ulp, units, total=got.numel(),
        off=_worst(off.where(cancelled, zero)), eager_off=_worst(eager_off.where(cancelled, zero)),
    )  # fmt: skip


def ulp_of(exact: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """The distance between adjacent numbers of `dtype` near `exact` (float64)."""
    info = torch.finfo(dtype)
    least = torch.tensor(info.tiny, dtype=torch.float64, device=exact.device)
    size = torch.maximum(exact.abs().nan_to_num(posinf=float(info.max)), least)
    _, exponent = torch.frexp(size)
    return torch.ldexp(torch.full_like(size, info.eps), exponent - 1)


def _worst(values: torch.Tensor) -> float:
    return float(values.max()) if values.numel() else 0.0


def _at(
    kind: Kind,
    bad: torch.Tensor,
    got: torch.Tensor,
    peer: torch.Tensor,
    size: torch.Tensor | None = None,
    ulp: float = 0.0,
    eager_ulp: float = 0.0,
    units: float = 0.0,
) -> Judged:
    """The verdict with its worst element, or the first of the marked elements."""
    flat = bad.to(torch.uint8).flatten() if size is None else size.masked_fill(~bad, 0).flatten()
    worst = int(flat.argmax())
    place = tuple(int(n) for n in torch.unravel_index(torch.tensor(worst), bad.shape))
    found, expected = (str(x.flatten()[worst].item()) for x in (got, peer))
    wrong, total = int(bad.sum()), bad.numel()
    return Judged(kind, ulp, eager_ulp, units, place, found, expected, wrong, total)
