"""Finding a compiler, its flags, and its errors."""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path

import pytest
import torch

from inductor_lab.compiler.base.errors import CompileFailed, NoCompiler
from inductor_lab.compiler.codegen.kernel import Code, Line
from inductor_lab.compiler.runtime.toolchain import find_compiler, openmp, thread_team
from inductor_lab.compiler.runtime.toolchain.compiler_flags import FAMILIES, family_of
from inductor_lab.compiler.runtime.toolchain.find_compiler import Toolchain, find_toolchain
from inductor_lab.compiler.runtime.toolchain.shared_library import build_library
from tests.scripts import script

THREADS = """
#include <cstdint>
extern "C" int count_threads() {
    int threads = 0;
    #pragma omp parallel reduction(+ : threads)
    threads += 1;
    return threads;
}
"""


def code_of(text: str, **origins: str) -> Code:
    """Return text as generated code; a line with a keyword of `origins` comes from that node."""
    lines = []
    for line in text.splitlines():
        nodes = frozenset(node for word, node in origins.items() if word in line)
        lines.append(Line(line, nodes))
    return Code.of(lines)


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("INDUCTOR_LAB_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache" / "inductor_lab"


def test_cxx_comes_first(tmp_path: Path) -> None:
    fake = script(tmp_path / "my-compiler", 'echo "clang version 99.0"')
    found = find_toolchain({"CXX": f"{fake} -m64", "PATH": os.environ["PATH"]})
    assert found.command == (str(fake), "-m64")
    assert found.family.name == "clang"
    assert found.version == "clang version 99.0"


def test_cxx_can_be_relative(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script(tmp_path / "my-compiler", 'exec g++ "$@"')
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CXX", "./my-compiler")
    unit = Code.of([Line('extern "C" int f() { return 7; }')])
    assert build_library(unit, "f").handle.f() == 7


def test_the_text_of_a_compiler_script_is_part_of_the_key(tmp_path: Path) -> None:
    """A script can add flags, so its libraries are rebuilt when it changes."""
    wrapper, seen = tmp_path / "my-compiler", set()
    for flag in ("-O1", "-O2"):
        script(wrapper, f'case "$*" in *--version*) echo "g++ 1.0";; *) g++ {flag} "$@";; esac')
        seen.add(find_toolchain({"CXX": str(wrapper), "PATH": os.environ["PATH"]}).identity)
    assert len(seen) == 2


def test_the_first_compiler_on_path_is_used(tmp_path: Path) -> None:
    script(tmp_path / "g++", 'echo "g++ 1.0, Free Software Foundation"')
    found = find_toolchain({"PATH": str(tmp_path)})
    assert found.command == (str(tmp_path / "g++"),)
    script(tmp_path / "c++", 'echo "g++ 1.0, Free Software Foundation"')
    assert find_toolchain({"PATH": str(tmp_path)}).command == (str(tmp_path / "c++"),)


def test_no_compiler_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ziglang", None)  # as if it were not installed
    with pytest.raises(NoCompiler, match=r"no C\+\+ compiler.*\n.*install"):
        find_toolchain({"PATH": str(tmp_path)})
    with pytest.raises(NoCompiler, match="CXX=nowhere"):
        find_toolchain({"PATH": str(tmp_path), "CXX": "nowhere"})


def test_cl_without_its_set_up_is_reported_before_the_first_compile(tmp_path: Path) -> None:
    script(tmp_path / "cl", 'echo "Microsoft (R) C/C++ Optimizing Compiler Version 19.39"')
    named = {"CXX": str(tmp_path / "cl"), "PATH": str(tmp_path)}
    with pytest.raises(NoCompiler, match="set-up is missing: INCLUDE and LIB are not set"):
        find_toolchain(named)
    with pytest.raises(NoCompiler, match="set-up is missing: LIB is not set"):
        find_toolchain({**named, "INCLUDE": "headers"})
    assert find_toolchain({**named, "INCLUDE": "headers", "LIB": "lib"}).family.name == "msvc"


def test_zig_is_used_if_there_is_no_other_compiler(tmp_path: Path) -> None:
    pytest.importorskip("ziglang", reason="to run it: pip install 'inductor-lab[compiler]'")
    found = find_toolchain({"PATH": str(tmp_path)})
    assert found.family.name == "zig" and found.openmp is None
    source, library = tmp_path / "k.cpp", tmp_path / "k.so"
    source.write_text('extern "C" int doubled(int x) { return 2 * x; }')
    attempt = found.compile(source, library)
    assert attempt.status == 0, attempt.output
    assert ctypes.CDLL(str(library)).doubled(21) == 42


@pytest.mark.parametrize(
    ("command", "banner", "family"),
    [
        ("/usr/bin/c++", "c++ (Debian 12.2.0)\nCopyright (C) Free Software Foundation", "gcc"),
        ("clang++", "Debian clang version 14.0.6", "clang"),
        ("c++", "Apple clang version 15.0.0", "apple-clang"),
        ("icpx", "Intel(R) oneAPI DPC++/C++ Compiler 2024.1", "icx"),
        (r"C:\VS\cl.exe", "Microsoft (R) C/C++ Optimizing Compiler Version 19.39", "msvc"),
        (r"C:\LLVM\clang-cl.exe", "clang version 17.0.1", "clang-cl"),
        ("python -m ziglang c++", "clang version 18.1", "zig"),
    ],
)
def test_families(command: str, banner: str, family: str) -> None:
    assert family_of(command, banner) == family
    assert FAMILIES[family].output


@pytest.mark.parametrize("command, openmp, exact", [
    (r"C:\VS\cl.exe", "/openmp:experimental", None),
    (r"C:\LLVM\clang-cl.exe", "/openmp", "/clang:-ffp-contract=off"),
    (r"C:\oneAPI\icx-cl.exe", "/Qopenmp", "/Qfma-"),
])  # fmt: skip
def test_command_lines_on_windows(command: str, openmp: str, exact: str | None) -> None:
    """Vectors are as wide as the CPU's, and products and sums are not contracted."""
    family = FAMILIES[family_of(command, "Microsoft (R) C/C++ Optimizing Compiler")]
    for capability, arch in (("AVX2", "/arch:AVX2"), ("AVX512", "/arch:AVX512"), ("DEFAULT", "")):
        flags = family.flags(capability, joined=False)
        assert [flag for flag in flags if flag.startswith("/arch")] == ([arch] if arch else [])
        assert {"/O2", "/LD", "/fp:precise", openmp} <= set(flags)
        assert exact is None or exact in flags
    line = Toolchain((command,), family, "", None).command_for(Path("k.cpp"), Path("k.dll"))
    assert line[0] == command and line[-2:] == ["k.cpp", "/Fe:k.dll"]


def test_apple_clang_without_an_openmp_runtime() -> None:
    """Apple clang has no OpenMP runtime, so a library that needs one could not be loaded."""
    apple = FAMILIES["apple-clang"]
    assert "-fopenmp" in apple.flags("DEFAULT", joined=True)
    alone = apple.flags("DEFAULT", joined=False)
    assert not {"-fopenmp", "-undefined"} & set(alone) and "-O3" in alone
    assert "-fopenmp" in FAMILIES["gcc"].flags("AVX2", joined=False)


def test_kernels_use_the_openmp_runtime_of_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels run on torch's threads, without a second pool, and follow `set_num_threads`."""
    monkeypatch.setenv(thread_team.VARIABLE, thread_team.NEVER)  # the machine may be busy
    others = openmp.loaded_runtimes()  # a plugin of the test runner can have loaded its own
    function = build_library(code_of(THREADS), "threads").handle.count_threads
    before = torch.get_num_threads()
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            assert function() == threads
    finally:
        torch.set_num_threads(before)
    if sys.platform == "linux":
        assert openmp.loaded_runtimes() == others


def test_without_cache_a_library_leaves_no_file(own_cache: Path) -> None:
    library = build_library(code_of(THREADS), "threads", cache=False)
    assert library.handle.count_threads() >= 1
    assert not library.path.exists()
    assert not [path for path in own_cache.rglob("*") if path.is_file()]


def test_the_error_for_invalid_code(own_cache: Path) -> None:
    code = code_of("int f() {\n    return 1;\n    int y = nonsense(x);\n}\n", nonsense="erfinv")
    traces = {"erfinv": '  File "model.py", line 12, in forward\n    y = torch.erfinv(x)\n'}
    with pytest.raises(CompileFailed) as failed:
        build_library(code, "broken", traces=traces)
    message = str(failed.value)
    assert "kernel.cpp:3:13: error" in message
    assert ">    3 |     int y = nonsense(x);" in message
    assert "y = torch.erfinv(x)        model.py:12" in message
    (kept,) = (own_cache / "failed").iterdir()
    assert kept.read_text() == str(code)
    assert "-shared" in message and str(kept) in message
    assert not any((own_cache / "tmp").iterdir()), "a failed build leaves no files"


def test_a_compiler_that_crashes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = script(tmp_path / "broken", '[ "$1" = --version ] && echo "g++ 1" && exit 0; exit 3')
    monkeypatch.setenv("CXX", str(fake))
    with pytest.raises(CompileFailed, match="no output, exit status 3"):
        build_library(code_of(THREADS), "threads")


@pytest.mark.parametrize("body, said", [
    ("exit 0", "the compiler produced no library"),
    ('while [ "$1" != -o ]; do shift; done; : > "$2"', "a file that is not a library"),
    ('while [ "$1" != -o ]; do shift; done; head -c 300 /bin/sh > "$2"', "a truncated library"),
    ("sleep 600 & sleep 600", "killed, because it did not end within 1 seconds"),
])  # fmt: skip
@pytest.mark.skipif(sys.platform != "linux", reason="ELF files, shell scripts")
def test_a_compiler_that_produces_no_valid_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, said: str
) -> None:
    version = 'case "$*" in *--version*) exec g++ --version;; esac\n'
    compiler = script(tmp_path / "g++", version + body)
    monkeypatch.setattr(find_compiler, "SECONDS_TO_COMPILE", 1.0)
    source = tmp_path / "kernel.cpp"
    source.write_text("int f() { return 1; }")
    attempt = find_toolchain({"CXX": str(compiler)}).compile(source, tmp_path / "kernel.so")
    assert attempt.status != 0 and said in attempt.output
    real = find_toolchain({**os.environ, "CXX": "g++"})
    assert real.compile(source, tmp_path / "real.so").status == 0
    assert not find_compiler.incomplete(tmp_path / "real.so")


def test_an_invalid_command() -> None:
    with pytest.raises(NoCompiler, match="No closing quotation"):
        find_toolchain({"CXX": 'g++ "-O2'})
