"""Triton kernels on a GPU, compared with eager mode on the same GPU."""

from __future__ import annotations

import math
import subprocess
import sys
from typing import Any

import pytest
import torch
import torch.nn.functional as F

import inductor_lab as lab
from inductor_lab.compiler.base.options import Options
from tests.codegen.test_triton import CASES
from tests.codegen.triton_programs import InTriton
from tests.end_to_end.functions import CASES as FUNCTIONS
from tests.end_to_end.test_scans import CASES as SCANS
from tests.end_to_end.test_scatters import CASES as SCATTERS
from tests.end_to_end.test_scatters import LAST_STAYS
from tests.end_to_end.test_search import CASES as SEARCHES
from tests.lower.test_split_reductions import CASES as SPLIT

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU"),
]


def on_gpu(value: Any) -> Any:
    return value.cuda() if isinstance(value, torch.Tensor) else value


def agree(function: Any, *arguments: Any, dynamic: bool = False, **tolerance: float) -> InTriton:
    compiled = InTriton(Options())
    result = compiled(function, dynamic)(*arguments)
    expected = function(*arguments)
    torch.testing.assert_close(result, expected, equal_nan=True, **tolerance)
    assert compiled.kernels and all(k.language == "triton" for k in compiled.kernels)
    return compiled


@pytest.mark.parametrize("name", CASES)
def test_cases(name: str) -> None:
    torch.manual_seed(0)
    function, make = CASES[name]
    agree(function, *map(on_gpu, make()), rtol=2e-5, atol=2e-5)


LEFT_TO_ATEN = {"zero_dim"}


