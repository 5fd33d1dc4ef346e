"""conda/recipe.yaml is read by conda's own builder and asks for what pyproject.toml asks for."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
NAMES = {"torch": "pytorch"}
"""What is called otherwise in conda-forge."""


@pytest.fixture(scope="module")
def rendered() -> dict[str, Any]:
    tool = pytest.importorskip("rattler_build", reason="to run it: pip install py-rattler-build")
    recipe = tool.Stage0Recipe.from_file(str(ROOT / "conda" / "recipe.yaml"))
    (variant,) = recipe.render(tool.VariantConfig())
    return variant.recipe.to_dict()


def test_it_is_this_package(rendered: dict[str, Any]) -> None:
    package, about = rendered["package"], rendered["about"]
    assert (package["name"], package["version"]) == (PROJECT["name"], PROJECT["version"])
    assert (about["license"], about["summary"]) == (PROJECT["license"], PROJECT["description"])


def test_it_needs_what_pip_needs(rendered: dict[str, Any]) -> None:
    run = {str(each) for each in rendered["requirements"]["run"]}
    wanted = {f"python {PROJECT['requires-python']}", "cxx-compiler"}
    for requirement in PROJECT["dependencies"]:
        name, bounds = requirement, ""
        if ">=" in requirement:
            name, bounds = requirement.split(">=")
        wanted.add(f"{NAMES.get(name, name)} >={bounds}" if bounds else name)
    assert run == wanted


def test_its_script_is_ours(rendered: dict[str, Any]) -> None:
    (entry,) = rendered["build"]["python"]["entry_points"]
    (name, target), = PROJECT["scripts"].items()
    assert str(entry).replace(" ", "") == f"{name}={target}"
