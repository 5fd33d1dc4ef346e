"""Honest candidates: the same reference in Python, Triton and C++."""

PYTHON = """
import torch

def candidate(x):
    scaled = 2 * x
    top = scaled.amax(-1, keepdim=True)
    e = torch.exp(scaled - top)
    return e / e.sum(-1, keepdim=True)
"""

TRITON = """
import torch
import triton
import triton.language as tl

@triton.jit
def rows(x, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < columns
    value = 2 * tl.load(x + row * columns + at, mask=inside, other=float("-inf"))
    e = tl.exp(value - tl.max(value, 0))
    tl.store(out + row * columns + at, e / tl.sum(e, 0), mask=inside)

def candidate(x):
    if x.dim() != 2 or not x.is_contiguous() or x.dtype is not torch.float32:
        raise ValueError("float32 matrices in contiguous memory")
    out = torch.empty_like(x)
    if x.numel():
        rows[(x.shape[0],)](x, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return out
"""

TRITON_WITHOUT_A_MASK = TRITON.replace(', mask=inside, other=float("-inf")', "")

CPP = """
#include <cmath>
#include <cstdint>
#include <limits>

extern "C" void candidate(const float* x, float* out, const int64_t* sizes) {
    for (int64_t row = 0; row < sizes[0]; row++) {
        const float* in = x + row * sizes[1];
        float top = -std::numeric_limits<float>::infinity(), sum = 0;
        for (int64_t j = 0; j < sizes[1]; j++)
            top = in[j] > top || std::isnan(in[j]) ? in[j] : top;
        for (int64_t j = 0; j < sizes[1]; j++) sum += std::exp(2 * (in[j] - top));
        for (int64_t j = 0; j < sizes[1]; j++)
            out[row * sizes[1] + j] = std::exp(2 * (in[j] - top)) / sum;
    }
}
"""

OURS = """
import inductor_lab as lab
import torch

@lab.compile(dynamic=True)
def candidate(x):
    return torch.softmax(2 * x, -1)
"""
