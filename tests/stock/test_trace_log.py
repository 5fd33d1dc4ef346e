"""`lab.read_trace`: the log of a run as an index and explorers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tracemalloc
from pathlib import Path

import pytest

import inductor_lab as lab
from inductor_lab.cli import main
from inductor_lab.compiler.base.errors import UnknownName, UnreadableFile
from inductor_lab.saved.documents.outline import select
from inductor_lab.stock.trace_log import TraceLog
from inductor_lab.widgets.model import document
from tests.saved.schemas import valid

TRAINING = Path(__file__).with_name("training.py")


@pytest.fixture(scope="session")
def folder(tmp_path_factory) -> Path:
    """The log of `training.py`, run in a separate process."""
    found = tmp_path_factory.mktemp("trace")
    env = {
        **os.environ, "TORCH_TRACE": str(found), "INDUCTOR_PROVENANCE": "1",
        "TORCHINDUCTOR_CACHE_DIR": str(tmp_path_factory.mktemp("inductor")),
    }  # fmt: skip
    subprocess.run([sys.executable, TRAINING], check=True, env=env, capture_output=True)
    return found


@pytest.fixture(scope="session")
def log(folder: Path) -> TraceLog:
    return lab.read_trace(folder)


def test_the_index_lists_compilations_and_reasons_for_recompiles(log):
    found = {one.key: one for one in log.compiled}
    assert list(found) == ["0/0", "1/0", "0/1", "1/1", "2/0", "2/1"]
    assert found["0/0"].function == "forward" and found["2/0"].function == "scaled"
    assert found["0/0"].where.file.endswith("training.py")
    assert "print" in found["0/0"].breaks[0].explanation
    assert found["0/0"].breaks[0].span.code == 'print("in the middle")'
    assert found["0/0"].restarts and not found["1/0"].restarts
    assert "expected 4, actual 6" in found["0/1"].recompiles[0].reason
    assert found["2/1"].recompiles[0].failed == "2/0"
    assert all(one.status == "compiled" and one.seconds > 0 for one in log.compiled)
    assert found["0/0"].caches == ("miss", "miss") and found["2/0"].caches == ("miss",)
    assert log.problems == () and log.torch_version
    assert "graph break: " in str(log) and "6 compile ids" in repr(log)


def test_a_compile_id_opens_as_a_compilation(log):
    opened = log["0/1"]
    graph = opened.graphs[0]
    assert [part.name for part in graph.parts] == ["forward", "backward"]
    assert graph.joint is not None and opened.capture.guards and opened.phases
    assert opened.linked_share >= 0.95 and opened.statements[0] > 20
    assert any("s" in str(n.tensor.shape) for n in graph.captured.nodes if n.tensor)
    assert opened.capture.symbols
    shown = document(opened)
    text = json.dumps(shown["panes"]["source"])
    assert "gelu(self.inner(x))" in text
    assert "lab.inspect" in json.dumps(shown["panes"]["g0.forward.loops"])
    assert log["[0/1]"].name == opened.name


def test_an_unknown_compile_id_lists_the_known_ones(log):
    with pytest.raises(UnknownName, match="0/0, 1/0"):
        log["9/9"]


def test_missing_logs_are_reported(tmp_path):
    with pytest.raises(UnreadableFile, match="no trace log"):
        lab.read_trace(tmp_path)
    with pytest.raises(UnreadableFile, match="cannot read"):
        lab.read_trace(tmp_path / "none.log")


def test_damaged_lines_are_skipped_and_reported(folder, log, tmp_path):
    (source,) = folder.glob("*.log")
    lines = source.read_bytes().split(b"\n")
    output = next(i for i, line in enumerate(lines) if b'{"inductor_output_code"' in line)
    start = next(i for i, line in enumerate(lines) if b'{"dynamo_start"' in line)
    lines[output + 5] = b"\tchanged by a bad disk"
    lines[start] = lines[start][:-20]
    lines.insert(0, b"\xff\xfe nonsense")
    damaged = tmp_path / "damaged.log"
    damaged.write_bytes(b"\n".join(lines)[: -len(lines[-2]) // 2 - 40])
    found = lab.read_trace(damaged)
    assert len(found) == len(log)
    assert found.problems[0] == "damaged.log: line 1 is not a trace entry: skipped"
    assert any("payload" in problem for problem in found.problems) and len(found.problems) >= 3
    assert [part.name for part in found["0/0"].parts]
    for one in found.compiled:
        document(found[one.key])


HEAD = "V1123 03:24:27.247000 1 torch/x.py:1] "
HOSTILE = "<img src=x onerror=alert(1)>"


def entry(metadata: dict[str, object], payload: str = "") -> str:
    import hashlib

    if payload:
        metadata["has_payload"] = hashlib.md5(payload.encode()).hexdigest()
    shown = "".join(f"\t{line}\n" for line in payload.split("\n")) if payload else ""
    return f"{HEAD}{json.dumps(metadata)}\n{shown}"


def hostile_log(path: Path) -> Path:
    ids = {"frame_id": HOSTILE, "frame_compile_id": 0, "attempt": "many"}
    plain = {"frame_id": 0, "frame_compile_id": 0, "attempt": 0}
    numbers = {"frame_id": 6, "frame_compile_id": 0, "attempt": 0}
    stack = f'User code traceback:\n  File "/dev/zero", line 1, in f\n    {HOSTILE}\n    ^^^'
    code = "__import__('os').system('touch HACKED')\nassert False"
    graph = (
        'class <lambda>(M):\n    def forward(self, x: "f32[4]"):\n'
        f"        # File: /dev/zero:1 in {HOSTILE}, code: {HOSTILE}\n"
        "        y = evil(x)\n        return y"
    )
    path.write_text("".join([
        entry({"str": [HOSTILE, 0]}), entry({"str": "wrong"}),
        entry({"dynamo_start": {"stack": [{"filename": 0, "line": 1, "name": HOSTILE}]}, **ids}),
        entry({"dynamo_output_graph": {}, **plain}, graph),
        entry({"inductor_output_code": {}, **plain}, code),
        entry({"artifact": {"name": "dynamo_graph_break_reason"}, **plain}, HOSTILE + stack),
        entry({"artifact": {"name": "recompile_reasons"}, **plain}, "[1, 2"),
        entry({"create_symbol": {"symbol": 3}, **plain}),
        entry({"create_symbol": {"symbol": "s1", "source": 4, "vr": [], "val": None}, **numbers}),
        entry({"create_symbol": {"symbol": "s2", "source": "\\1", "vr": None}, **numbers}),
        entry({"guard_added": {"expr": "Eq(s2, 4)"}, **numbers}),
        entry({"guard_added": 7, **plain}),
        entry({"chromium_event": {}, **plain}, "[]"),
        entry({"compilation_metrics": {"fail_type": HOSTILE, "fail_reason": HOSTILE}, **plain}),
        entry({"compilation_metrics": None, "frame_id": 5, "frame_compile_id": 0}),
    ]))  # fmt: skip
    return path


def test_nothing_in_a_log_is_run_or_opened(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = lab.read_trace(hostile_log(tmp_path / "a.log"))
    for one in found.compiled:
        document(found[one.key])
    assert not (tmp_path / "HACKED").exists()
    symbols = found["6/0"].capture.symbols
    assert [(s.name, s.source) for s in symbols] == [("s1", "4"), ("s2", "\\1")]
    assert found["6/0"].capture.guards[0].code == "Eq(\\1, 4)"
    assert found.compiled[1].breaks[0].span.column == 0
    assert found.compiled[1].status == "failed" and len(found.problems) >= 3


def test_logs_of_several_ranks_have_separate_keys(folder, tmp_path):
    (source,) = folder.glob("*.log")
    text = source.read_bytes()
    for rank in (0, 3):
        name = f"dedicated_log_torch_trace_rank_{rank}_abc.log"
        (tmp_path / name).write_bytes(text.replace(b"\nV1", b"\n[rank%d]:V1" % rank))
    found = lab.read_trace(tmp_path)
    assert [one.key for one in found.compiled][:2] == ["rank0 0/0", "rank0 1/0"]
    assert found["rank3 0/1"].graphs[0].backward is not None


def test_a_large_log_needs_little_memory(folder, tmp_path):
    (source,) = folder.glob("*.log")
    text = source.read_bytes()
    with (tmp_path / "large.log").open("wb") as file:
        file.writelines([text] * (24_000_000 // len(text)))
    seen: list[int] = []
    tracemalloc.start()
    found = lab.read_trace(tmp_path, lambda done, of: seen.append(100 * done // of))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found.problems == () and len(found) == 6
    assert seen == sorted(seen) and seen[-1] == 100 and len(set(seen)) > 20
    assert peak < 8_000_000


def test_the_command_writes_a_page(folder, tmp_path, capsys):
    assert main(["trace", str(folder), "-o", str(tmp_path / "trace.html")]) == 0
    assert "report:" in capsys.readouterr().out
    assert main(["trace", str(tmp_path), "-o", "x.html"]) == 2


def test_the_page_opens_every_compile_id(open_page, log, tmp_path):
    path = log.report(tmp_path / "trace.html")
    opened = open_page(path)
    assert opened.texts("#lab-index td a") == [one.key for one in log.compiled]
    opened.page.click("#lab-index a >> text=0/1")
    opened.page.wait_for_selector(".lab-explorer .lab-pane")
    assert "recompiled" in " ".join(opened.texts(".lab-rail"))
    assert not opened.page.locator("#lab-index").is_visible()
    opened.page.click("#lab-back a")
    opened.page.wait_for_selector("#lab-index", state="visible")
    assert opened.wrong == []


def test_a_hostile_log_is_text_on_the_page(open_page, tmp_path):
    found = lab.read_trace(hostile_log(tmp_path / "a.log"))
    opened = open_page(found.report(tmp_path / "trace.html"))
    assert HOSTILE in " ".join(opened.texts("#lab-index"))
    assert opened.count("img") == 0
    opened.page.click("#lab-index a >> text=0/0")
    opened.page.wait_for_selector(".lab-explorer .lab-pane")
    assert opened.count("img") == 0 and opened.wrong == []


def test_the_index_is_a_valid_document(log, request):
    found = log.to_dict()
    for part in ("trace", "compile:0/1"):
        valid(select(found, part), keep=request.config.getoption("--update-golden"))
    assert [entry["key"] for entry in found["compiled"]] == [one.key for one in log.compiled]
    (stop,) = found["compiled"][0]["breaks"]
    assert stop["place"]["code"] == 'print("in the middle")'
    assert "expected 4, actual 6" in found["compiled"][2]["recompiles"][0]["reason"]
