"""A handwritten softmax in CUDA C++, compiled by NVRTC if it is installed.

NVRTC is NVIDIA's compiler as a library (`pip install nvidia-cuda-nvrtc`, or part of torch for
CUDA); it needs no GPU.
"""

from __future__ import annotations

import ctypes
import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from inductor_lab.api.backend import compile
from inductor_lab.compiler.base.errors import CompileFailed, MissingPackage, NotRunnable
from inductor_lab.compiler.torch_door.torch_names import optional

SOFTMAX = """
// the largest value, or the sum, over all threads of a block
__device__ float over_block(float value, bool largest, float* part) {
    for (int step = 16; step > 0; step /= 2) {
        float other = __shfl_xor_sync(0xffffffffu, value, step);
        value = largest ? fmaxf(value, other) : value + other;
    }
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = value;
    __syncthreads();
    value = part[0];
    for (int warp = 1; warp < blockDim.x / 32; warp++)
        value = largest ? fmaxf(value, part[warp]) : value + part[warp];
    __syncthreads();
    return value;
}

// a block for each row; the row waits in shared memory
extern "C" __global__ void softmax_rows(const float* in, float* out, int columns) {
    extern __shared__ float row[];
    __shared__ float part[32];
    in += (long long)blockIdx.x * columns;
    out += (long long)blockIdx.x * columns;
    float top = __int_as_float(0xff800000);
    for (int j = threadIdx.x; j < columns; j += blockDim.x) {
        row[j] = in[j];
        top = fmaxf(top, row[j]);
    }
    top = over_block(top, true, part);
    float sum = 0;
    for (int j = threadIdx.x; j < columns; j += blockDim.x) {
        row[j] = expf(row[j] - top);
        sum += row[j];
    }
    sum = over_block(sum, false, part);
    for (int j = threadIdx.x; j < columns; j += blockDim.x) out[j] = row[j] / sum;
}
""".lstrip()

THREADS = 256
"""Of a block."""

RECORDED = (
    "NVIDIA H100 80GB HBM3",
    [("eager", 229.8e-6), ("ours", 242.5e-6), ("by hand", 251.1e-6), ("copy", 182e-6)],
)
"""Seconds of a softmax of (16384, 4096), for machines without a GPU: `python -m benchmarks.by_hand`
with torch 2.11 and Triton 3.6, 2026-11-23."""


def library() -> Path | None:
    """The path of NVRTC, if it is installed as a Python package; otherwise None."""
    found = importlib.util.find_spec("nvidia")
    folders = found.submodule_search_locations if found is not None else None
    for folder in map(Path, folders or ()):
        for pattern in ("**/libnvrtc.so*", "**/nvrtc64*.dll"):
            names = [path for path in folder.glob(pattern) if "alt" not in path.name]
            if names:
                return sorted(names)[0]
    return None


def ptx_of(source: str, architecture: str = "compute_90") -> str:
    """The PTX of CUDA C++.  Raises MissingPackage without NVRTC, CompileFailed with its message."""
    place = library()
    if place is None:
        raise MissingPackage("nvidia-cuda-nvrtc", extra=None)
    nvrtc = ctypes.CDLL(str(place))
    program = ctypes.c_void_p()
    nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"by_hand.cu", 0, None, None)
    try:
        options = (ctypes.c_char_p * 1)(f"--gpu-architecture={architecture}".encode())
        if nvrtc.nvrtcCompileProgram(program, 1, options):
            said = _text(nvrtc, program, "ProgramLog")
            raise CompileFailed("NVRTC refuses the CUDA kernel", todo=said.strip("\0\n"))
        return _text(nvrtc, program, "PTX").rstrip("\0")
    finally:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))


def timed(rows: int, columns: int) -> tuple[str, list[tuple[str, float]]]:
    """This machine's GPU, and the seconds of one softmax on it: eager, ours, handwritten, and a
    copy of as many bytes.  Raises RuntimeError without a GPU."""
    from triton.testing import do_bench

    x = torch.randn(rows, columns, device="cuda")
    out = torch.empty_like(x)
    ours = compile(lambda x: torch.softmax(x, -1))
    compile_kernel = optional("torch.cuda._compile_kernel")
    if compile_kernel is None:
        raise NotRunnable("this torch compiles no CUDA text", todo="pip install -U torch")
    kernel = compile_kernel(SOFTMAX, "softmax_rows")

    def by_hand() -> torch.Tensor:
        kernel((rows, 1, 1), (THREADS, 1, 1), [x, out, columns], shared_mem=4 * columns)
        return out

    ways: dict[str, Callable[[], Any]] = {
        "eager": lambda: torch.softmax(x, -1),
        "ours": lambda: ours(x),
        "by hand": by_hand,
        "copy": lambda: out.copy_(x),
    }
    for name in ("ours", "by hand"):
        torch.testing.assert_close(ways[name](), ways["eager"]())
    times = {name: do_bench(way, return_mode="median") for name, way in ways.items()}
    return torch.cuda.get_device_name(), [(name, float(ms) / 1e3) for name, ms in times.items()]


def _text(nvrtc: ctypes.CDLL, program: ctypes.c_void_p, what: str) -> str:
    size = ctypes.c_size_t()
    getattr(nvrtc, f"nvrtcGet{what}Size")(program, ctypes.byref(size))
    text = ctypes.create_string_buffer(size.value)
    getattr(nvrtc, f"nvrtcGet{what}")(program, text)
    return text.raw.decode()
