"""float16 and bfloat16: rounded after every operation as in eager mode, or only when stored."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

import inductor_lab as lab
from inductor_lab.compiler.schedule.verify import verify_schedule

LOW = (torch.bfloat16, torch.float16)


def chain(x: torch.Tensor) -> torch.Tensor:
    return ((x * 1.1).sin() * 3.3).exp() / 7


def softmax(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x * 1.1, -1) * 3


def chosen(x: torch.Tensor) -> torch.Tensor:
    """A value that is used directly and as an operand of a sum."""
    y = x * 1.1
    return torch.where(y > 0.5, y, y.sin() * 3)


def parts(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Two nests of different sizes, so a combo kernel."""
    return chain(x), (x[:2] * 1.1).exp()


def differing(found: torch.Tensor, expected: torch.Tensor) -> float:
    """The fraction of elements that differ."""
    return (found != expected).float().mean().item()


def given(dtype: torch.dtype) -> torch.Tensor:
    return torch.linspace(-2, 2, 1024).reshape(16, 64).to(dtype)


@pytest.mark.parametrize("language", ["cpp", "triton"])
@pytest.mark.parametrize("dtype", LOW)
def test_the_default_rounds_as_in_eager_mode(dtype: torch.dtype, language: str) -> None:
    x = given(dtype)
    found = lab.inspect(chain, x, options={"language": language}).result
    assert differing(found, chain(x)) < 0.01
    assert differing(found, chain(x.double()).to(dtype)) > 0.1, "rounding makes a difference here"


@pytest.mark.parametrize("language", ["cpp", "triton"])
@pytest.mark.parametrize("dtype", LOW)
def test_precision_may_be_kept(dtype: torch.dtype, language: str) -> None:
    x = given(dtype)
    options = {"language": language, "emulate_precision_casts": False}
    found = lab.inspect(chain, x, options=options).result
    assert differing(found, chain(x.double()).to(dtype)) < 0.01


@pytest.mark.parametrize("function", [softmax, chosen, parts])
@pytest.mark.parametrize("dtype", LOW)
def test_every_stage_with_and_without_rounding(function, dtype: torch.dtype) -> None:
    """Every stage runs, and the unrounded result is nearer to the exact one than the rounded
    result."""
    x = given(dtype)
    compilation = lab.inspect(function, x, options={"emulate_precision_casts": False})
    (graph,) = compilation.graphs
    verify_schedule(graph.forward.schedule)
    exact = function(x.double())
    exact = exact if isinstance(exact, tuple) else (exact,)
    for stage in (graph.forward.schedule, graph.forward.executable):
        for result, ideal in zip(stage.run(x), exact, strict=True):
            assert result.dtype == dtype
            error = 2 * torch.finfo(dtype).eps
            torch.testing.assert_close(result.double(), ideal, rtol=error, atol=1e-3)


PAGE = Path(__file__).parents[2] / "docs" / "accuracy.md"
ROW = re.compile(
    r"^\| (bfloat16|float16) \| `(True|False)` \| ([\d.]+) \| ([\d.]+) \|$", re.MULTILINE
)
ROWS = ROW.findall(PAGE.read_text(encoding="utf-8"))


def worst_error(found: torch.Tensor, exact: torch.Tensor) -> float:
    """The largest error, in units in the last place (ULP) of the dtype."""
    unit = torch.exp2(exact.abs().log2().floor()) * torch.finfo(found.dtype).eps
    return ((found.double() - exact).abs() / unit).max().item()


def test_the_docs_list_every_setting() -> None:
    expected = {(d, s) for d in ("bfloat16", "float16") for s in ("True", "False")}
    assert {(dtype, setting) for dtype, setting, _, _ in ROWS} == expected


@pytest.mark.parametrize("language", ["cpp", "triton"])
@pytest.mark.parametrize(("name", "setting", "error", "share"), ROWS)
def test_figures_in_docs(name: str, setting: str, error: str, share: str, language: str) -> None:
    x = given(getattr(torch, name))
    rounds = setting == "True"
    options = {"language": language, "emulate_precision_casts": rounds}
    found = lab.inspect(chain, x, options=options).result
    worst, differ = worst_error(found, chain(x.double())), 100 * differing(found, chain(x))
    assert 0.8 * float(error) <= worst <= float(error)
    if rounds:
        assert differ <= float(share)
    else:
        assert 0.9 * float(share) <= differ <= float(share)


