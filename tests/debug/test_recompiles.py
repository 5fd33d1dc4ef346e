"""What is compiled in a block: when, for how long, and which guard failed."""

from __future__ import annotations

import threading

import torch

import inductor_lab as lab


def shifted(x: torch.Tensor, scale: float) -> torch.Tensor:
    if x.shape[0] > 3:
        x = x + 1
    return x * scale


def test_every_compilation_has_its_time_and_its_guard() -> None:
    torch.compiler.reset()
    fast = lab.compile(shifted)
    with lab.recompiles() as seen:
        for size in (4, 4, 5, 6, 2):
            fast(torch.randn(size), 1.0)
        inside = len(seen.compiled)
        fast(torch.randn(9), 2.5)
    first, dynamic, small, other_scale = seen.compiled
    assert inside == 3
    assert [each.function for each in seen.compiled] == ["shifted"] * 4
    assert [each.again for each in seen.compiled] == [False, True, True, True]
    assert "expected 4, actual 5" in dynamic.reasons[0].reason
    assert "x.size()[0]" in str(small) and "if x.shape[0] > 3" in str(small)
    assert "scale" in other_scale.reasons[0].reason and other_scale.reasons[0].span is not None
    times = [each.when for each in seen.compiled]
    assert times == sorted(times) and times[0] >= 0
    assert 0 < sum(each.seconds for each in seen.compiled) <= seen.seconds
    assert repr(seen).startswith("4 compiled in ") and repr(seen).endswith("; 3 again")
    assert str(seen).count(" again: ") == 3
    fast(torch.randn(7), 7.0)
    assert len(seen.compiled) == 4, "the block is over"
    assert first.reasons == ()


def test_other_threads_and_backends_are_seen_and_hits_are_not() -> None:
    torch.compiler.reset()
    stock = torch.compile(lambda x: x + 1, backend="eager")
    with lab.recompiles() as seen:
        thread = threading.Thread(target=stock, args=(torch.ones(3),))
        thread.start()
        thread.join()
        stock(torch.ones(3))
    assert [each.function for each in seen.compiled] == ["<lambda>"]
    with lab.recompiles() as nothing:
        stock(torch.ones(3))
    assert nothing.compiled == () and str(nothing) == repr(nothing)
