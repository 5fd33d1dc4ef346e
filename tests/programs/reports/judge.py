"""Does a backend do what eager mode does?  In values, dtypes, sizes, arguments and gradients."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.utils._pytree import tree_leaves, tree_map

from tests.programs.reports.case import Report

BACKENDS = ("aot_eager", "inductor", "inductor_lab")
WIDER = {
    torch.float16: torch.float64,
    torch.bfloat16: torch.float64,
    torch.float32: torch.float64,
    torch.complex64: torch.complex128,
}
NEAR = {
    torch.float16: 2e-3,
    torch.bfloat16: 2e-2,
    torch.float32: 2e-5,
    torch.float64: 1e-10,
    torch.complex64: 2e-5,
    torch.complex128: 1e-10,
}


def outcome(case: Report, backend: str | None, wide: bool = False) -> list[Any]:
    """All that the calls of a program give and change, as copies; `wide`: in float64."""
    torch.compiler.reset()
    torch.manual_seed(0)
    function: Callable[..., Any] = case.callable()
    if wide and isinstance(function, torch.nn.Module):
        function = function.double()
    called = function
    if backend is not None:
        called = torch.compile(function, backend=backend, dynamic=case.dynamic)
    found: list[Any] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for args in case.calls():
            args = tree_map(_widened, args) if wide else args
            found += _one_call(case, called, args, tree_leaves(list(_state(function))))
    return found


def difference(
    found: Sequence[Any], eager: Sequence[Any], exact: Sequence[Any], case: Report
) -> str:
    """The first thing that differs from eager mode; "" if nothing does."""
    if len(found) != len(eager):
        return f"{len(found)} values instead of {len(eager)}"
    known = len(exact) == len(eager)
    for n, (mine, theirs) in enumerate(zip(found, eager, strict=True)):
        said = _differs(mine, theirs, exact[n] if known else None, case)
        if said:
            return f"value {n}: {said}"
    return ""


def verdict(case: Report, backend: str) -> str:
    """ "right", "refused" (both raise), or what is wrong."""
    eager, refusal = _tried(case, None)
    found, failure = _tried(case, backend)
    if refusal:
        return "refused" if failure else f"returns where eager raises {refusal}"
    if failure:
        return f"raises {failure}"
    exact, _ = _tried(case, None, wide=True)
    return difference(found, eager, exact, case) or "right"


def _tried(case: Report, backend: str | None, wide: bool = False) -> tuple[list[Any], str]:
    try:
        return outcome(case, backend, wide), ""
    except Exception as error:
        lines = str(error).strip().splitlines() or [""]
        return [], f"{type(error).__name__}: {lines[0]}"


def _one_call(case: Report, called: Any, args: tuple[Any, ...], state: list[Any]) -> list[Any]:
    leaves = [t for t in tree_leaves(args) if isinstance(t, torch.Tensor)]
    trained = []
    if case.gradients:
        roots = [t for t in leaves if t.is_leaf and (t.is_floating_point() or t.is_complex())]
        trained = [*(t.requires_grad_() for t in roots), *(t for t in state if t.requires_grad)]
        bases = {id(t): torch.zeros_like(t) for t in roots}
        args = tree_map(lambda t: t + bases[id(t)] if id(t) in bases else t, args)
        leaves = [t for t in tree_leaves(args) if isinstance(t, torch.Tensor)]
    results = tree_leaves(called(*args))
    found = [_kept(r) for r in (*results, *leaves, *state)]
    if case.gradients:
        total = sum(map(_weighted, (*results, *leaves)), torch.zeros(()))
        gradients = torch.autograd.grad(total, trained, allow_unused=True)
        found += [_kept(g) for g in gradients]
        found += [_kept(t.grad) for t in leaves if t.is_leaf]
    return found


def _state(function: Any) -> Any:
    if isinstance(function, torch.nn.Module):
        yield from function.parameters()
        yield from function.buffers()


def _weighted(value: Any) -> torch.Tensor:
    if not (isinstance(value, torch.Tensor) and value.requires_grad):
        return torch.zeros(())
    value = torch.view_as_real(value) if value.is_complex() else value
    weights = torch.arange(1.0, 1 + value.numel(), dtype=torch.float64).cos().view(value.shape)
    return (value * weights.to(value.dtype)).sum()


def _kept(value: Any) -> Any:
    """A copy, with facts that the copy would lose."""
    if not isinstance(value, torch.Tensor) or value.layout is not torch.strided:
        return value
    dense = value.detach()
    facts = {"requires_grad": value.requires_grad, "stride": value.stride()}
    return dense.clone(), facts


def _widened(value: Any) -> Any:
    if not isinstance(value, torch.Tensor) or value.dtype not in WIDER:
        return value
    whole = torch.empty(0, dtype=value.dtype).set_(value.detach().untyped_storage())
    wide = whole.to(WIDER[value.dtype])
    return wide.as_strided(value.shape, value.stride(), value.storage_offset())


def _differs(mine: Any, theirs: Any, exact: Any, case: Report) -> str:
    if not isinstance(theirs, tuple):
        same = type(mine) is type(theirs) and (mine == theirs or mine != mine)
        return "" if same else f"{mine!r} instead of {theirs!r}"
    if not isinstance(mine, tuple):
        return f"{mine!r} instead of a tensor"
    (a, facts), (b, expected) = mine, theirs
    for name in ("dtype", "shape"):
        if getattr(a, name) != getattr(b, name):
            return f"{name} {getattr(a, name)} instead of {getattr(b, name)}"
    if facts["requires_grad"] != expected["requires_grad"]:
        return f"requires_grad {facts['requires_grad']}"
    strides = [
        [s for s, n in zip(f["stride"], b.shape, strict=True) if n > 1 and b.numel()]
        for f in (facts, expected)
    ]
    if case.strides and strides[0] != strides[1]:
        return f"strides {strides[0]} instead of {strides[1]}"
    if b.dtype not in NEAR:
        return "" if torch.equal(a, b) else f"{a.flatten()[:4]} instead of {b.flatten()[:4]}"
    if case.zeros and not torch.equal(a.signbit(), b.signbit()):
        return "the sign of a zero"
    return _floats_differ(a, b, exact[0] if isinstance(exact, tuple) else None)


def _floats_differ(a: torch.Tensor, b: torch.Tensor, exact: torch.Tensor | None) -> str:
    """Float64 decides where ours is not near eager's: ours may be as far from it as eager's is."""
    near = NEAR[b.dtype]
    wide = WIDER.get(b.dtype, b.dtype)
    a, b = a.to(wide), b.to(wide)
    same = torch.isclose(a, b, rtol=near, atol=near * 0.1, equal_nan=True)
    if bool(same.all()):
        return ""
    if exact is not None and exact.shape == b.shape and exact.dtype == wide:
        slack = 2 * (b - exact).abs() + near * exact.abs()
        same |= (a - exact).abs() <= slack
    at = (~same).nonzero()[:1].flatten().tolist()
    return (
        ""
        if bool(same.all())
        else f"{a[tuple(at)].item()} at {at} instead of {b[tuple(at)].item()}"
    )
