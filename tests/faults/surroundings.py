"""Interpreter settings, low resource limits, forks and threads: training works in all of them."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import torch

import inductor_lab as lab
from tests.faults import jobs
from tests.faults.child import Setting, attempt, caches
from tests.faults.outcome import CLEAR, DEFECT, OK, Tried
from tests.faults.plan import Plan

ROOT = Path(__file__).parents[2]


def tries(plan: Plan) -> Iterator[Tried]:
    yield from interpreters(plan)
    yield from limits(plan)
    yield from forks_and_threads(plan)


# ---- interpreters ----------------------------------------------------------------------------

TEXTS = """
from tests.faults import jobs, surroundings
jobs.both()
print(surroundings.generated())
"""


def generated() -> str:
    """A checksum of the generated code of a few programs."""
    digest = hashlib.sha256()
    w = torch.ones(64, requires_grad=True)
    cases = ((jobs.small_model(), torch.ones(8, 16)), (jobs.wave, w), (jobs.bowl, w, w))
    for fn, *args in cases:
        c = lab.inspect(fn, *args, options={"matmul": "aten"})
        for part in c.parts:
            digest.update(f"{part.graph}{part.rewrites}{part}".encode())
    return digest.hexdigest()


def interpreters(plan: Plan) -> Iterator[Tried]:
    """New processes (optimized, warnings as errors, other hash seeds) generate the same code."""
    kinds: list[tuple[str, list[str], dict[str, str]]] = [
        *(("another PYTHONHASHSEED", [], {"PYTHONHASHSEED": str(n)}) for n in (1, 2, 3, 4)),
        ("PYTHONOPTIMIZE=2", [], {"PYTHONOPTIMIZE": "2"}),
        ("python -B", ["-B"], {}),
        ("python -X dev", ["-X", "dev"], {}),
        ("python -W error", ["-W", "error"], {}),
        ("LC_ALL=C, no UTF-8", [], {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}),
    ]
    chosen = [kinds[0], kinds[4]] if plan.short else kinds
    texts: set[str] = set()
    for number, (what, flags, environment) in enumerate(chosen):
        setting = caches(plan.place(f"python{number}"), **environment)
        status, said = _python([*flags, "-c", TEXTS], setting)
        texts.add(said)
        yield Tried(what, DEFECT if status else OK, said)
    same = len(texts) == 1
    yield Tried("the same generated code in each", OK if same else DEFECT, " ".join(texts))


# ---- limits ----------------------------------------------------------------------------------


def memory_now() -> int:
    """Bytes of address space of this process."""
    with open("/proc/self/statm", encoding="ascii") as facts:
        return int(facts.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")


def in_little_memory() -> None:
    """Both jobs, with 300 MB of address space more than there is now."""
    room = memory_now() + (300 << 20)
    Setting(limits={"RLIMIT_AS": room}).apply()
    jobs.both()


def limits(plan: Plan) -> Iterator[Tried]:
    low = {
        "few open files": ({"RLIMIT_NOFILE": 24}, None),
        "hardly any open files": ({"RLIMIT_NOFILE": 10}, None),
        "a small stack": ({"RLIMIT_STACK": 512 << 10}, None),
        "no core files, small files": ({"RLIMIT_CORE": 0, "RLIMIT_FSIZE": 4096}, None),
        "few processes": ({"RLIMIT_NPROC": 2}, 54321),
        "little processor time": ({"RLIMIT_CPU": 600}, None),
    }
    if sys.platform == "linux":
        found, said = attempt(caches(plan.place("memory")), in_little_memory)
        yield Tried("little memory", _clear_outcome(found, said), said)
    for number, (what, (limit, user)) in enumerate(low.items()):
        if plan.short and number not in (0, 2):
            continue
        if user is not None and os.geteuid() != 0:
            continue
        folder = plan.place(f"limit{number}")
        setting = caches(folder)
        if user is not None:
            for path in (plan.folder, folder, folder / "tmp"):
                path.chmod(0o755)
            os.chown(folder, user, user)
            os.chown(folder / "tmp", user, user)
        found, said = attempt(Setting(setting.environment, limit, user), jobs.both)
        yield Tried(what, _clear_outcome(found, said), said)


def _clear_outcome(found: str, said: str) -> str:
    """Count an error of Python or torch about a resource limit as clear."""
    words = ("MemoryError", "Too many open files", "Cannot allocate", "can't allocate memory",
             "can't start new thread", "not enough memory", "File too large")  # fmt: skip
    return CLEAR if found == DEFECT and any(word in said for word in words) else found


# ---- forks and threads -----------------------------------------------------------------------


def forked() -> None:
    """A child that is forked during training continues to train, and so does its parent."""
    model = jobs.small_model()
    fast = lab.compile(model)
    jobs.steps(model, fast)
    child = os.fork()
    if child == 0:
        problem = 1
        try:
            jobs.steps(model, fast)
            jobs.both()
            problem = 0
        finally:
            os._exit(problem)
    jobs.steps(model, fast)
    _, status = os.waitpid(child, 0)
    assert status == 0, f"the child ended with {os.waitstatus_to_exitcode(status)}"


def threads() -> None:
    """Four threads concurrently train separate models, compiled from one class."""
    problems: list[BaseException] = []
    together = threading.Barrier(4)

    def train() -> None:
        try:
            together.wait(60)
            jobs.learn()
        except BaseException as problem:
            problems.append(problem)

    several = [threading.Thread(target=train) for _ in range(4)]
    for thread in several:
        thread.start()
    for thread in several:
        thread.join()
    if problems:
        raise problems[0]


def loaders() -> None:
    """Workers of a DataLoader, forked after a compile, call the compiled function."""
    fast = lab.compile(jobs.wave)
    fast(torch.ones(16))
    data = [torch.full((16,), float(n)) for n in range(8)]
    loader = torch.utils.data.DataLoader(
        data, batch_size=2, num_workers=2, collate_fn=lambda batch: fast(torch.stack(batch))
    )
    for number, found in enumerate(loader):
        expected = jobs.wave(torch.stack(data[2 * number : 2 * number + 2]))
        torch.testing.assert_close(found, expected)


PROGRAMS = {
    "spawn in a training": """
