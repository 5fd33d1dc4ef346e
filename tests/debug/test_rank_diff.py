"""`lab.diff` of the ranks of one run: which rank differs, and where (real logs of gloo ranks)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import inductor_lab as lab
from inductor_lab.cli import main
from inductor_lab.debug.diff.rank_diff import RankDiff
from tests.saved.schemas import valid

SCRIPT = Path(__file__).with_name("ranks_that_differ.py")


def trace(folder: Path, caches: list[Path], *differences: str) -> Path:
    """The folder with the logs of a process group, one rank for each cache."""
    env = {**os.environ, "TORCH_TRACE": str(folder), "TORCHINDUCTOR_COMPILE_THREADS": "1"}
    given = [",".join(map(str, caches)), *differences]
    done = subprocess.run([sys.executable, SCRIPT, *given], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def caches(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return [tmp_path_factory.mktemp(f"cache{rank}") for rank in range(6)]


@pytest.fixture(scope="module")
def equal(tmp_path_factory: pytest.TempPathFactory, caches: list[Path]) -> Path:
    return trace(tmp_path_factory.mktemp("equal"), caches[:2])


@pytest.fixture(scope="module")
def different(tmp_path_factory: pytest.TempPathFactory, caches: list[Path]) -> Path:
    return trace(tmp_path_factory.mktemp("different"), caches[2:],
                 "1=ids", "2=collectives", "3=guards")  # fmt: skip


def group(folder: Path, ranks: dict[int, Path]) -> Path:
    """A folder with the logs of some ranks under new numbers."""
    for number, log in ranks.items():
        name = f"dedicated_log_torch_trace_rank_{number}_x.log"
        old = lab.read_trace(log).files[0].rank
        text = log.read_bytes().replace(b"[rank%s]" % old.encode(), b"[rank%d]" % number)
        (folder / name).write_bytes(text)
    return folder


def logs(folder: Path) -> list[Path]:
    """The logs of a folder, by rank."""
    return sorted(folder.glob("*.log"), key=lambda path: path.name.partition("_rank_")[2])


def test_equal_ranks(equal: Path) -> None:
    found = lab.diff(equal)
    assert isinstance(found, RankDiff) and not found and found.equal == ("rank0", "rank1")
    assert repr(found) == f"RankDiff({equal.name}: 2 ranks, equal)"
    assert valid(found.to_dict())["differs"] is False


def test_each_rank_that_differs_says_where(different: Path) -> None:
    found = lab.diff(different)
    assert found.equal == ("rank0",) and [c.ranks for c in found.changes] == [
        ("rank1",), ("rank2",), ("rank3",)]  # fmt: skip
    ids, collectives, guards = found.changes
    assert ids.out_of_step == (
        "compile ids are out of step from compile 1: rank0 compiles step as 0/0; "
        "rank1 compiles warm_up as 0/0"
    )
    assert ids.run.only_new == ("warm_up rank1 0/0",) and not ids.run.changes, str(ids)
    assert not ids.collectives
    assert collectives.run.first.stage == "captured graph" and not collectives.out_of_step
    assert collectives.collectives == (
        "collective 1 differs, so the ranks can deadlock: "
        "rank0 starts all_reduce(f32[4, 4], 'sum', '0'); "
        "rank2 starts all_reduce(f32[4, 4], 'max', '0')"
    )
    assert guards.run.first.stage == "guards" and not guards.run.first.consequences, str(guards)
    assert not guards.out_of_step and not guards.collectives
    assert "setting.second" in str(guards)
    assert valid(found.to_dict())["changes"][1]["collectives"] == collectives.collectives


def test_answers_of_a_cache_differ(
    equal: Path, caches: list[Path], tmp_path: Path
) -> None:
    found = lab.diff(trace(tmp_path / "warm", [tmp_path / "empty", caches[1]]))
    (change,) = found.changes
    assert change.ranks == ("rank1",) and not change.out_of_step and not change.collectives
    assert change.run.first.stage == "cache", str(change)
    assert "-miss" in change.run.first.lines and "+hit" in change.run.first.lines


def test_most_ranks_are_the_reference(equal: Path, different: Path, tmp_path: Path) -> None:
    same, other = logs(equal)[0], logs(different)[2]
    folder = group(tmp_path, {0: other, 1: same, 2: same, 3: same})
    found = lab.diff(folder)
    assert found.equal == ("rank1", "rank2", "rank3") and found.reference == "rank1"
    assert repr(found).endswith(": rank0 differs from rank1, rank2, rank3)")
    assert "rank0 starts" in found.changes[0].collectives


def test_ranks_of_two_runs_are_compared_with_their_own(
    equal: Path, different: Path, tmp_path: Path
) -> None:
    same, other = logs(equal)[0], logs(different)[2]
    folders = [tmp_path / name for name in ("before", "after")]
    for folder in folders:
        folder.mkdir()
    group(folders[0], {0: same, 1: other})
    group(folders[1], {0: same, 1: same})
    found = lab.diff(*folders)
    assert [change.old for change in found.changes] == ["step rank1 0/0"] and found.equal == 1
    assert not lab.diff(*folders, processes=("rank0", "rank0"))


def test_the_command_compares_ranks(
    equal: Path, different: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["diff", str(equal), "--exit-code"]) == 0
    assert "2 ranks, equal" in capsys.readouterr().out
    assert main(["diff", str(different), "--exit-code"]) == 1
    said = capsys.readouterr().out
    assert "rank1, rank2, rank3 differ from rank0" in said and "out of step" in said
