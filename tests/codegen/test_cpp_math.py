"""The functions of the `lab_*.h` headers compared with float64: the largest error in ULP."""

from __future__ import annotations

import ctypes
import platform
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from inductor_lab.compiler.codegen.cpp.cpp_ops import CPP_OPS
from inductor_lab.compiler.codegen.cpp.header import header_lines
from inductor_lab.compiler.runtime.toolchain.find_compiler import find_toolchain

ACCURACY = Path(__file__).parents[2] / "docs" / "accuracy.md"
TABLE = re.findall(
    r"^\| `(\w+)` \| ([\d.]+) \| ?([\d.]*) \|$", ACCURACY.read_text(), re.MULTILINE
)
LIMITS = {name: float(worst) for name, worst, _ in TABLE}
"""The documented limits: a change that makes a function less accurate must be intentional."""
LIMITS_OF_DOUBLES = {name: float(worst) for name, _, worst in TABLE if worst}
"""The same for float64, for functions that do not call the C library."""
BINARY = ("pow", "atan2", "hypot", "fmod", "remainder")
EXACT = set(
    """ceil floor trunc round copysign isnan isinf signbit fma minimum maximum floordiv truncdiv abs
    shift_left shift_right sign relu square convert bitcast
    philox_uniform philox_normal philox_bits""".split()
)
"""Operations that are exact, or that have no exact result to compare with."""
WORST_ULP = {name: worst for name, worst in LIMITS.items() if name not in BINARY}
SPECIAL = [0.0, -0.0, float("inf"), -float("inf"), float("nan"), 1e-40, -1e-40, 1.0, -1.0, 3e38]

Call = Callable[..., torch.Tensor]


@pytest.fixture(scope="module")
def call(tmp_path_factory: pytest.TempPathFactory) -> Call:
    """`call("exp", x)`: a vector loop over the function."""
    kernels = [_loop(name, 1, "float") for name in WORST_ULP]
    kernels += [_loop(name, 2, "float") for name in BINARY]
    kernels += [_loop(name, 1 + (name in BINARY), "double") for name in LIMITS_OF_DOUBLES]
    kernels.append(
        'extern "C" LAB_EXPORT void halves(const uint16_t* x, float* y, uint16_t* z, int64_t n) {'
        "for (int64_t i = 0; i < n; i++) { y[i] = lab_half_to_float((lab_half)x[i]);"
        "z[i] = (uint16_t)lab_float_to_half(y[i]); } }"
    )
    kernels.append(
        'extern "C" LAB_EXPORT void rounded(const float* x, float* h, float* b, int64_t n) {'
        "for (int64_t i = 0; i < n; i++) { h[i] = lab_rounded<lab_half>(x[i]);"
        "b[i] = lab_rounded<lab_bfloat16>(x[i]); } }"
    )
    kernels.append(
        'extern "C" LAB_EXPORT void narrow(const float* x, uint16_t* h, uint16_t* b, int64_t n) {'
        "for (int64_t i = 0; i < n; i++) { h[i] = (uint16_t)lab_float_to_half(x[i]);"
        "b[i] = (uint16_t)lab_float_to_bfloat16(x[i]); } }"
    )
    folder = tmp_path_factory.mktemp("math")
    source, library = folder / "math.cpp", folder / "math.so"
    source.write_text("\n".join([*header_lines(kernels), *kernels]))
    find_toolchain().compile(source, library)
    return _caller(library)


def _loop(name: str, arity: int, ctype: str) -> str:
    operands = [f"x{k}[i]" for k in range(arity)]
    text = CPP_OPS[name].format(*operands, A=ctype, T=ctype)
    inputs = "".join(f"const {ctype}* x{k}, " for k in range(arity))
    return (
        f'extern "C" LAB_EXPORT void {name}_{ctype}({inputs}{ctype}* y, int64_t n) {{\n'
        f"#pragma omp simd\nfor (int64_t i = 0; i < n; i++) y[i] = {text}; }}"
    )


def _caller(library: Path) -> Call:
    handle = ctypes.CDLL(str(library))

    def call(name: str, *tensors: torch.Tensor) -> torch.Tensor:
        pointers = [ctypes.c_void_p(t.data_ptr()) for t in tensors]
        if name in ("halves", "narrow", "rounded"):
            getattr(handle, name)(*pointers, ctypes.c_int64(tensors[0].numel()))
            return tensors[-1]
        kind = "float" if tensors[0].dtype is torch.float32 else "double"
        result = torch.empty_like(tensors[0])
        address = ctypes.c_void_p(result.data_ptr())
        count = ctypes.c_int64(result.numel())
        getattr(handle, f"{name}_{kind}")(*pointers, address, count)
        return result

    return call


