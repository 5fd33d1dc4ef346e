"""One table has all displayed texts in both languages: it is complete, and every entry is used.

Checked are the course, the explorer's document (`DOCUMENT`), its JavaScript, and the pages of
figures: benchmarks, profiles, traces, ranks, recompiles.  The compiler's reasons for a
decision are test_sentences.py's.  What a machine is, and errors of the compiler, are English.
"""

from __future__ import annotations

import ast
import re
import string
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

import inductor_lab as lab
from inductor_lab.compiler.base.errors import BadArguments
from inductor_lab.course.language import speak
from inductor_lab.notebook.language import language, say, table
from inductor_lab.widgets.model import document
from inductor_lab.widgets.words import glossary, words

ROOT = Path(__file__).parents[2]
OTHER_PAGES = ("bench", "bench_entry", "debug")
IN_JUPYTERLAB = ("frame", "jupyterlab_entry", "kernel", "mime")
"""The JupyterLab extension: what it says without a document, in JupyterLab's language."""
ALL_JAVASCRIPT = [path for path in sorted((ROOT / "javascript").glob("*.js"))
                  if path.stem not in OTHER_PAGES]  # fmt: skip
JAVASCRIPT = [path for path in ALL_JAVASCRIPT if path.stem not in IN_JUPYTERLAB]
DOCUMENT = [ROOT / "widgets" / f"{name}.py" for name in (
    "bench_pane", "budget", "compare", "graphs", "guards", "guards_live", "ladder", "lesson",
    "lesson_diff", "memory", "memory_pane", "model", "parts", "picture", "replayed", "split",
    "stock", "stock_fusion", "step_memory", "steps", "svg", "switches", "time", "user_side",
    "views")]  # fmt: skip
PAGES = [ROOT / "widgets" / f"{name}.py" for name in (
    "advice", "annotate", "bench", "bench_live", "charts", "function_name", "profile", "ranks",
    "recompiles", "run_diff", "side_by_side", "text_diff", "debug", "partial",
    "trace")]  # fmt: skip
FIGURES = [ROOT / "inductor_lab" / name for name in (
    "bench/ablation.py", "bench/bench_result.py", "bench/run.py", "bench/timings.py",
    "debug/diff/run_stages.py", "debug/profile.py", "debug/recompiles/reasons.py",
    "distributed/join.py", "distributed/timeline.py", "stock/trace_log.py")]  # fmt: skip
"""Where pages have the names of their columns and rows from, and sentences."""
SPOKEN = [*DOCUMENT, *PAGES, *FIGURES, *sorted((ROOT / "inductor_lab" / "course").rglob("*.py"))]
PLACES = {"pane": (0,), "text_view": (0,), "table_view": (0, 1, 3), "empty_view": (0, 1),
          "_fact": (0,), "bars_view": (0, 2), "_lanes": (0,), "_noun": (0,),
          "say": (0,)}  # fmt: skip
"""What a page shows of the arguments of these functions."""
SAME = {"TTIR", "TTGIR"}
DECIDED = {"legality", "profit", "vertical", "horizontal", "combo", "unneeded"}
"""Words of the compiler's for kinds of rules, of pairs and of choices, which the explorer says."""
SAID_IN_JAVASCRIPT = re.compile(r'\bsay\(\s*"((?:[^"\\]|\\.)*)"')
SHOWN_IN_JAVASCRIPT = re.compile(
    r'(?:\b(?:title|placeholder|label)|"aria-label"|"aria-valuetext"|\.textContent)'
    r'\s*[:=]\s*["`]([^"`]*[A-Za-z]{3}[^"`]*)["`]'
)


@pytest.fixture
def chinese() -> Iterator[None]:
    lab.language("zh")
    yield
    lab.language("en")


def known() -> dict[str, str]:
    return {**table()["course"], **table()["explorer"]}


def texts(node: ast.AST, constants: dict[str, list[str]]) -> list[str]:
    """The texts that an expression may be; those of an f-string are unknown."""
    match node:
        case ast.Constant(value=str(text)):
            return [text.removeprefix(">")]
        case ast.IfExp():
            return texts(node.body, constants) + texts(node.orelse, constants)
        case ast.Tuple() | ast.List():
            return [text for element in node.elts for text in texts(element, constants)]
        case ast.Name(id=name):
            return constants.get(name, [])
    return []


