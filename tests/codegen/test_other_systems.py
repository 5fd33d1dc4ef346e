"""Generated C++ for other systems: Windows (wine), the flags of clang-cl, arm64 macOS.

`ziglang` has Clang with the headers and libraries of each.
"""

from __future__ import annotations

import os
import shlex
import shutil
import struct
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

import inductor_lab as lab
from inductor_lab.compiler.runtime.toolchain.compiler_flags import FAMILIES
from inductor_lab.compiler.runtime.toolchain.find_compiler import Toolchain

pytest.importorskip("ziglang", reason="to run it: pip install 'inductor-lab[compiler]'")

ZIG = (sys.executable, "-m", "ziglang")
HERE = {"-march=native", "-mprefer-vector-width=512"}
"""Flags that refer to the CPU on which the compiler runs."""
WINE = next(filter(None, (shutil.which(name, path=f"{os.environ['PATH']}:/usr/lib/wine")
                          for name in ("wine64", "wine"))), None)  # fmt: skip
CALL = """
#include <windows.h>
#include <stdio.h>
#include <stdlib.h>
/* call.exe LIBRARY KERNEL BYTES OUT IN: writes to OUT what KERNEL makes of the bytes in IN. */
int main(int count, char **words) {
    int (*kernel)(void *, void *);
    *(FARPROC *)&kernel = GetProcAddress(LoadLibraryA(words[1]), words[2]);
    if (!kernel) return 2;
    size_t bytes = atol(words[3]);
    void *in = calloc(1, bytes), *out = calloc(1, bytes);
    FILE *file = fopen(words[5], "rb");
    fread(in, 1, bytes, file);
    fclose(file);
    int status = kernel(in, out);
    file = fopen(words[4], "wb");
    fwrite(out, 1, bytes, file);
    fclose(file);
    return status;
}
"""


def attend(x: torch.Tensor) -> torch.Tensor:
    y = torch.nn.functional.layer_norm(x, (67,))
    return torch.softmax(torch.nn.functional.gelu(y) + x.sin(), -1) * x.tanh().exp()


@pytest.fixture(scope="module")
def unit() -> tuple[str, str, torch.Tensor, torch.Tensor]:
    """One kernel: its text with all headers, its name, its input and the eager result."""
    x = torch.randn(33, 67)
    c = lab.inspect(attend, x)
    (kernel,) = c.graphs[0].forward.kernels
    library: Any = c.graphs[0].forward.executable.library
    text = library.path.with_name("kernel.cpp").read_text()
    assert kernel.name in text
    return text, kernel.name, x, attend(x)


def zig(folder: Path, *words: str) -> None:
    done = subprocess.run([*ZIG, *words], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def built(folder: Path, text: str, target: Sequence[str], family: str, library: str) -> Path:
    """A library for another system; our kernels use only headers of the C++ library."""
    (folder / "kernel.cpp").write_text(text)
    flags = [flag for flag in FAMILIES[family].flags("DEFAULT", joined=False)
             if flag not in {*HERE, "-shared"}]  # fmt: skip
    zig(folder, "c++", *target, *flags, "-c", "kernel.cpp", "-o", "kernel.o")
    zig(folder, "c++", *target, "-shared", "-nostdlib++", "kernel.o", "-o", library)
    return folder / library


@pytest.mark.skipif(WINE is None, reason="no wine; to run it: Debian's package wine64")
def test_a_windows_library_agrees_with_eager_mode(unit, tmp_path: Path) -> None:
    text, name, x, expected = unit
    target = ("-target", "x86_64-windows-gnu", "-march=x86_64_v3")
    library = built(tmp_path, text, target, "zig", "kernel.dll")
    (tmp_path / "call.cpp").write_text(CALL)
    zig(tmp_path, "c++", *target, "-nostdlib++", "call.cpp", "-o", "call.exe")
    (tmp_path / "in").write_bytes(x.numpy().tobytes())
    env = {**os.environ, "WINEPREFIX": str(tmp_path / "wine"), "WINEDEBUG": "-all"}
    command = [str(WINE), "call.exe", library.name, name, str(4 * x.numel()), "out", "in"]
    subprocess.run(command, cwd=tmp_path, env=env, check=True, capture_output=True)
    found = torch.frombuffer(bytearray((tmp_path / "out").read_bytes()), dtype=torch.float32)
    torch.testing.assert_close(found.view_as(x), expected)


def test_an_arm64_mac_library_compiles(unit, tmp_path: Path) -> None:
    """A 64-bit arm64 library that exports the kernel and needs no threading runtime."""
    text, name, *_ = unit
    target = ("-target", "aarch64-macos", "-mcpu=apple_m1")
    held = built(tmp_path, text, target, "apple-clang", "kernel.dylib").read_bytes()
    magic, cpu, _, kind = struct.unpack("<4I", held[:16])
    assert (magic, cpu, kind) == (0xFEEDFACF, 0x0100000C, 6)
    assert f"_{name}".encode() in held and b"libomp" not in held


@pytest.mark.parametrize("capability, cpu", [("AVX2", "haswell"), ("AVX512", "skylake-avx512"),
                                             ("DEFAULT", "x86-64")])  # fmt: skip
def test_clang_cl_accepts_every_flag(tmp_path: Path, capability, cpu) -> None:
    (tmp_path / "k.cpp").write_text("int f() { return 1; }")
    made = Toolchain(("clang-cl",), FAMILIES["clang-cl"], "", None)
    flags = made.family.flags(capability, joined=False)
    command = [*ZIG, "clang", "--driver-mode=cl", "-###", "-Werror=unknown-argument",
               "-Werror=unused-command-line-argument", *flags,
               *made.command_for(Path("k.cpp"), Path("k.dll"))[-2:]]  # fmt: skip
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "error:" not in done.stderr, done.stderr
    compiles, links = (shlex.split(line) for line in done.stderr.splitlines()[-2:])
    assert compiles[compiles.index("-target-cpu") + 1] == cpu
    assert {"-O3", "-ffp-contract=off", "-fopenmp", "-std=c++17"} <= set(compiles)
    assert {"-dll", "-out:k.dll"} <= set(links)
