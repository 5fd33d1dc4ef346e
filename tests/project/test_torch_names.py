"""Private names of torch are reached through one door, whose tables list them all."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest

from inductor_lab.compiler.torch_door.torch_names import (
    FEATURES,
    NEWEST,
    OLDEST,
    REQUIRED,
    minor,
    warn_if_newer,
)
from tests.versions import (
    AREAS,
    BEGIN,
    END,
    PAGE,
    RELEASES,
    Outcome,
    columns_of,
    counted,
    on_page,
    tables,
    with_tables,
)

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "inductor_lab"
REQUIRING = ("torch_api.py",)
DOOR = PACKAGE / "compiler" / "torch_door"

# Path of a file or folder → why it may name what is private.
EXCEPTIONS = {
    "inductor_lab/mini": "imports nothing from the rest of the package; uses torch's pytree",
    "inductor_lab/stock": "reads stock TorchInductor for comparison; the compiler does not need it",
}


def python() -> list[Path]:
    return sorted([*PACKAGE.rglob("*.py"), *(ROOT / "widgets").rglob("*.py")])


def is_private(name: str) -> bool:
    """Operators, under `torch.ops`, are what a graph consists of: their names are no secret."""
    parts = name.split(".")
    if name.startswith("torch.ops."):
        return False
    return parts[0] == "torch" and any(p.startswith("_") and p[1:2] != "_" for p in parts)


def dotted(node: ast.expr) -> str:
    """`torch._C.x` of an attribute of an attribute of a name; "" of anything else."""
    if isinstance(node, ast.Name):
        return node.id
    inner = dotted(node.value) if isinstance(node, ast.Attribute) else ""
    return f"{inner}.{node.attr}" if inner and isinstance(node, ast.Attribute) else ""


def named(tree: ast.AST) -> Iterator[str]:
    """Every private name of torch that a file imports or reaches from `torch`."""
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Attribute):
            names = [dotted(node)]
        yield from filter(is_private, names)


def looked_up(tree: ast.AST) -> Iterator[str]:
    """The names that a file gives to `optional`, with those made of a constant and its prefix."""
    prefixes = {
        node.targets[0].id: node.value.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "optional":
            name = node.args[0]
            if isinstance(name, ast.Constant):
                yield str(name.value)
            elif isinstance(name, ast.BinOp):
                assert isinstance(name.left, ast.Name) and isinstance(name.right, ast.Constant)
                yield f"{prefixes[name.left.id]}{name.right.value}"


def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def is_exception(path: Path) -> bool:
    return path.relative_to(ROOT).as_posix().startswith(tuple(EXCEPTIONS))


def test_private_names_of_torch_are_used_only_in_torch_door() -> None:
    bad = {
        path.relative_to(ROOT).as_posix(): sorted({*named(tree_of(path))})
        for path in python()
        if path.name not in REQUIRING and not is_exception(path)
    }
    assert {path: names for path, names in bad.items() if names} == {}


@pytest.mark.parametrize(
    "line",
    ["import torch._dynamo", "from torch.utils import _pytree", "torch._C._storage_Use_Count(0)",
     "def f():\n    from torch._ops import OpOverload"],
)  # fmt: skip
def test_a_private_name_is_detected(line: str) -> None:
    assert list(named(ast.parse(line)))
    public = "torch.ops.aten._softmax; from torch.fx import Graph; x._cdata"
    assert not list(named(ast.parse(public)))


def test_names_that_torch_door_imports_are_required() -> None:
    imported = set(named(tree_of(DOOR / REQUIRING[0])))
    assert imported == set(REQUIRED)
    assert sorted(REQUIRED) == REQUIRED and len(REQUIRED) < 25


def test_optional_names_are_exactly_those_in_the_table() -> None:
    used = {name for path in python() for name in looked_up(tree_of(path))}
    listed = {name for feature in FEATURES.values() for name in feature.names}
    assert used <= listed
    asked = {n for n in listed if "_enabled" in n}  # named one by one, or by `missing` alone
    assert listed - used <= asked | {"torch._functorch.config.bundled_autograd_cache"}


def test_each_feature_says_what_is_different_without_it() -> None:
    assert all(feature.without and feature.names for feature in FEATURES.values())
    assert not {name for f in FEATURES.values() for name in f.names} & set(REQUIRED)


def test_a_newer_torch_is_not_refused_but_reported() -> None:
    newest = f"{NEWEST[0]}.{NEWEST[1]}.9+cu130"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_if_newer(newest)
        warn_if_newer("1.99.0")
    for version in (f"{NEWEST[0]}.{NEWEST[1] + 1}.0", f"{NEWEST[0] + 1}.0.0a0+git1234"):
        with pytest.warns(UserWarning, match=f"this is torch {version[:4]}"):
            warn_if_newer(version)


def test_every_supported_version_is_tested() -> None:
    """The page has results of each one, and a test for each area exists."""
    tested = columns_of(PAGE.read_text(encoding="utf-8"))
    minors = {minor(torch) for torch, _ in tested}
    assert minors == {minor(release) for release in RELEASES}
    assert (min(minors), max(minors)) == (OLDEST, NEWEST)
    assert {f"{torch}@{python}" for torch, python in tested} <= set(RELEASES)
    for path in (path for paths in AREAS.values() for path in paths):
        file, _, function = path.partition("[")[0].partition("::")
        assert f"def {function}" in (ROOT / file).read_text(encoding="utf-8"), path


def case(file: str, name: str, *results: str) -> ElementTree.Element:
    found = ElementTree.Element("testcase", file=file, name=name)
    found.extend(ElementTree.Element(result) for result in results)
    return found


def test_results_are_counted_by_area() -> None:
    cases = [
        case("tests/a.py", "test_one"), case("tests/a.py", "test_two[1-x]", "failure"),
        case("tests/a.py", "test_two[2]"), case("tests/b.py", "test_one", "skipped"),
    ]  # fmt: skip
    assert counted(cases, ["tests/a.py", "tests/b.py"]) == (2, ["tests/a.py::test_two[1-x]"])
    assert counted(cases, ["tests/a.py::test_two"]) == (1, ["tests/a.py::test_two[1-x]"])
    assert counted(cases, ["tests/c.py"]) == (0, ["tests/c.py did not run"])


def test_the_page_says_what_was_refused_and_what_is_off() -> None:
    areas = dict.fromkeys(AREAS, (3, []))
    ran = Outcome("2.14.1", "3.13", "3.8.0", "", {"bytecode": ["torch._x"], "traces": []}, areas)
    refused = Outcome("9.0.0", "3.14", refused="this machine has no Python 3.14")
    page = with_tables(f"# Title\n{BEGIN}\nold\n{END}\nlast\n", tables([ran, refused]))
    assert page.startswith("# Title\n") and page.endswith("last\n") and "old" not in page
    assert columns_of(page) == [("2.14.1", "3.13")]
    assert "| bytecode | off: no torch._x |" in page and "| traces | on |" in page
    assert "- torch 9.0.0, Python 3.14: this machine has no Python 3.14." in page
    assert on_page(page, "2.14.1", "3.13") == ran and on_page(page, "9.0.0", "3.14") == refused
    assert on_page(page, "2.11.0", "3.11") is None


def test_an_area_that_has_not_run_has_a_dash() -> None:
    ran = Outcome("2.14.1", "3.13", "3.8.0", "", {"bytecode": []}, {"capture": (26, [])})
    page = with_tables(f"{BEGIN}\n{END}", tables([ran]))
    assert "| capture | 26 |" in page and "| training | – |" in page
    assert on_page(page, "2.14.1", "3.13") == ran
