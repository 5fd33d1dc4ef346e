"""`%%compile` does what the cell says: which calls are compiled, the cell's value, its errors."""

from __future__ import annotations

import builtins

import pytest
import torch

from inductor_lab.api.compilation import Compilation
from inductor_lab.widgets.lesson import documents_in
from tests.notebooks.test_magics import run, shell  # noqa: F401

DEFINE = """
def f(x):
    return (x + 1).sin()
def g(x):
    return x.exp() * 2
net = torch.nn.Linear(8, 4)
opt = torch.optim.SGD(net.parameters(), 0.1)
x = torch.randn(2, 8)
"""


@pytest.fixture(scope="module")
def cells(shell):  # noqa: F811
    assert run(shell, DEFINE)[0].success
    return shell


def names_after(shell, cell: str) -> list[str]:  # noqa: F811
    """Run a cell; the names of what it compiled."""
    shell.user_ns.pop("_lab_all", None)
    result, captured = run(shell, cell)
    assert result.success, captured.stdout
    return [c.name for c in shell.user_ns.get("_lab_all", ())]


CELLS = {
    "loss = net(x).pow(2).mean(); loss.backward()": ["Linear"],
    "with torch.no_grad(): f(x)": ["f"],
    "f(x).sum()": ["f"],
    "print(f(x))": ["f"],
    "y = torch.zeros(2, 8)\ny += f(x)": ["f"],
    "for i in range(3):\n    z = f(x)": ["f"],
    "a = f(x)\nb = g(x)": ["f", "g"],
    "f(g(x))": ["g", "f"],
    "[f(each) for each in x]": ["f"],
    "h = lambda x: f(x) * 2\nh(x)": ["<lambda>"],
    "opt.zero_grad()\nloss = net(x).pow(2).mean()\nloss.backward()\nopt.step()": ["Linear"],
}


@pytest.mark.parametrize("cell", CELLS)
def test_functions_that_run_are_compiled(cells, cell: str) -> None:
    assert names_after(cells, f"%%compile\n{cell}") == CELLS[cell]
    assert isinstance(cells.user_ns["_lab"], Compilation)


def test_the_cell_behaves_as_without_the_magic(cells) -> None:
    expected = torch.zeros(2, 8) + sum(float(i) * cells.user_ns["f"](cells.user_ns["x"])
                                       for i in range(3))  # fmt: skip
    names_after(cells, "%%compile\ny = torch.zeros(2, 8)\nfor i in range(3):\n    y += i * f(x)")
    torch.testing.assert_close(cells.user_ns["y"], expected)


def test_a_training_step_trains(cells) -> None:
    names_after(cells, "net.weight.data.zero_(); before = net.weight.clone()")
    step = "opt.zero_grad()\nloss = net(x).sub(1).pow(2).mean()\nloss.backward()\nopt.step()"
    names_after(cells, f"%%compile\n{step}")
    compiled, before = cells.user_ns["_lab"], cells.user_ns["before"]
    assert compiled.graphs[0].backward is not None
    moved = cells.user_ns["net"].weight.detach() - before.detach()
    torch.testing.assert_close(moved, -0.1 * cells.user_ns["net"].weight.grad)
    assert moved.abs().max() > 0


def test_the_line_names_what_is_compiled(cells) -> None:
    assert names_after(cells, "%%compile g\na = f(x)\nb = g(x)") == ["g"]
    assert names_after(cells, "%%compile f g\na = f(x)\nb = g(x)") == ["f", "g"]
    softmax = "%%compile torch.nn.functional.softmax\ntorch.nn.functional.softmax(x, -1)"
    assert names_after(cells, softmax) == ["softmax"]
    assert names_after(cells, "%%compile x\ndef k(x): return x * 2") == ["k"]
    result, _ = run(cells, "%%compile g\nf(x)")
    assert "does not call g" in str(result.error_in_exec)


def test_nothing_to_compile_is_reported_and_keeps_the_last(cells) -> None:
    names_after(cells, "%%compile\nf(x)")
    last = cells.user_ns["_lab"]
    result, captured = run(cells, "%%compile\nx.sum() + 1")
    assert result.success and "nothing to compile" in captured.stdout
    assert cells.user_ns["_lab"] is last


