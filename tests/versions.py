"""Every torch that users have: `python -m tests.versions [TORCH[@PYTHON] ...] [--envs FOLDER]`.

    python -m tests.versions --envs ~/envs          every release in `RELEASES`
    python -m tests.versions 2.14.1 2.14.1@3.13     these two environments only
    python -m tests.versions 2.14.1 --area capture  one area; the others keep their results

Each environment is a folder `TORCH-pyPYTHON` below FOLDER, with the general wheel of torch, this
checkout and the test tools.  What exists is reused and what is missing is made.  All environments
run the same part of the tests (`AREAS`), and the results become the tables of `docs/versions.md`.
An environment that pip refuses, or for which this machine has no Python, is listed there with the
reason.  The output of each environment is stored in FOLDER, as text and as data (`.json`); the
page is made from the data of all `RELEASES`.  A release without data there keeps its column of the
page, with "–" for areas that it has not run.  The exit code is 1 if a test failed.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "build" / "versions"
PAGE = ROOT / "docs" / "versions.md"
BEGIN, END = "<!-- begin: python -m tests.versions -->", "<!-- end -->"

RELEASES = (
    "2.11.0@3.11", "2.12.1@3.11", "2.13.0@3.11", "2.14.1@3.11", "2.14.1@3.12", "2.14.1@3.13",
    "2.14.1@3.14", "2.15.0@3.11",
)  # fmt: skip
"""One patch release of each minor version, and every Python with one of them."""

TOOLS = (
    "expecttest", "hypothesis", "jsonschema", "nbclient", "nbformat", "pydantic", "pytest",
    "pyyaml", "transformers",
)  # fmt: skip
PEAKS = "tests/debug/test_memory.py::test_every_peak_is_that_of_the_system"
WRITES = "tests/semantics/test_mutation.py::test_results_equal_eager_mode"
AREAS = {
    "demo programs, saved and loaded": [
        f"tests/test_saving.py::test_demo_programs_come_back[{name}]"
        for name in ("trig", "uint8", "numpy")
    ],
    "capture": [
        "tests/capture/test_dynamo_listener.py::test_recordings_nest_and_leave_no_trace",
        "tests/capture/test_eager_fallback.py::test_a_rule_refuses",
    ],
    "C++ kernels": ["tests/codegen/test_cpp_math.py"],
    "Triton kernels, for GPUs that are not here": ["tests/codegen/test_ladder.py::test_nvidia"],
    "training": ["tests/autograd/test_partition.py"],
    "in-place writes": [
        f"{WRITES}[gives_its_input_the_memory_of_another-False]",
        f"{WRITES}[returns_a_part_of_the_input_that_it_wrote-True]",
        f"{WRITES}[returns_one_element_of_the_input_that_it_wrote-True]",
    ],
    "entry points": ["tests/end_to_end/test_entry_points.py"],
    "recompiles": ["tests/debug/test_recompiles.py"],
    "stock views": ["tests/stock/test_live.py"],
    "blame for stock": ["tests/stock/test_blame_stock.py::test_a_right_program_is_not_blamed"],
    "blame for stock: seeded faults": [
        "tests/stock/test_blame_stock.py::test_a_seeded_fault_is_located",
    ],
    "recompiles of stock: causes": ["tests/stock/test_trace_causes.py"],
    "recompile advice": [
        "tests/debug/test_advice.py::test_a_loop_is_cured[static_rows]",
        "tests/debug/test_advice.py::test_a_loop_is_cured[float_argument]",
    ],
    "diff of stock runs": [
        "tests/debug/test_diff.py::test_trace_logs",
        "tests/debug/test_diff.py::test_equal_runs_have_an_empty_diff[chain-stock]",
        "tests/debug/test_diff.py::test_equal_runs_have_an_empty_diff[mlp-stock]",
        "tests/debug/test_rank_diff.py",
    ],
    "memory of a step with stock": [
        f"{PEAKS}[softmax_chain-stock]", f"{PEAKS}[blocks-stock]", f"{PEAKS}[trainer-stock]",
    ],
    "why_not_fused of stock": ["tests/stock/test_why_not_fused.py"],
    "CUDA graphs of stock": ["tests/stock/test_cuda_graphs.py"],
    "compile time of stock": ["tests/stock/test_compile_time.py"],
    "kernels of stock as data": ["tests/stock/test_kernel_data.py"],
    "JSON documents": [
        "tests/saved/test_documents.py::test_a_compilation_has_the_numbers_of_its_record",
    ],
    "explorer and cells": ["tests/widgets/test_model.py", "tests/notebooks/test_cells.py"],
}
"""What a user relies on → the tests that run for it in each environment."""

ABOUT = """
import json, torch, warnings
from inductor_lab.compiler.torch_door import torch_names as names
triton = __import__("triton").__version__
off = {name: names.missing(name) for name in names.OPTIONAL}
print(json.dumps({"torch": torch.__version__, "triton": triton, "off": off}))
"""


@dataclass(frozen=True)
class Outcome:
    """What one environment did.

    refused  why there is no such environment; "" if there is one
    off      feature → the names it needs and this torch lacks
    areas    area → (number of passed tests, failed tests)
    """

    torch: str
    python: str
    triton: str = ""
    refused: str = ""
    off: dict[str, list[str]] = field(default_factory=dict)
    areas: dict[str, tuple[int, list[str]]] = field(default_factory=dict)


class Refused(Exception):
    """An environment that cannot be made here, and why."""


def interpreter(minor: str) -> str:
    """A Python of this minor version: this one, one on the path, or one of pyenv."""
    if minor == f"{sys.version_info[0]}.{sys.version_info[1]}":
        return sys.executable
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    found = [shutil.which(f"python{minor}"), *pyenv.glob(f"versions/{minor}.*/bin/python")]
    for candidate in map(str, filter(None, found)):
        asked = subprocess.run([candidate, "-c", ""], capture_output=True, check=False)
        if asked.returncode == 0:
            return candidate
    raise Refused(f"this machine has no Python {minor}")


def environment(folder: Path, torch: str, minor: str) -> Path:
    """The Python of an environment with this torch; it is made if it is not there."""
    python, done = folder / "bin" / "python", folder / "installed"
    wanted = (f"torch=={torch}", "-e", f"{ROOT}[notebook]", *TOOLS)
    if not done.exists():
        subprocess.run([interpreter(minor), "-m", "venv", "--clear", str(folder)], check=True)
    elif done.read_text(encoding="utf-8") == repr(wanted):
        return python
    try:
        _install(python, *wanted)
    except Refused:
        if not done.exists():
            shutil.rmtree(folder)
        raise
    done.write_text(repr(wanted), encoding="utf-8")
    return python


def _install(python: Path, *what: str) -> None:
    """Raises: Refused with the lines in which pip says why."""
    command = [str(python), "-m", "pip", "install", "--no-compile", *what]
    done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode:
        lines = [line.strip() for line in done.stdout.splitlines()]
        why = [line for line in lines if line.startswith(("ERROR: No ", "The user requested"))]
        raise Refused("pip refuses it: " + ("; ".join(why) or lines[-1]))


def outcome(folder: Path, release: str, chosen: Sequence[str]) -> Outcome:
    """Run the tests of some areas in the environment of a release, such as `2.14.1@3.13`."""
    torch, minor = split(release)
    here = folder / f"{torch}-py{minor}"
    try:
        python = environment(here, torch, minor)
    except Refused as problem:
        return Outcome(torch, minor, refused=str(problem))
    told = subprocess.run(
        [str(python), "-W", "ignore", "-c", ABOUT], cwd=ROOT, check=True, text=True,
        stdout=subprocess.PIPE,
    )  # fmt: skip
    about = json.loads(told.stdout)
    areas = tested(python, here.with_name(f"{here.name}.txt"), chosen)
    if set(chosen) != set(AREAS):
        areas = {**stored(folder, release, PAGE.read_text(encoding="utf-8")).areas, **areas}
    return Outcome(torch, minor, about["triton"], "", about["off"], areas)


def split(release: str) -> tuple[str, str]:
    """`2.14.1@3.13` → the two versions; without Python's, that of this process."""
    torch, _, minor = release.partition("@")
    return torch, minor or f"{sys.version_info[0]}.{sys.version_info[1]}"


