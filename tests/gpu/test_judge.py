"""The judge on a GPU: a Triton candidate, wrong kernels, and streams without synchronisation.

    python -m pytest -q tests/gpu/test_judge.py
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from inductor_lab.bench.machine import machine
from inductor_lab.bench.roofs import Ceilings
from inductor_lab.compiler.base.errors import NotRunnable
from inductor_lab.debug.judge.judge import NOT_CONFINED, Judge
from inductor_lab.debug.untrusted.confine import confinable
from tests.gpu.judged_times import HEAD as TABLE
from tests.gpu.judged_times import KERNELS, Row, row
from tests.judge import candidates, exploits, more_exploits
from tests.judge.exploits import HEAD
from tests.judge.staged import KNOWS_PREPARED_CALLS

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU"),
]
CHEATS = {
    "a_stream_without_synchronisation": """
def candidate(x):
    out = torch.zeros_like(x)
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        torch.cuda._sleep(200_000_000)
        out.copy_(right(x))
    return out
""",
    "patches_the_synchronisation": """
torch.cuda.synchronize = lambda *args, **kwargs: None
torch.cuda.Event.synchronize = lambda self: None
stream = torch.cuda.Stream()
def candidate(x):
    out = torch.empty_like(x)
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        torch.cuda._sleep(200_000_000)
        torch.softmax(2 * x, -1, out=out)
    return out
""",
    "a_result_in_main_memory": "def candidate(x):\n    return right(x.cpu())\n",
    **exploits.WRONG,
    **more_exploits.WRONG,
}
IF_TIMED = """
import sys
served = sys.modules["inductor_lab.debug.judge.serve_candidate"]
def timed():
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_name == "timed_calls":
            return True
        frame = frame.f_back
    return False
"""
FAST = {
    "the_result_of_the_call_before": """
last = []
def candidate(x):
    found = last[0] if timed() and last and last[0].shape == x.shape else right(x)
    last[:] = [right(x)]
    return found
""",
    "a_cache_by_address": """
known = {}
def candidate(x):
    if not timed():
        return right(x)
    return known.setdefault(x.data_ptr() % (1 << 12), right(x)).clone()
""",
    "a_cache_by_shape": """
known = {}
def candidate(x):
    return known.setdefault(x.shape, right(x)).clone() if timed() else right(x)
""",
    "a_stream_that_is_not_synchronised": """
served._SHARED.memory._synchronize = lambda: None
stream = torch.cuda.Stream()
def candidate(x):
    if not timed():
        return right(x)
    out = torch.zeros_like(x)
    with torch.cuda.stream(stream):
        torch.cuda._sleep(100_000_000)
        out.copy_(right(x))
    return out
""",
    "an_answer_before_it_has_computed": """
import threading, time
real = served.timed_calls
def later(function, request):
    def work():
        time.sleep(0.01)
        real(function, request)
    threading.Thread(target=work).start()
    answer = [(dtype, tuple(shape)) for shape, dtype in request["results"]]
    return [answer for _ in served._SHARED.prepared]
served.timed_calls = later
def candidate(x):
    return right(x)
""",
    "results_before_the_inputs_are_there": KNOWS_PREPARED_CALLS,
    "kernels_that_slow_the_reference": """
served._SHARED.memory._synchronize = lambda: None
stream = torch.cuda.Stream()
started = []
def candidate(x):
    if timed() and not started:
        started.append(1)
        with torch.cuda.stream(stream):
            for _ in range(20):
                torch.cuda._sleep(2_000_000_000)
    return right(x)
""",
}
"""Right while they are compared."""
TF32 = """
import torch
def candidate(x, y):
    torch.backends.cuda.matmul.allow_tf32 = True
    return x @ y