def shown(path: Path) -> set[str]:
    """Texts in a file that a page shows."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    constants: dict[str, list[str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            constants.setdefault(node.targets[0].id, []).extend(texts(node.value, {}))
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            for place in PLACES.get(node.func.id, ()):
                for given in node.args[place : place + 1]:
                    found.update(texts(given, constants))
            for keyword in node.keywords if node.func.id in PLACES else ():
                if keyword.arg in ("problem", "note"):
                    found.update(texts(keyword.value, constants))
    return {text for text in found if re.search("[A-Za-z]", text)}


@pytest.mark.parametrize("path", SPOKEN, ids=lambda path: path.stem)
def test_displayed_texts_are_in_the_table(path: Path) -> None:
    assert sorted(shown(path) - known().keys() - SAME) == []


@pytest.mark.parametrize("path", ALL_JAVASCRIPT, ids=lambda path: path.stem)
def test_texts_in_javascript_are_in_the_table(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    table_of = known() if path in JAVASCRIPT else table()["jupyterlab"]
    assert sorted(set(SAID_IN_JAVASCRIPT.findall(text)) - table_of.keys()) == []
    told = [re.sub(r"\$\{[^}]*\}", "", text) for text in SHOWN_IN_JAVASCRIPT.findall(text)]
    told = [text for text in told if re.search("[A-Za-z]{3}", text) and "say(" not in text]
    assert told == [], "say it: say(...)"


def fields(text: str) -> set[str]:
    return {name for _, name, *_ in string.Formatter().parse(text) if name}


def test_both_languages_are_complete_and_agree() -> None:
    for section in ("course", "explorer", "jupyterlab"):
        for english, chinese in table()[section].items():
            assert english.strip() and chinese.strip(), english
            assert fields(english) >= fields(chinese), english
            missing = fields(english) - fields(chinese)
            assert not missing, f"{english}: the Chinese leaves out {missing}"
    double = table()["course"].keys() & table()["explorer"].keys()
    assert [text for text in double if table()["course"][text] != table()["explorer"][text]] == []
    assert table()["glossary"].keys() == glossary().keys()


def test_nothing_in_the_table_is_unused() -> None:
    kinds = ROOT / "inductor_lab" / "debug" / "memory" / "step_memory.py"
    python = [node.value for path in [*SPOKEN, kinds, *(ROOT / "widgets").glob("*.py")]
              for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
              if isinstance(node, ast.Constant) and isinstance(node.value, str)]  # fmt: skip
    javascript = "\n".join(path.read_text(encoding="utf-8") for path in JAVASCRIPT)
    everything = {text.removeprefix(">") for text in python} | {text + "s" for text in python}
    composed = re.compile(r" by an option$|^(force|forbid) |this pair in|^program \{p\} ")
    unused = [text for text in known().keys() - everything - DECIDED
              if text not in javascript and not composed.search(text)]  # fmt: skip
    assert unused == []
    extension = "\n".join(
        path.read_text(encoding="utf-8") for path in ALL_JAVASCRIPT if path not in JAVASCRIPT
    )
    assert [text for text in table()["jupyterlab"] if text not in extension] == []


def test_the_language_is_switched(chinese: None) -> None:
    assert language() == "zh" and say("{n} found", n=3) == "找到 3 处"
    assert say("no such text {n}") == "no such text {n}"
    speak("en")
    assert say("{n} found", n=3) == "3 found"
    for wrong in ("de", ""):
        with pytest.raises(BadArguments, match="one of en, zh"):
            speak(wrong)


def test_a_document_carries_its_language(chinese: None) -> None:
    compilation = lab.inspect(lambda x: x.sin() + 1, torch.ones(8))
    found = document(compilation)
    assert found["language"] == "zh" and found["texts"]["copy"] == "复制"
    assert "条件" in words()["guard"] and found["words"]["guard"] == words()["guard"]
    assert found["panes"]["g0.forward.schedule"]["title"] == "schedule", "the key stays English"
    lab.language("en")
    assert "texts" not in document(compilation) and "must be true" in words()["guard"]
