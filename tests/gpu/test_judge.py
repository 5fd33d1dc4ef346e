"""The judge on a GPU: a Triton candidate, wrong kernels, and streams without synchronisation.

    python -m pytest -q tests/gpu/test_judge.py
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from inductor_lab.compiler.base.errors import NotRunnable
from inductor_lab.debug.judge.judge import NOT_CONFINED, Judge
from inductor_lab.debug.untrusted.confine import confinable
from tests.judge import candidates, exploits, more_exploits
from tests.judge.exploits import HEAD

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
