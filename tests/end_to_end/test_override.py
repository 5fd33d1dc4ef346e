"""All caches notice changes of the compiler by a user, and changes can be undone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

import inductor_lab as lab
from inductor_lab.compiler.base.errors import BadArguments, CompilerDefect
from inductor_lab.compiler.fingerprint import Opaque, content
from inductor_lab.compiler.lower.registry import LOWERINGS
from inductor_lab.compiler.overrides import TABLES, changed_at_run_time

PROGRAM = Path(__file__).with_name("override_program.py")
NAMES = ("text", "table", "lowering", "registered", "definition", "rule", "helper", "opaque")
aten = torch.ops.aten


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """Return five runs in three processes: plain; changed; plain, changed and plain."""
    folder = tmp_path_factory.mktemp("override")
    return [run for words in (["plain"], ["changed"], ["plain", "changed", "plain"])
            for run in _run(folder, words)]  # fmt: skip


def _run(folder: Path, words: list[str]) -> Any:
    caches = ("INDUCTOR_LAB_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR")
    environment = {**os.environ, **{name: str(folder) for name in caches}}
    command = [sys.executable, str(PROGRAM), *words]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("name", NAMES)
def test_each_run_has_the_results_of_its_own_compiler(
    runs: list[dict[str, Any]], name: str
) -> None:
    assert [run[name]["right"] for run in runs] == [True] * 5
    plain, changed, *later = (run[name] for run in runs)
    assert (plain["saved"], plain["hit"]) == (1, 0)
    assert changed["hit"] == 0, "results of another compiler are not used"
    if name == "opaque":
        assert changed["saved"] == 0 and [run["hit"] for run in later] == [1, 0, 1]
    else:
        assert changed["saved"] == 1 and [run["hit"] for run in later] == [1, 1, 1]


def test_a_table_that_is_changed_before_the_compiler_is_imported(tmp_path: Path) -> None:
    _run(tmp_path, ["plain"])
    found = _run(tmp_path, ["early"])["early"]
    assert found["hit"] == 0 and not found["right"]


def test_the_end_of_a_block_restores_all_changes() -> None:
    before = {name: dict(table) for name, table in TABLES.items()}
    key = changed_at_run_time()
    x = torch.linspace(0, 1, 30)

    def f(x: torch.Tensor) -> torch.Tensor:
        return -x

    fast = lab.compile(f)
    torch.testing.assert_close(fast(x), -x)
    with pytest.raises(ZeroDivisionError), lab.override(cpp={"neg": "3 * {0}"}):
        torch.testing.assert_close(fast(x), 3 * x)
        kept = lab.inspect(f, x)
        assert changed_at_run_time() != key
        with lab.override(cpp={"neg": "4 * {0}"}, profit={"bytes_saved": None}):
            torch.testing.assert_close(fast(x), 4 * x)
            assert "bytes_saved" not in TABLES["profit"]
        torch.testing.assert_close(fast(x), 3 * x)
        lab.lowers(aten.special_i1e.default)(lambda build, x: x)
        1 / 0  # noqa: B018
    torch.testing.assert_close(fast(x), -x)
    assert {name: dict(table) for name, table in TABLES.items()} == before
    assert [list(table) for table in TABLES.values()] == [list(b) for b in before.values()]
    assert changed_at_run_time() == key
    (result,) = kept.graphs[0].forward.executable.run(x)
    torch.testing.assert_close(result, 3 * x, msg="it keeps what it was compiled to")


def test_unknown_tables_and_entries_are_refused() -> None:
    for changes, said in (
        ({"c": {}}, "no table 'c'"),
        ({"cpp": {"ngeg": "{0}"}}, "no operation 'ngeg'"),
        ({"lowering": {"sin": len}}, "sin is no overload"),
    ):
        with pytest.raises(BadArguments, match=said), lab.override(**changes):
            pass


def test_a_lowering_can_be_redefined_only_at_the_same_place() -> None:
    with lab.override():
        for _ in range(2):

            @lab.lowers(aten.special_i0e)
            def i0e(build: Any, x: Any) -> Any:
                return x

        assert LOWERINGS[aten.special_i0e.default] is i0e
        with pytest.raises(ValueError, match="has a lowering already"):
            lab.lowers(aten.sin)(lambda build, x: x)
        with pytest.raises(lab.LabError, match=r"@lab\.lowers"):
            lab.inspect(torch.special.i1e, torch.rand(3), options={"strict": True})


def test_contents_of_functions() -> None:
    """Contents are equal for equal functions in any place, and depend on all values they use."""

    def made(text: str, **names: Any) -> Any:
        space: dict[str, Any] = {"__name__": "cell", **names}
        exec(compile(text, f"<cell {len(text)}>", "exec"), space)
        return space["f"]

    same = made("def f(x): return x * K", K=2)
    assert content(same) == content(made("\n\ndef f(x):\n    return x * K", K=2))
    others = [
        made("def f(x): return x * K", K=3),
        made("def f(x): return x + K", K=2),
        made("def f(x, y=1): return x * K", K=2),
        made("def f(x, y=2): return x * K", K=2),
        made("def f(x): return g(x)\ndef g(x): return x"),
        made("def f(x): return g(x)\ndef g(x): return -x"),
        made("def f(x): return f(x - 1)"),
        made("def f(x): return [y * K for y in x]", K=2),
        made("def f(x): return [y * K for y in x]", K=5),
        made("def make(n):\n def f(x): return n\n return f\nf = make(1)"),
        made("def make(n):\n def f(x): return n\n return f\nf = make(2)"),
        LOWERINGS[aten.sin.default],
        LOWERINGS[aten.cos.default],
    ]
    texts = [content(same), *map(content, others)]
    assert len(set(texts)) == len(texts)
    for text, names in (
        ("def f(x): return x * K", {"K": torch.ones(3)}),
        ("def f(x): return K.go(x)", {"K": type("Own", (), {})()}),
        ("def f(x): return K(x)", {"K": type("Own", (), {"__module__": "cell"})}),
    ):
        with pytest.raises(Opaque):
            content(made(text, **names))


def test_a_replaced_helper_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    key = changed_at_run_time()
    from inductor_lab.compiler.schedule.fusion import profit

    number = next(name for name, value in vars(profit).items() if type(value) is int)
    with monkeypatch.context() as patch:
        patch.setattr(profit, number, getattr(profit, number) + 1)
        assert changed_at_run_time() not in (key, None)
        patch.setattr(profit, number, object())
        assert changed_at_run_time() is None
    assert changed_at_run_time() == key


def test_an_error_in_a_user_function_names_its_line() -> None:
    def mine(program):
        return {}["mine"]

    def low(build, x):
        return x.nope

    overrides = ({"schedule": mine}, {"lowering": {torch.ops.aten.sin.default: low}})
    for given, line in zip(overrides, ('return {}["mine"]', "return x.nope"), strict=True):
        with lab.override(**given), pytest.raises(CompilerDefect) as caught:
            lab.inspect(lambda x: x.sin(), torch.ones(3))
        assert f"{line}        line " in str(caught.value)
        assert "in your function" in str(caught.value) and "report it" not in str(caught.value)