def all_exponents(count: int) -> torch.Tensor:
    """Floats with random bits, positive and negative, and many of typical size."""
    generator = torch.Generator().manual_seed(0)
    bits = torch.randint(0, 0x7F800000, (count,), generator=generator).int()
    wild = bits.view(torch.float32)
    tame = torch.randn(count, generator=generator) * 3
    return torch.cat([wild, -wild, tame, torch.rand(count, generator=generator) * 2 - 1])


def errors_in_ulp(got: torch.Tensor, exact: torch.Tensor) -> torch.Tensor:
    """The error in ULP of a float at `exact`."""
    exponent = torch.frexp(exact.abs()).exponent.clamp(min=-125)
    unit = torch.ldexp(torch.ones_like(exact), exponent - 24)
    rounded = exact.float()
    same = (got == rounded) | (got.isnan() & exact.isnan())
    error = (got.double() - exact).abs() / unit
    return torch.where(same & ~rounded.isfinite(), 0.0, error)


def test_the_table_lists_every_function_with_a_small_error() -> None:
    ours = {name for name, text in CPP_OPS.items() if "lab_" in text} - EXACT
    assert set(LIMITS) == ours
    assert max(LIMITS.values()) <= 2.5
    assert max(LIMITS["exp"], LIMITS["log"]) <= 1.0


@pytest.mark.parametrize("name", WORST_ULP)
def test_accuracy(name: str, call: Call) -> None:
    x = all_exponents(200_000)
    if name == "digamma":
        x = x[600_000:].abs() + 0.01
    exact = getattr(torch, name)(x.double())
    error = errors_in_ulp(call(name, x), exact)
    worst = int(error.argmax())
    assert error[worst] <= WORST_ULP[name], f"at {x[worst].item()!r}"


@pytest.mark.parametrize("name", [n for n in WORST_ULP if n != "digamma"])
def test_special_values(name: str, call: Call) -> None:
    x = torch.tensor(SPECIAL)
    got, expected = call(name, x), getattr(torch, name)(x)
    smallest = 2.0**-149  # where a float has so few digits, it may be off by the last one
    torch.testing.assert_close(got, expected, equal_nan=True, rtol=1e-6, atol=smallest)
    number = ~expected.isnan()
    assert torch.equal(torch.signbit(got)[number], torch.signbit(expected)[number])


@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_one_huge_angle_among_others(name: str, call: Call) -> None:
    """In every lane of a full and of a partial vector register."""
    for count in (1, 4, 8, 16, 47):
        for place in range(count):
            x = torch.linspace(-9, 9, count)
            x[place] = 3e38
            exact = getattr(torch, name)(x.double())
            assert errors_in_ulp(call(name, x), exact).max() <= WORST_ULP[name]


