"""The command line: each mistake is one short answer, and what goes to a file stays whole."""

from __future__ import annotations

import io
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

import pytest

import inductor_lab as lab
from inductor_lab import cli
from inductor_lab.debug.user_file import load_function

MINE = """
import statistics
import torch
import beside

LONG = torch.ones(3)

def f(x):
    return torch.where(x.sin() + x.cos() > statistics.mean([0, 1]), x.exp() * 2, x.tanh() + x.erf())

def broken(x):
    return x / 0 + 1 / 0

def unfit(x):
    return helper(x.sin())

def helper(y):
    return y + torch.ones(4)

def endless(x):
    return endless(x) + 1

def example_inputs():
    return torch.ones(3)
"""


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user file with the name of a Python module, and a file next to it."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "beside.py").write_text("VALUE = 1\n")
    path = tmp_path / "statistics.py"
    path.write_text(MINE)
    return path


def answer(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What a command that must be refused says."""
    assert cli.main(arguments) == 2, arguments
    captured = capsys.readouterr()
    assert captured.out == "" and "Traceback" not in captured.err
    assert 1 <= len(captured.err.splitlines()) <= 4
    return captured.err


def test_mistakes_are_reported_in_a_sentence(tmp_path: Path, mine: Path, capsys) -> None:
    readme = tmp_path / "README.md"
    readme.write_text("# read me")
    assert "README.md is not a Python file" in answer(capsys, "explain", f"{readme}:f")
    assert "there is no file nowhere.py" in answer(capsys, "explain", "nowhere.py:f")
    assert "'f' does not name a function" in answer(capsys, "explain", "f")
    assert "has no g" in answer(capsys, "explain", f"{mine}:g")
    assert "cannot be called" in answer(capsys, "explain", f"{mine}:LONG")
    assert "abacus" in answer(capsys, "explain", f"{mine}:f", "--target", "abacus")
    assert "abacus" in answer(capsys, "explain", f"{mine}:f", "--ladder", "abacus")
    said = answer(capsys, "explain", f"{mine}:broken")
    assert "ZeroDivisionError" in said and "statistics.py, line 12" in said
    assert "--traceback" in said
    said = answer(capsys, "explain", f"{mine}:unfit")
    assert "shape mismatch: [3] + [4]" in said and "return y + torch.ones(4)" in said
    assert "statistics.py, line 18" in said
    said = answer(capsys, "explain", f"{mine}:endless")
    assert said.startswith("RecursionError") and len(said.splitlines()) == 2
    with pytest.raises(ZeroDivisionError):
        cli.main(["--traceback", "explain", f"{mine}:broken"])


@pytest.mark.parametrize("text, said", [
    ("def (", "SyntaxError"), ("1 / 0", "ZeroDivisionError"), ("raise SystemExit(0)", "SystemExit"),
    ("import nothing_of_the_kind", "nothing_of_the_kind"), ("\0", "cannot be imported"),
])  # fmt: skip
def test_files_that_do_not_run(tmp_path: Path, capsys, text: str, said: str) -> None:
    path = tmp_path / "bad.py"
    path.write_text(text)
    assert said in answer(capsys, "explain", f"{path}:f")


@pytest.mark.parametrize("text", ["async def f(x):\n    return x", "def f(x):\n    yield x",
                                  "async def f(x):\n    yield x"])  # fmt: skip
def test_a_function_that_runs_later_is_refused(tmp_path: Path, capsys, text: str) -> None:
    path = tmp_path / "later.py"
    path.write_text(text)
    for command in ("explain", "blame", "minify"):
        said = answer(capsys, command, f"{path}:f", "--args", "(1,)")
        assert "calling it runs no line of it" in said and "give a plain function" in said


@pytest.mark.parametrize("arguments, said", [
    (["notebooks", "/dev/null/nb"], "the notebooks cannot be written to /dev/null/nb: "),
    (["demo", "trig", "--reports", "/dev/null/x"], "the reports cannot be written to /dev/null/x"),
    (["warm", "nowhere.ipynb"], "there is no nowhere.ipynb"),
    (["warm", __file__], "test_cli.py is not a notebook"),
])  # fmt: skip
def test_paths_that_cannot_be(capsys, arguments: list[str], said: str) -> None:
    assert cli.main(arguments) == 2
    error = capsys.readouterr().err
    assert said in error and "Errno" not in error and "\n  give " in error


def test_a_call_with_no_graph_has_nothing_to_generate(mine: Path, capsys) -> None:
    mine.write_text("import torch\n\ndef f(x):\n    return len(x)\n")
    assert cli.main(["explain", f"{mine}:f", "--args", "(torch.ones(3),)"]) == 0
    printed = capsys.readouterr().out
    expected = "nothing to generate: no operator on tensors was captured, or only views of them"
    assert expected in printed
    assert "% generated" not in printed


def test_a_program_that_ends_itself(mine: Path, capsys) -> None:
    for command in ("explain", "blame"):
        assert "exit(3)" in answer(capsys, command, f"{mine}:f", "--args", "exit(3)")


@pytest.mark.parametrize("limit", ["-1", "0", "nan", "inf", "soon"])
def test_a_limit_is_a_number_of_seconds(limit: str, capsys) -> None:
    with pytest.raises(SystemExit):
        cli.main(["blame", "a.py:f", "--limit", limit])
    assert "is not a number of seconds" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [[], ["explain"], ["nonsense"], ["explain", "--args"]])
def test_missing_arguments(arguments: list[str], capsys) -> None:
    with pytest.raises(SystemExit) as left:
        cli.main(arguments)
    assert left.value.code == 2
    assert "inductor-lab" in capsys.readouterr().err.splitlines()[-1]


def test_version(capsys) -> None:
    with pytest.raises(SystemExit) as left:
        cli.main(["--version"])
    assert left.value.code == 0 and lab.__version__ in capsys.readouterr().out


def test_a_users_file_leaves_the_standard_library_alone(mine: Path) -> None:
    fn, (x,) = load_function(f"{mine}:f", None)
    assert sys.modules["statistics"] is statistics and not hasattr(statistics, "f")
    assert fn(x).shape == (3,)


def test_lines_stay_whole_where_no_terminal_limits_them(mine: Path, monkeypatch) -> None:
    out = io.StringIO()
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setenv("COLUMNS", "40")
    assert cli.main(["explain", f"{mine}:f"]) == 0
    fn, args = load_function(f"{mine}:f", None)
    c = lab.inspect(fn, *args)
    (kernel,) = c.graphs[0].forward.kernels
    longest = max(map(len, str(kernel).splitlines()))
    assert longest > 80 and str(kernel).rstrip() in out.getvalue()


def test_a_reader_that_has_read_enough() -> None:
    program = "import sys; from inductor_lab.cli import main; sys.exit(main(['doctor']))"
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)  # fmt: skip
    assert process.stdout is not None
    process.stdout.close()
    _, said = process.communicate(timeout=120)
    assert "Traceback" not in said and "BrokenPipe" not in said


def test_tab_offers_the_public_names() -> None:
    assert {"inspect", "compile", "bench", "load"} <= set(dir(lab))


def test_a_function_whose_arguments_all_have_defaults_needs_none(mine: Path, capsys) -> None:
    mine.write_text("import torch\n\ndef f(n=3, flag=True):\n    return torch.ones(n) * 2\n")
    assert cli.main(["explain", f"{mine}:f"]) == 0
    assert "f: 1 graph" in capsys.readouterr().out
    mine.write_text("import torch\n\ndef f(x, n=3):\n    return x * n\n")
    assert "no arguments for f" in answer(capsys, "explain", f"{mine}:f")


def test_a_log_without_entries_is_no_success(tmp_path: Path, capsys) -> None:
    (tmp_path / "dedicated_log_torch_trace_rank_0.log").write_text("nothing of the kind\n")
    page = tmp_path / "trace.html"
    assert cli.main(["trace", str(tmp_path), "-o", str(page)]) == 1
    assert "no readable entry" in capsys.readouterr().err and page.exists()


def test_the_package_runs_as_a_module() -> None:
    command = [sys.executable, "-m", "inductor_lab", "--version"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert said == f"inductor-lab {lab.__version__}\n"


def test_tab_offers_the_public_names_only() -> None:
    assert dir(lab) == sorted(lab.__all__)


@pytest.mark.parametrize(("typed", "expected"), [
    ("why", "why-not-fused"), ("explain --rep", "--report"), ("blame model", "model.py"),
])  # fmt: skip
def test_bash_completes_commands_options_and_files(
    typed: str, expected: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("shtab")
    if shutil.which("bash") is None:
        pytest.skip("no bash")
    assert cli.main(["completion", "bash"]) == 0
    (tmp_path / "completion").write_text(capsys.readouterr().out)
    (tmp_path / "model.py").touch()
    words = ["inductor-lab", *typed.split()]
    cursor = f"COMP_WORDS=({' '.join(words)}); COMP_CWORD={len(words) - 1}"
    program = f"source ./completion; {cursor}; _shtab_inductor_lab; echo ${{COMPREPLY[@]}}"
    run = subprocess.run(["bash", "-c", program], cwd=tmp_path, capture_output=True, text=True)
    assert expected in run.stdout.split(), run
