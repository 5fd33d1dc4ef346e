"""conda/recipe.yaml is built by conda's own builder, installed by it, and its tests run.

No channel is asked: Python, pip and the libraries come from this environment, under the names that
the recipe has for them, from a channel that is made here.
"""

from __future__ import annotations

import sys
from importlib.metadata import distribution, version
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
SITE = f"$PREFIX/lib/python{PYTHON}/site-packages"
LIBRARIES = {"pytorch": "torch", "numpy": "numpy", "platformdirs": "platformdirs",
             "sympy": "sympy", "cxx-compiler": ""}  # fmt: skip
"""conda's names, and ours."""

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="the stand-ins are made by a shell"),
]
rattler = pytest.importorskip("rattler_build", reason="to run it: pip install py-rattler-build")


def site_of(library: str) -> Path:
    """Where this environment keeps a library."""
    return Path(str(distribution(library).locate_file("")))


def recipe(name: str, of: str, *script: str) -> Any:
    lines = "".join(f"\n    - {line}" for line in script or ("true",))
    text = (f'schema_version: 1\npackage:\n  name: {name}\n  version: "{of.partition("+")[0]}"\n'
            f"build:\n  script:{lines}\n")  # fmt: skip
    return rattler.Stage0Recipe.from_yaml(text)


def built(recipe: Any, channel: Path) -> Path:
    (one,) = recipe.render(rattler.VariantConfig())
    result = one.run_build(
        tool_config=rattler.ToolConfiguration(test_strategy="skip"),
        output_dir=channel, channels=[channel.as_uri()],
    )  # fmt: skip
    (made,) = result.packages
    return Path(made)


@pytest.fixture(scope="module")
def channel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("channel")
    parts = ("pip", "setuptools", "_distutils_hack")
    pip = [f"cp -r {site_of('setuptools')}/{name}* {SITE}/" for name in parts]
    here = f"{sys._base_executable} -m venv --without-pip --symlinks $PREFIX"
    built(recipe("python", f"{PYTHON}.0", here, *pip), folder)
    for name in ("pip", "setuptools"):
        built(recipe(name, version(name)), folder)
    for name, ours in LIBRARIES.items():
        seen = [f"mkdir -p {SITE}", f"echo {site_of(ours)} > {SITE}/{name}.pth"] if ours else []
        built(recipe(name, version(ours) if ours else "1.0", *seen), folder)
    return folder


def test_the_package_is_built_installed_and_runs(channel: Path) -> None:
    made = built(rattler.Stage0Recipe.from_file(str(ROOT / "conda" / "recipe.yaml")), channel)
    package = rattler.Package.from_file(str(made))
    inside = {name.removeprefix("site-packages/") for name in package.files}
    assert str(package.noarch) == "python" and "pytorch >=2.11" in package.depends
    modules = {path.relative_to(ROOT).as_posix() for path in (ROOT / "inductor_lab").rglob("*.py")}
    assert modules <= inside
    for kind in (".js", ".css", ".h", ".ipynb", ".toml", "py.typed", "LICENSE"):
        assert any(name.endswith(kind) for name in inside), kind
    assert not any(name.startswith(("tests/", "widgets/", "notebooks/")) for name in inside)
    done = package.run_tests(channel=[channel.as_uri()])
    assert len(done) == 2 and all(each.success for each in done), [each.output for each in done]