"""


def reference(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(2 * x, -1)


def product(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return x @ y


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    """Skips if CUDA does not start in a confined process: then no test here can judge."""
    with Judge() as made:
        try:
            made.judge(reference, HEAD + "candidate = right\n", [(example(),)], seconds=None)
        except NotRunnable as refused:
            pytest.skip(str(refused))
        yield made


def example() -> torch.Tensor:
    return torch.randn(33, 40, device="cuda")


@pytest.fixture(scope="module")
def rows(judge: Judge) -> dict[str, Row]:
    """The kernels of the table, judged and timed."""
    found = {name: row(judge, name) for name in KERNELS}
    print("\n".join(["", TABLE, *map(str, found.values()),
                     *(one.verdict for one in found.values())]))  # fmt: skip
    return found


def test_a_timed_triton_candidate_has_a_time_and_an_interval(rows: dict[str, Row]) -> None:
    found = rows["Triton softmax, 1024 x 1024"]
    assert 0 < found.low <= found.judged <= found.high and found.cold > 0


def test_a_timed_candidate_that_works_twice_takes_twice_as_long(rows: dict[str, Row]) -> None:
    once, twice = rows["product, 1024"], rows["product twice, 1024"]
    assert 1.6 < twice.judged / once.judged < 2.5, f"{once}\n{twice}"


def test_the_timed_seconds_are_those_of_cuda_events(rows: dict[str, Row]) -> None:
    """For short kernels, whose launch takes as long, those of the interval."""
    for name, one in rows.items():
        low, high = (one.judged,) * 2 if "product" in name else (one.low, one.high)
        assert high > one.plain / 1.5 and low < 1.5 * one.plain, str(one)


def test_timed_candidates_that_are_the_reference_are_as_fast(rows: dict[str, Row]) -> None:
    """Or the verdict says that the times are too noisy."""
    for name in ("product, 1024", "x + 1, 1 M"):
        low, high = rows[name].speedup
        assert low < 1.1 and high > 0.9, str(rows[name])


def test_a_timed_call_faster_than_memory_is_rejected(judge: Judge) -> None:
    known = judge.roofs.get("cuda")
    judge.roofs["cuda"] = Ceilings(machine("cuda"), ((1 << 20, 1e3),), {"float32": 1e13})
    try:
        found = judge.judge(reference, candidates.TRITON, [(example(),)], seconds=0.1)
    finally:
        judge.roofs.pop("cuda")
        if known is not None:
            judge.roofs["cuda"] = known
    assert "faster than this machine can move the bytes" in found.reasons[0]


@pytest.mark.parametrize("name", [*FAST, *exploits.FAST, *more_exploits.FAST])
def test_a_timed_cheat_is_rejected(judge: Judge, name: str) -> None:
    """In one of the timed calls, so all cases are right."""
    text = IF_TIMED + FAST[name] if name in FAST else {**exploits.FAST, **more_exploits.FAST}[name]
    found = judge.judge(reference, HEAD + text, [(example(),)], seconds=0.2)
    print(found)
    assert not found.accepted, f"{name} was accepted\n{found}"
    assert all(each.result != "wrong" for each in found.checked), str(found)


def test_without_cuda_in_a_confined_process_the_candidate_is_refused() -> None:
    """Never accepted or rejected without having run."""
    with Judge() as judge:
        try:
            found = judge.judge(reference, HEAD + "candidate = right\n", [(example(),)],
                                seconds=None)  # fmt: skip
        except NotRunnable as refused:
            assert "cannot use the GPU" in str(refused) and "on the CPU" in str(refused)
        else:
            assert found.accepted, str(found)


def test_cuda_starts_in_a_confined_process(judge: Judge) -> None:
    found = judge.judge(reference, HEAD + "candidate = right\n", [(example(),)], seconds=None)
    assert found.accepted, str(found)
    assert (NOT_CONFINED in found.notes) is not bool(confinable())


def test_a_triton_candidate_is_accepted(judge: Judge) -> None:
    found = judge.judge(reference, candidates.TRITON, [(example(),)], seconds=None)
    assert found.accepted, str(found)
    assert sum(each.result == "right" for each in found.checked) > 5, str(found)


def test_a_missing_mask_is_found(judge: Judge) -> None:
    found = judge.judge(reference, candidates.TRITON_WITHOUT_A_MASK, [(example(),)], seconds=None)
    assert not found.accepted


@pytest.mark.parametrize("name", CHEATS)
def test_a_cheat_is_rejected(judge: Judge, name: str) -> None:
    limit = 30.0 if name == "never_ends" else 120.0
    found = judge.judge(reference, HEAD + CHEATS[name], [(example(),)], seconds=None, limit=limit)
    assert not found.accepted, f"{name} was accepted\n{found}"


def test_a_product_in_tf32_is_rejected(judge: Judge) -> None:
    args = torch.randn(64, 256, device="cuda"), torch.randn(256, 48, device="cuda")
    plain = "def candidate(x, y):\n    return x @ y\n"
    assert judge.judge(product, plain, [args], seconds=None).accepted
    assert not judge.judge(product, TF32, [args], seconds=None).accepted


def test_gradients_on_a_gpu(judge: Judge) -> None:
    found = judge.judge(reference, HEAD + "candidate = right\n", [(example(),)], gradients=True,
                        seconds=None)  # fmt: skip
    assert found.accepted, str(found)
