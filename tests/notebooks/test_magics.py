"""The magics in an IPython shell of their own, without a notebook around it."""

from __future__ import annotations

import subprocess
import sys

import pytest
from IPython.core.completer import provisionalcompleter
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

from inductor_lab.api.compilation import Compilation
from inductor_lab.compiler import pipeline
from inductor_lab.compiler.base.errors import LabError

DEFINE = "def wave(x):\n    return ((x + 1) * 2).sin()\n"
CALL = DEFINE + "wave(torch.randn(8))\n"


@pytest.fixture(scope="module")
def shell():
    InteractiveShell.clear_instance()
    made = InteractiveShell.instance()
    made.run_cell("import torch\n%load_ext inductor_lab")
    yield made
    InteractiveShell.clear_instance()


def run(shell, cell: str):
    with capture_output() as captured:
        result = shell.run_cell(cell, store_history=True)
    return result, captured


def compiled(shell, cell: str) -> Compilation:
    result, captured = run(shell, cell)
    assert result.success, captured.stdout
    found = shell.user_ns["_lab"]
    assert isinstance(found, Compilation)
    return found


def test_the_call_that_ends_a_cell(shell):
    assert compiled(shell, f"%%compile\n{CALL}").after.kernels == 1
    assert compiled(shell, f"%%compile --no-fusion\n{CALL}").after.kernels == 3
    assert compiled(shell, f"%%compile --mode max-autotune\n{CALL}").call.options.mode == (
        "max-autotune"
    )


def test_a_loop_shows_which_calls_recompiled(shell):
    cell = "%%compile\ndef looped(x):\n    return x.sin() + 1\n\nfor n in (10, {}):\n"
    cell += "    looped(torch.randn(n))\n"
    _, captured = run(shell, cell.format("20, 30, 40"))
    shown = captured.outputs[-1].data["text/plain"]
    assert "compiles: 2" in shown and "recompiles: 1" in shown, "the second version is dynamic"
    assert "expected 10, actual 20" in captured.outputs[-1].data["text/html"]
    _, captured = run(shell, cell.format("10, 10"))
    assert "recompiles" not in captured.outputs[-1].data["text/plain"]


def test_arguments_on_the_line_and_a_name_for_the_result(shell):
    found = compiled(shell, f"%%compile -r mine torch.randn(4,  8)\n{DEFINE}")
    assert found.name == "wave" and shell.user_ns["mine"] is found
    assert found.result.shape == (4, 8)
    assert [line for line in found.source.text.splitlines() if "sin" in line]


def test_dynamic_sizes_and_another_target(shell):
    assert compiled(shell, f"%%compile --dynamic\n{CALL}").capture.symbols
    found = compiled(shell, f"%%compile --target cuda:90\n{CALL}")
    assert found.graphs[0].forward.kernels[0].language == "triton"


def test_annotated_source(shell):
    result, captured = run(shell, f"%%compile -a torch.randn(1000)\n{DEFINE}")
    assert result.success
    html = captured.outputs[-1].data["text/html"]
    assert "8.0 kB" in html and "<details>" in html and "lab_sin" in html
    text = str(shell.user_ns["_lab"].annotate())
    assert "8.0 kB" in next(line for line in text.splitlines() if "sin()" in line)


def test_benchmark_of_the_call(shell):
    result, captured = run(shell, f"%%compile -b -a --against eager torch.randn(1000)\n{DEFINE}")
    assert result.success, captured.stdout
    found = shell.user_ns["_lab_bench"]
    assert [c.name for c in found.contenders] == ["eager", "inductor_lab"] and found.timed
    assert found.steps == shell.user_ns["_lab"].graphs[0].forward.times
    pages = [output.data["text/html"] for output in captured.outputs]
    assert any("lab-chart" in page and "Copy as Markdown" in page for page in pages)
    assert "moved in" in pages[-1] and "µs" in pages[-1]


def test_profile_of_the_call(shell):
    result, captured = run(shell, f"%%compile --profile torch.randn(1000)\n{DEFINE}")
    assert result.success, captured.stdout
    (shown,) = [output.data["text/html"] for output in captured.outputs]
    assert "between kernels" in shown and "sin()" in shown


def test_a_benchmark_needs_this_machine(shell):
    result, _ = run(shell, f"%%compile -b --target cuda:90 torch.randn(8)\n{DEFINE}")
    assert not result.success and "leave --target out" in str(result.error_in_exec)


def test_annotated_lines_add_up(shell):
    cell = "def two(x):\n    y = x.sum(1)\n    return x * y[:, None]\n"
    found = compiled(shell, f"%%compile torch.randn(64, 32)\n{cell}")
    shown = found.annotate()
    lines = [line for _, lines in shown.blocks for line in lines]
    assert sum(line.nbytes for line in lines) == pytest.approx(found.after.bytes)
    assert {line.number for line in lines if line.nbytes} == {3, 4}, "as the editor counts"
    assert not any(line.seconds for line in lines)
    measured = found.measure(0)
    lines = [line for _, lines in measured.annotate().blocks for line in lines]
    whole = sum(step.seconds for part in measured.parts for step in part.times)
    assert sum(line.seconds for line in lines) == pytest.approx(whole)


