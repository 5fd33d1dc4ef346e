"""`inductor-lab --json`: one JSON document on the output, and the exit codes that docs/json.md
lists."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import inductor_lab as lab
from inductor_lab import cli
from inductor_lab.debug.user_file import load_function
from inductor_lab.saved.documents.kinds import schema
from tests.saved.schemas import valid

FILE = """
import torch

def f(x):
    print("printed by the user's function")
    a = torch.neg(x)
    return torch.maximum(a, x)

def broken(x):
    return x / 0 + 1 / 0

def example_inputs():
    return torch.arange(9, dtype=torch.uint8)
"""

pytestmark = pytest.mark.usefixtures("known_limits")


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "program.py"
    path.write_text(FILE)
    return path


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], request: pytest.FixtureRequest) -> Callable[..., Any]:
    """Run a command with `--json`; its exit code and its document, which is valid."""

    def command(*arguments: str) -> tuple[int, dict[str, Any]]:
        code = cli.main([*arguments, "--json"])
        found = json.loads(capsys.readouterr().out)
        assert schema(found["kind"])["$id"].endswith(found["schema"])
        return code, valid(found, keep=request.config.getoption("--update-golden"))

    return command


def test_explain_in_small_pieces(run, file: Path) -> None:
    code, found = run("explain", f"{file}:f", "--save", "f.lab.json", "--measure", "0.05")
    assert code == 0 and found["kind"] == "compilation"
    code, outline = run("explain", "f.lab.json", "--max-bytes", "2000")
    assert code == 0 and outline["kind"] == "outline" and outline["of"] == "compilation"
    ids = [item["id"] for item in outline["items"]]
    assert "g0" in ids
    code, kernel = run("explain", "f.lab.json", "--select", "g0.forward.kernel:0")
    assert code == 0 and kernel["kind"] == "kernel" and kernel["time"]["seconds"] > 0
    lines = {origin["place"]["code"] for origin in kernel["origins"]}
    assert "a = torch.neg(x)" in lines
    code, field = run("explain", "f.lab.json", "--select", "g0.forward.kernel:0/code")
    assert field["value"] == kernel["code"]
    code, page = run("explain", "f.lab.json", "--max-bytes", "1000", "--skip", "1")
    assert page["items"][0]["id"] == ids[1]


def test_other_commands_on_a_function(run, file: Path) -> None:
    code, found = run("memory", f"{file}:f")
    assert code == 0 and found["kind"] == "memory" and found["plans"]
    code, found = run("compile-time", f"{file}:f")
    assert code == 0 and "fx_graph hit" in found["warm"]["caches"] and found["cold"]["phases"]
    code, found = run("recompiles", f"{file}:f", "--args", "torch.ones(3)",
                      "--args", "(torch.ones(4),)", "--args", "(torch.ones(5),)")  # fmt: skip
    assert code == 0 and found["recompiles"] == 1
    assert any("expected 3, actual 4" in reason["reason"] for one in found["compiled"]
               for reason in one["reasons"])  # fmt: skip
    code, found = run("bench", f"{file}:f", "--seconds", "0.05", "--against", "eager")
    assert code == 0 and [c["name"] for c in found["contenders"]] == ["eager", "inductor_lab"]


TWO_KERNELS = """
import torch

def attend(q, k):
    scores = (q @ k.T).softmax(-1)
    return (scores * 2).sum(0)

def example_inputs():
    return torch.ones(64, 32), torch.ones(64, 32)