@pytest.mark.parametrize("rounds", [True, False])
def test_sums_are_rounded_once_in_both_settings(rounds: bool) -> None:
    x = torch.linspace(0.5, 1, 4096, dtype=torch.bfloat16).view(4, 1024)
    options = {"emulate_precision_casts": rounds}
    found = lab.inspect(lambda x: x.sum(1), x, options=options).result
    assert torch.equal(found, x.double().sum(1).bfloat16())


@pytest.mark.parametrize("rounds", [True, False])
def test_values_between_kernels_have_16_bits_in_both_settings(rounds: bool) -> None:
    """Fusion decides: without fusion, no value stays in float32."""
    x = given(torch.bfloat16)
    options = {"emulate_precision_casts": rounds, "fusion": False}
    assert differing(lab.inspect(chain, x, options=options).result, chain(x)) < 0.01


@pytest.mark.parametrize("function", [
    lambda x: x.var(-1),
    lambda x: x.std(0),
    lambda x: x.std(1, correction=0, keepdim=True),
    lambda x: torch.stack([x[0].var(), x[1].std()]),
])  # fmt: skip
@pytest.mark.parametrize("of", [
    lambda x: x + 1e6,  # the error of a float32 mean is half a ULP
    lambda x: x * 1e17,
    lambda x: torch.full_like(x, 1e30),  # the squared error of a rounded mean is infinite
])  # fmt: skip
def test_variances_on_a_cpu_are_summed_in_double(function, of) -> None:
    x = of(torch.arange(330.0).sin().view(10, 33))
    found, exact = lab.compile(function)(x), function(x.double()).float()
    torch.testing.assert_close(found, exact, rtol=1e-6, atol=0)


def test_a_deviation_whose_square_overflows() -> None:
    x = torch.arange(330.0).sin().view(10, 33) * 1e30
    torch.testing.assert_close(lab.compile(lambda x: x.std(-1))(x), x.std(-1), rtol=1e-6, atol=0)


@pytest.mark.parametrize("language", ["cpp", "triton"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_a_quotient_is_rounded_before_it_is_truncated(dtype: torch.dtype, language: str) -> None:
    """If the divisor is a tensor; not if it is a single number."""
    generator = torch.Generator().manual_seed(0)
    x = (torch.randn(5000, generator=generator) * 30).to(dtype)
    y = (torch.rand(5000, generator=generator) + 0.05).to(dtype)

    def function(x, y):
        ways = (y, y[:1], y[0], 0.3)
        return [torch.div(x, by, rounding_mode="trunc") for by in ways]

    compiled = lab.compile(function, options={"language": language})
    assert all(map(torch.equal, compiled(x, y), function(x, y)))


def rows(x: torch.Tensor) -> torch.Tensor:
    return F.layer_norm(x, x.shape[-1:])


NORMS = {
    "rows": rows,
    "rows of what is computed": lambda x: rows(x.sqrt() + x),
    "rows of what is returned": lambda x: (y := x.sqrt() + x, rows(y))[1],
    "rows of norms": lambda x: rows(rows(x) + x),
    "groups": lambda x: F.group_norm(x[None], 2),
    "a batch": lambda x: F.batch_norm(x.T[..., None], None, None, training=True),
    "channels": lambda x: F.instance_norm(x[None]),
    "variances": lambda x: torch.var_mean(x, -1)[0],
}


@pytest.mark.parametrize("language", ["cpp", "triton"])
@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("name", NORMS)
def test_norms_of_equal_numbers_are_zero(name: str, dynamic: bool, language: str) -> None:
    """A mean with an error of one bit of 54321.1 made them 0.98."""
    values = torch.tensor([0.7, 5.3, 54321.1, 1e6])
    compiled = lab.compile(NORMS[name], options={"language": language})
    for columns in (24, 1000):
        for value in values[2:] if language == "triton" else values:
            x = value.expand(4, columns).contiguous()
            if dynamic:
                torch._dynamo.mark_dynamic(x, 1)
            assert not compiled(x).count_nonzero(), (columns, float(value))


def test_moments_of_empty_tensors() -> None:
    """There is no first element."""
    x = torch.zeros(3, 0)
    for found, expected in zip(
        lab.compile(lambda x: torch.var_mean(x, -1))(x), torch.var_mean(x, -1), strict=True
    ):
        torch.testing.assert_close(found, expected, equal_nan=True)
