"""The flags of C++ compilers, as one table per family."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Family:
    """Compilers that take the same flags.

    compile     flags of every build
    openmp      flags that enable `#pragma omp`
    no_openmp   flags to use instead if no OpenMP runtime can be linked
    output      flags for the name of the result; `{}` is replaced by the path
    joins       libraries can use the OpenMP runtime that torch has loaded (see `openmp.py`)
    alone       the compiler has its own OpenMP runtime, for use if torch's cannot be used
    by_cpu      flags for each CPU capability of torch, for compilers without -march=native
    """

    name: str
    compile: tuple[str, ...]
    openmp: tuple[str, ...]
    no_openmp: tuple[str, ...]
    output: tuple[str, ...]
    joins: bool
    alone: bool = True
    by_cpu: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def flags(self, capability: str, joined: bool) -> tuple[str, ...]:
        """Return all flags except file names.

        capability   of `torch.backends.cpu.get_cpu_capability()`: "AVX2", "AVX512", ...
        joined       torch's OpenMP runtime was found and is linked
        """
        threads = self.openmp if joined or self.alone else ()
        return (*self.compile, *self.by_cpu.get(capability, ()), *(threads or self.no_openmp))


# By default, GCC and Clang use only half of an AVX-512 register, because of the clock rates of old
# Xeons.  Use full registers.
_WIDE = platform.machine().lower() in ("x86_64", "amd64")
# Results must not depend on the optimizer: a*b+c is not contracted, sums are not reordered, and
# integers wrap around.  errno and traps, which eager mode does not guarantee either, are turned
# off, because they prevent vectorization.
_GNU = (
    "-std=c++17", "-O3", "-funroll-loops", "-march=native",
    *(("-mprefer-vector-width=512",) if _WIDE else ()), "-fPIC", "-shared", "-fno-math-errno",
    "-fno-trapping-math", "-ffp-contract=off", "-fwrapv", "-Wno-unknown-pragmas", "-Wno-psabi",
)  # fmt: skip
_GCC = (
    # GCC does not vectorize a loop with a conditional load (at the edge of a pooling window) unless
    # it unswitches the loop.  The limit allows nine loads and their maximum.
    "--param", "max-unswitch-insns=300",
    # With this pass, GCC 12 can hang on a loop around a vectorized loop that reads across rows.  If
    # it does not hang, the code is slower.
    "-fno-loop-unroll-and-jam",
)  # fmt: skip
_MICROSOFT = ("/nologo", "/LD", "/std:c++17", "/O2", "/fp:precise", "/EHsc", "/utf-8")
_ARCH = {"AVX2": ("/arch:AVX2",), "AVX512": ("/arch:AVX512",)}
_SIMD_ONLY = ("-fopenmp-simd",)

FAMILIES: dict[str, Family] = {
    family.name: family
    for family in (
        Family("gcc", (*_GNU, *_GCC), ("-fopenmp",), _SIMD_ONLY, ("-o", "{}"), joins=True),
        Family("clang", _GNU, ("-fopenmp",), _SIMD_ONLY, ("-o", "{}"), joins=False),
        Family(
            "apple-clang",
            _GNU,
            ("-Xpreprocessor", "-fopenmp", "-undefined", "dynamic_lookup"),
            (),
            ("-o", "{}"),
            joins=True,
            alone=False,
        ),
        Family("icx", _GNU, ("-qopenmp",), _SIMD_ONLY, ("-o", "{}"), joins=False),
        Family("zig", _GNU, (), _SIMD_ONLY, ("-o", "{}"), joins=False),
        Family("msvc", _MICROSOFT, ("/openmp:experimental",), (), ("/Fe:{}",), joins=False,
               by_cpu=_ARCH),
        # /arch:AVX2 enables FMA, and clang would contract a*b+c
        Family("clang-cl", (*_MICROSOFT, "/clang:-ffp-contract=off"), ("/openmp",), (),
               ("/Fe:{}",), joins=False, by_cpu=_ARCH),
        Family("icx-cl", (*_MICROSOFT, "/Qfma-"), ("/Qopenmp",), (), ("/Fe:{}",), joins=False,
               by_cpu=_ARCH),
    )
}

POSIX_COMPILERS = ("c++", "g++", "clang++", "icpx")
WINDOWS_COMPILERS = ("cl", "clang-cl", "icx-cl")

WHAT_TO_INSTALL = {
    "linux": "install one: apt install g++, dnf install gcc-c++, or "
    "pip install 'inductor-lab[compiler]' (slower: one thread); or set CXX to a compiler",
    "darwin": "install Apple's: xcode-select --install; or set CXX to a compiler",
    "win32": 'install "Desktop development with C++" of Visual Studio Build Tools and start from '
    'its "x64 Native Tools" prompt, or pip install "inductor-lab[compiler]"; or set CXX to one',
}


def family_of(command: str, banner: str) -> str:
    """Return the family of a compiler, from its command and its version banner.

    >>> family_of("c++", "c++ (Debian) 12.2.0, (C) 2022 Free Software Foundation, Inc.")
    'gcc'
    """
    stem = command.replace("\\", "/").rsplit("/", 1)[-1].lower().removesuffix(".exe")
    if "zig" in command:
        return "zig"
    if stem in ("clang-cl", "icx-cl"):
        return stem
    marks = (
        ("Apple clang", "apple-clang"),
        ("Intel", "icx"),
        ("clang", "clang"),
        ("Free Software", "gcc"),
        ("Microsoft", "msvc"),
    )
    return next((family for mark, family in marks if mark in banner), "gcc")
