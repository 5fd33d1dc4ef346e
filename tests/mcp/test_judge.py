"""The tool `judge` with the SDK's client: verdicts, limits, processes that a candidate leaves."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from inductor_lab.debug.judge.judge import NOT_CONFINED
from inductor_lab.debug.untrusted.confine import confinable
from tests.judge import exploits, more_exploits
from tests.judge.exploits import HEAD
from tests.mcp.client import LabClient, connected

pytestmark = pytest.mark.skipif(not confinable(), reason="no Landlock on this machine")
REFERENCE = """
import torch

def f(x):
    return torch.softmax(2 * x, -1)

def example_inputs():
    return (torch.randn(33, 40),)
"""
CANDIDATES = {
    "honest": "candidate = right\n",
    "ours": "import inductor_lab as lab\ncandidate = lab.compile(right, dynamic=True)\n",
    "cheat": exploits.WRONG["cache_by_shape"],
    "thread": exploits.FAST["a_thread_slows_the_reference"],
    "child": more_exploits.FAST["a_child_works_all_the_time"],
    "chain": more_exploits.FAST["starts_child_after_child"],
    "endless": exploits.WRONG["never_ends"],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("judge")
    folder = made / "project"
    folder.mkdir()
    (folder / "reference.py").write_text(REFERENCE)
    for name, text in CANDIDATES.items():
        (folder / f"{name}.py").write_text(HEAD + text)
    (made / "outside.py").write_text(HEAD + CANDIDATES["honest"])
    (folder / "link.py").symlink_to(made / "outside.py")
    return folder


@pytest.fixture(scope="module")
def client(folder: Path) -> Iterator[LabClient]:
    with connected(folder) as found:
        yield found


def judged(client: LabClient, name: str, seconds: float | None = None) -> dict:
    timing = {"no_timing": True} if seconds is None else {"seconds": seconds}
    return client.document("judge", candidate=f"{name}.py", function="reference.py:f", **timing)


def test_an_honest_candidate_is_accepted_and_a_cheat_rejected(client: LabClient) -> None:
    honest, cheat = judged(client, "honest", 0.2), judged(client, "cheat")
    assert honest["kind"] == "judgement" and honest["accepted"], honest
    assert honest["speed"]["rounds"] > 0 and NOT_CONFINED not in honest["notes"]
    assert not cheat["accepted"] and cheat["reasons"]
    assert "exit_code" not in cheat


def test_a_candidate_that_compiles_is_accepted(client: LabClient) -> None:
    assert judged(client, "ours")["accepted"]


def test_files_outside_of_the_folder_are_refused(client: LabClient) -> None:
    for name in ("../outside.py", "link.py", "/etc/passwd", "none.py"):
        found = client.refused("judge", candidate=name, function="reference.py:f")
        assert found["error"] == "OutsideFolder", name
    found = client.refused("judge", candidate="honest.py", function="../outside.py:right")
    assert found["error"] == "OutsideFolder"


@pytest.mark.parametrize("name", ["thread", "child", "chain"])
def test_processes_that_a_candidate_leaves_are_seen(client: LabClient, name: str) -> None:
    """Below the server they are seen only by the keeper, which is not confined."""
    found = judged(client, name, 0.2)
    assert not found["accepted"], found
    assert "not called" in found["reasons"][0]


def test_a_candidate_has_its_own_limit(client: LabClient) -> None:
    found = client.document("judge", candidate="endless.py", function="reference.py:f", limit=3)
    assert "did not end within 3 s" in found["reasons"][0]


def test_progress_names_the_cases(client: LabClient) -> None:
    told: list[str] = []

    async def progress(done: float, total: float | None, message: str | None) -> None:
        told.append(message or "")

    async def call() -> object:
        given = {"candidate": "honest.py", "function": "reference.py:f", "seconds": 1.5}
        return await client.client.call_tool("judge", given, progress_callback=progress)

    assert not client.portal.call(call).is_error
    assert any("timing" in text or "case" in text for text in told), told
