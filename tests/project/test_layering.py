"""Imports go one way (docs/development.md draws it); read from the source, nothing is imported."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

import networkx as nx
import pytest

import inductor_lab

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "inductor_lab"

# What each phase may import of the others, below inductor_lab/compiler/.  `base` and `torch_door`
# are below all phases; the files of compiler/ itself are above them.
ALLOWED: dict[str, set[str]] = {
    "base": {"torch_door"},
    "torch_door": {"base"},
    "ir": set(),
    "capture": set(),
    "autograd": {"capture", "ir"},
    "rewrite": {"capture", "ir"},
    "lower": {"capture", "rewrite", "ir"},
    "schedule": {"ir"},
    "codegen": {"ir", "schedule"},
    "runtime": {"capture", "ir", "schedule", "codegen"},
    # what a right compiler does not need: no phase imports it
    "accelerate": {"capture", "rewrite", "lower", "ir", "schedule", "codegen", "runtime"},
}
BASE = {"base", "torch_door"}
COMPILER = PACKAGE / "compiler"

# Files of compiler/ that use all phases, so no phase imports them.
OVER_ALL_PHASES = {"pipeline", "records", "overrides", "accelerators"}

# Folders that stand above the whole compiler.
ABOVE = {
    "api", "bench", "contracts", "course", "debug", "distributed", "mini", "notebook", "saved",
    "stock",
}  # fmt: skip


def imports(path: Path) -> tuple[str, ...]:
    """Every module that a file imports, anywhere in it."""
    found, _ = imports_and_strings(path.read_text(encoding="utf-8"))
    assert "" not in found, f"{path}: relative import; write the whole name"
    return found


@cache
def imports_and_strings(text: str) -> tuple[tuple[str, ...], frozenset[str]]:
    """The modules that a text imports ("" for a relative import), and strings that name modules."""
    found, strings = [], set()
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Import():
                found += [alias.name for alias in node.names]
            case ast.ImportFrom(module=module, level=0):
                found += [module or "", *(f"{module}.{alias.name}" for alias in node.names)]
            case ast.ImportFrom():
                found.append("")
            case ast.Constant(value=str(value)) if re.fullmatch(r"inductor_lab(\.\w+)+", value):
                strings.add(value)
    return tuple(found), frozenset(strings)


def files() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def phase_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE).parts
    if parts[0] == "compiler":
        parts = parts[1:]
    return parts[0] if len(parts) > 1 else ""


def of_ours(module: str) -> str:
    """The phase, file of the compiler, or tool, of `inductor_lab.x.y`; "" if it is not ours."""
    parts = [*module.split("."), "", ""]
    if parts[0] != "inductor_lab":
        return ""
    return parts[2] if parts[1] == "compiler" else parts[1]


def wrong_way(path: Path) -> list[str]:
    """What a file of the compiler or of api/ imports, or names in a string, and should not."""
    top, phase = path.relative_to(PACKAGE).parts[0], phase_of(path)
    if top == "compiler":
        above = {*map(of_ours, strings_and_imports(path))} & ABOVE
        phases = {of_ours(module) for module in strings_and_imports(path)} & {*ALLOWED}
        allowed = ALLOWED[phase] | BASE | {phase} if phase else {*ALLOWED} - {"accelerate"}
        if path == COMPILER / "accelerators.py":
            allowed |= {"accelerate"}
        wrong = above | (phases - allowed)
        if phase:
            wrong |= {of_ours(name) for name in imports(path)} & OVER_ALL_PHASES - {"accelerator"}
    elif top == "api":
        used = {of_ours(module) for module in strings_and_imports(path)}
        wrong = used & (ABOVE - {"api"}) | used & {"accelerate"}
    else:
        wrong = set()
    return [f"{path.relative_to(ROOT)} imports {name}" for name in sorted(wrong)]


def test_phases_import_only_earlier_phases() -> None:
    assert [line for path in files() for line in wrong_way(path)] == []


def test_every_phase_has_an_import_rule() -> None:
    folders = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert folders == {"compiler"} | ABOVE
    assert {path.parent.name for path in COMPILER.glob("*/__init__.py")} == set(ALLOWED)


def test_the_package_has_few_entries() -> None:
    entries = {path.relative_to(PACKAGE).parts[0] for path in (*files(), *PACKAGE.glob("*.*"))}
    assert len(entries) <= 15


def test_a_wrong_import_is_detected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "PACKAGE", tmp_path)
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    (tmp_path / "compiler" / "ir").mkdir(parents=True)
    bad = tmp_path / "compiler" / "ir" / "bad.py"
    monkeypatch.setitem(globals(), "COMPILER", tmp_path / "compiler")
    bad.write_text("def f():\n    from inductor_lab.compiler.schedule.schedule import Group\n")
    assert wrong_way(bad) == ["compiler/ir/bad.py imports schedule"]
    bad.write_text("if TYPE_CHECKING:\n    from inductor_lab.debug.minify import run\n")
    assert wrong_way(bad) == ["compiler/ir/bad.py imports debug"]
    (tmp_path / "compiler" / "runtime").mkdir()
    (tmp_path / "compiler" / "runtime" / "bad.py").write_text('HOME = "inductor_lab.stock.live"')
    monkeypatch.setitem(globals(), "is_module", lambda name: True)
    bad = tmp_path / "compiler" / "runtime" / "bad.py"
    assert wrong_way(bad) == ["compiler/runtime/bad.py imports stock"]


def test_the_compiler_does_not_name_the_widgets() -> None:
    """But for the package itself, which says once what draws."""
    naming = [path for path in files() if "widgets" in map(of_ours, strings_and_imports(path))]
    assert naming == []
    assert "widgets" in (PACKAGE / "__init__.py").read_text(encoding="utf-8")


def strings_and_imports(path: Path) -> set[str]:
    """Modules that a file imports, and those that it names in a string to be imported."""
    _, strings = imports_and_strings(path.read_text(encoding="utf-8"))
    return {name for name in strings if is_module(name)} | set(imports(path))


def is_module(name: str) -> bool:
    return (PACKAGE.parent / name.replace(".", "/")).with_suffix(".py").exists()


def module_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(("inductor_lab", *parts)).removesuffix(".__init__")


def import_graph() -> nx.DiGraph[str]:
    """Modules of the package, each with an edge to those it imports, wherever in the file."""
    modules = {module_name(path): path for path in files()}
    graph: nx.DiGraph[str] = nx.DiGraph()
    for name, path in modules.items():
        graph.add_edges_from((name, used) for used in imports(path) if used in modules)
    graph.remove_node("inductor_lab")
    graph.remove_edges_from(list(nx.selfloop_edges(graph)))
    return graph


MUTUAL = [["inductor_lab.compiler.ir.expr", "inductor_lab.compiler.ir.index"]]
"""One recursive type in two files: an expression loads at indices, and an index may hold a value
(`Gathered`).  Together they are too long for a file, and each is an idea of its own; `index` names
`Expr` for the type checker alone."""


def circles(graph: nx.DiGraph[str]) -> list[list[str]]:
    """Modules that import each other, whether at the top, in a function or for the type checker."""
    return [sorted(c) for c in nx.strongly_connected_components(graph) if len(c) > 1]


def test_imports_have_no_cycles() -> None:
    assert circles(import_graph()) == MUTUAL


def test_a_cycle_is_detected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "PACKAGE", tmp_path)
    files = {
        "a.py": "def f():\n    from inductor_lab.ir import b\n",
        "ir/b.py": "if TYPE_CHECKING:\n    from inductor_lab.ir.c import C\n",
        "ir/c.py": "import inductor_lab.a\nimport inductor_lab.ir.d\n",
        "ir/d.py": "import torch\n",
        "__init__.py": "import inductor_lab.a\n",
    }
    (tmp_path / "ir").mkdir()
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    assert circles(import_graph()) == [["inductor_lab.a", "inductor_lab.ir.b", "inductor_lab.ir.c"]]


def test_each_operation_of_a_record_is_defined_once() -> None:
    """What records call by name is defined where the package says, and nothing else is listed."""
    texts = [path.read_text(encoding="utf-8") for path in files()]
    called = {
        node.args[0].value
        for text in texts
        if re.search(r"\b(perform|find)\(", text)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        and node.func.id in ("perform", "find") and node.args
        and isinstance(node.args[0], ast.Constant)
    }  # fmt: skip
    assert called == set(inductor_lab._OPERATIONS)
    for name, module in inductor_lab._OPERATIONS.items():
        text = PACKAGE.joinpath(*module.split(".")).with_suffix(".py").read_text(encoding="utf-8")
        assert f"\ndef {name}(" in text or f"\nclass {name}:" in text or f"\nclass {name}(" in text


def test_only_stock_imports_torch_inductor() -> None:
    python = [*files(), *(ROOT / "widgets").rglob("*.py")]
    bad = [
        f"{path.relative_to(ROOT)}: {module}"
        for path in python
        for module in imports(path)
        if module.startswith("torch._inductor") and phase_of_any(path) != "stock"
    ]
    assert bad == []


def phase_of_any(path: Path) -> str:
    return phase_of(path) if path.is_relative_to(PACKAGE) else ""


def source_of(module: str) -> Path | None:
    """The file of a module of ours; None if there is none."""
    folder, *parts = module.split(".")[1:] or [""]
    base = ROOT / folder if folder in ("widgets", "docs") else PACKAGE / folder
    path = base.joinpath(*parts)
    found = [file for file in (path.with_suffix(".py"), path / "__init__.py") if file.exists()]
    return found[0] if found else None


def nodes_of(text: str) -> Iterator[ast.AST]:
    """Yield the nodes of a file, and of the programs in its strings."""
    for node in ast.walk(ast.parse(text)):
        yield node
        if isinstance(node, ast.Constant) and "from inductor_lab" in str(node.value):
            with suppress(SyntaxError):  # prose, or a part of a program
                yield from ast.walk(ast.parse(textwrap.dedent(str(node.value))))


def lost_imports(path: Path) -> list[str]:
    """Return the names that a file imports from the package, but that do not exist."""
    lost = []
    for node in nodes_of(path.read_text(encoding="utf-8")):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("inductor_lab."):
            source, module = source_of(node.module or ""), node.module
            text = source.read_text(encoding="utf-8") if source else ""
            names = [alias.name for alias in node.names if alias.name not in text]
            lost += [f"{module}.{name}" for name in names if not source_of(f"{module}.{name}")]
    return lost


def test_imports_of_tests_exist(tmp_path: Path) -> None:
    """This includes imports in functions, and in programs in strings, which run on a GPU only."""
    files = [path for folder in ("tests", "benchmarks") for path in (ROOT / folder).rglob("*.py")]
    files.remove(Path(__file__))  # its strings have wrong imports
    found = {path.relative_to(ROOT).as_posix(): lost_imports(path) for path in files}
    assert {name: lost for name, lost in found.items() if lost} == {}
    wrong = tmp_path / "wrong.py"
    wrong.write_text('PROGRAM = """\nfrom inductor_lab.compiler.runtime import nothing\n"""')
    assert lost_imports(wrong) == ["inductor_lab.compiler.runtime.nothing"]
    ir = "inductor_lab.compiler.ir"
    assert source_of(f"{ir}.expr") and not source_of(f"{ir}.nothing")