def test_lines_about_the_last_compilation(shell):
    compiled(shell, f"%%compile\n{CALL}")
    assert "lab_sin" in run(shell, "%lab_code")[1].stdout
    assert "<svg" in run(shell, "%lab_graph")[1].outputs[0].data["text/html"]
    assert "torch" in run(shell, "%lab_doctor")[1].stdout
    run(shell, "%lab_reset")
    result, _ = run(shell, "%lab_code")
    assert not result.success and "is not a compilation" in str(result.error_in_exec)


def test_help_explains_the_options(shell):
    text = shell.find_cell_magic("compile").__doc__
    for option in ("--annotate", "--bench", "--mode", "--dynamic", "--target", "--no-fusion", "--result"):
        assert option in text


def test_magics_inside_the_cell_still_work(shell):
    compiled(shell, f"%%compile\n%matplotlib --list\n{CALL}")


def test_the_users_error_keeps_its_traceback(shell):
    result, captured = run(shell, "%%compile\ndef bad(x):\n    return 1 / 0\nbad(torch.ones(2))\n")
    assert isinstance(result.error_in_exec, ZeroDivisionError)
    assert "1 / 0" in captured.stdout
    assert not any("Finished stages:" in o.data.get("text/html", "") for o in captured.outputs)


def test_annotations_are_what_they_are_in_any_cell(shell):
    """Our own `from __future__ import annotations` is not the cell's."""
    cell = "def typed(x: int) -> float:\n    return x + 1\n"
    compiled(shell, f"%%compile torch.ones(2)\n{cell}")
    assert shell.user_ns["typed"].__annotations__ == {"x": int, "return": float}
    run(shell, f"from __future__ import annotations\n{cell}")
    try:
        compiled(shell, f"%%compile torch.ones(2)\n{cell}")
        assert shell.user_ns["typed"].__annotations__ == {"x": "int", "return": "float"}
    finally:
        shell.compile.reset_compiler_flags()


AT_EXIT = """
from IPython.core.completer import provisionalcompleter
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
shell.run_cell("import torch\\n%load_ext inductor_lab")
cell = "%%compile\\ndef f(x):\\n    return len([x]) * x.sin()\\nf(torch.ones(8))"
for _ in range(3):
    assert shell.run_cell(cell).success
"""


def test_nothing_is_printed_at_exit():
    done = subprocess.run([sys.executable, "-c", AT_EXIT], capture_output=True, text=True)
    assert done.returncode == 0 and "Compilation(f" in done.stdout
    assert "KeyError" not in done.stderr and "Traceback" not in done.stderr


def test_a_compile_error_shows_the_finished_stages(shell, monkeypatch):
    def refuse(schedule, options):
        raise LabError("no kernel today", "return x.sin() * 2", "try tomorrow")

    monkeypatch.setattr(pipeline, "generate_kernels", refuse)
    cell = "%%compile\ndef wave(x):\n    return x.sin() * 2\nwave(torch.ones(2))\n"
    result, captured = run(shell, cell)
    assert not result.success and "no kernel today" in str(result.error_in_exec)
    html = next(o.data["text/html"] for o in captured.outputs if "text/html" in o.data)
    assert "✓ forward.schedule" in html and "✗ forward.codegen" in html
    assert "<mark>" in html and "def forward" in html
    assert not any("Finished stages:" in o.data.get("text/html", "") for o in run(shell, "1")[1].outputs)


def test_a_line_compiles_one_expression(shell):
    run(shell, DEFINE + "def pick(table, x):\n    return table['a'] + wave(x)\n")
    result, captured = run(shell, "%compile wave(torch.ones(8))")
    assert result.success and result.result.shape == (8,), captured.stdout
    assert shell.user_ns["_lab"].name == "wave" and captured.outputs
    result, _ = run(shell, "%compile --no-fusion -r line pick({'a': torch.ones(2)}, torch.ones(2))")
    assert result.success and shell.user_ns["line"].after.kernels > 1
    _, captured = run(shell, "%compile")
    assert "%compile needs an expression" in captured.stderr + captured.stdout


def completed(shell, line):
    """What Tab offers at the end of a line, as in JupyterLab."""
    with provisionalcompleter():
        return [found.text for found in shell.Completer.completions(line, len(line))]


@pytest.mark.parametrize("line, expected", [
    ("%%compile --mo", ["--mode"]), ("%compile --no", ["--no-fusion"]),
    ("%%compile --mode max", ["max-autotune", "max-autotune-no-cudagraphs"]),
    ("%compile --mode ", ["default"]),
])  # fmt: skip
def test_options_are_completed(shell, line, expected):
    found = completed(shell, line)
    assert set(expected) <= set(found) and not any(name.startswith("-h") for name in found)


def test_python_names_are_completed_after_the_options(shell):
    shell.user_ns["waveform"] = 1
    assert "waveform" in completed(shell, "%compile --bench wave(wavef")
