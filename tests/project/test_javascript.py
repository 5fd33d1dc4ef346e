"""Pages hold scripts that are built from the modules in `javascript/`, which pass their checks."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from inductor_lab.notebook.language import table

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "javascript"
BUILT = ROOT / "widgets" / "built"
LABEXTENSION = SOURCES / "labextension"
HOW = "run `make javascript`, which needs node"

npm = shutil.which("npm")
with_node = pytest.mark.skipif(
    npm is None or not (SOURCES / "node_modules").is_dir(),
    reason=f"the JavaScript was NOT type-checked, linted or tested here: {HOW}",
)


def run(*arguments: str) -> str:
    done = subprocess.run([str(npm), *arguments], cwd=SOURCES, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_scripts_are_built_from_these_modules() -> None:
    """As build.mjs computes it, so that no node is needed to find a script that is out of date."""
    texts = "".join(f"{path.name}\n{path.read_text(encoding='utf-8')}"
                    for path in sorted(SOURCES.glob("*.js")))  # fmt: skip
    texts += json.dumps(table()["jupyterlab"], ensure_ascii=False, separators=(",", ":"))
    wanted = hashlib.sha256(texts.encode()).hexdigest()[:16]
    for path in sorted([*BUILT.glob("*.js"), *LABEXTENSION.glob("*.js")]):
        said = path.read_text(encoding="utf-8").splitlines()[0]
        assert wanted in said, f"{path.name} was built from other modules: {HOW}"
    assert len(list(BUILT.glob("*.js"))) == 3
    described = json.loads((LABEXTENSION / "package.json").read_text(encoding="utf-8"))
    load = described["jupyterlab"]["_build"]["load"]
    assert load == f"static/remoteEntry.js?v={wanted}", HOW


@with_node
def test_building_again_gives_the_same(tmp_path: Path) -> None:
    run("run", "build", "--", str(tmp_path))
    made = [path.relative_to(tmp_path) for path in tmp_path.rglob("*.*")]
    assert len(made) == 5
    for path in made:
        assert (tmp_path / path).read_bytes() == (ROOT / path).read_bytes(), HOW


@with_node
def test_types_lint_and_unit_tests() -> None:
    said = run("run", "check")
    assert int(re.search(r"# pass (\d+)", said)[1]) >= 9 and "# fail 0" in said


def test_what_builds_is_pinned_and_names_no_registry() -> None:
    wanted = json.loads((SOURCES / "package.json").read_text())["devDependencies"]
    locked = json.loads((SOURCES / "package-lock.json").read_text())["packages"]
    for name, version in wanted.items():
        assert re.fullmatch(r"[\d.]+", version), name
        assert locked[f"node_modules/{name}"]["version"] == version
    assert not [name for name, package in locked.items() if "resolved" in package]
    assert all("integrity" in package for name, package in locked.items() if name)
