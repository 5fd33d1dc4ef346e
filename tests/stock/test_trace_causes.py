"""A log says as much about recompiles as the process that wrote it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import inductor_lab as lab
from inductor_lab.compiler.capture.capture import readable_source
from inductor_lab.compiler.capture.events import Event
from inductor_lab.stock.trace_causes import MOST_EARLIER, CacheReasons, decided
from inductor_lab.stock.trace_log import TraceLog
from tests.saved.schemas import valid

PROGRAM = Path(__file__).with_name("recompiling.py")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[TraceLog, dict[str, Any]]:
    """The log of `recompiling.py`, and what `lab.recompiles` saw in its process."""
    folder = tmp_path_factory.mktemp("trace")
    env = {**os.environ, "TORCH_TRACE": str(folder)}
    done = subprocess.run([sys.executable, PROGRAM], check=True, env=env, capture_output=True)
    return lab.read_trace(folder), json.loads(done.stdout.splitlines()[-1])


def test_a_log_has_the_failed_guards_of_the_process(run) -> None:
    log, live = run
    logged = {(r.compile_id, r.failed, plain(r.reason))
              for each in log.compiled for r in each.recompiles}  # fmt: skip
    told = {(new, failed, plain(reason)) for new, failed, _, reason in live["reasons"]}
    assert {reason for _, _, reason in logged} >= {
        "n == 2", "flag == True",
        "tensor 'x' size mismatch at index 0. expected 4, actual 5",
        "tensor 'y' size mismatch at index 0. expected 2, actual 3",
        "tensor 'y' size mismatch at index 1. expected 2, actual 4",
    }  # fmt: skip
    refused = {each.compile_id for each in log.compiled if each.limit}
    undecided = {one for one in told - logged if one[0] not in refused}
    assert len(undecided) <= len(told) // 4, undecided
    assert {one for one in logged - told if "dtype" not in one[2]} == set()


def plain(reason: str) -> str:
    return " ".join(readable_source(reason).split())


def test_a_log_has_what_varied_limits_and_specialized_sizes(run) -> None:
    log, live = run
    assert next(str(each) for each in log.varied if each.source == "L['x']") in live["varied"]
    assert any("limit" in each.limit for each in log.compiled)
    (size,) = (one for each in log.compiled for one in each.specialized)
    assert size.source == "L['x'].size()[1]" and size.value == "3"
    assert size.via is not None and size.via.file == "torch/nn/modules/linear.py"
    assert "varied: x: float32[4, 3]" in str(log) and "limit reached: " in str(log)
    valid(log.to_dict())


def test_breaks_are_listed_once_and_written_to_one_file(run, tmp_path: Path, request) -> None:
    log, live = run
    assert len(log.breaks) == len(live["breaks"]) == 1
    assert log.breaks.compile_ids[0][:2] and "GB" in str(log.breaks)
    text = log.breaks.write(tmp_path / "breaks.txt").read_text(encoding="utf-8")
    assert f"torch {log.torch_version}" in text and 'print("in the middle")' in text
    assert text.count("recompiling.py") >= 1 and "https://" in text
    keep = request.config.getoption("--update-golden")
    valid(log.breaks.to_dict(), keep=keep)


@pytest.mark.parametrize(("condition", "answer"), [
    ("2 <= L['x'].size()[0]", True), ("L['x'].size()[0] <= 5 and L['y'].size()[0] == 2", False),
    ("L['x'].size()[0]*2 == 14", True), ("L['x'].size()[0] % 2 == 1", True),
    ("L['z'].size()[0] > 1", None), ("__import__('os').getpid() > L['x'].size()[0]", None),
    ("L['x'].size()[0] ** 99999999 > 1", None), ("L['x'].size()[9] > 1", None),
    ("L['x'].size()[0] // 0 > 1", None),
])  # fmt: skip
def test_conditions_on_sizes_are_decided_without_running_them(
    condition: str, answer: bool | None
) -> None:
    assert decided(condition, {"L['x']": "float32[7, 3]", "L['y']": "float32[3]"}) is answer


def test_a_cache_miss_has_a_reason() -> None:
    caches = CacheReasons()

    def event(compile_id: str, answer: str, **known: object) -> Event:
        metadata = {"artifact": {"name": f"fx_graph_cache_{answer}"}, "frame_id": compile_id,
                    "frame_compile_id": 0}  # fmt: skip
        return Event(metadata, json.dumps(known))

    parts = ["[a] gm: graph", "[b] example_inputs[0]: x"]
    assert list(caches.reasons([
        event("0", "miss", components=parts),
        event("1", "miss", components=[parts[0], "[c] example_inputs[0]: y"]),
        event("2", "miss", components=parts),
        event("3", "bypass", cache_bypass_reason="an unsafe operator"),
    ])) == [
        "fx_graph: missed: the log has no earlier entry to compare with",
        "fx_graph: missed: differs from 0/0 in example_inputs[0]",
        "fx_graph: missed, with the key of 0/0: its entry was not stored, or removed",
        "fx_graph: bypassed: an unsafe operator",
    ]  # fmt: skip


def test_reasons_of_a_cache_keep_few_entries() -> None:
    def miss(number: int, key: str) -> Event:
        payload = json.dumps({"components": [f"[{key}] graph: text", "[same] config: text"]})
        return Event({"artifact": {"name": "fx_graph_cache_miss"}, "frame_id": number,
                      "frame_compile_id": 0}, payload)  # fmt: skip

    reasons, count = CacheReasons(), 10 * MOST_EARLIER
    found = list(reasons.reasons(miss(number, str(number)) for number in range(count)))
    assert found[1] == "fx_graph: missed: differs from 0/0 in graph"
    assert found[-1].startswith(f"fx_graph: missed: differs from {count - 1 - MOST_EARLIER}/0")
    (again,) = reasons.reasons([miss(count, "3")])
    assert again == "fx_graph: missed, with the key of 3/0: its entry was not stored, or removed"
    assert len(reasons._earlier["fx_graph"]) == MOST_EARLIER
