"""Submissions that cheat earn no points; a solution earns its points."""

from __future__ import annotations

import inspect
import os
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from random import Random

import pytest

from inductor_lab import course
from inductor_lab.course.grading import Grader
from inductor_lab.debug.untrusted.confine import confinable
from tests.course.cheats import CHEATS

pytestmark = pytest.mark.skipif(not confinable(), reason="no Landlock on this machine")
START = "import torch\nimport inductor_lab as lab\nfrom inductor_lab import course"
QUICK = ("sends_a_verdict_found_on_the_stack", "answers_before_it_is_asked", "calls_the_reference",
         "reads_the_source_of_the_reference", "patches_the_reference", "exits_with_status_0",
         "writes_to_every_open_file", "patches_torch_and_the_builtins",
         "leaves_a_child_in_a_new_session", "equals_everything")  # fmt: skip
SOLVED = """
def misses(addresses, lines, line):
    held, fetched = [], 0
    for address in addresses:
        wanted = address // line
        if wanted in held:
            held.remove(wanted)
        else:
            fetched += 1
        held = [*held, wanted][-lines:]
    return fetched
"""


@pytest.fixture(scope="module")
def grader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Grader]:
    folder = tmp_path_factory.mktemp("course")
    (folder / "secret_seed").write_text("a secret")
    course.speak("en")
    with Grader("a secret", [folder]) as made:
        yield made


def test_a_solution_earns_its_points(grader: Grader) -> None:
    verdict = grader.verdict("6.1", [START, SOLVED], "misses")
    assert verdict.points == 2, str(verdict)


@pytest.mark.parametrize("name", [name for name in CHEATS if name in QUICK])
def test_a_cheat_earns_nothing(grader: Grader, name: str) -> None:
    verdict = grader.verdict("6.1", [START, CHEATS[name]], "misses")
    assert verdict.points == 0 and verdict.message, str(verdict)


@pytest.mark.parametrize("name", [name for name in CHEATS if name not in QUICK])
def test_a_further_cheat_earns_nothing(grader: Grader, name: str) -> None:
    test_a_cheat_earns_nothing(grader, name)
    assert not Path("/tmp/forged").exists()


def test_a_cheat_does_not_change_other_verdicts(grader: Grader) -> None:
    tried = ("patches_the_reference", "patches_what_is_loaded", "signals_and_traces_its_parent")
    for name in tried:
        grader.verdict("6.1", [START, CHEATS[name]], "misses")
    assert grader.verdict("6.1", [START, SOLVED], "misses").points == 2


def test_a_child_in_a_new_session_is_ended_without_delay(grader: Grader) -> None:
    began = time.monotonic()
    marked = "def misses(*_):\n    import os\n    if os.fork() == 0:\n        os.setsid()\n" \
             "        os.execvp('sleep', ['sleep', '61.25'])\n    return 0"  # fmt: skip
    grader.verdict("6.1", [START, marked], "misses")
    assert time.monotonic() - began < 20
    running = [Path(f"/proc/{pid}/cmdline") for pid in os.listdir("/proc") if pid.isdigit()]
    assert not any(b"61.25" in path.read_bytes() for path in running if path.exists())


def test_memorized_answers_earn_nothing_when_graded(grader: Grader, monkeypatch, tmp_path) -> None:
    """Answers memorized from one's own checks earn full points there, and none when graded."""
    asked = course.exercises()["6.1"]
    names: dict[str, object] = {}
    exec(SOLVED, names)
    table = {
        (case.addresses, case.lines, case.line): names["misses"](*vars(case).values())  # type: ignore[operator]
        for case in asked.cases(Random(0))
    }
    learned = f"TABLE = {table!r}\ndef misses(a, lines, line):\n" \
              "    return TABLE.get((tuple(a), lines, line), 0)"  # fmt: skip
    own: dict[str, object] = {}
    exec(learned, own)
    monkeypatch.setenv("INDUCTOR_LAB_COURSE_FILE", str(tmp_path / "course.json"))
    assert course.check("6.1", own["misses"]).points == 2
    assert grader.verdict("6.1", [START, learned], "misses").points == 0


def test_graded_cases_differ_from_practice_cases() -> None:
    """Only exercises that draw cases; predictions about given programs do not."""
    for name, asked in course.exercises().items():
        own, other, graded = (
            [asked.described(case) for case in islice(asked.cases(Random(seed)), 30)]
            for seed in (0, 1, f"a secret {name}")
        )
        assert own == other or graded != own, name


TRACED = [
    ("2.1", "softmax", "def softmax(x):\n    return torch.softmax(x, -1)"),
    ("2.1", "softmax", "from torch.utils._python_dispatch import _disable_current_modes\n"
     "def softmax(x):\n    with _disable_current_modes():\n        return torch.softmax(x, -1)"),
    ("9.4", "weighted", "def weighted(x):\n    rows = x.shape[0]\n"
     "    return sum((n * x[n] for n in range(rows)), torch.zeros(3))"),
    ("1.5", "whole", "def whole(x, w):\n    y = torch.softmax(x @ w, -1)\n"
     "    return y * 2 if y.max() > 0.5 else y - 1"),
]  # fmt: skip
"""These check what the solution computes; a report about itself could be forged."""


@pytest.mark.parametrize("name, solution, text", TRACED, ids=lambda value: value[:24])
def test_a_program_is_judged_by_what_it_computes(
    grader: Grader, name: str, solution: str, text: str
) -> None:
    forged = "import inductor_lab.course.given.capture as own\n" \
             "own.operations_captured = lambda *args: [['sum']]\n" \
             "own.compiling_in = lambda *args: [0, 1]"  # fmt: skip
    verdict = grader.verdict(name, [START, forged, text], solution)
    assert verdict.points == 0, str(verdict)


def test_every_cheat_is_tried() -> None:
    assert set(QUICK) <= set(CHEATS) and len(QUICK) == 10
    assert all("def misses" in text or "sys.exit" in text for text in CHEATS.values())
    assert inspect.getdoc(Grader)