"""


def test_commands_that_change_something_and_compare(run, file: Path) -> None:
    file.write_text(TWO_KERNELS)
    code, whole = run("explain", f"{file}:attend", "--save", "a.lab.json")
    part = lab.load("a.lab.json").graphs[0].forward
    apart = {d[-1] for d in part.schedule.decisions.by_pair.values() if not d[-1].fused}
    code, found = run("why-not-fused", "a.lab.json")
    assert code == 0 and apart
    assert {(d["producer"], d["consumer"]) for d in found["decisions"]} == {
        (d.producer, d.consumer) for d in apart
    }
    (first, *_) = found["decisions"]
    code, one = run("why-not-fused", "a.lab.json", first["producer"], first["consumer"])
    assert code == 0 and one["verdicts"] == first["verdicts"] and one["id"] == first["id"]
    (same,) = [d for d in whole["graphs"][0]["parts"][0]["decisions"] if d["id"] == first["id"]]
    explained = [{**v, **{k: w[k] for k in ("meaning", "cure")}}
                 for v, w in zip(same["verdicts"], first["verdicts"], strict=True)]  # fmt: skip
    assert first == {**first, **same, "verdicts": explained}
    assert [bool(v["meaning"]) for v in first["verdicts"]] == [
        v["reason"] is not None for v in first["verdicts"]
    ]

    code, found = run("what-if", f"{file}:attend", "--no-fusion")
    assert code == 0 and found["before"]["kernels"] < found["after"]["kernels"]
    pair = next(d for d in part.schedule.decisions if d.fused)
    names = pair.producer, pair.consumer
    code, forbidden = run("what-if", f"{file}:attend", "--forbid", ",".join(names))
    fn, args = load_function(f"{file}:attend", None)
    expected = lab.inspect(fn, *args).what_if(forbid=[names]).after
    assert code == 0 and forbidden["after"]["passes"] == expected.passes
    assert forbidden["after"] != forbidden["before"]
    code, same = run("diff", "a.lab.json", f"{file}:attend")
    kernels = str(found["before"]["kernels"])
    assert code == 0 and not same["differs"] and same["numbers"]["kernels"] == [kernels, kernels]
    file.write_text(TWO_KERNELS.replace("* 2", "* 3"))
    code, changed = run("diff", "a.lab.json", f"{file}:attend", "--exit-code")
    assert code == 1 and [each["stage"] for each in changed["changes"]] == ["captured graph"]
    file.write_text(TWO_KERNELS)

    kernel = part.kernels[0]
    text = file.parent / "edited.cpp"
    text.write_text(str(kernel.code))
    given = ("try-kernel", f"{file}:attend", kernel.name, str(text), "--seconds", "0.05")
    code, found = run(*given)
    assert code == 0 and found["right"] and found["edited_seconds"] > 0
    text.write_text(str(kernel.code).replace("return 0;", "return nothing;"))
    code, found = run(*given)
    assert code == 1 and not found["right"] and "nothing" in found["errors"][0]["message"]


def test_commands_that_compare_refuse_bad_input(run, file: Path) -> None:
    file.write_text(TWO_KERNELS)
    assert run("explain", f"{file}:attend", "--save", "a.lab.json")[0] == 0
    for arguments, words in (
        (("why-not-fused", "a.lab.json", "buf0"), "one value is not a pair"),
        (("why-not-fused", "a.lab.json", "buf0", "buf77"), "unknown value 'buf77'"),
        (("why-not-fused", "a.lab.json", "--part", "g7.forward"), "there is g0.forward"),
        (("what-if", "a.lab.json", "--no-fusion"), "was loaded from a file"),
        (("try-kernel", f"{file}:attend", "k", "nowhere.cpp"), "cannot be read"),
    ):
        code, found = run(*arguments)
        assert code == 2 and words in found["message"], arguments
    with pytest.raises(SystemExit):
        cli.main(["what-if", f"{file}:attend", "--forbid", "buf0"])


def test_the_exit_code_of_a_check_that_failed_is_1(run, file: Path) -> None:
    code, found = run("blame", f"{file}:f")
    assert code == 0 and found["right"]
    code, found = run("minify", f"{file}:f")
    assert code == 2 and found["kind"] == "error" and "nothing to shrink" in found["message"]
    with lab.faults.wrong_neg():
        code, found = run("blame", f"{file}:f")
        assert code == 1 and found["fault"]["place"]["code"] == "a = torch.neg(x)"
        code, found = run("minify", f"{file}:f")
        assert code == 1 and "torch.neg(x0)" in found["script"]


def test_the_exit_code_of_bad_input_is_2(run, file: Path) -> None:
    for arguments, error in (
        (("explain", f"{file}:g"), "BadArguments"),
        (("explain", f"{file}:broken"), "ZeroDivisionError"),
        (("explain", "nowhere.lab.json"), "UnreadableFile"),
        (("doctor", "--select", "nothing"), "UnknownName"),
        (("doctor", "--max-bytes", "3"), "BadArguments"),
    ):
        code, found = run(*arguments)
        assert code == found["exit_code"] == 2
        assert found["error"] == error and found["message"]


def test_the_exit_code_of_an_interrupted_command_is_130(
    run, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("inductor_lab.debug.doctor.report", interrupted)
    code, found = run("doctor")
    assert code == found["exit_code"] == 130


def test_commands_without_a_function(run, tmp_path: Path, file: Path) -> None:
    code, found = run("doctor")
    assert code == 0 and found["healthy"]
    code, found = run("cache")
    assert code == 0 and found["kinds"] and found["deleted_bytes"] == 0
    code, found = run("notebooks", "here")
    assert code == 0 and found["kind"] == "text" and "jupyter lab here" in found["text"]


def test_what_the_user_prints_is_not_in_the_document(file: Path, capsys) -> None:
    assert cli.main(["explain", f"{file}:f", "--json"]) == 0
    captured = capsys.readouterr()
    assert len(captured.out.splitlines()) == 1
    assert "printed by the user's function" in captured.err
    assert cli.main(["memory", f"{file}:f", "--json", "--no-suggestions"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1, "the step prints in other processes"