def test_the_value_is_shown_and_is_underscore(cells) -> None:
    vars(builtins).pop("_", None)  # a doctest's: IPython leaves `_` alone where there is one
    for name in ("_", "__", "___"):
        cells.user_ns.pop(name, None)  # it also leaves names alone that earlier cells have changed
    result, _ = run(cells, "%%compile\nf(x)")
    torch.testing.assert_close(result.result, cells.user_ns["f"](cells.user_ns["x"]))
    assert cells.user_ns["_"] is result.result
    assert run(cells, "%%compile\nf(x);")[0].result is None
    assert run(cells, "%%compile\ny = f(x)")[0].result is None


def test_several_have_a_tab_each(cells) -> None:
    _, captured = run(cells, "%%compile\na = f(x)\nb = g(x)")
    (page,) = [o.data["text/html"] for o in captured.outputs if "text/html" in o.data]
    documents = documents_in(page)
    assert [each["format"] for each in documents] == ["inductor_lab document"] * 2
    assert "renderTabs(" in page
    assert page.count("<h1>") == 2, "their plain forms"


def test_lines_are_those_of_the_editor(cells) -> None:
    names_after(cells, "\n%%compile\ndef k(x):\n    return x.sin()\nk(x)")
    source = cells.user_ns["_lab"].source
    assert source.first_line == 3 and source.text.startswith("def k")


@torch.library.custom_op("lab_test::interrupted", mutates_args=())
def interrupted(x: torch.Tensor) -> torch.Tensor:
    """An operator that the user interrupts while its shapes are computed."""
    return x.clone()


@interrupted.register_fake
def _(x: torch.Tensor) -> torch.Tensor:
    raise KeyboardInterrupt


def test_a_syntax_error_shows_its_line_without_frames(cells, capfd) -> None:
    result, captured = run(cells, "%%compile\ndef k(x):\n    return x.sin(]\nk(x)")
    text = captured.stderr or captured.stdout
    assert not result.success and "line 3" in text and "return x.sin(]" in text
    assert "SyntaxError: closing parenthesis" in text and len(text.splitlines()) < 6


def test_an_endless_recursion_is_a_sentence(cells) -> None:
    result, _ = run(cells, "import inductor_lab as lab\n"
                           "def endless(x): return endless(x + 1)\nlab.inspect(endless, x)")
    error = result.error_in_exec
    assert isinstance(error, RecursionError) and "does it call itself" in str(error)
    assert error.__cause__ is None and error.__suppress_context__


def test_an_interrupted_capture_is_a_sentence(cells) -> None:
    cells.user_ns["interrupted"] = interrupted
    _, captured = run(cells, "%%compile\ndef f(x):\n    return interrupted(x * 2)\nf(x)")
    assert "KeyboardInterrupt: interrupted while compiling" in captured.stdout
    assert len(captured.stdout.splitlines()) <= 5
    (page,) = [o.data["text/html"] for o in captured.outputs if "text/html" in o.data]
    assert "<summary>full traceback</summary>" in page


@pytest.mark.parametrize("said, code", [
    ("shape mismatch: [2, 8] @ [9, 3]", "x @ torch.randn(9, 3)"),
    ("shape mismatch: [2, 8] + [5]", "x + torch.randn(5)"),
    ("linear of [2, 4]", "net(x[:, :4])"),
    ("index 5 is out of bounds", "x[5]"),
])  # fmt: skip
def test_an_error_is_a_sentence_and_a_line(cells, capfd, said: str, code: str) -> None:
    result, captured = run(cells, f"%%compile\ndef bad(x):\n    y = x * 2\n    return {code}\nbad(x)")
    assert not result.success
    assert said in captured.stdout and f"return {code}        cell " in captured.stdout
    assert ", line 4" in captured.stdout
    assert len(captured.stdout.splitlines()) <= 5 and "Dynamo" not in captured.stdout
    assert "fake_tensor" not in capfd.readouterr().err + captured.stderr
    (page,) = [o.data["text/html"] for o in captured.outputs if "text/html" in o.data]
    assert "y = " in page and "l_x_ * 2" in page, "the graph so far"
    assert "<summary>full traceback</summary>" in page


def test_torch_does_not_log_errors_that_are_explained(cells, capfd) -> None:
    names_after(cells, "%%compile\ndef item(x):\n    return x * x.sum().item()\nitem(x)")
    assert cells.user_ns["_lab"].capture.breaks
    assert "raph break" not in capfd.readouterr().err
