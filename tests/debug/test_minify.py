"""The minifier: every kind of failure is shrunk to a few nodes, and its script reproduces it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn.attention.flex_attention import flex_attention

import inductor_lab as lab
from inductor_lab.compiler.base.errors import BadArguments, BadOption
from inductor_lab.debug.faults import CATALOGUE
from inductor_lab.debug.minify.candidate import Candidate, keep
from inductor_lab.debug.minify.checks import slower_than_eager
from inductor_lab.debug.minify.minified import Minified
from inductor_lab.debug.minify.run import captured

ROOT = Path(__file__).parents[2]
KINDS = {
    "wrong": "wrong_neg",
    "raises": "neg_without_text",
    "NaN": "nan_is_lost",
    "crashes": "unaligned_load",
    "race": "race",
    "not deterministic": "order_of_arrival",
    "gradient": "wrong_gradient",
}
"""Effect on a call → a fault with this effect; a hang has its own test."""
VARY = ("race", "not deterministic")
"""Kinds whose candidates are tried three times, so that minifying stops after the first steps."""


def until_cut(line: str) -> None:
    """Interrupts after calls have been removed and before sizes are tried."""
    if line.startswith("keep a half"):
        raise KeyboardInterrupt


def shrunk(
    fault: str, folder: Path, limit: float = 60.0, tell: Callable[[str], None] | None = None
) -> Minified:
    function, arguments, *_ = CATALOGUE[fault].example()
    with CATALOGUE[fault]():
        return lab.minify(function, *arguments, folder=folder, limit=limit, tell=tell)


def run_script(folder: Path, file: str = "repro.py") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(folder / file)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=200)


@pytest.mark.parametrize("kind", KINDS)
def test_a_failure_is_shrunk_and_its_script_reproduces_it(kind: str, tmp_path: Path) -> None:
    found = shrunk(KINDS[kind], tmp_path, tell=until_cut if kind in VARY else None)
    assert found.complete != (kind in VARY) and found.nodes <= 6, str(found)
    attempts = 3 if kind == "race" else 1  # on a busy machine, threads may run sequentially
    scripts = (run_script(tmp_path) for _ in range(attempts))
    ended = next((e for e in scripts if e.returncode != 0), None)
    assert ended is not None, "the script reproduces the failure in a new process"
    assert "does not fail any more" not in ended.stdout
    assert "SyntaxError" not in ended.stderr and "ImportError" not in ended.stderr


def test_a_hang_is_shrunk(tmp_path: Path) -> None:
    found = shrunk("endless_loop", tmp_path, limit=2.5)
    assert found.symptom.startswith("hung") and found.nodes <= 6
    waits = "dump_traceback_later(60, exit=True)"
    assert waits in found.script
    (tmp_path / "soon.py").write_text(found.script.replace("(60,", "(6,"))
    ended = run_script(tmp_path, "soon.py")
    assert ended.returncode == 1 and "Timeout (0:00:06)!" in ended.stderr


def test_the_written_files(tmp_path: Path) -> None:
    found = shrunk("wrong_neg", tmp_path)
    assert found.folder == tmp_path
    assert "keep a half" in (tmp_path / "log.txt").read_text()
    saved = lab.load(tmp_path / "compilation.lab.json")
    assert [n.target for n in saved.graphs[0].captured.nodes if n.op == "call_function"] == [
        "torch.neg"
    ]
    assert "torch.neg(x0)" in found.script and "lab.faults.wrong_neg()" in found.script


def test_a_script_for_another_backend_does_not_import_inductor_lab(tmp_path: Path) -> None:
    """A failure of another backend, which always raises."""

    def refusing(function: object, inputs: object) -> str:
        return "refused" if "cumsum" in function.code else ""  # type: ignore[attr-defined]

    def program(x: torch.Tensor) -> torch.Tensor:
        return (x.sin().cumsum(0) * 2).relu()

    found = lab.minify(program, torch.randn(9), check=refusing, backend="aot_eager", tell=None)
    assert found.symptom == "fails refused" and found.nodes <= 3
    assert "inductor_lab" not in found.script


def test_a_user_predicate_can_be_minified() -> None:
    messages: list[str] = []

    def program(x: torch.Tensor) -> torch.Tensor:
        return (x.exp() - 1).log().sum(-1)

    def has_nan(function: object, inputs: list[torch.Tensor]) -> bool:
        return bool(function(*inputs)[0].isnan().any())  # type: ignore[operator]

    found = lab.minify(program, torch.full((4, 6), -2.0), check=has_nan, tell=messages.append)
    assert found.symptom == "fails True" and found.nodes == 3
    assert any("started off with" in line for line in messages)
    assert all(str(tried) in messages for tried in found.log)
    assert callable(slower_than_eager(2.0))


def test_a_script_contains_the_branches_of_its_graph(tmp_path: Path) -> None:
    def branches(x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 0, torch.neg, lambda x: x + 1, (x.contiguous(),))

    def has_branches(module: Callable[..., Any], inputs: Sequence[Any]) -> bool:
        return any("cond" in node.name and node.op != "get_attr" for node in module.graph.nodes)

    found = lab.minify(branches, torch.ones(2), check=has_branches, folder=tmp_path)
    assert "higher_order.cond" in found.script and found.script.count("(torch.nn.Module)") == 3
    done = run_script(tmp_path)
    assert done.returncode == 0 and "does not fail any more" in done.stdout, done.stderr
    wrong = tmp_path / "wrong.py"  # the branches are compiled incorrectly
    other = "Repro_cond_true_0.forward = Repro_cond_false_0.forward = lambda self, x0: (x0 + 7,)"
    wrong.write_text(found.script.replace("compiled = ", f"{other}\ncompiled = "))
    assert "Tensor-likes are not" in run_script(tmp_path, "wrong.py").stderr


def test_a_graph_that_cannot_be_recaptured_is_not_a_failure() -> None:
    """TorchDynamo cannot read the call of flex_attention that it wrote."""
    q = torch.randn(1, 2, 128, 16)
    with pytest.raises(BadArguments, match="none of its graphs fails by itself"):
        lab.minify(lambda q: flex_attention(q, q, q, score_mod=lambda s, *_: s * 2), q)


def test_nothing_to_shrink() -> None:
    with pytest.raises(BadArguments, match="nothing to shrink"):
        lab.minify(lambda x: x + 1, torch.randn(3), tell=None)


def test_a_backend_that_does_not_exist_is_not_a_failure_of_the_graph() -> None:
    with pytest.raises(BadOption, match=r"a function, or one of .*inductor_lab"):
        lab.minify(lambda x: x + 1, torch.randn(3), backend="indutcor", tell=None)


def test_an_interrupt_keeps_the_smallest(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupting(line: str) -> None:
        if line.startswith("keep a half"):
            raise KeyboardInterrupt

    function, arguments, *_ = CATALOGUE["wrong_neg"].example()
    with lab.faults.wrong_neg():
        found = lab.minify(function, *arguments, tell=lambda line: interrupting(line))
    assert not found.complete and "smallest so far" in str(found)


def test_any_slice_of_a_graph_runs_standalone() -> None:
    def program(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        a, b = (x @ w).chunk(2, -1)
        return torch.nn.functional.gelu(a) * b.sigmoid()

    (whole,) = captured(program, (torch.randn(5, 6), torch.randn(6, 8)), {})
    expected = {}
    interpreter = torch.fx.Interpreter(whole.module, garbage_collect_values=False)
    interpreter.run(*whole.inputs, enable_io_processing=False)
    for node in whole.calls:
        expected[node.name] = interpreter.env[node]
    for node in whole.calls:
        part: Candidate = keep(whole, {node.name})
        (output,) = part.module.graph.find_nodes(op="output")
        got = torch.fx.Interpreter(part.module).run(*part.inputs, enable_io_processing=False)
        name = output.args[0][-1].name
        torch.testing.assert_close(got[-1], expected[name])


def test_a_model_is_bisected(tmp_path: Path) -> None:
    """One fault in the pooler of a BERT with random weights and three layers.

    With twelve layers it takes half a minute on one core.
    """
    transformers = pytest.importorskip("transformers")
    config = transformers.BertConfig(
        hidden_size=32, num_attention_heads=2, intermediate_size=64, num_hidden_layers=3
    )
    torch.manual_seed(0)
    model = transformers.BertModel(config).eval()
    words = torch.randint(1000, (1, 16))
    with torch.no_grad(), lab.faults.short_series():
        found = lab.minify(lambda ids: model(ids).pooler_output, words, folder=tmp_path, tell=None)
    assert found.nodes <= 3 and "tanh" in found.script
    halves = [tried for tried in found.log if tried.strategy == "keep a half"]
    assert len(halves) >= 5 and all(tried.tries <= 2 for tried in halves)
    assert run_script(tmp_path).returncode != 0
