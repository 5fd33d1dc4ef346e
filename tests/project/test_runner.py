"""What `make test` leaves out, the parts of `make check`, and their order in `.ci/run`."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest

from tests import run
from tests.runner import changes, order
from tests.runner.choose import choose, fit, step
from tests.runner.history import Done, History, Memory
from tests.runner.order import in_order, rank
from tests.runner.parts import PARTS, ROOT, LeftOut, left_out, named
from tests.runner.record import Record

FILES = [path.relative_to(ROOT).as_posix() for path in (ROOT / "tests").rglob("test_*.py")]


def test_each_file_of_tests_is_in_one_part() -> None:
    assert {name: [part.name for part in PARTS if part.holds(name)] for name in FILES
            if sum(part.holds(name) for part in PARTS) != 1} == {}  # fmt: skip
    missing = [p for part in PARTS for p in (*part.paths, *part.also) if not (ROOT / p).exists()]
    assert missing == []


def test_left_out_tests_exist() -> None:
    """Names of tests that are gone would leave nothing out."""
    table = left_out()
    gone = [name for name in (*table.whole, *table.one_in) if not is_there(name)]
    assert gone == []
    assert all(every > 1 for every in table.one_in.values())


def is_there(name: str) -> bool:
    file, _, function = name.partition("::")
    path = ROOT / file
    return function in functions_of(path) if function else path.exists()


@cache
def functions_of(path: Path) -> frozenset[str]:
    if not path.exists():
        return frozenset()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef))


def test_a_test_is_in_the_quick_ones_unless_it_is_left_out() -> None:
    file = "tests/b/test_b.py"
    table = LeftOut(frozenset({"tests/a", f"{file}::test_whole"}), {f"{file}::test_x": 3})
    names = [
        "tests/a/test_a.py::test_a",
        f"{file}::test_new",
        f"{file}::test_whole[1]",
        *(f"{file}::test_x[{n}]" for n in range(7)),
    ]
    quick, rest = table.split(names)
    assert quick == {names[1], names[3], names[6], names[9]}
    assert quick | rest == set(names) and not quick & rest


def test_one_case_in_so_many_stays_below_the_limit_with_most_values() -> None:
    names = [f"f[{a}-{b}]" for a in "xyz" for b in (1, 2)]
    assert step(names, [1.0] * 6, limit=6.0) == 1
    assert step(names, [1.0] * 6, limit=3.0) == 3, "2 would take b = 1 alone"
    files = [f"tests/ir/test_a.py::{name}" for name in names]
    chosen = choose(files, dict.fromkeys(files, 1.0))
    assert chosen.one_in == {"tests/ir/test_a.py::f": 3} and "tests/wheel" in chosen.whole


def test_limits_are_scaled_until_the_kept_tests_take_their_share() -> None:
    names = [f"tests/ir/test_{a}.py::test_{b}[{c}]" for a in "xy" for b in "pqr" for c in range(12)]
    for seconds in (0.01, 1.0, 100.0):  # of one test: a quick machine and a slow one
        for share in (0.25, 0.5):
            quick, _ = fit(names, dict.fromkeys(names, seconds), share).split(names)
            assert share / 2 < len(quick) / len(names) <= share


def test_pytest_takes_the_quick_ones_and_writes_what_it_did() -> None:
    file = "tests/ir/test_interpret.py"  # one of its tests is left out
    found = run.run_tests("some", "quick", [file], jobs=1)
    assert found.passed and found.cpu > 0
    assert found.record.counts == {"passed": len(found.record.seconds)}
    assert [name.startswith(f"{file}::") for name in found.record.left] == [True]


def test_a_part_is_near_what_it_imports() -> None:
    by_name = {part.name: part for part in PARTS}
    assert changes.distance(by_name["codegen"], ["tests/codegen/test_cpp.py"]) == 0
    assert changes.distance(by_name["course"], ["notebooks/labs/new.ipynb"]) == 0
    assert changes.distance(by_name["phases"], ["inductor_lab/compiler/ir/expr.py"]) == 1
    assert changes.distance(by_name["codegen"], ["docs/nothing.md"]) == changes.FAR


def test_parts_that_waited_come_first_then_what_is_near(tmp_path: Path) -> None:
    memory = Memory(tmp_path / "parts.json", missed={"faults": 3, "gpu": 1})
    one, two = named(["gpu"])[0], named(["views"])[0]
    assert rank(two, memory, 1) < rank(one, memory, 5) < rank(two, memory, 5)
    assert in_order(PARTS, memory, "HEAD")[0].name == "faults"
    assert {part.name for part in in_order(PARTS, memory, None)} == {part.name for part in PARTS}


def test_passed_parts_are_remembered_for_the_same_sources(tmp_path: Path) -> None:
    history = History.open(tmp_path)
    history.add("gpu", Done(True, 1.0, 2.0))
    history.add("course", Done(False, 1.0, 2.0))
    again = History.open(tmp_path)
    assert again.passed("gpu") and not again.passed("course") and not again.passed("debug")
    assert not History(tmp_path / "another.json").passed("gpu")


def test_the_record_of_passed_parts_may_be_missing_or_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INDUCTOR_LAB_TEST_MEMORY", str(tmp_path))
    part = PARTS[0]
    assert Memory.open().expected(part) == 60 * part.minutes
    Memory.open().add(part.name, Done(True, 7.0, 9.0))
    assert Memory.open().expected(part) == 7.0
    (tmp_path / "parts.json").write_text("{")
    assert Memory.open().expected(part) == 60 * part.minutes


def test_an_unknown_part_is_named() -> None:
    with pytest.raises(SystemExit, match="no part is named courze"):
        named(["courze"])


def outcome(status: int, in_time: bool = True, failed: int = 0) -> run.Outcome:
    record = Record({"passed": 3, **({"failed": failed} if failed else {})}, ["a::b"] * failed)
    return run.Outcome("gpu", status, 61.0, 90.0, record, in_time)


@pytest.mark.parametrize("last, status, line", [
    (outcome(0), 0, "6 passed in "),
    (outcome(1, failed=2), 1, "2 failed, 6 passed in "),
    (outcome(-9), 1, "6 passed in "),
    (outcome(2, in_time=False), 0, "6 passed in "),
    (outcome(2, in_time=False, failed=1), 1, "1 failed, 6 passed in "),
], ids=["passed", "failed", "crashed", "stopped", "failed and stopped"])  # fmt: skip
def test_the_last_line_sums_up_and_a_failure_gives_a_status(
    last: run.Outcome, status: int, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run.report([outcome(0), last], 0.0) == status
    assert capsys.readouterr().out.splitlines()[-1].startswith(line)
    assert last.passed == (status == 0 and last.in_time)


def test_a_part_without_further_tests_has_passed() -> None:
    assert run.without_tests(outcome(5), "rest").passed
    assert run.without_tests(outcome(5), "all").failed, "a path that is not there"


@pytest.mark.parametrize("second", [0, 1])
def test_files_of_a_browser_run_once_more(
    second: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    statuses, ran = iter([1, second]), list[Sequence[str]]()

    def run_tests(
        name: str, take: str, paths: Sequence[str], *_: object, **options: object
    ) -> run.Outcome:
        ran.append(paths)
        status = next(statuses)
        return outcome(status, failed=status)

    monkeypatch.setattr(run, "run_tests", run_tests)
    found = run.run_part(named(["browser"])[0], "all", 2)
    assert ran == [("tests/browser",), ["a"]] and found.passed == (second == 0)
    assert run.report([found], 0.0) == second
    said = capsys.readouterr().out
    if second:
        assert "FAILED a::b" in said and "1 failed, 3 passed in " in said
    else:
        assert "passed only when it ran once more: a::b" in said and "4 passed in " in said


def test_other_parts_do_not_run_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "run_tests", lambda *_: outcome(1, failed=1))
    assert [part.name for part in PARTS if part.twice] == ["browser"]
    assert run.run_part(named(["gpu"])[0], "all", 2).failed


class Simulated:
    """Runs that take their expected time on a clock of their own."""

    def __init__(self, minutes: float) -> None:
        self.minutes, self.now, self.ran = minutes, 0.0, list[str]()

    def monotonic(self) -> float:
        return self.now

    def run_tests(
        self,
        name: str,
        take: str,
        paths: Sequence[str],
        jobs: int,
        limit: float | None = None,
        dist: str = "worksteal",
    ) -> run.Outcome:
        took = 60 * self.minutes
        self.now += took
        self.ran.append(name)
        assert limit is None or took <= limit, "it was known to take longer"
        assert dist == ("loadfile" if name == "browser" else "worksteal")
        return run.Outcome(name, 0, took, took, Record({"passed": 1}))


@pytest.fixture
def simulated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Simulated:
    made = Simulated(8.0)
    monkeypatch.setenv("INDUCTOR_LAB_TEST_MEMORY", str(tmp_path))
    monkeypatch.setattr(run, "time", made)
    monkeypatch.setattr(run, "run_tests", made.run_tests)
    monkeypatch.setattr(run, "start_lint", list)
    monkeypatch.setattr(run, "BUILD", tmp_path)
    monkeypatch.setattr(order, "changed_files", lambda since: [])
    return made


def ci(simulated: Simulated, minutes: str = "50") -> list[str]:
    simulated.now, simulated.ran = 0.0, []
    given = run.parser().parse_args(["ci", "--minutes", minutes, "--since", "HEAD"])
    assert given.run(given) == 0
    return simulated.ran


def test_ci_ends_in_time_and_every_part_runs_every_few_times(
    simulated: Simulated, capsys: pytest.CaptureFixture[str]
) -> None:
    for part in PARTS:
        Memory.open().add(part.name, Done(True, 480.0, 480.0))
    rounds = [ci(simulated) for _ in range(6)]
    assert {len(ran) for ran in rounds} == {5}, "40 minutes: 8 for the quick ones, then 4 parts"
    assert {ran[0] for ran in rounds} == {"test"}
    assert {name for ran in rounds for name in ran} == {"test", *(part.name for part in PARTS)}
    assert "Parts of `make check` that ran: " in capsys.readouterr().out
    assert ci(simulated, minutes="10") == ["test"]


def test_check_goes_on_where_it_stopped(simulated: Simulated) -> None:
    check = run.parser().parse_args(["check", "gpu", "faults"])
    assert check.run(check) == 0 and simulated.ran == ["faults", "gpu"]
    every = run.parser().parse_args(["check"])
    assert every.run(every) == 0
    parts = [part.name for part in PARTS if part.name not in ("gpu", "faults")]
    assert simulated.ran == ["faults", "gpu", "test", *parts]
    again = run.parser().parse_args(["check", "gpu", "--again"])
    assert again.run(again) == 0 and simulated.ran[-1] == "gpu"
