"""Every torch that users have: `python -m tests.versions [VERSION ...] [--keep-page]`.

For each version, the command creates an environment below `build/versions` (torch from the package
index with its dependencies, this checkout and the test tools) and runs the same part of the tests
in it.  An existing environment is reused.  The results are written to `docs/versions.md`: a table
of features and a table of tests.  The exit code is 1 if a test failed.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import venv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "build" / "versions"
PAGE = ROOT / "docs" / "versions.md"
VERSIONS = ("2.11.0", "2.12.1", "2.13.0", "2.14.1", "2.15.0")
"""One patch release of each minor version that the package supports."""

TOOLS = ("expecttest", "hypothesis", "nbclient", "nbformat", "numpy", "pytest", "pyyaml")
AREAS = {
    "capture": ["tests/capture", "tests/semantics/test_structure.py"],
    "training": ["tests/autograd", "tests/semantics/test_training_calls.py"],
    "in-place writes": ["tests/semantics/test_mutation.py", "tests/semantics/test_storage.py"],
    "dynamic sizes": ["tests/semantics/test_dynamic.py", "tests/semantics/test_unbacked_sizes.py"],
    "C++ kernels": ["tests/codegen/test_cpp.py", "tests/end_to_end/test_scans.py"],
    "Triton kernels": ["tests/codegen/test_ladder.py", "tests/runtime/test_triton_launch.py"],
    "calls and caches": ["tests/test_calls.py", "tests/end_to_end/test_warm_start.py"],
    "saved compilations": ["tests/test_saving.py"],
    "debugging": ["tests/debug/test_faults.py", "tests/debug/test_recompiles.py"],
    "stock views": ["tests/stock/test_live.py", "tests/stock/test_compare.py"],
    "explorer": ["tests/widgets/test_agreement.py", "tests/notebooks/test_cells.py"],
}
"""What a user relies on → the tests that run for it under each torch."""

FEATURES_OFF = """
import json
from inductor_lab.compiler.torch_door import torch_names
print(json.dumps({name: torch_names.missing(name) for name in torch_names.OPTIONAL}))
"""


@dataclass(frozen=True)
class Outcome:
    """What one torch did.

    off    feature → the names it needs and this torch lacks
    areas  area → (passed, failed tests with their error in one line)
    """

    torch: str
    triton: str
    off: dict[str, list[str]]
    areas: dict[str, tuple[int, list[str]]]


def environment(version: str) -> Path:
    """The Python of an environment with this torch; it is made if it is not there."""
    folder = FOLDER / version
    python = folder / "bin" / "python"
    done = folder / "installed"
    if done.exists():
        return python
    venv.create(folder, with_pip=True, clear=True)
    pip = [str(python), "-m", "pip", "install", "--quiet"]
    subprocess.run([*pip, f"torch=={version}", *TOOLS], check=True)
    subprocess.run([*pip, "-e", f"{ROOT}[notebook]", f"torch=={version}"], check=True)
    done.touch()
    return python


def outcome(version: str) -> Outcome:
    """Run the tests of all areas under this torch."""
    python = environment(version)
    off = json.loads(said(python, "-c", FEATURES_OFF))
    triton = said(python, "-c", "import triton; print(triton.__version__)").strip()
    return Outcome(version, triton, off, {area: tested(python, of) for area, of in AREAS.items()})


def said(python: Path, *arguments: str) -> str:
    return subprocess.run(
        [str(python), *arguments], cwd=ROOT, check=True, text=True, stdout=subprocess.PIPE
    ).stdout


def tested(python: Path, paths: Sequence[str]) -> tuple[int, list[str]]:
    """How many tests passed, and which failed."""
    command = [str(python), "-m", "pytest", "-q", "-rfE", "--tb=no", "-p", "no:cacheprovider"]
    done = subprocess.run([*command, *paths], cwd=ROOT, text=True, stdout=subprocess.PIPE)
    failed = re.findall(r"^(?:FAILED|ERROR) (.*)$", done.stdout, re.MULTILINE)
    passed = re.search(r"(\d+) passed", done.stdout)
    if done.returncode not in (0, 1) and not failed:
        failed = [done.stdout.strip().splitlines()[-1]]
    return int(passed[1]) if passed else 0, failed


def page(outcomes: Iterable[Outcome]) -> str:
    """`docs/versions.md`."""
    columns = list(outcomes)
    head = " | ".join(f"torch {one.torch}" for one in columns)
    rule = "---|" * len(columns)
    names = sorted({name for one in columns for name in one.off})
    features = [
        f"| {name} | {' | '.join(_state(one, name) for one in columns)} |" for name in names
    ]
    areas = [
        f"| {area} | {' | '.join(_count(*one.areas[area]) for one in columns)} |" for area in AREAS
    ]
    failed = [
        f"- torch {one.torch}: `{name}`"
        for one in columns
        for _, broken in one.areas.values()
        for name in broken
    ]
    return "\n".join([
        "# Versions of torch", "",
        "Which features each torch release supports, and which tests pass under it. Written by",
        "`python -m tests.versions`, with the general wheels of torch on a CPU.", "",
        "A newer torch than the last column is not refused: `import inductor_lab` warns once, and",
        "a feature whose private names are missing is off (`inductor-lab doctor` lists them).", "",
        "## Tests passed", "",
        f"| area | {head} |", f"|---|{rule}",
        f"| Triton | {' | '.join(one.triton for one in columns)} |", *areas, "",
        *(["Failed:", "", *failed, ""] if failed else []),
        "## Features", "",
        f"| feature | {head} |", f"|---|{rule}", *features, "",
    ])  # fmt: skip


def _state(one: Outcome, feature: str) -> str:
    """on, off, or – for a GPU feature where torch was built without GPU support."""
    return "–" if feature not in one.off else "off" if one.off[feature] else "on"


def _count(passed: int, failed: list[str]) -> str:
    return f"{passed}, {len(failed)} failed" if failed else str(passed)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.versions", description=__doc__)
    parser.add_argument("versions", nargs="*", default=VERSIONS, help="for example 2.14.1")
    parser.add_argument("--keep-page", action="store_true", help="do not write docs/versions.md")
    given = parser.parse_args(arguments)
    outcomes = [outcome(version) for version in given.versions]
    text = page(outcomes)
    if not given.keep_page:
        PAGE.write_text(text, encoding="utf-8")
    print(text)
    return 1 if any(failed for one in outcomes for _, failed in one.areas.values()) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
