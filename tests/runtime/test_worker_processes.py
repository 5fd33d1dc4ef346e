"""Triton kernels that worker processes compile, and what happens if a worker fails."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

triton = pytest.importorskip("triton")

from triton.backends.compiler import GPUTarget  # noqa: E402

from inductor_lab.compiler.codegen.triton.kernel_module import (  # noqa: E402
    compile_options,
    jit_function,
    source,
)
from inductor_lab.compiler.runtime.triton import triton_worker, worker_processes  # noqa: E402
from inductor_lab.compiler.runtime.triton.worker_processes import Processes, request  # noqa: E402
from tests.codegen.triton_programs import kernels_of  # noqa: E402

TARGET = GPUTarget("cuda", 90, 32)
SECONDS = 60.0


@pytest.fixture
def processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Processes]:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "triton"))
    made = Processes(2, TARGET)
    until(lambda: made._ready)
    yield made
    made.end()


def until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + SECONDS
    while not true():
        assert time.monotonic() < end, "timed out"
        time.sleep(0.01)


def asked(count: int = 1) -> list[dict[str, Any]]:
    kernels = (kernels_of(lambda x: x.sin() + 1, torch.randn(40 + n, 3))[0] for n in range(count))
    return [request(kernel, TARGET) for kernel in kernels]


def machine_code(folder: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*.cubin")}


def test_the_small_kernel_compiles(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    triton_worker.compile_one(triton_worker.SMALL, TARGET)
    (path,) = machine_code(tmp_path)
    assert path.name == "small.cubin"


def test_compiled_kernels_are_found_on_disk(processes: Processes, tmp_path: Path) -> None:
    (kernel,) = kernels_of(lambda x: x.softmax(-1), torch.randn(64, 300))
    described = Path(processes.compile(request(kernel, TARGET)))
    made = machine_code(tmp_path)
    assert list(made) == [described.with_suffix(".cubin")]
    assert json.loads(described.read_bytes())["name"] == kernel.name
    compiled = triton.compile(
        source(kernel, jit_function(kernel)), target=TARGET, options=compile_options(kernel)
    )
    assert machine_code(tmp_path) == made, "it was compiled a second time"
    assert compiled.asm["cubin"] == next(iter(made)).read_bytes()


def test_many_kernels_at_the_same_time(processes: Processes, tmp_path: Path) -> None:
    waiting = [threading.Thread(target=processes.compile, args=(one,)) for one in asked(7)]
    for thread in waiting:
        thread.start()
    for thread in waiting:
        thread.join(SECONDS)
    assert not any(thread.is_alive() for thread in waiting)
    assert len(machine_code(tmp_path)) == 7


def test_a_failed_compile_stops_no_other(processes: Processes, tmp_path: Path) -> None:
    (good,) = asked()
    for wrong in ("this is no Python", good["text"].replace("tl.load", "tl.lode")):
        assert processes.compile({**good, "text": wrong}) == ""
    assert not machine_code(tmp_path) and not processes.ended
    processes.compile(good)
    assert len(machine_code(tmp_path)) == 1


def test_a_killed_worker_answers_all_requests(processes: Processes) -> None:
    many = asked(6)
    waiting = [threading.Thread(target=processes.compile, args=(one,)) for one in many]
    for thread in waiting:
        thread.start()
    processes._process.kill()
    for thread in waiting:
        thread.join(SECONDS)
    assert not any(thread.is_alive() for thread in waiting)
    until(lambda: processes.ended)
    assert processes.compile(many[0]) == ""


def test_no_request_waits_for_a_worker_to_be_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(triton_worker, "READY", b"it never says this")
    (one,) = asked()
    made = Processes(1, TARGET)
    assert made.compile(one) == ""
    made.end()


def test_a_worker_that_has_ended_is_restarted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_processes, "_PROCESSES", [])
    first = worker_processes.processes(TARGET)
    assert first is not None and worker_processes.processes(TARGET) is first
    until(lambda: first._ready)
    first._process.kill()
    until(lambda: first.ended)
    second = worker_processes.processes(TARGET)
    assert second is not None and second is not first
    second.end()


def test_a_worker_that_never_became_ready_is_not_restarted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_processes, "_PROCESSES", [])
    monkeypatch.setattr(sys, "executable", "/bin/false")
    only = worker_processes.processes(TARGET)
    assert only is not None
    until(lambda: only.ended)
    only.compile(asked()[0])
    assert worker_processes.processes(TARGET) is only


def test_output_of_the_compiler_is_not_an_answer(processes: Processes, tmp_path: Path) -> None:
    (one,) = asked()
    processes.compile({**one, "text": "print('hello', flush=True)\n" + one["text"]})
    assert not processes.ended and len(machine_code(tmp_path)) == 1


def test_without_a_python_interpreter_there_is_no_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_processes, "_PROCESSES", [])
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    assert worker_processes.processes(TARGET) is None


def test_a_forked_process_does_not_use_the_worker(processes: Processes) -> None:
    (one,) = asked()
    child = os.fork()
    if child == 0:
        processes.compile(one)
        os._exit(7 if processes.ended else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert not processes.ended


@pytest.mark.parametrize("how", ["pass", "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"])
def test_the_worker_ends_with_the_process_that_started_it(how: str) -> None:
    program = (
        "from triton.backends.compiler import GPUTarget\n"
        "from inductor_lab.compiler.runtime.triton.worker_processes import processes\n"
        f"print(processes({TARGET})._process.pid, flush=True)\n{how}"
    )
    said = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    number = int(said.stdout)
    assert said.returncode in (0, -signal.SIGKILL)
    until(lambda: not is_running(number))


def is_running(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"
