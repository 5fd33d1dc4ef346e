"""Imports go one way (docs/development.md draws it); read from the source, nothing is imported."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "inductor_lab"

# What each phase may import of the others.  Single files at the top (errors, options, observer,
# torch_api, library_ops) are below all of them; the other files at the top are above.
ALLOWED: dict[str, set[str]] = {
    "ir": set(),
    "capture": set(),
    "autograd": {"capture"},
    "rewrite": {"capture"},
    "lower": {"capture", "rewrite", "ir"},
    "schedule": {"ir"},
    "codegen": {"ir", "schedule"},
    "runtime": {"capture", "ir", "schedule", "codegen"},
}
TORCH = ("torch_api", "torch_aot", "torch_bare")
BASE = {"errors", "options", "observer", *TORCH, "library_ops", "display"}
BASE_OF_IR = {"errors", "display"}

# Folders that stand above the whole compiler, like the files at the top.
ABOVE = {"bench", "demo", "stock"}

# Who may reach for the widgets, and only from inside a function.
DRAWS = {"display.py", "magic.py", "__init__.py"}

DOORS = tuple(PACKAGE / f"{name}.py" for name in TORCH)
PRIVATE_TORCH = ("torch._dynamo", "torch._functorch", "torch._logging", "torch._guards", "torch._C")


def imports(path: Path) -> Iterator[tuple[str, bool]]:
    """Every module that a file imports, and whether that happens at its top level."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    top = {id(node) for node in tree.body}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, id(node) in top
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import; write the whole name"
            module = node.module or ""
            yield module, id(node) in top
            for alias in node.names:
                yield f"{module}.{alias.name}", id(node) in top


def files() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def phase_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE).parts
    return parts[0] if len(parts) > 1 else ""


def of_ours(module: str) -> str:
    """The phase or top-level file that `inductor_lab.x.y` belongs to; "" if it is not ours."""
    parts = module.split(".")
    return parts[1] if parts[0] == "inductor_lab" and len(parts) > 1 else ""


def wrong_way(path: Path) -> list[str]:
    phase = phase_of(path)
    if not phase or phase in ABOVE:
        return []
    base = BASE_OF_IR if phase == "ir" else BASE
    allowed = ALLOWED[phase] | base | {phase}
    used = {of_ours(module) for module, _ in imports(path)} - {""}
    return [f"{path.relative_to(ROOT)} imports {name}" for name in sorted(used - allowed)]


def test_phases_import_one_way() -> None:
    assert [line for path in files() for line in wrong_way(path)] == []


def test_every_phase_has_a_place() -> None:
    folders = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert folders == set(ALLOWED) | ABOVE


def test_a_wrong_import_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "PACKAGE", tmp_path)
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    (tmp_path / "ir").mkdir()
    bad = tmp_path / "ir" / "bad.py"
    bad.write_text("def f():\n    from inductor_lab.schedule.result import Group\n")
    assert wrong_way(bad) == ["ir/bad.py imports schedule"]


def test_the_compiler_does_not_know_the_widgets() -> None:
    bad = []
    for path in files():
        for module, at_top in imports(path):
            allowed = path.parent == PACKAGE and path.name in DRAWS and not at_top
            if of_ours(module) == "widgets" and not allowed:
                bad.append(f"{path.relative_to(ROOT)}: {module}")
    assert bad == []


def test_nobody_imports_torch_inductor() -> None:
    python = [*files(), *(ROOT / "widgets").rglob("*.py")]
    bad = [
        f"{path.relative_to(ROOT)}: {module}"
        for path in python
        for module, _ in imports(path)
        if module.startswith("torch._inductor") and phase_of_any(path) != "stock"
    ]
    assert bad == []


def phase_of_any(path: Path) -> str:
    return phase_of(path) if path.is_relative_to(PACKAGE) else ""


def test_private_torch_is_behind_one_door() -> None:
    bad = [
        f"{path.relative_to(ROOT)}: {module}"
        for path in files()
        for module, _ in imports(path)
        if module.startswith(PRIVATE_TORCH) and path not in DOORS
    ]
    assert bad == []
