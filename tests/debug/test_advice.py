"""`lab.advise`: edits that were tried.  Each loop of `loops.py` has a known cure."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

import inductor_lab as lab
from inductor_lab.compiler.base.errors import BadArguments
from inductor_lab.debug.advice.advise import Advice, advise_calls
from inductor_lab.debug.advice.trial import Program, eager_run, outcome_of, same_results
from inductor_lab.debug.isolate import run_isolated
from inductor_lab.debug.untrusted.confine import confinable
from tests.debug import loops

EXAMPLES = (
    "static_rows", "float_argument", "layout", "backend_in_loop", "rare_mode", "one_row_and_float",
)  # fmt: skip


def other_calls_are_right(advice: Advice, name: str) -> bool:
    """Does every edit keep the results of calls that it was not tried on?"""
    path = str(loops.__file__)
    text = Path(path).read_text(encoding="utf-8")
    expected = outcome_of(run_isolated(eager_run(Program(path, text, name, (7,)))))
    assert expected is not None
    for edit in advice.edits:
        found = outcome_of(run_isolated(eager_run(Program(path, edit.text, name, (7,)))))
        if found is None or not same_results(expected, found):
            return False
    return True


def solved(name: str) -> tuple[bool, bool]:
    """Is the loop cured by a known cure, and are all edits right for other calls?"""
    advice = lab.advise(getattr(loops, name))
    assert not advice.refused, advice.refused
    compiles, cures = loops.CURES[name]
    best = advice.best
    cured = best is not None and best.compiles <= compiles and {*best.names} <= {*cures}
    return cured, other_calls_are_right(advice, name)


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_loop_is_cured(name: str) -> None:
    assert solved(name) == (True, True)


def test_most_loops_are_cured_and_none_is_made_wrong() -> None:
    found = {name: solved(name) for name in loops.CURES}
    assert len(found) >= 40
    assert [name for name, (_, right) in found.items() if not right] == []
    not_cured = [name for name, (cured, _) in found.items() if not cured]
    assert len(not_cured) <= len(found) // 10, not_cured


def text_of(name: str, tmp_path: Path, text: str) -> Any:
    """The function `name` of a file with this text."""
    from inductor_lab.debug.user_file import load_function

    file = tmp_path / "program.py"
    file.write_text(f"import torch\n\n\n{text}", encoding="utf-8")
    return load_function(f"{file}:{name}", "()")[0]


LOOP = """
def double(x):
    return x * 2


def loop():
    {effect}
    fast = torch.compile(double, backend="eager", dynamic=False)
    found = []
    for n in range(3, 6):
        x = torch.ones(n)
        found.append(fast(x))
    return found
"""
EFFECTS = {
    "open('{folder}/written', 'w')": "writes",
    "__import__('subprocess').run(['touch', '{folder}/written'])": "starts the program",
    "__import__('os').system('touch {folder}/written')": "runs the command",
    "__import__('socket').socket().connect(('127.0.0.1', 9))": "opens a connection",
}


@pytest.mark.parametrize("effect", EFFECTS)
def test_a_program_that_cannot_be_repeated_is_refused(effect: str, tmp_path: Path) -> None:
    program = text_of("loop", tmp_path, LOOP.format(effect=effect.format(folder=tmp_path)))
    advice = lab.advise(program)
    assert "cannot be repeated" in advice.refused and EFFECTS[effect] in advice.refused
    assert not (tmp_path / "written").exists(), "nothing was written"
    assert advice.edits == () and advice.runs == 1


@pytest.mark.skipif(not confinable(), reason="needs Landlock")
def test_a_file_that_cpp_code_writes_is_refused(tmp_path: Path) -> None:
    effect = f"torch.save(torch.ones(1), '{tmp_path}/written')"
    advice = lab.advise(text_of("loop", tmp_path, LOOP.format(effect=effect)))
    assert "may write no file" in advice.refused and advice.runs == 1
    assert not (tmp_path / "written").exists()


def test_results_that_differ_between_runs_are_refused(tmp_path: Path) -> None:
    text = LOOP.format(effect="pass").replace("return found", "return __import__('os').urandom(8)")
    advice = lab.advise(text_of("loop", tmp_path, text))
    assert "two runs have different results" in advice.refused


def test_a_program_without_results_and_one_that_fails_are_refused(tmp_path: Path) -> None:
    text = LOOP.format(effect="pass")
    nothing = text_of("loop", tmp_path, text.replace("return found", "pass"))
    assert "returns nothing" in lab.advise(nothing).refused
    failing = text_of("loop", tmp_path, LOOP.format(effect="raise KeyError('x')"))
    assert "raised KeyError" in lab.advise(failing).refused
    endless = text_of("loop", tmp_path, LOOP.format(effect="__import__('time').sleep(600)"))
    assert "still running" in lab.advise(endless, limit=2.0).refused


def test_a_function_inside_of_another_is_refused() -> None:
    def inner() -> None: ...

    with pytest.raises(BadArguments, match="top level"):
        lab.advise(inner)


def test_the_diff_is_of_the_users_file_and_counts_are_reported(tmp_path: Path) -> None:
    advice = lab.advise(text_of("loop", tmp_path, LOOP.format(effect="pass")))
    assert advice.best is not None and advice.best.compiles == 1 and advice.compiles == 3
    assert "+        torch._dynamo.mark_dynamic(x, 0)" in advice.best.diff
    assert "program.py" in advice.best.diff
    assert repr(advice) == "loop: 3 compilations (2 recompiles) → 1"
    assert advice.calls == {"double": 3} and "every run calls double 3 times" in str(advice)
    data = advice.to_dict()
    assert data["edits"][0]["compiles"] == 1 and data["schema"] == "advice.v1"


def test_a_loop_without_recompiles_needs_no_edit(tmp_path: Path) -> None:
    text = LOOP.format(effect="pass").replace("range(3, 6)", "(3, 3)")
    assert "nothing to improve" in repr(lab.advise(text_of("loop", tmp_path, text)))


@pytest.mark.parametrize("compiler", ["stock", "inductor_lab"])
def test_advice_for_given_calls(compiler: str) -> None:
    calls = [(torch.ones(n, 2), 2) for n in (3, 4, 5)]
    advice = advise_calls(loops.scaled, calls, compiler)
    assert advice.best is not None and (advice.compiles, advice.best.compiles) == (2, 1)
    assert "torch._dynamo.mark_dynamic(x, 0)" in advice.best.diff


def test_the_command(tmp_path: Path) -> None:
    file = tmp_path / "program.py"
    file.write_text("def f(x):\n    return x * 2\n", encoding="utf-8")
    command = [sys.executable, "-m", "inductor_lab", "recompiles", f"{file}:f", "--stock",
               "--advise", *(f"--args=(torch.ones({n}, 2),)" for n in (3, 4))]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ, check=False)
    assert done.returncode == 0, done.stderr
    assert "→ 1" in done.stdout and "+        torch._dynamo.mark_dynamic(x, 0)" in done.stdout


SCRIPT = """
import torch, inductor_lab as lab

def scaled(x):
    return (x * 2).sin()

def loop():
    fast = torch.compile(scaled, backend="eager", dynamic=False)
    return [fast(torch.ones(n, 8)) for n in SIZES]

SIZES = (2, 3, 4)
print(lab.advise(loop))
SIZES = ()
"""


def test_a_script_is_executed_up_to_the_call_of_advise(tmp_path: Path) -> None:
    """It calls `lab.advise` itself, and changes a name afterwards."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True)
    assert done.stdout.startswith("loop: 3 compilations (2 recompiles) → 1"), done.stderr
