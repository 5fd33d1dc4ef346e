"""Compile contracts: each seeded regression breaks its contract, which names the line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

import inductor_lab as lab
from inductor_lab.compiler.base.errors import BadArguments, BadOption
from inductor_lab.contracts import contract
from inductor_lab.contracts.conditions import Condition, read_all
from inductor_lab.contracts.contract import Contract, ContractBroken, Place
from tests.contracts.regressions import ONE, REGRESSIONS, Regression, pointwise, softmax

pytest_plugins = ("pytester",)


@pytest.fixture
def own_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    made = Place("test_it", tmp_path / "test_it.compiles.json", False, tmp_path / "kept")
    monkeypatch.setattr(contract, "place", made)
    return made


def contract_of(facts: Any, fact: str, compiler: str = "inductor_lab") -> Contract:
    """What somebody writes who wants a fact to stay as it is."""
    wanted = () if fact == "agrees" else (Condition(fact, "==", facts.counts[fact]),)
    kept = wanted or (Condition("graphs", "==", 1),)
    return Contract(kept, "eager" if fact == "agrees" else "", compiler, {})


@pytest.mark.parametrize("case", REGRESSIONS, ids=lambda case: case.name)
def test_a_regression_is_caught_and_located(case: Regression, own_place: Place) -> None:
    before = [(case.before, *args) for args in case.args]
    facts = Contract((Condition("graphs", ">=", 0),), "", "inductor_lab", {}).check(before)
    kept = contract_of(facts, case.fact)
    kept.check(before)
    with pytest.raises(ContractBroken) as broken:
        kept.check([(case.after, *args) for args in case.args])
    said = str(broken.value)
    assert said.splitlines()[1].strip().startswith(case.fact)
    changed = said.partition("since the last run that passed:")[2].splitlines()
    assert any(line.strip().startswith("+") and case.line in line for line in changed), said
    assert Path(said.rpartition("explorer page: ")[2]).stat().st_size > 10_000


@pytest.mark.parametrize("number", range(20))
def test_an_unchanged_program_never_breaks_its_contract(number: int, own_place: Place) -> None:
    """500 checks: 25 programs, 20 times each."""
    for case in REGRESSIONS:
        one = [(case.before, *case.args[0])]
        facts = Contract((Condition("graphs", "==", 1),), "", "inductor_lab", {}).check(one)
        conditions = tuple(Condition(name, "==", value) for name, value in facts.counts.items())
        Contract(conditions, "eager", "inductor_lab", {}).check(one)


def test_conditions() -> None:
    assert str(Condition.read("kernels", 3)) == "kernels == 3"
    assert str(Condition.read("bytes", "80 MB")) == "bytes <= 80.0 MB"
    assert str(Condition.read("generated", "90 %")) == "generated >= 90.0 %"
    assert Condition.read("kernels", "<= 3").holds(2) and not Condition.read("kernels", 3).holds(2)
    assert str(Condition.read("cudagraphs", "all")) == "cudagraphs >= 100.0 %"
    with pytest.raises(BadOption, match="kernels"):
        Condition.read("kernels", "all")
    for wrong in ("many", True, None, "3 apples", -1, "=> 3"):
        with pytest.raises(BadOption, match="kernels"):
            Condition.read("kernels", wrong)
    with pytest.raises(BadOption, match=r"kernals.*\n?.*kernels"):
        lab.compiles(kernals=3)
    with pytest.raises(BadOption, match="agrees"):
        lab.compiles(agrees="aten")
    with pytest.raises(BadOption, match="compiler"):
        lab.compiles(compiler="gcc")


def test_replayed_parts_are_a_share() -> None:
    for mode, share in (("default", 0.0), ("reduce-overhead", 1.0)):
        one = Contract(read_all({"graphs": 1}), "", "inductor_lab",
                       {"mode": mode, "target": "cuda:90"})  # fmt: skip
        assert one.check([(softmax, *ONE[0])]).counts["cudagraphs"] == share
    with pytest.raises(ContractBroken, match=r"cudagraphs >= 100.0 %: it is 0.0 %"):
        wanted = read_all({"cudagraphs": "all"})
        Contract(wanted, "", "inductor_lab", {}).check([(softmax, *ONE[0])])


def test_a_test_can_return_its_call_or_yield_several() -> None:
    @lab.compiles(graphs=1, kernels=1)
    def returned() -> Any:
        return softmax, *ONE[0]

    @lab.compiles(graphs=1, recompiles=1)
    def yielded() -> Any:
        for rows in (8, 4, 2):
            yield pointwise, torch.ones(rows, 3)

    @lab.compiles(graphs=1)
    def nothing() -> Any:
        yield from ()

    returned()
    yielded()
    with pytest.raises(BadArguments, match="no call"):
        nothing()


def test_stock_has_contracts_too() -> None:
    @lab.compiles(graphs=1, breaks=0, kernels=1, library_calls=0, agrees="eager", compiler="stock")
    def of_stock() -> Any:
        return softmax, *ONE[0]

    @lab.compiles(bytes="1 MB", compiler="stock")
    def bytes_of_stock() -> Any:
        return softmax, *ONE[0]

    of_stock()
    with pytest.raises(BadOption, match="facts that this compiler reports: graphs"):
        bytes_of_stock()


TESTS = """
import torch
import inductor_lab as lab

def block(x):
    y = x.softmax(-1)
    return y * 2

@lab.compiles()
def test_recorded():
    return block, torch.ones(4, 8)

@lab.compiles(kernels=2)
def test_broken(tmp_path):
    assert tmp_path.exists()
    return block, torch.ones(4, 8)
"""


def test_pytest_records_checks_and_writes_pages(
    pytester: pytest.Pytester, request: pytest.FixtureRequest
) -> None:
    loaded = request.config.pluginmanager.has_plugin("inductor_lab")
    plugin = () if loaded else ("-p", "inductor_lab.contracts.plugin")

    def run_pytest(*options: str) -> pytest.RunResult:
        return pytester.runpytest_subprocess(*plugin, "-q", "--show-capture=no", *options)

    file = pytester.makepyfile(test_block=TESTS)
    run = run_pytest("-k", "recorded")
    run.stdout.fnmatch_lines(["*has no recorded facts: run pytest --compile-snapshot*"])
    run_pytest("-k", "recorded", "--compile-snapshot").assert_outcomes(passed=1)
    snapshot = file.with_suffix(".compiles.json")
    assert '"kernel: y = x.softmax(-1); return y * 2": 1' in snapshot.read_text()
    run = run_pytest()
    run.assert_outcomes(passed=1, failed=1)
    run.stdout.fnmatch_lines(["*kernels == 2: it is 1*", "*explorer page: *test_broken.html*"])
    file.write_text(TESTS.replace("y * 2", "y.sort(-1).values"))
    run = run_pytest("-k", "recorded")
    run.stdout.fnmatch_lines(["*library_calls == 0: it is 1*", "*+ return y.sort(-1).values*"])
    snapshot.write_text("{")
    run_pytest("-k", "recorded").stdout.fnmatch_lines(["*is no JSON*"])
