"""Flags of C++ compilers: one table per family, as data."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Family:
    """Compilers that take the same flags.

    compile     flags of every build
    openmp      flags that switch `#pragma omp` on
    no_openmp   flags instead of those where no OpenMP runtime can be linked
    output      how the name of the result is given; `{}` stands for the path
    joins       our libraries may use the OpenMP runtime that torch has loaded (see `openmp.py`)
    alone       it has an OpenMP runtime of its own where torch's cannot be used
    by_cpu      flags for what torch calls the CPU's capability, where there is no -march=native
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
        """All flags but the names of files.

        capability   as `torch.backends.cpu.get_cpu_capability()` has it: "AVX2", "AVX512", ...
        joined       torch's OpenMP runtime was found and is linked against
        """
        threads = self.openmp if joined or self.alone else ()
        return (*self.compile, *self.by_cpu.get(capability, ()), *(threads or self.no_openmp))


# Full registers: GCC and Clang stop at half of AVX-512 for the sake of old Xeons' clock rates.
_WIDE = platform.machine().lower() in ("x86_64", "amd64")
# Results must not depend on what the optimizer can prove: a*b+c is not contracted, sums are not
# reordered, integers wrap.  What eager does not promise either (errno, traps) is given up for
# vector code.
_GNU = (
    "-std=c++17", "-O3", "-funroll-loops", "-march=native",
    *(("-mprefer-vector-width=512",) if _WIDE else ()), "-fPIC", "-shared", "-fno-math-errno",
    "-fno-trapping-math", "-ffp-contract=off", "-fwrapv", "-Wno-unknown-pragmas", "-Wno-psabi",
)  # fmt: skip
_GCC = (
    # It gives up on vectors where a load depends on a condition (a window's edge), so it is to copy
    # the loop for both answers, be it as long as nine loads and their maximum are.
    "--param", "max-unswitch-insns=300",
    # GCC 12 may unroll a loop around one of vectors for ever, where that reads across rows; and
    # where it comes to an end, what it makes is slower.
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
        # with the registers of AVX2 come a*b+c in one rounding, which clang would take
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
    """The family of a compiler, from how it was called and what it says about itself.

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
