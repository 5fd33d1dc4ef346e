"""The C++ compiler is missing, hangs, prints garbage, crashes, warns, or writes no file."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

from inductor_lab.compiler.runtime.toolchain import find_compiler
from tests.faults import jobs
from tests.faults.child import attempt, caches
from tests.faults.outcome import CLEAR, DEFECT, OK, Tried
from tests.faults.plan import Plan
from tests.scripts import script

VERSION = 'case "$*" in *--version*) exec g++ --version;; esac\n'

OUTPUT = 'while [ "$1" != -o ]; do shift; done; out="$2"\n'

# what is wrong: (the compiler's script, what must become of it)
SCRIPTS: dict[str, tuple[str, str]] = {
    "it hangs": (VERSION + "sleep 600", CLEAR),
    "it hangs, and its child has the output": (VERSION + "sleep 600 & sleep 600", CLEAR),
    "it does not tell its version": ("sleep 600", CLEAR),
    "it prints garbage and succeeds": (
        VERSION + 'head -c 100000 /dev/urandom; exec g++ "$@"', OK),
    "it prints garbage and fails": (VERSION + "head -c 100000 /dev/urandom >&2; exit 3", CLEAR),
    "it warns": (VERSION + 'echo "kernel.cpp:1:1: warning: odd" >&2; exec g++ "$@"', OK),
    "it is killed": (VERSION + "kill -9 $$", CLEAR),
    "it writes nothing and succeeds": (VERSION + "exit 0", CLEAR),
    "it writes an empty file": (VERSION + OUTPUT + ': > "$out"', CLEAR),
    "it writes garbage": (VERSION + OUTPUT + 'head -c 50000 /dev/urandom > "$out"', CLEAR),
    "it writes half a library": (
        VERSION + 'g++ "$@"\n' + OUTPUT + 'head -c 4000 "$out" > half; mv half "$out"',
        CLEAR),
    "its version is garbage": (
        'case "$*" in *--version*) head -c 1000 /dev/urandom; exit 0;; esac\nexec g++ "$@"', OK),
    "it fails without a word": (VERSION + "exit 1", CLEAR),
}  # fmt: skip
SHORT = ("it hangs", "it warns", "it is killed", "it writes garbage", "it prints garbage and fails")


def impatient() -> None:
    """A compiler has a limit of three seconds and fails; then another one works."""
    find_compiler.SECONDS_TO_COMPILE = find_compiler.SECONDS_TO_ANSWER = 3.0
    jobs.infer()


def impatient_training() -> None:
    find_compiler.SECONDS_TO_COMPILE = find_compiler.SECONDS_TO_ANSWER = 3.0
    jobs.train()


def tries(plan: Plan) -> Iterator[Tried]:
    for number, (what, (body, expected)) in enumerate(SCRIPTS.items()):
        if plan.short and what not in SHORT:
            continue
        folder = plan.place(f"c{number}")
        compiler = script(folder / "g++", body)
        for job in (impatient,) if plan.short else (impatient, impatient_training):
            found, said = attempt(caches(folder, CXX=str(compiler)), job)
            yield Tried(what, found if found == expected else DEFECT, said)
    yield from not_there(plan)


def not_there(plan: Plan) -> Iterator[Tried]:
    folder = plan.place("none")
    no_program = folder / "no-program"
    no_program.write_text("not a program")
    named: dict[str, dict[str, str | None]] = {
        "there is no compiler": {"PATH": str(folder), "CXX": None},
        "CXX names nothing": {"CXX": str(folder / "nothing")},
        "CXX names a folder": {"CXX": str(folder)},
        "CXX names what cannot be run": {"CXX": str(no_program)},
        "CXX has an open quote": {"CXX": 'g++ "-O2'},
        "CXX names another program": {"CXX": str(shutil.which("true"))},
    }
    for what, environment in list(named.items())[: plan.times(len(named), 3)]:
        found, said = attempt(caches(folder, **environment), impatient)
        yield Tried(what, found if found == CLEAR else DEFECT, said)


