"""pyproject.toml, constraints and golden files say what is true."""

from __future__ import annotations

import importlib
import json
import re
import tomllib
from importlib.metadata import entry_points, requires
from pathlib import Path

import pytest
import yaml

from deploy import labextension
from tests.conftest import difference

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_all_packages_are_listed() -> None:
    inside = {path.parent for path in (ROOT / "inductor_lab").rglob("__init__.py")}
    names = {".".join(folder.relative_to(ROOT).parts) for folder in inside}
    widgets = {path.parent for path in (ROOT / "widgets").rglob("__init__.py")}
    names |= {".".join(("inductor_lab", *f.relative_to(ROOT).parts)) for f in widgets}
    names |= {"inductor_lab.docs", "inductor_lab.notebooks"}  # data alone
    assert set(PROJECT["tool"]["setuptools"]["packages"]) == names


def test_widgets_are_a_part_of_the_package() -> None:
    module = importlib.import_module("inductor_lab.widgets")
    assert module.__file__ is not None
    assert Path(module.__file__).parent in (ROOT / "widgets", ROOT / "inductor_lab" / "widgets")


def test_entry_points_exist() -> None:
    for name in ("inductor_lab", "inductor_lab_mini"):
        (backend,) = entry_points(group="torch_dynamo_backends", name=name)
        assert callable(backend.load())
    (script,) = entry_points(group="console_scripts", name="inductor-lab")
    assert callable(script.load())


def test_an_editable_install_gets_the_jupyterlab_extension(tmp_path: Path) -> None:
    """`make install` copies what pip copies from a wheel (tests/wheel)."""
    labextension.install(tmp_path)
    labextension.install(tmp_path)
    folder = tmp_path / "share" / "jupyter" / "labextensions" / "inductor-lab"
    load = json.loads((folder / "package.json").read_text())["jupyterlab"]["_build"]["load"]
    assert (folder / load.partition("?")[0]).is_file() and (folder / "static" / "page.js").is_file()
    makefile = (ROOT / "Makefile").read_text()
    assert "$(BIN)/python -m deploy.labextension\n\ttouch $@" in makefile


def test_constraints_pin_what_we_depend_on() -> None:
    pinned = {
        line.split("==")[0].lower()
        for line in (ROOT / "constraints.txt").read_text().splitlines()
        if "==" in line
    }
    wanted = [*PROJECT["project"]["dependencies"]]
    for extra in PROJECT["project"]["optional-dependencies"].values():
        wanted += extra
    names = {name_in(requirement) for requirement in wanted} - {"inductor_lab"}
    assert names - pinned == set()


def test_hooks_before_a_commit_run_what_is_pinned() -> None:
    """Local hooks are targets of the Makefile, whose tools constraints.txt pins; a hook of another
    repository would have to be of the version that is pinned."""
    pins = re.findall(r"^([\w.-]+)==(.+)$", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    pinned = {name.lower(): version for name, version in pins}
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())
    entries = []
    for repo in hooks["repos"]:
        if repo["repo"] == "local":
            entries += [hook["entry"] for hook in repo["hooks"]]
        else:
            (tool,) = (name for name in ("ruff", "mypy") if name in repo["repo"])
            assert repo["rev"].removeprefix("v") == pinned[tool]
    assert "make lint" in entries and all(entry.startswith("make ") for entry in entries)
    makefile = (ROOT / "Makefile").read_text()
    for entry in entries:
        recipe = re.search(rf"^{entry.split()[1]}:.*\n((?:\t.+\n)+)", makefile, re.MULTILINE)
        assert recipe is not None, f"the Makefile has no target for {entry!r}"
        tools = re.findall(r"\$\(BIN\)/(\w+)", recipe[1])
        assert tools and set(tools) <= pinned.keys()


def test_the_backend_needs_four_libraries() -> None:
    """And what torch itself brings: networkx, for the cut of the joint graph."""
    names = {name_in(requirement) for requirement in PROJECT["project"]["dependencies"]}
    assert names == {"torch", "numpy", "platformdirs", "sympy"}
    assert "networkx" in {name_in(requirement) for requirement in requires("torch") or ()}


def test_conda_takes_what_pip_takes() -> None:
    """environment.yml leaves versions to constraints.txt, and Python's to pyproject.toml."""
    text = (ROOT / "environment.yml").read_text()
    parts = re.findall(r"^ +- (?!pip:)(.+)$", text, re.MULTILINE)
    assert parts[0] == "conda-forge" and f"name: {PROJECT['project']['name']}" in text
    (python,) = (part.removeprefix("python") for part in parts if part.startswith("python"))
    lowest = PROJECT["project"]["requires-python"].removeprefix(">=")
    assert version_of(python) >= version_of(lowest)
    options = [part for part in parts if part.startswith("-")]
    assert options == ["-c constraints.txt", "-e .[test]"]
    extras = PROJECT["project"]["optional-dependencies"]
    assert "inductor_lab[classroom,docs,mcp,models,notebook,shell]" in extras["test"]
    assert not {part for part in parts if name_in(part) in {"torch", "numpy", "triton"}}


def version_of(text: str) -> tuple[int, ...]:
    """`=3.11` → (3, 11)."""
    return tuple(map(int, text.strip("=<>").split(".")))


def name_in(requirement: str) -> str:
    """`triton>=3.6 ; ...` → `triton`."""
    for stop in "<>=;![ ":
        requirement = requirement.split(stop)[0]
    return requirement.lower()


def test_a_golden_text_that_differs_is_shown() -> None:
    assert difference("a.txt", "one\n", "one\n") == ""
    message = difference("a.txt", "one\ntwo\n", "one\n2\n")
    assert "-two" in message and "+2" in message and "--update-golden" in message


def test_a_golden_text_is_compared(golden, request, tmp_path: Path, monkeypatch) -> None:
    if request.config.getoption("--update-golden"):
        pytest.skip("golden texts are being written")
    monkeypatch.setitem(golden.__globals__, "GOLDEN", tmp_path)
    with pytest.raises(pytest.fail.Exception, match="there is no"):
        golden("new.txt", "text")
    (tmp_path / "new.txt").write_text("text\n")
    golden("new.txt", "text")
    with pytest.raises(pytest.fail.Exception, match="is not what it was"):
        golden("new.txt", "other text")