@pytest.mark.parametrize("name", sorted(SCATTERS.keys() - LAST_STAYS - LEFT_TO_ATEN))
def test_scatters(name: str) -> None:
    function, arguments = SCATTERS[name]
    half = any(a.dtype in (torch.float16, torch.bfloat16) for a in arguments)
    tolerance = 3e-2 if half else 2e-4
    agree(function, *map(on_gpu, arguments), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name: str) -> None:
    torch.manual_seed(0)
    function, make = FUNCTIONS[name]
    # a sum of bfloat16 is rounded only once, and has another order than in eager mode
    tolerance = 2e-2 if name == "bfloat16_math" else 2e-5
    agree(function, *map(on_gpu, make()), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("shape", [(4096, 1024), (1000, 5000), (64, 50_257), (3, 100_001)])
def test_rows_of_all_lengths(shape: tuple[int, int]) -> None:
    x = torch.randn(*shape, device="cuda")

    def rows(x):
        return torch.softmax(x, -1), F.layer_norm(x, x.shape[1:]), x.argmax(1), x.amax(1)

    agree(rows, x, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("shape", [(4096, 1024), (100_000, 33), (2048, 768)])
def test_columns(shape: tuple[int, int]) -> None:
    x = torch.randn(*shape, device="cuda")
    agree(lambda x: (x.amax(0), x.argmin(0)), x)
    (result,) = [InTriton(Options())(lambda x: x.sum(0))(x)]
    torch.testing.assert_close(result.double(), x.double().sum(0), rtol=1e-4, atol=1e-2)


@pytest.mark.parametrize("shape", [(4096, 4096), (1000, 3), (3, 33, 4097)])
def test_transposed(shape: tuple[int, ...]) -> None:
    x = torch.randn(*shape, device="cuda")
    y = torch.randn(*shape, device="cuda").transpose(-1, -2).contiguous()
    agree(lambda x, y: (x + y.transpose(-1, -2), x.transpose(-1, -2).contiguous()), x, y)


def test_ten_million_elements_in_one_pass() -> None:
    x = torch.randn(10_000_000, device="cuda")
    compiled = agree(lambda x: ((x + 1) * 2).sin(), x, rtol=1e-4, atol=1e-5)
    assert len(compiled.kernels) == 1


def test_a_full_reduction() -> None:
    x = torch.randn(1_000_003, device="cuda", dtype=torch.float64)
    agree(lambda x: (x.sum(), x.amax(), x.argmin(), (x > 3).any()), x)


def test_more_than_two_billion_elements() -> None:
    x = torch.zeros((1 << 31) + 1000, device="cuda", dtype=torch.uint8)
    x[-3:] = 7
    result = InTriton(Options())(lambda x: x + 1)(x)
    assert result[-4:].tolist() == [1, 8, 8, 8] and result[:3].tolist() == [1, 1, 1]


def test_symbolic_sizes() -> None:
    def several(x):
        return torch.softmax(x, -1), x.sin(), torch.cat([x, x.exp()]), x.amax(0)

    compiled = InTriton(Options())(several, dynamic=True)
    for shape in ((10, 20), (1000, 300), (33, 5000)):
        x = torch.randn(*shape, device="cuda")
        torch.testing.assert_close(compiled(x), several(x), rtol=1e-4, atol=1e-5)


def test_gradients() -> None:
    def network(x, w, b):
        return F.gelu(F.layer_norm(x, (512,), w, b)).softmax(-1)

    made = [torch.randn(s, device="cuda") for s in ((128, 512), (512,), (512,))]

    def gradients(function):
        leaves = [t.clone().requires_grad_() for t in made]
        return torch.autograd.grad((function(*leaves) * 512).pow(2).sum(), leaves)

    torch.testing.assert_close(
        gradients(InTriton(Options())(network)), gradients(network), rtol=1e-3, atol=1e-3
    )


def test_random_numbers_follow_the_seed() -> None:
    def noise(x):
        return torch.rand_like(x)

    torch.manual_seed(3)
    uniform = InTriton(Options())(noise)(torch.ones(1000, device="cuda"))
    assert 0.4 < uniform.mean() < 0.6 and uniform.min() >= 0 and uniform.max() < 1
    torch.manual_seed(3)
    again = InTriton(Options())(noise)(torch.ones(1000, device="cuda"))
    torch.testing.assert_close(again, uniform, rtol=0, atol=0)


def test_half_precision_large() -> None:
    x = torch.randn(512, 1024, device="cuda", dtype=torch.bfloat16)
    agree(lambda x: (F.gelu(x), x.softmax(-1), x.float().sum(1)), x, rtol=2e-2, atol=2e-3)


@pytest.mark.parametrize("name", SPLIT)
def test_reductions_in_two_steps(name: str) -> None:
    function, x, _ = SPLIT[name]
    found = InTriton(Options())(function)(x.cuda())
    against_the_cpu(found, function(x))


def test_the_sum_of_a_tensor_uses_many_programs() -> None:
    x = torch.randn(1 << 24, device="cuda")
    compiled = InTriton(Options())
    function = compiled(lambda x: (x * x).sum())
    first, second = function(x), function(x)
    parts, total = compiled.kernels
    assert parts.launch["xnumel"] >= 128 and total.launch["xnumel"] == 1
    assert torch.equal(first, second), "two runs of one sum differ"
    torch.testing.assert_close(first.double(), (x.double() ** 2).sum(), rtol=1e-6, atol=0)


@pytest.mark.parametrize("name", SCANS)
def test_scans(name: str) -> None:
    function, given, _ = SCANS[name]
    found = InTriton(Options())(function)(*(x.cuda() for x in given))
    against_the_cpu(found, function(*(x.clone() for x in given)))


@pytest.mark.parametrize("name", SEARCHES)
def test_searches(name: str) -> None:
    function, given = SEARCHES[name]
    found = InTriton(Options())(function)(*(x.cuda() for x in given))
    against_the_cpu(found, function(*given))


def against_the_cpu(found: Any, expected: Any) -> None:
    """Compare with eager mode on the CPU, which defines the positions of ties and of NaN."""
    found = found if isinstance(found, tuple | list) else (found,)
    expected = expected if isinstance(expected, tuple | list) else (expected,)
    for a, b in zip(found, expected, strict=True):
        wide = 1e-2 if b.dtype in (torch.float16, torch.bfloat16) else 1e-3
        torch.testing.assert_close(a.cpu(), b, rtol=wide, atol=wide, equal_nan=True)


OUT_OF_RANGE = """
import torch
import torch.nn.functional as F
import inductor_lab as lab

table = torch.randn(5, 3, device="cuda")
function = lab.compile(lambda i: F.embedding(i, table) * 2)
torch.testing.assert_close(function(torch.tensor([0, 4]).cuda()), table[[0, 4]] * 2)
function(torch.tensor([0, 5]).cuda())
try:
    torch.cuda.synchronize()
except RuntimeError as error:
    print("said:", error)
"""


def test_an_index_out_of_range_is_a_device_assertion_as_in_eager() -> None:
    """Runs in a separate process, because a process cannot use the GPU after an assertion."""
    command = [sys.executable, "-c", OUT_OF_RANGE]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert "said:" in done.stdout and "device-side assert" in done.stdout, done.stderr
    assert "index out of range" in done.stdout + done.stderr


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_signs_of_special_values(dtype: torch.dtype) -> None:
    x = torch.tensor([math.nan, -0.0, 0.0, math.inf, -math.inf, 3, -3], dtype=dtype, device="cuda")
    found = InTriton(Options())(lambda x: (x.sign(), x.digamma(), -x, 1 / -x))(x)
    torch.testing.assert_close(found, (x.sign(), x.digamma(), -x, 1 / -x), equal_nan=True)
    assert not found[0][:3].signbit().any() and found[2][2].signbit()


def test_negative_numbers_converted_to_uint8() -> None:
    x = torch.tensor([-1.0, -3.7, 255.9, 300.0], device="cuda")
    agree(lambda x: x.to(torch.uint8), x)
    shifts = torch.tensor([0, 7, 8, 9, 255], dtype=torch.uint8, device="cuda")
    agree(lambda n: torch.bitwise_right_shift(n | 128, n), shifts)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("how", ["", "causal", "masked"])
def test_library_attention(dtype: torch.dtype, training: bool, how: str) -> None:
    """Tests all libraries of attention, including unused results that they omit."""
    made = [torch.randn(2, 4, 64, 32, device="cuda", dtype=dtype) for _ in range(3)]
    mask = torch.zeros(2, 1, 64, 64, device="cuda", dtype=dtype)
    mask[0, :, :, 40:] = torch.finfo(dtype).min

    def attend(q, k, v):
        masked = mask.to(q.dtype) if how == "masked" else None
        result = F.scaled_dot_product_attention(q, k, v, masked, is_causal=how == "causal")
        return result.transpose(1, 2) * 2

    _as_near_as_eager(attend, made, training)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_attention_with_a_trained_unaligned_mask(dtype: torch.dtype) -> None:
    """As in T5: eager mode pads each row of the mask, because its kernel reads aligned words."""
    sizes = [(2, 4, 12, 8)] * 3 + [(1, 4, 12, 12)]
    made = [torch.randn(size, device="cuda", dtype=dtype) for size in sizes]

    def attend(q, k, v, mask):
        return F.scaled_dot_product_attention(q, k, v, mask * 2).sin()

    _as_near_as_eager(attend, made, True)


def _as_near_as_eager(function: Any, made: list[torch.Tensor], training: bool) -> None:
    found, eager = (_outcome(f, made, training) for f in (lab.compile(function), function))
    exact = _outcome(function, [t.double() for t in made], training)
    for ours, theirs, right in zip(found, eager, exact, strict=True):
        assert (ours - right).abs().max() <= 2 * (theirs - right).abs().max() + 1e-5


def _outcome(function: Any, made: list[torch.Tensor], training: bool) -> list[torch.Tensor]:
    leaves = [t.detach().clone().requires_grad_(training) for t in made]
    result = function(*leaves)
    if not training:
        return [result]
    return [result, *torch.autograd.grad(result.sum(), leaves)]


def test_cached_launches_handle_pointers_streams_and_sizes() -> None:
    compiled = InTriton(Options())(lambda x: x * 2 + 1, dynamic=True)
    room = torch.randn(5000, device="cuda")
    stream = torch.cuda.Stream()
    for start, size in ((0, 4000), (0, 4000), (1, 4000), (0, 999), (3, 999), (0, 4000)):
        x = room[start : start + size]
        torch.testing.assert_close(compiled(x), x * 2 + 1)
        with torch.cuda.stream(stream):
            torch.testing.assert_close(compiled(x), x * 2 + 1)
        torch.cuda.synchronize()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("groups", [1, 64])
def test_channels_last_images(dtype: torch.dtype, groups: int) -> None:
    """A convolutional network: the layout changes once, and results have eager's layouts."""
    net = torch.nn.Sequential(
        torch.nn.Conv2d(3, 64, 7, 2, 3), torch.nn.BatchNorm2d(64), torch.nn.ReLU(),
        torch.nn.MaxPool2d(3, 2, 1),
        torch.nn.Conv2d(64, 64, 3, padding=1, groups=groups, bias=False), torch.nn.BatchNorm2d(64),
        torch.nn.SiLU(), torch.nn.Conv2d(64, 32, 1), torch.nn.AvgPool2d(2),
    ).to("cuda", dtype).eval()  # fmt: skip
    x = torch.randn(8, 3, 128, 128, device="cuda", dtype=dtype)
    with torch.no_grad():
        c = lab.inspect(net, x)
        expected, exact = net(x), net.double()(x.double())
    rules = [fired.rule for fired in c.graphs[0].forward.rewrites.fired]
    assert rules.count("channels_last") == 3 and rules.count("unfused_bias") == 2
    assert c.result.stride() == expected.stride()
    room = 3 * (expected - exact).abs().max() + 1e-4 * exact.abs().max()
    assert (c.result - exact).abs().max() <= room