@pytest.mark.parametrize("text", [
    "x[i] > 0 ? lab_sin<float>(x[i]) : x[i]",
    "lab_exp<float>(x[i]) * lab_tan<float>(x[i])",
    "lab_sin<float>(x[i]) * lab_cos<float>(x[i])",
    "lab_lgamma<float>(x[i])",
    "lab_remainder<int32_t>((int32_t)x[i], (int32_t)y[i])",
    "lab_floordiv<uint8_t>((uint8_t)x[i], (uint8_t)y[i])",
])  # fmt: skip
def test_the_loop_is_vectorized(text: str, tmp_path: Path) -> None:
    tools = find_toolchain()
    if tools.family.name != "gcc" or platform.machine() != "x86_64":
        pytest.skip("only GCC for x86-64 calls vector versions of ours")
    loop = "#pragma omp simd\nfor (int64_t i = 0; i < n; i++) y[i] ="
    kernel = f"void f(const float* x, float* y, int64_t n) {{\n{loop} {text}; }}"
    source = tmp_path / "f.cpp"
    lines = "\n".join([*header_lines([kernel]), kernel]).splitlines()
    source.write_text("\n".join(lines))
    about = subprocess.run([*tools.command, *tools.flags, "-dM", "-E", "-x", "c++", "/dev/null"],
                           check=True, capture_output=True, text=True).stdout  # fmt: skip
    if "lgamma" in text and "__AVX512DQ__" not in about:
        pytest.skip("its logarithms of doubles convert integers of 64 bits, which AVX2 cannot")
    command = [*tools.command, *tools.flags, "-fopt-info-vec", "-c", source, "-o", tmp_path / "f.o"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert f"f.cpp:{len(lines)}:" in done.stderr, "the compiler reported nothing for the loop"


def test_pow(call: Call) -> None:
    special = torch.tensor([*SPECIAL, 2.0, -2.0, 0.5, 3.0, -3.0, 2.5, 16777217.0, 33554432.0])
    base, power = (t.flatten() for t in torch.meshgrid(special, special, indexing="ij"))
    generator = torch.Generator().manual_seed(1)
    base = torch.cat([base, torch.rand(100_000, generator=generator) * 9])
    power = torch.cat([power, torch.randn(100_000, generator=generator) * 12])
    got, exact = call("pow", base, power), torch.pow(base.double(), power.double())
    assert errors_in_ulp(got, exact).max() <= LIMITS["pow"]
    number = ~exact.isnan()
    assert torch.equal(torch.signbit(got)[number], torch.signbit(exact)[number])


@pytest.mark.parametrize("name", ["atan2", "hypot", "fmod", "remainder"])
def test_two_operands(name: str, call: Call) -> None:
    special = torch.tensor([*SPECIAL, 2.0, -2.5, 7.0, 1e-45, 3.4e38, 0.1])
    first, second = (t.flatten() for t in torch.meshgrid(special, special, indexing="ij"))
    wild = all_exponents(50_000)
    generator = torch.Generator().manual_seed(2)
    first = torch.cat([first, wild])
    second = torch.cat([second, wild[torch.randperm(len(wild), generator=generator)]])
    # In double, because eager fmod of floats fails for a subnormal divisor.
    got, exact = call(name, first, second), getattr(torch, name)(first.double(), second.double())
    assert errors_in_ulp(got, exact).max() <= LIMITS[name]
    torch.testing.assert_close(got[:256], exact[:256].float(), equal_nan=True, rtol=1e-6, atol=0)
    number = ~exact.isnan()
    assert torch.equal(torch.signbit(got)[number], torch.signbit(exact)[number])


def test_every_half_survives_the_conversion_to_float_and_back(call: Call) -> None:
    halves = torch.arange(1 << 16, dtype=torch.int32).to(torch.int16).view(torch.float16)
    floats, back = torch.empty(1 << 16), torch.empty_like(halves)
    call("halves", halves, floats, back)
    torch.testing.assert_close(floats, halves.float(), equal_nan=True, rtol=0, atol=0)
    number = ~halves.isnan()
    assert torch.equal(back[number].view(torch.int16), halves[number].view(torch.int16))
    assert back[~number].isnan().all()


def test_rounding_to_sixteen_bits_agrees_with_torch(call: Call) -> None:
    halves = torch.arange(1 << 16, dtype=torch.int32).to(torch.int16).view(torch.float16).float()
    between = torch.cat([halves + step for step in (2.0**-25, 3 * 2.0**-25)])
    between = torch.cat([between, halves * (1 + 2.0**-11), halves * (1 + 3 * 2.0**-12)])
    largest = torch.tensor([65504.0, 65519.0, 65520.0, 65521.0, 65536.0])
    x = torch.cat([all_exponents(200_000), torch.tensor(SPECIAL), between, largest, -largest])
    half, brain = (torch.empty_like(x, dtype=d) for d in (torch.float16, torch.bfloat16))
    call("narrow", x, half, brain)
    torch.testing.assert_close(half, x.half(), equal_nan=True, rtol=0, atol=0)
    torch.testing.assert_close(brain, x.bfloat16(), equal_nan=True, rtol=0, atol=0)
    floats = torch.empty_like(x), torch.empty_like(x)
    call("rounded", x, *floats)
    for got, exact in zip(floats, (x.half().float(), x.bfloat16().float()), strict=True):
        torch.testing.assert_close(got, exact, equal_nan=True, rtol=0, atol=0)
        number = ~exact.isnan()
        assert torch.equal(torch.signbit(got)[number], torch.signbit(exact)[number])