import multiprocessing
from tests.faults import jobs
if __name__ == "__main__":
    jobs.learn()
    process = multiprocessing.get_context("spawn").Process(target=jobs.learn)
    process.start()
    process.join(240)
    assert process.exitcode == 0, process.exitcode
""",
    "workers of a DataLoader": """
from tests.faults import surroundings
if __name__ == "__main__":
    surroundings.loaders()
""",
}


def forks_and_threads(plan: Plan) -> Iterator[Tried]:
    for what, job in (("fork in a training", forked), ("threads train at once", threads)):
        for turn in range(plan.times(5, 1)):
            found, said = attempt(caches(plan.place(f"{job.__name__}{turn}")), job)
            yield Tried(what, found if found == OK else DEFECT, said)
    for number, (what, text) in enumerate(PROGRAMS.items()):
        if not plan.short:
            program = plan.folder / f"program{number}.py"
            program.write_text(text)
            setting = caches(plan.place(f"program{number}"), PYTHONPATH=str(ROOT))
            status, said = _python([str(program)], setting)
            yield Tried(what, DEFECT if status else OK, said)


def _python(arguments: list[str], setting: Setting) -> tuple[int, str]:
    """Status of a new interpreter, and the last line that it printed or the end of its error."""
    known = {name: value for name, value in setting.environment.items() if value is not None}
    done = subprocess.run([sys.executable, *arguments], env={**os.environ, **known}, cwd=ROOT,
                          capture_output=True, text=True, check=False, timeout=500)  # fmt: skip
    last = (done.stdout.splitlines() or [""])[-1]
    return done.returncode, " ".join(done.stderr.split())[-300:] if done.returncode else last
