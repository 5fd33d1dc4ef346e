"""Compilations in a block: their time, their duration, and the failed guard."""

from __future__ import annotations

import sys
import threading

import pytest
import torch

import inductor_lab as lab
from inductor_lab.debug.recompiles.reasons import in_words
from inductor_lab.debug.recompiles.watch_recompiles import Recompiles
from inductor_lab.widgets.recompiles import recompiles_html


def shifted(x: torch.Tensor, scale: float) -> torch.Tensor:
    if x.shape[0] > 3:
        x = x + 1
    return x * scale


def test_every_compilation_has_a_time_and_a_failed_guard() -> None:
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
    assert repr(seen).startswith("compiles: 4, ") and repr(seen).endswith("; recompiles: 3")
    assert str(seen).count(" again: ") == 3
    fast(torch.randn(7), 7.0)
    assert len(seen.compiled) == 4, "the block is over"
    assert first.reasons == ()


def test_compilations_of_other_threads_and_backends_are_recorded() -> None:
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


def printing(x: torch.Tensor, n: int) -> torch.Tensor:
    y = x + n
    print("", end="")  # a graph break
    return y.sin()


def served(seen: Recompiles) -> list[tuple[str, ...]]:
    return [call.served for call in seen.calls]


def test_each_call_records_the_code_that_it_ran_and_compiled() -> None:
    torch.compiler.reset()
    fast = lab.compile(shifted)
    with lab.recompiles() as seen:
        for size in (4, 4, 5, 6, 4, 2, 5):
            assert torch.equal(fast(torch.ones(size), 1.0), shifted(torch.ones(size), 1.0))
    names = [call.served for call in seen.calls]
    first, dynamic, small = (each.compile_id for each in seen.compiled)
    assert names == [(first,), (first,), (dynamic,), (dynamic,), (dynamic,), (small,), (dynamic,)]
    assert [call.number for call in seen.calls if call.compiled] == [1, 3, 6]
    assert seen.calls[2].compiled == (dynamic,)
    times = [call.when for call in seen.calls]
    assert times == sorted(times) and 0 <= times[0] and times[-1] <= seen.seconds
    assert str(seen).splitlines()[-5:] == [
        "7 calls", f"1 to 2: {first}", f"3 to 5: {dynamic}", f"6: {small}", f"7: {dynamic}",
    ]  # fmt: skip
    fast(torch.ones(4), 1.0)
    assert len(seen.calls) == 7, "the block is over"


def test_code_after_a_graph_break_belongs_to_the_same_call() -> None:
    torch.compiler.reset()
    fast = torch.compile(printing, backend="eager")
    with lab.recompiles() as seen:
        for size in (4, 4, 5):
            fast(torch.ones(size), 1)
    ids = [each.compile_id for each in seen.compiled]
    assert len(ids) == 4 and seen.compiled[1].function.startswith("torch_dynamo_resume_in_printing")
    assert served(seen) == [(ids[0], ids[1])] * 2 + [(ids[2], ids[3])]


def test_threads_have_separate_calls() -> None:
    torch.compiler.reset()
    fast = torch.compile(printing, backend="eager")
    with lab.recompiles() as seen:
        fast(torch.ones(4), 1)
        threads = [threading.Thread(target=fast, args=(torch.ones(4), 1)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    (both,) = set(served(seen))
    assert len(both) == 2 and len(seen.calls) == 5


def test_a_version_above_the_limit_is_refused() -> None:
    torch.compiler.reset()
    fast = torch.compile(lambda x: x + 1, backend="eager", dynamic=False)
    with torch._dynamo.config.patch(recompile_limit=2), lab.recompiles() as seen:
        for size in (2, 3, 4, 2, 3):
            fast(torch.ones(size))
    *made, refused = seen.compiled
    assert [each.refused for each in seen.compiled] == [False, False, True]
    assert refused.function == "<lambda>" and refused.again and "not compiled" in str(refused)
    assert repr(seen).startswith("compiles: 2, ") and repr(seen).endswith("; recompiles: 1")
    assert served(seen) == [(made[0].compile_id,), (made[1].compile_id,)] * 2
    assert seen.eager_calls == {"<lambda>": 1}


def test_calls_past_the_limit_are_counted() -> None:
    def scaled(x: torch.Tensor, n: int) -> torch.Tensor:
        return x * n

    torch.compiler.reset()
    fast = torch.compile(scaled, backend="eager", dynamic=False)
    profiled = sys.getprofile(), threading.getprofile()
    with torch._dynamo.config.patch(recompile_limit=2), lab.recompiles() as seen:
        for n in (2, 3, 4, 5, 2, 3, 5, 6):
            fast(torch.ones(3), n)
        fast(torch.ones(3), 7)
    fast(torch.ones(3), 8)
    assert seen.eager_calls == {"scaled": 5} and len(seen.calls) == 4
    assert "5 calls of scaled ran in eager mode" in str(seen)
    page = " ".join(recompiles_html(seen).split())
    assert "5 calls of scaled ran in eager mode" in page
    assert (sys.getprofile(), threading.getprofile()) == profiled


def test_other_hooks_see_the_code_that_torch_wrote() -> None:
    with lab.recompiles():
        inside = lab.inspect(shifted, torch.ones(4), 1.0)
    alone = lab.inspect(shifted, torch.ones(4), 1.0)
    codes = [len(c.capture.bytecode[0].rewritten.splitlines()) for c in (inside, alone)]
    assert codes[0] == codes[1]


def test_compilations_are_recorded_without_rewriting(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.compiler.reset()
    monkeypatch.setattr("inductor_lab.debug.recompiles.served.CAN_NOTE", False)
    with lab.recompiles() as seen:
        torch.compile(shifted, backend="eager")(torch.ones(4), 1.0)
    assert len(seen.compiled) == 1 and seen.calls == ()


def test_later_calls_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.compiler.reset()
    monkeypatch.setattr("inductor_lab.debug.recompiles.served.MOST_RUNS", 3)
    fast = torch.compile(shifted, backend="eager")
    with lab.recompiles() as seen:
        for _ in range(5):
            fast(torch.ones(4), 1.0)
    assert len(seen.calls) == 3 and seen.more_calls == 2 and "5 calls" in str(seen)


CHANGES = {
    "x has size 5 in dimension 0; the code was compiled for 4": lambda x: (torch.ones(5), 1.0),
    "x has dtype Double; the code was compiled for Float": lambda x: (x.double(), 1.0),
    "x has 2 dimensions; the code was compiled for 1": lambda x: (torch.ones(4, 4), 1.0),
    "x requires grad; the code was compiled for a tensor that does not":
        lambda x: (x.requires_grad_(), 1.0),
    "guard failed: scale == 1.0": lambda x: (x, 2.0),
}  # fmt: skip


@pytest.mark.parametrize("words", CHANGES)
def test_a_failed_guard_is_described_in_a_sentence(words: str) -> None:
    torch.compiler.reset()
    fast = torch.compile(shifted, backend="eager")
    with lab.recompiles() as seen:
        fast(torch.ones(4), 1.0)
        fast(*CHANGES[words](torch.ones(4)))
    assert [in_words(reason) for reason in seen.compiled[1].reasons] == [words]
