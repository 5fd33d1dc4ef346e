"""The threads of kernels: right results in forks, threads and nested regions, and no hang."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

import inductor_lab as lab
from inductor_lab.compiler.codegen.kernel import Code, Line
from inductor_lab.compiler.runtime.toolchain import thread_team
from inductor_lab.compiler.runtime.toolchain.find_compiler import find_toolchain
from inductor_lab.compiler.runtime.toolchain.shared_library import build_library

pytestmark = pytest.mark.skipif(
    not thread_team.is_possible(find_toolchain()), reason="only with GCC on Linux"
)
COUNT = """
#include <stdint.h>
#include <time.h>
#include <omp.h>
extern "C" __attribute__((visibility("default")))
int count(int64_t n, int64_t* runs, int64_t* parts, int64_t nanoseconds) {
    #pragma omp parallel for
    for (int64_t i = 0; i < n; i++) {
        struct timespec wait = {0, nanoseconds};
        if (nanoseconds) nanosleep(&wait, nullptr);
        runs[i] += 1;
        parts[i] = omp_get_num_threads();
    }
    return 0;
}
"""


@pytest.fixture(autouse=True)
def asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    torch._dynamo.reset()
    monkeypatch.setenv(thread_team.VARIABLE, thread_team.ALWAYS)


@pytest.fixture
def counter(asked_for: None) -> Callable[..., tuple[list[int], list[int]]]:
    """`counter(n)`: how often each iteration ran, and in how many parts the loop was."""
    unit = Code.of(Line(text) for text in COUNT.strip().splitlines())
    library = build_library(unit, "count")

    def count(n: int, nanoseconds: int = 0) -> tuple[list[int], list[int]]:
        runs, parts = (ctypes.c_int64 * n)(), (ctypes.c_int64 * n)()
        library.handle.count(ctypes.c_int64(n), runs, parts, ctypes.c_int64(nanoseconds))
        return list(runs), list(parts)

    return count


@pytest.fixture(params=[2, 3, 7])
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


@pytest.mark.parametrize("n", [1, 2, 9, 1000])
def test_each_iteration_runs_once(counter, threads: int, n: int) -> None:
    for _ in range(300):
        runs, parts = counter(n)
        assert runs == [1] * n and set(parts) == {4 * threads}


def test_one_thread_needs_no_team(counter) -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        assert counter(5) == ([1] * 5, [1] * 5)
    finally:
        torch.set_num_threads(before)


def test_threads_of_the_program_at_the_same_time(counter) -> None:
    """One has the team, and the others run alone."""
    torch.set_num_threads(2)
    wrong: list[object] = []

    def work() -> None:
        for _ in range(200):
            runs, _ = counter(50)
            if runs != [1] * 50:
                wrong.append(runs)

    several = [threading.Thread(target=work) for _ in range(6)]
    for one in several:
        one.start()
    for one in several:
        one.join(60)
    assert not wrong and not any(one.is_alive() for one in several)


def test_the_number_of_threads_changes(counter) -> None:
    before = torch.get_num_threads()
    try:
        for k in range(200):
            torch.set_num_threads(1 + k % 5)
            assert counter(40)[0] == [1] * 40
    finally:
        torch.set_num_threads(before)


def test_a_thread_that_sleeps_is_woken(counter) -> None:
    torch.set_num_threads(2)
    for _ in range(20):
        threading.Event().wait(0.005)  # longer than it spins
        assert counter(40, nanoseconds=20_000)[0] == [1] * 40


def test_a_forked_process_has_threads_of_its_own(counter) -> None:
    torch.set_num_threads(2)
    assert counter(30)[0] == [1] * 30
    child = os.fork()
    if child == 0:
        good = all(counter(30)[0] == [1] * 30 for _ in range(50))
        os._exit(0 if good and tasks() == 2 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_forked_process_does_not_wait_for_threads_of_libgomp(
    counter, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.set_num_threads(2)
    team(monkeypatch).handle.lab_use_team(-1)
    assert counter(30)[1] == [2] * 30
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        os._exit(0 if counter(30)[1] == [8] * 30 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def tasks() -> int:
    """The number of threads of this process."""
    return len(os.listdir("/proc/self/task"))


def team(monkeypatch: pytest.MonkeyPatch) -> thread_team.Loaded:
    """The library that uses the team on a busy machine only."""
    monkeypatch.delenv(thread_team.VARIABLE)
    found = thread_team.loaded_for(find_toolchain(), "#pragma omp parallel\n")
    assert found is not None
    return found


def test_threads_change_while_the_program_runs(counter, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.set_num_threads(2)
    handle = team(monkeypatch).handle
    counter(40)
    for k in range(300):
        handle.lab_use_team(1 if k % 2 else -1)
        runs, parts = counter(40)
        assert runs == [1] * 40 and set(parts) == {8 if k % 2 else 2}
    handle.lab_use_team(-1)
    time.sleep(0.5)
    before = tasks()
    for k in range(100):
        handle.lab_use_team(1 if k % 2 else -1)
    handle.lab_use_team(-1)
    end = time.monotonic() + 60
    while tasks() > before:  # the threads that keep libgomp's end
        assert time.monotonic() < end
        time.sleep(0.01)
    handle.lab_use_team(0)


@pytest.mark.parametrize(("limit", "more"), [(resource.RLIM_INFINITY, 2), (1 << 45, 0)])
def test_libgomp_gets_no_more_threads_if_memory_is_limited(
    counter, monkeypatch: pytest.MonkeyPatch, limit: int, more: int
) -> None:
    """It would end the process if it could not start one."""
    torch.set_num_threads(2)
    handle = team(monkeypatch).handle
    counter(40)
    handle.lab_use_team(-1)
    time.sleep(0.5)
    before, (soft, hard) = tasks(), resource.getrlimit(resource.RLIMIT_AS)
    try:
        resource.setrlimit(resource.RLIMIT_AS, (limit, hard))
        handle.lab_use_team(1)
        end = time.monotonic() + 60
        while tasks() < before + more and time.monotonic() < end:
            time.sleep(0.01)
        time.sleep(0.3)
        assert tasks() == before + more
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
        handle.lab_use_team(0)


def test_a_busy_machine_is_noticed(counter, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.set_num_threads(2)
    loaded = team(monkeypatch)
    spin = "while True: pass"
    several = [subprocess.Popen([sys.executable, "-c", spin]) for _ in range(2 * os.cpu_count())]
    try:
        end = time.monotonic() + 60
        while not loaded.is_busy and time.monotonic() < end:
            counter(200_000)
        assert loaded.is_busy
    finally:
        for one in several:
            one.kill()


DECISIONS = """
#include "thread_team.h"
int main() {
    double passed, rate, others;
    Load watched;
    while (scanf("%lf %lf %lf", &passed, &rate, &others) == 3) {
        watched.decide(passed, rate, others);
        putchar(is_busy() ? 'b' : 'q');
    }
}
"""
OTHERS = """
#include "thread_team.h"
int main() {
    const Processors before = Processors::now();
    timespec began, ended;
    clock_gettime(CLOCK_MONOTONIC, &began);
    rusage used;
    do getrusage(RUSAGE_SELF, &used); while (used.ru_utime.tv_sec + used.ru_stime.tv_sec < 1);
    const double seconds = used.ru_utime.tv_sec + used.ru_stime.tv_sec
                         + 1e-6 * (used.ru_utime.tv_usec + used.ru_stime.tv_usec);
    clock_gettime(CLOCK_MONOTONIC, &ended);
    const double passed = ended.tv_sec - began.tv_sec + 1e-9 * (ended.tv_nsec - began.tv_nsec);
    printf("%f %f", Processors::now().others_since(before, seconds), seconds / passed);
}
"""


def built(text: str, folder: Path) -> Path:
    """The program of a text that includes thread_team.h."""
    (folder / "main.cpp").write_text(text)
    (folder / "thread_team.h").write_text(thread_team.source())
    made = [find_toolchain().command[0], "-fopenmp", folder / "main.cpp", "-o", folder / "main"]
    subprocess.run(made, check=True)
    return folder / "main"


def test_when_the_threads_change(tmp_path: Path) -> None:
    """(seconds of computing, how often threads were stopped in one of them, other programs' use)"""
    program = built(DECISIONS, tmp_path)

    def decided(*windows: tuple[float, float, float]) -> str:
        given = "\n".join(" ".join(map(str, window)) for window in windows)
        return subprocess.run([program], input=given, text=True, check=True,
                              capture_output=True).stdout  # fmt: skip

    busy, quiet, start = (1, 200, 0.9), (1, 20, 0.9), (0.2, 200, 0.9)
    alone = (1, 200, 0.05)  # threads of this process stop each other
    assert decided((0.2, 20, 0.9), start, busy, quiet) == "qbbq"
    assert decided(start, *[busy] * 200) == "b" * 201
    assert decided(start, busy, busy, alone) == "bbbq"
    assert decided(start, alone, start, alone, alone) == "bqbbq"  # a trial after 1 s, then after 2
    assert decided(start, alone, quiet, start, alone) == "bqqbq"  # it was quiet


def test_what_other_programs_use(tmp_path: Path) -> None:
    """A program on another processor is counted; this process is not."""
    allowed = sorted(os.sched_getaffinity(0))[:2]
    if len(allowed) < 2:
        pytest.skip("needs two processors")
    program = built(OTHERS, tmp_path)

    def used(processors: list[int]) -> tuple[float, float]:
        """How many processors others used, and this program."""
        run = ["taskset", "-c", ",".join(map(str, processors)), program]
        found = subprocess.run(run, text=True, check=True, capture_output=True).stdout.split()
        return float(found[0]), float(found[1])

    spin = ["taskset", "-c", str(allowed[1]), sys.executable, "-c", "while True: pass"]
    with subprocess.Popen(spin) as other:
        try:
            time.sleep(0.2)
            others, own = used(allowed)
            assert 0.7 < others <= 2 - own + 0.1
            others, own = used(allowed[:1])
            assert others <= 1 - own + 0.1
        finally:
            other.kill()


def test_a_process_ends_while_its_threads_run(tmp_path: Path) -> None:
    script = tmp_path / "ends.py"
    script.write_text(
        "import sys, torch, inductor_lab as lab\n"
        "torch.set_num_threads(2)\n"
        "f = lab.compile(lambda x: x.sin() + 1)\n"
        "x = torch.randn(300, 1000)\n"
        "for _ in range(20): f(x)\n"
        "sys.exit(3)\n"
    )
    done = subprocess.run([sys.executable, script], timeout=120, check=False)
    assert done.returncode == 3


def test_flush_to_zero_holds_in_all_parts() -> None:
    """Helping threads compute in the mode of the caller."""
    torch.set_num_threads(2)
    x = torch.full((2000, 500), 1e-39)
    fast = lab.compile(lambda x: x * 0.5)
    assert bool((fast(x) != 0).all())
    if not torch.set_flush_denormal(True):
        pytest.skip("not on this processor")
    try:
        for _ in range(20):
            assert not fast(x).any()
    finally:
        torch.set_flush_denormal(False)


@pytest.mark.parametrize(
    ("text", "linked"),
    [
        ("  #pragma omp parallel for\n", True),
        ("#pragma omp parallel\n#pragma omp for simd nowait\n", True),
        ("#pragma omp parallel for collapse(3) schedule(static)\n", True),
        ("#pragma omp parallel for collapse(3) schedule(dynamic)\n", False),
        ("#pragma omp parallel for schedule(guided, 4)\n", False),
        ("#pragma omp simd\n", False),
        ("// see #pragma omp parallel\n", False),
        ("#pragma omp parallel\n#pragma omp barrier\n", False),
        ("#pragma omp parallel\n#pragma omp for\n", False),
        ("#pragma omp parallel\n#pragma omp for schedule(dynamic) nowait\n", False),
        ("#pragma omp parallel\n#pragma omp single nowait\n", False),
        ("#pragma omp parallel for ordered\n", False),
    ],
)
def test_which_texts_are_linked(text: str, linked: bool) -> None:
    toolchain = find_toolchain()
    thread_team.loaded_for(toolchain, text)
    assert thread_team.is_linked(toolchain, text) is linked
    assert bool(thread_team.flags(toolchain, text)) is linked


def test_all_parallel_kernels_are_linked() -> None:
    """On a busy machine, a region that libgomp runs takes several times as long."""

    def function(x: torch.Tensor, w: torch.Tensor) -> tuple[torch.Tensor, ...]:
        heads = (x @ w).view(2, 256, 4, 64).transpose(1, 2)
        attended = torch.nn.functional.scaled_dot_product_attention(heads, heads, heads)
        indices = (x[:, 0] * 100).long().clamp(0, 511)
        added = torch.zeros_like(x).index_add(0, indices, x)
        sums = x.sum(0), x.sum(), x.cumsum(0), x.argmax(1)
        return attended, x.softmax(-1), added, x.t() + 1, *sums

    with torch.no_grad():
        c = lab.inspect(function, torch.randn(512, 256), torch.nn.Parameter(torch.randn(256, 256)))
    texts = [str(kernel.code) for kernel in c.graphs[0].forward.all_kernels]
    parallel = [text for text in texts if "#pragma omp parallel" in text]
    assert len(parallel) > 4 and any("lab_flash" in text for text in parallel)
    assert all(thread_team.is_linked(find_toolchain(), text) for text in parallel)


def test_without_the_variable_kernels_use_openmp(monkeypatch: pytest.MonkeyPatch) -> None:
    with_team = find_toolchain().identity
    monkeypatch.setenv(thread_team.VARIABLE, thread_team.NEVER)
    assert not thread_team.flags(find_toolchain(), "#pragma omp parallel for\n")
    assert find_toolchain().identity != with_team
