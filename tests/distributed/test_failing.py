"""If a rank fails, the others report it, and the cache stays clean."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import torch.distributed as dist

from tests.distributed.programs import CACHES, compiled_together, mesh_of, total
from tests.distributed.ranks import of_all, results_of
from tests.processes import Lost

EXPECTS_TWO = """
import torch, torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard

dist.init_process_group("gloo")
mesh = init_device_mesh("cpu", (2,))

@torch.compile(backend="inductor_lab")
def f(x):
    return DTensor.from_local(x, mesh, [Shard(0)]).redistribute(mesh, [Replicate()]).to_local() + 1

assert f(torch.ones(2)).shape == (4,), f"rank {dist.get_rank()} has no place in a mesh of two"
dist.barrier()
"""
IS_KILLED = """
import signal, torch.distributed as dist
from tests.distributed.programs import compiled_together

signal.signal(signal.SIGTERM, signal.SIG_IGN)  # as one that saves what it has before it ends
dist.init_process_group("gloo")
compiled_together(0, "in the C++ compiler")
"""
ROOT = Path(__file__).parents[2]


def in_tmp(cache: Path) -> list[str]:
    """Unfinished cache entries: files in the build folder, and temporary files of torch."""
    left = [*cache.glob("inductor_lab/tmp/*"), *cache.glob("aotautograd/**/*.tmp")]
    return sorted(path.name for path in left)


def test_other_ranks_report_a_rank_that_cannot_compile() -> None:
    other, failed = results_of(2, compiled_together, 1, "cannot compile")
    assert "the seeded fault" in failed
    assert other.startswith("RankFailed: rank 0 was in a collective, and rank 1 could not go on")
    assert "the seeded fault" in other


@pytest.mark.parametrize("how", ["between calls", "in lowering", "in the C++ compiler"])
def test_other_ranks_report_a_killed_rank(how: str, tmp_path: Path) -> None:
    other, failed = results_of(2, compiled_together, 1, how, cache=tmp_path)
    assert isinstance(failed, Lost) and "SIGKILL" in failed.why
    assert other.startswith("RankFailed: rank 0 was in a collective, and rank 1, process ")
    assert "has ended" in other
    if how == "in the C++ compiler":  # the next one needs the kernel that was not finished
        of_all(results_of(1, compiled_together, 0, "not at all", cache=tmp_path))
    assert in_tmp(tmp_path) == [], "the next build deletes unfinished files"


def test_without_a_process_group_errors_equal_eager_mode() -> None:
    assert not dist.is_initialized()
    with pytest.raises(ValueError) as eager:
        total(torch.ones(2, 2))
    with pytest.raises(ValueError) as compiled:
        torch.compile(total, backend="inductor_lab")(torch.ones(2, 2))
    assert str(compiled.value).startswith(str(eager.value))


def test_a_mesh_of_another_size_is_reported_and_the_group_continues() -> None:
    for said, summed in of_all(results_of(2, mesh_of, 4)):
        assert "world size 2" in said and "4 ranks" in said
        assert summed == [[5.0, 5.0], [5.0, 5.0]]


def test_torchrun_with_more_processes_than_the_program_expects(tmp_path: Path) -> None:
    said = under_torchrun(3, EXPECTS_TWO, tmp_path)
    assert "rank 2 has no place in a mesh of two" in said
    assert "local_rank: 2" in said.partition("Root Cause")[2]
    assert in_tmp(tmp_path) == []


def test_the_remaining_rank_reports_a_rank_killed_under_torchrun(
    tmp_path: Path,
) -> None:
    """The first rank is killed while it writes a library: the store is in torchrun itself."""
    said = under_torchrun(2, IS_KILLED, tmp_path)
    assert "RankFailed: rank 1 was in a collective, and rank 0, process " in said
    assert "Signal 9 (SIGKILL)" in said.partition("Root Cause")[2]
    of_all(results_of(1, compiled_together, 0, "not at all", cache=tmp_path))
    assert in_tmp(tmp_path) == []


def under_torchrun(processes: int, program: str, folder: Path) -> str:
    """The standard error of the ranks and torchrun; the program fails within the limit."""
    written = folder / "program.py"
    written.write_text(program)
    own = {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    launch = (sys.executable, "-m", "torch.distributed.run", "--standalone")
    done = subprocess.run(
        [*launch, f"--nproc-per-node={processes}", str(written)],
        env={**os.environ, **dict.fromkeys(CACHES, str(folder)), **own},
        capture_output=True, text=True, timeout=240,
    )  # fmt: skip
    assert done.returncode != 0
    return done.stderr