def kept(folder: Path, release: str) -> Path:
    """The file with the outcome of a release."""
    torch, minor = split(release)
    return folder / f"{torch}-py{minor}.json"


def tested(
    python: Path, output: Path, chosen: Sequence[str]
) -> dict[str, tuple[int, list[str]]]:
    """Run the tests of some areas in one process; area → how many passed, and which failed."""
    paths = [path for area in chosen for path in AREAS[area]]
    with tempfile.TemporaryDirectory() as made, output.open("w", encoding="utf-8") as text:
        written = Path(made) / "results.xml"
        subprocess.run(
            [str(python), "-m", "pytest", "-q", "--tb=short", "-p", "no:cacheprovider",
             "-o", "junit_family=xunit1", f"--junitxml={written}", *paths],
            cwd=ROOT, check=False, stdout=text, stderr=subprocess.STDOUT,
        )  # fmt: skip
        cases = list(ElementTree.parse(written).iter("testcase")) if written.exists() else []
    return {area: counted(cases, AREAS[area]) for area in chosen}


def counted(cases: Iterable[ElementTree.Element], paths: Sequence[str]) -> tuple[int, list[str]]:
    """The passed and failed tests of some files and functions; a file that did not run failed."""
    passed, failed, ran = 0, [], set()
    for case in cases:
        file = case.get("file") or case.get("classname", "").replace(".", "/") + ".py"
        name = f"{file}::{case.get('name')}"
        names = {file, name.partition("[")[0], name}
        if names.isdisjoint(paths):
            continue
        ran |= names
        results = {child.tag for child in case}
        if results & {"failure", "error"}:
            failed.append(name)
        elif "skipped" not in results:
            passed += 1
    return passed, failed + [f"{path} did not run" for path in paths if path not in ran]


