"""Graphs that another process has compiled are found on disk, and give the same results."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from inductor_lab.compiler.accelerate import warm_graphs
from inductor_lab.compiler.accelerate.warm_graphs import warm_key
from inductor_lab.compiler.base.options import Options

PROGRAM = Path(__file__).with_name("warm_program.py")
FOUND = (
    "inference",
    "training",
    "layers",
    "optimizer",
    "writes",
    "symbolic",
    "symbolic_training",
    "closed_over",
    "random",
    "complaint",
    "direct",
)
NEW = {
    "shared": "its inputs lie in one memory now",
    "reach": "its size may be zero",
    "bounds": "its size may be smaller",
    "literal": "it has another number",
    "mixed": "autocast has another dtype",
    "other options": "they make other code",
}
NEVER = ("branches", "foreign", "packet", "fixed_float")
Report = dict[str, dict[str, Any]]


def run(folder: Path, which: str) -> Report:
    """Return the report of the program; its text is one line longer in the second process."""
    program = folder / "program.py"
    program.write_text("\n" * (which == "second") + PROGRAM.read_text())
    caches = ("INDUCTOR_LAB_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR")
    environment = {**os.environ, **{name: str(folder / "cache") for name in caches}}
    command = [sys.executable, str(program), which]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> tuple[Report, Report]:
    folder = tmp_path_factory.mktemp("warm")
    return run(folder, "first"), run(folder, "second")


def test_all_results_equal_eager_mode(reports: tuple[Report, Report]) -> None:
    for report in reports:
        for name, case in report.items():
            assert case.get("is", "eager's") == "eager's", name


@pytest.mark.parametrize("name", FOUND)
def test_a_second_process_finds_the_graphs_of_the_first(
    reports: tuple[Report, Report], name: str
) -> None:
    first, second = (report[name] for report in reports)
    assert first["saved"] == 1
    assert (second["hit"], second["miss"], second["bypass"]) == (1, 0, 0)


@pytest.mark.parametrize("name", NEW)
def test_changed_programs_are_recompiled(reports: tuple[Report, Report], name: str) -> None:
    assert (reports[1][name]["hit"], reports[1][name]["miss"]) == (0, 1), NEW[name]


@pytest.mark.parametrize("name", NEVER)
def test_graphs_with_live_objects_are_not_stored(reports: tuple[Report, Report], name: str) -> None:
    assert [report[name]["saved"] for report in reports] == [0, 0]
    assert [report[name]["hit"] for report in reports] == [0, 0]


def test_without_the_cache_option_nothing_is_stored(reports: tuple[Report, Report]) -> None:
    counts = [report["no cache"][k] for report in reports for k in ("hit", "miss", "saved")]
    assert counts == [0] * 6


def test_seeds_give_the_same_numbers(reports: tuple[Report, Report]) -> None:
    first, second = (report["random"]["values"] for report in reports)
    assert first == second


def test_errors_name_the_current_line(reports: tuple[Report, Report]) -> None:
    lines = PROGRAM.read_text().splitlines()
    (line,) = (n for n, text in enumerate(lines, 1) if "table[i].exp()" in text)
    for extra, report in enumerate(reports):
        (said,) = report["complaint"]["values"]
        assert "table[i].exp()" in said
        assert re.search(rf"program\.py:{line + extra}\b", said)


def test_a_call_skips_the_wrapper_as_after_a_compile(reports: tuple[Report, Report]) -> None:
    home = "inductor_lab.compiler.accelerate.bare_calls"
    assert [r["direct"]["values"] for r in reports] == [[home]] * 2


def test_a_folder_that_others_can_write_to_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    assert warm_key(Options(), ()) != ""
    tmp_path.chmod(0o777)
    assert warm_key(Options(), ()) == ""
    tmp_path.chmod(0o700)
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    assert warm_key(Options(), ()) == ""


def test_all_dependencies_of_a_compile_are_in_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = [warm_key(Options(), places) for places in ((), (0,))]
    keys.append(warm_key(Options(matmul="aten"), ()))
    threads = torch.get_num_threads()
    torch.set_num_threads(threads + 1)
    try:
        keys.append(warm_key(Options(), ()))
    finally:
        torch.set_num_threads(threads)
    monkeypatch.setattr(warm_graphs, "compiler_itself", lambda: "of tomorrow")
    keys.append(warm_key(Options(), ()))
    assert len(set(keys)) == len(keys)
