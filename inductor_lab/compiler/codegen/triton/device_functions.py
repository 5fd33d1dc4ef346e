# ruff: noqa: ANN001, ANN201, ANN202
# mypy: ignore-errors
"""Small Triton functions that our kernels call as `lab.…`.

They provide what `triton.language` does not have: row reductions in which NaN wins, integer
division as in Python, and random numbers that do not depend on the Triton release.  The functions
have no annotations, because Triton reads an annotation as a request to compile.

The functions call only builtins of `tl` and functions of this file, never a `@triton.jit` function
of Triton (`tl.sum`, `tl.rand`).  When Triton is imported, it decides for the whole process whether
its own functions are compiled or interpreted.  `codegen/triton/function.py` copies this file for
each of the two uses.

Inductor: `runtime/triton_helpers.py`.
"""

import triton
import triton.language as tl
from triton.language.extra import libdevice

# ---- comparisons in which NaN wins ---------------------------------------------------------------


@triton.jit
def maximum(a, b):
    """Return the larger; NaN if either is NaN."""
    return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def minimum(a, b):
    """Return the smaller; NaN if either is NaN."""
    return tl.minimum(a, b, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def relu(a):
    """Return the larger of `a` and 0, in the dtype of `a`; NaN stays NaN."""
    return maximum(a, tl.full([], 0, a.dtype))


@triton.jit
def _beats(a, b, further):
    """Does `a` win over `b`?  NaN beats all; otherwise `a` wins if it is `further` up or down."""
    return further | ((a != a) & (b == b))


@triton.jit
def _ties(a, b):
    return (a == b) | ((a != a) & (b != b))


@triton.jit
def later_max(value_a, at_a, value_b, at_b):
    """Return the larger (value, position) pair; NaN beats all, the lower position breaks ties."""
    first = _ties(value_a, value_b) & (at_a <= at_b)
    keep_a = _beats(value_a, value_b, value_a > value_b) | first
    return tl.where(keep_a, value_a, value_b), tl.where(keep_a, at_a, at_b)


@triton.jit
def later_min(value_a, at_a, value_b, at_b):
    """Return the smaller (value, position) pair; NaN beats all, the lower position breaks ties."""
    first = _ties(value_a, value_b) & (at_a <= at_b)
    keep_a = _beats(value_a, value_b, value_a < value_b) | first
    return tl.where(keep_a, value_a, value_b), tl.where(keep_a, at_a, at_b)


@triton.jit
def next_max(value_a, at_a, value_b, at_b):
    """Return the larger (value, position) pair, where `b` comes after `a`; NaN beats all."""
    take_b = _beats(value_b, value_a, value_b > value_a)
    return tl.where(take_b, value_b, value_a), tl.where(take_b, at_b, at_a)


@triton.jit
def next_min(value_a, at_a, value_b, at_b):
    """Return the smaller (value, position) pair, where `b` comes after `a`; NaN beats all."""
    take_b = _beats(value_b, value_a, value_b < value_a)
    return tl.where(take_b, value_b, value_a), tl.where(take_b, at_b, at_a)


@triton.jit
def latest_max(value_a, at_a, value_b, at_b):
    """Return the larger (value, position) pair; NaN beats all, the later position breaks ties."""
    last = _ties(value_a, value_b) & (at_b >= at_a)
    keep_b = _beats(value_b, value_a, value_b > value_a) | last
    return tl.where(keep_b, value_b, value_a), tl.where(keep_b, at_b, at_a)


@triton.jit
def latest_min(value_a, at_a, value_b, at_b):
    """Return the smaller (value, position) pair; NaN beats all, the later position breaks ties."""
    last = _ties(value_a, value_b) & (at_b >= at_a)
    keep_b = _beats(value_b, value_a, value_b < value_a) | last
    return tl.where(keep_b, value_b, value_a), tl.where(keep_b, at_b, at_a)


@triton.jit
def logaddexp(a, b):
    """log(exp(a) + exp(b)) without overflow; NaN if either is NaN."""
    low, high = minimum(a, b), maximum(a, b)
    return high + libdevice.log1p(tl.exp(tl.where(low == high, 0.0, low - high)))


# ---- reductions of the rows of a block: [XBLOCK, RBLOCK] → [XBLOCK, 1] ---------------------------


@triton.jit
def _add(a, b):
    return a + b


@triton.jit
def _multiply(a, b):
    return a * b


@triton.jit
def _or(a, b):
    return a | b


@triton.jit
def _and(a, b):
    return a & b


@triton.jit
def row_sum(block):
    """Sum of each row, in the dtype of the block."""
    return tl.reduce(block, 1, _add, keep_dims=True)


@triton.jit
def _add_pairs(a, b, c, d):
    return a + c, b + d


@triton.jit
def row_sums(block, other):
    """Sums of the rows of two blocks: threads exchange their sums once for both."""
    return tl.reduce((block, other), 1, _add_pairs, keep_dims=True)


@triton.jit
def row_prod(block):
    """Product of each row, in the dtype of the block."""
    return tl.reduce(block, 1, _multiply, keep_dims=True)


@triton.jit
def row_max(block):
    """Largest element of each row; NaN wins."""
    return tl.reduce(block, 1, maximum, keep_dims=True)


@triton.jit
def row_min(block):
    """Smallest element of each row; NaN wins."""
    return tl.reduce(block, 1, minimum, keep_dims=True)


@triton.jit
def row_any(block):
    """Is any element of each row true?  (int1)."""
    return tl.reduce(block.to(tl.int32), 1, _or, keep_dims=True) != 0


@triton.jit
def row_all(block):
    """Are all elements of each row true?  (int1)."""
    return tl.reduce(block.to(tl.int32), 1, _and, keep_dims=True) != 0


@triton.jit
def row_argmax(block, at):
    """Position (from `at`) of the first largest element of each row; NaN wins."""
    _, found = tl.reduce((block, at), 1, later_max, keep_dims=True)
    return found.to(tl.int64)


@triton.jit
def row_argmin(block, at):
    """Position (from `at`) of the first smallest element of each row; NaN wins."""
    _, found = tl.reduce((block, at), 1, later_min, keep_dims=True)
    return found.to(tl.int64)


@triton.jit
def publish_part(value, place, part):
    """Store the result of one program of a shared row, [1, 1].

    A word at `place` has a float32 in its lower half, and a 1 in its upper half once it is written.
    Initially, `place` holds zeros.
    """
    word = (value.to(tl.int32, bitcast=True).to(tl.int64) & 0xFFFFFFFF) | (1 << 32)
    own = place + part + tl.full([1, 1], 0, tl.int32)
    tl.atomic_xchg(own, word, sem="relaxed")


@triton.jit
def published_parts(place, parts, lanes, neutral):
    """Wait for the results of all programs that share a row, and return them, [1, lanes].

    `lanes` is at most a warp: each warp waits for all the words.
    """
    lane = tl.arange(0, lanes)[None, :]
    there = lane < parts
    waiting = tl.full([1, lanes], 1, tl.int64) << 32
    words = tl.load(place + lane, there, waiting, volatile=True)
    while tl.reduce((words >> 32).to(tl.int32), None, _and) == 0:
        words = tl.load(place + lane, there, waiting, volatile=True)
    return tl.where(there, words.to(tl.int32).to(tl.float32, bitcast=True), neutral)


@triton.jit
def of_all_parts(value, place, part, parts, lanes, neutral):
    """Publish the result of a program, and return those of all programs of the row, [1, lanes]."""
    publish_part(value, place, part)
    return published_parts(place, parts, lanes, neutral)


# ---- scans of the rows of a block: the values, and the carry into the next block -----------------


@triton.jit
def scan_sum(block, before):
    """Running sum of each row, in the dtype of the block."""
    return before + tl.associative_scan(block, 1, _add), before + row_sum(block)


@triton.jit
def scan_prod(block, before):
    """Running product of each row, in the dtype of the block."""
    return before * tl.associative_scan(block, 1, _multiply), before * row_prod(block)


@triton.jit
def scan_max(block, before):
    """Running maximum; NaN wins."""
    found = tl.associative_scan(block, 1, maximum)
    return maximum(before, found), maximum(before, row_max(block))


@triton.jit
def scan_min(block, before):
    """Running minimum; NaN wins."""
    found = tl.associative_scan(block, 1, minimum)
    return minimum(before, found), minimum(before, row_min(block))


@triton.jit
def scan_any(block, before):
    """Was any element so far true?  (int1)."""
    found = tl.associative_scan(block.to(tl.int32), 1, _or) != 0
    return before | found, before | row_any(block)


@triton.jit
def scan_all(block, before):
    """Were all elements so far true?  (int1)."""
    found = tl.associative_scan(block.to(tl.int32), 1, _and) != 0
    return before & found, before & row_all(block)


@triton.jit
def scan_logsumexp(block, before):
    """Logarithm of the running sum of exponentials."""
    found = tl.associative_scan(block, 1, logaddexp)
    total = tl.reduce(block, 1, logaddexp, keep_dims=True)
    return logaddexp(before, found), logaddexp(before, total)


@triton.jit
def scan_argmax_last(block, at, best, before):
    """Position of the last largest element so far; NaN wins.  The carry is a value and a place."""
    values, places = tl.associative_scan((block, at), 1, latest_max)
    top, top_at = tl.reduce((block, at), 1, latest_max, keep_dims=True)
    _, found = latest_max(best, before, values, places)
    best, before = latest_max(best, before, top, top_at)
    return found, best, before


@triton.jit
def scan_argmin_last(block, at, best, before):
    """Position of the last smallest element so far; NaN wins.  The carry is a value and a place."""
    values, places = tl.associative_scan((block, at), 1, latest_min)
    top, top_at = tl.reduce((block, at), 1, latest_min, keep_dims=True)
    _, found = latest_min(best, before, values, places)
    best, before = latest_min(best, before, top, top_at)
    return found, best, before


# ---- arithmetic ----------------------------------------------------------------------------------


@triton.jit
def floordiv(a, b):
    """Integer division toward -inf (Triton's own `//` goes toward zero, as in C)."""
    quotient = a // b
    rest = a % b
    return tl.where((rest != 0) & ((rest < 0) != (b < 0)), quotient - 1, quotient)


@triton.jit
def modulo(a, b):
    """Integer remainder with the sign of `b` (Triton's own `%` has the sign of `a`, as in C)."""
    rest = a % b
    return tl.where((rest != 0) & ((rest < 0) != (b < 0)), rest + b, rest)


@triton.jit
def floordiv_float(a, b):
    """Floor of a / b, computed from the exact remainder as in torch; a / b where b is 0."""
    rest = libdevice.fmod(a, b)
    quotient = (a - rest) / b
    quotient = tl.where((rest != 0) & ((rest < 0) != (b < 0)), quotient - 1, quotient)
    whole = tl.floor(quotient)
    whole = tl.where(quotient - whole > 0.5, whole + 1, whole)
    whole = tl.where(quotient != 0, whole, libdevice.copysign(quotient * 0, a / b))
    return tl.where(b == 0, a / b, whole)


@triton.jit
def modulo_float(a, b):
    """Remainder of a / floor division, with the sign of `b`."""
    rest = libdevice.fmod(a, b)
    return tl.where((rest != 0) & ((rest < 0) != (b < 0)), rest + b, rest)


@triton.jit
def shift_left(a, b, BITS: tl.constexpr):
    """Left shift; 0 where `b` is negative or at least BITS, the width of the dtype."""
    inside = (b >= 0) & (b < BITS)
    return tl.where(inside, a << tl.where(inside, b, b * 0), a * 0)


@triton.jit
def shift_right(a, b, BITS: tl.constexpr):
    """Right shift; the sign alone (0 if there is none) where `b` is negative or at least BITS."""
    inside = (b >= 0) & (b < BITS)
    return tl.where(inside, a >> tl.where(inside, b, b * 0), tl.where(a < 0, ~(a * 0), a * 0))


@triton.jit
def sign(a):
    """-1, 0 or 1 in the dtype of `a`; 0 for NaN, and never -0."""
    return (a > 0).to(a.dtype) - (a < 0).to(a.dtype)


@triton.jit
def power(a, b):
    """Integer a ** b by repeated squaring; 1 / a**-b toward zero where b is negative."""
    result = a * 0 + 1
    factor = a
    left = b
    for _ in range(64):
        result = tl.where((left & 1) != 0, result * factor, result)
        factor = factor * factor
        left = left >> 1
    odd = (b & 1) != 0
    inverse = tl.where(a == 1, a, tl.where(a + 1 == 0, tl.where(odd, a, -a), a * 0))
    return tl.where(b < 0, inverse, result)


@triton.jit
def erf(x):
    """The error function.  The error for float32 is at most two units in the last place.

    For |x| < 1, a polynomial in the square of `x`.  Otherwise 1 - 2**q with a polynomial q of |x|.
    Both are fitted for the smallest relative error.  To compute both polynomials and select a value
    takes two thirds of the instructions of one polynomial with selected coefficients.
    """
    if x.dtype == tl.float64:
        result = libdevice.erf(x)
    else:
        square = x * x
        inner = 0.00491755061 - square * 0.0005631419
        inner = 0.112801801 + square * (-0.0267113106 + square * inner)
        inner = x * (0.128379122 + square * (-0.376123262 + square * inner)) + x
        size = tl.minimum(tl.abs(x), 4.0)
        outer = 0.0314584721 + size * (-0.00424096906 + size * 0.00026772798)
        outer = -1.62597513 + size * (-0.920764911 + size * (-0.148651597 + size * outer))
        outer = 1.0 - tl.exp2(-0.00051029409 + size * outer)
        result = tl.where(tl.abs(x) >= 1.0, tl.where(x < 0.0, -outer, outer), inner)
    return result


@triton.jit
def digamma(x):
    """Derivative of lgamma: reflection, recurrence up to 10, then the asymptotic series."""
    pi = 3.141592653589793
    reflected = x <= 0
    fraction = x - libdevice.trunc(x)  # has the sign of x; exact for a tiny x
    y = tl.where(reflected, 1 - x, x)
    total = tl.where(y == y, 0.0, y)
    for _ in range(10):
        small = y < 10
        total = tl.where(small, total - 1 / y, total)
        y = tl.where(small, y + 1, y)
    z = 1 / (y * y)
    tail = 0.003968253968253968 - z * (0.004166666666666667 - z * 0.007575757575757576)
    tail = z * (0.08333333333333333 - z * (0.008333333333333333 - z * tail))
    total = total + tl.log(y) - 0.5 / y - tail
    total = tl.where(reflected, total - pi / libdevice.tan(pi * fraction), total)
    total = tl.where(reflected & (fraction == 0), float("nan"), total)
    # Triton 3.6 compiles `-x` to 0 - x, which loses the sign of a zero, but not of an infinity
    return tl.where(x == 0, -libdevice.copysign(y * 0 + float("inf"), x), total)


# ---- memory --------------------------------------------------------------------------------------


@triton.jit
def near(program, rows, columns, BAND: tl.constexpr):
    """Return the row and column of the block that a program computes.  Programs visit BAND rows of
    blocks column by column, so that programs that run at the same time read the same data."""
    first = program // (BAND * columns) * BAND
    high = tl.minimum(rows - first, BAND)
    at = program % (BAND * columns)
    return first + at % high, at // high


@triton.jit
def check_index(index, size, mask):
    """Assert on the device that a loaded index is in range, as in eager mode."""
    tl.device_assert(((index >= 0) & (index < size)) | (mask == 0), "index out of range")


# ---- random numbers ------------------------------------------------------------------------------


@triton.jit
def philox(seed, offset):
    """Return the first two words of Philox4x32-10 with key `seed` and counter `offset`, as uint32.

    Salmon et al., Parallel random numbers: as easy as 1, 2, 3 (SC 2011).
    """
    seed = seed.to(tl.uint64)
    offset = offset.to(tl.uint64)
    key_0 = (seed & 0xFFFFFFFF).to(tl.uint32)
    key_1 = (seed >> 32).to(tl.uint32)
    word_0 = (offset & 0xFFFFFFFF).to(tl.uint32)
    word_1 = (offset >> 32).to(tl.uint32)
    word_2 = word_0 * 0
    word_3 = word_0 * 0
    for _ in tl.static_range(10):
        low = word_0.to(tl.uint64) * 0xD2511F53
        high = word_2.to(tl.uint64) * 0xCD9E8D57
        word_0 = (high >> 32).to(tl.uint32) ^ word_1 ^ key_0
        word_1 = (high & 0xFFFFFFFF).to(tl.uint32)
        word_2 = (low >> 32).to(tl.uint32) ^ word_3 ^ key_1
        word_3 = (low & 0xFFFFFFFF).to(tl.uint32)
        key_0 = (key_0.to(tl.uint64) + 0x9E3779B9).to(tl.uint32)
        key_1 = (key_1.to(tl.uint64) + 0xBB67AE85).to(tl.uint32)
    return word_0, word_1


@triton.jit
def uniform(word):
    """Convert a word to float32 in [0, 1): fold its sign, then scale it by almost 2**-31."""
    signed = word.to(tl.int32, bitcast=True)
    return tl.where(signed < 0, -signed - 1, signed).to(tl.float32) * 4.6566127342e-10


@triton.jit
def philox_uniform(seed, offset):
    """Return a float32 in [0, 1)."""
    word, _ = philox(seed, offset)
    return uniform(word)


@triton.jit
def philox_normal(seed, offset):
    """Return a normally distributed float32: the Box-Muller transform of two words."""
    first, second = philox(seed, offset)
    at_least = uniform(first) * 0 + 1.0e-7
    radius = tl.sqrt(-2.0 * tl.log(tl.maximum(uniform(first), at_least)))
    return radius * tl.cos(6.283185307179586 * uniform(second))


@triton.jit
def philox_bits(seed, offset):
    """Return the first word as an int64 in [0, 2**32)."""
    word, _ = philox(seed, offset)
    return word.to(tl.int64)