def tables(outcomes: Sequence[Outcome]) -> str:
    """The generated part of the page."""
    columns = [one for one in outcomes if not one.refused]
    head = " | ".join(f"torch {one.torch}, Python {one.python}" for one in columns)
    rule = "---|" * len(columns)
    areas = [
        f"| {area} | {' | '.join(_count(one.areas.get(area)) for one in columns)} |"
        for area in AREAS
    ]
    names = sorted({name for one in columns for name in one.off})
    features = [
        f"| {name} | {' | '.join(_state(one, name) for one in columns)} |" for name in names
    ]
    failed = [
        f"- torch {one.torch}, Python {one.python}: `{name}`"
        for one in columns
        for _, broken in one.areas.values()
        for name in broken
    ]
    refused = [
        f"- torch {one.torch}, Python {one.python}: {one.refused}." for one in outcomes
        if one.refused
    ]  # fmt: skip
    return "\n".join([
        "## Tests passed", "",
        f"| area | {head} |", f"|---|{rule}",
        f"| Triton | {' | '.join(one.triton for one in columns)} |", *areas, "",
        *(["Failed:", "", *failed, ""] if failed else []),
        *(["Not tried:", "", *refused, ""] if refused else []),
        "## Features", "",
        f"| feature | {head} |", f"|---|{rule}", *features,
    ])  # fmt: skip


def _state(one: Outcome, feature: str) -> str:
    """on, or off with the missing names; – where torch was built without GPU support."""
    if feature not in one.off:
        return "–"
    return f"off: no {', '.join(one.off[feature])}" if one.off[feature] else "on"


def _count(results: tuple[int, list[str]] | None) -> str:
    """The number of passed and failed tests; – if they have not run."""
    if results is None:
        return "–"
    passed, failed = results
    return f"{passed}, {len(failed)} failed" if failed else str(passed)


def with_tables(page: str, text: str) -> str:
    """The page with new text between its markers."""
    before, after = page.split(BEGIN)[0], page.split(END)[1]
    return f"{before}{BEGIN}\n\n{text}\n\n{END}{after}"


def columns_of(page: str) -> list[tuple[str, str]]:
    """The (torch, Python) of the environments in the tables of the page."""
    return re.findall(r"torch ([\d.]+), Python ([\d.]+)", page.split("| area |")[1].split("\n")[0])


def on_page(page: str, torch: str, minor: str) -> Outcome | None:
    """What the page says of an environment: its column, or why there is none.

    Areas with failed tests are left out: they have to run again.
    """
    known = columns_of(page)
    if (torch, minor) not in known:
        said = re.search(rf"^- torch {torch}, Python {minor}: (?!`)(.*)\.$", page, re.MULTILINE)
        return Outcome(torch, minor, refused=said[1]) if said else None
    at = known.index((torch, minor))
    before, _, after = page.split(BEGIN)[1].split(END)[0].partition("## Features")
    results, states = (_column(text, at) for text in (before, after))
    areas = {area: (int(cell), []) for area, cell in results.items() if cell.isdecimal()}
    off = {
        name: [] if state == "on" else state.removeprefix("off: no ").split(", ")
        for name, state in states.items() if state != "–"
    }  # fmt: skip
    return Outcome(torch, minor, results["Triton"], "", off, areas)


def _column(text: str, at: int) -> dict[str, str]:
    """The cells of one column by the first cell of their row, without the head."""
    rows = [line.strip("|").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    return {cells[0].strip(): cells[1 + at].strip() for cells in rows[1:]}


def run_and_keep(folder: Path, release: str, chosen: Sequence[str]) -> str:
    found = outcome(folder, release, chosen)
    kept(folder, release).write_text(json.dumps(asdict(found)), encoding="utf-8")
    return release


def stored(folder: Path, release: str, page: str) -> Outcome:
    """The last outcome of a release: of this machine, or as the page has it."""
    file = kept(folder, release)
    if file.exists():
        return Outcome(**json.loads(file.read_text(encoding="utf-8")))
    missing = Outcome(*split(release), refused="not run yet")
    return on_page(page, *split(release)) or missing


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.versions", description=__doc__)
    parser.add_argument("releases", nargs="*", default=RELEASES, help="for example 2.14.1@3.13")
    parser.add_argument("--envs", type=Path, default=FOLDER, help="the folder of the environments")
    parser.add_argument("--jobs", type=int, default=1, help="how many environments at a time")
    parser.add_argument("--area", action="append", choices=AREAS, help="only these areas")
    given = parser.parse_args(arguments)
    folder = given.envs.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(given.jobs) as pool:
        chosen = given.area or list(AREAS)
        for release in pool.map(lambda name: run_and_keep(folder, name, chosen), given.releases):
            print(f"{release}: done", flush=True)
    page = PAGE.read_text(encoding="utf-8")
    text = tables([stored(folder, release, page) for release in RELEASES])
    PAGE.write_text(with_tables(page, text), encoding="utf-8")
    print(text)
    ran = [stored(folder, release, page) for release in given.releases]
    return 1 if any(failed for one in ran for _, failed in one.areas.values()) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
