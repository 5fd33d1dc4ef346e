"""Check what this machine has for inductor_lab, and what to install."""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

from inductor_lab.compiler.base.display import Documented
from inductor_lab.compiler.base.errors import LabError
from inductor_lab.compiler.codegen.kernel import Code, Line
from inductor_lab.compiler.runtime.cache.folder_permissions import trust_problem
from inductor_lab.compiler.runtime.cache.kernel_cache import open_cache
from inductor_lab.compiler.runtime.toolchain import thread_team
from inductor_lab.compiler.runtime.toolchain.find_compiler import find_toolchain
from inductor_lab.compiler.runtime.toolchain.openmp import loaded_runtimes
from inductor_lab.compiler.runtime.toolchain.shared_library import build_library
from inductor_lab.compiler.torch_door import torch_aot, torch_names
from inductor_lab.saved.documents import command_types
from inductor_lab.saved.documents.command_types import DoctorRow
from inductor_lab.saved.documents.kinds import document

PROBE = """
#ifdef _WIN32
#define EXPORT extern "C" __declspec(dllexport)
#else
#define EXPORT extern "C"
#endif
EXPORT int probe(void) {
    int threads = 0;
    #pragma omp parallel
    #pragma omp critical
    threads += 1;
    return threads;
}
"""

WIDTH = 90
"""Maximum width of a list of names."""
FEATURES_SHOWN = 3
"""How many features that are off have their sentence without `--all`: all rows fit on a screen."""
NO_TRITON = (
    "pip install 'inductor-lab[triton]' (Linux; on Windows it is triton-windows):"
    " Triton code and GPUs"
)
EXTRAS = {
    "notebook": ("ipython", "jupyterlab", "ipywidgets", "anywidget", "graphviz", "pydot", "rich"),
    "mcp": ("mcp", "jsonschema"),
    "models": ("transformers",),
}


@dataclass(frozen=True)
class Row:
    """The result of one check.

    found   what was found; "" if nothing was
    needed  whether inductor_lab requires it
    todo    what to do if it is missing
    names   the names that a count stands for; `--all` prints them
    feature whether it is a feature that is off, because torch lacks a name that it needs
    """

    name: str
    found: str
    needed: bool = False
    todo: str = ""
    names: tuple[str, ...] = ()
    feature: bool = False


@dataclass(frozen=True)
class Doctor(Documented):
    """The result of `report`: one line for each check; with `every_name`, lists of names too."""

    rows: tuple[Row, ...]
    every_name: bool = False

    @property
    def healthy(self) -> bool:
        """Was everything found that is required?"""
        return all(row.found for row in self.rows if row.needed)

    def to_dict(self) -> dict[str, Any]:
        """The data as JSON (docs/json.md)."""
        rows = [DoctorRow(name=row.name.strip(), found=row.found, needed=row.needed, todo=row.todo,
                          names=list(row.names)) for row in self.rows]  # fmt: skip
        return document(command_types.Doctor(
            id="doctor", summary=repr(self), kind="doctor", healthy=self.healthy, rows=rows
        ))  # fmt: skip

    def __repr__(self) -> str:
        return f"Doctor({'healthy' if self.healthy else 'something is missing'})"

    def __str__(self) -> str:
        width = max(len(row.name) for row in self.rows)
        off = [row for row in self.rows if row.feature]
        hidden = [] if self.every_name else off[FEATURES_SHOWN:]
        lines: list[str] = []
        for row in self.rows:
            if row not in hidden:
                lines += self._lines(row, width)
            elif row is hidden[-1]:
                lines.append(f"  {len(hidden)} more features are off: inductor-lab doctor --all")
        return "\n".join(lines)

    def _lines(self, row: Row, width: int) -> list[str]:
        first, *more = (row.found or ("MISSING" if row.needed else "none")).splitlines()
        if self.every_name:
            more += textwrap.wrap(", ".join(row.names), WIDTH)
        lines = [f"{row.name:{width}}  {first}"]
        lines += [f"{'':{width}}  {line.strip()}" for line in more]
        if row.todo and not row.found:
            lines += [f"{'':{width}}  -> {line.strip()}" for line in row.todo.splitlines()]
        return lines


def report(every_name: bool = False) -> Doctor:
    """Run all checks, and compile, load and run a small C++ kernel."""
    return Doctor(tuple(_rows()), every_name)


def _rows() -> Iterator[Row]:
    yield Row("python", f"{platform.python_version()}, {sys.executable}")
    yield Row("system", f"{platform.system()} {platform.release()} {platform.machine()}")
    yield Row("inductor_lab", _version("inductor_lab"))
    yield Row("torch", torch.__version__, needed=True)
    yield from _names_of_torch()
    yield Row("triton", _triton(), todo=NO_TRITON)
    yield _compiler()
    yield _probe()
    yield Row("OpenMP", ", ".join(map(str, loaded_runtimes())))
    capability = torch.backends.cpu.get_cpu_capability()
    yield Row("CPU", f"{cpu_name()}, {os.cpu_count()} cores, {capability}")
    yield Row("threads", f"{torch.get_num_threads()} (torch.set_num_threads), {_whose_threads()}")
    yield Row("GPU", _gpus(), todo="without one, Triton code is compiled and interpreted, not run")
    yield _graphviz()
    yield _cache()
    folder = torch_aot.cache_folder()
    problem = trust_problem(Path(folder)) if folder else "no folder can be created"
    yield Row("compiled graphs", "" if problem else folder, todo=f"not kept on disk: {problem}")
    for extra, packages in EXTRAS.items():
        yield from _packages(extra, packages)


def _packages(extra: str, packages: Sequence[str]) -> Iterator[Row]:
    """The packages of an extra in one row, and the missing ones in another."""
    versions = {package: _version(package) for package in packages}
    found = [f"{package} {number}" for package, number in versions.items() if number]
    yield Row(f"[{extra}]", ", ".join(found), todo=f"pip install 'inductor-lab[{extra}]'")
    missing = [package for package, number in versions.items() if not number]
    if found and missing:
        todo = f"pip install 'inductor-lab[{extra}]', for {', '.join(missing)}"
        yield Row(f"  rest of [{extra}]", "", todo=todo)


def _names_of_torch() -> Iterator[Row]:
    """The names of torch that inductor_lab uses; without the required ones this could not run."""
    required, optional = torch_names.REQUIRED, torch_names.OPTIONAL
    off = {name: torch_names.missing(name) for name in optional}
    yield Row("  required APIs", f"all {len(required)} found", names=tuple(required))
    on = tuple(name for name, lacking in off.items() if not lacking)
    yield Row("  features", f"{len(on)} of {len(off)} enabled", names=on)
    for name, lacking in off.items():
        if lacking:
            todo = f"{optional[name].without}: there is no {', '.join(lacking)}"
            yield Row(f"  {name}", "", todo=todo, feature=True)


def _triton() -> str:
    """Two packages bring the module `triton`."""
    windows = _installed("triton-windows")
    return f"{windows} (triton-windows)" if windows else _version("triton")


def _compiler() -> Row:
    try:
        toolchain = find_toolchain()
    except LabError as problem:
        return Row("C++ compiler", "", needed=True, todo=f"{problem.what}\n{problem.todo}")
    command = " ".join(toolchain.command)
    return Row("C++ compiler", f"{command}: {toolchain.version} ({toolchain.family.name})")


def _probe() -> Row:
    """Compile, load and run a kernel that counts its threads."""
    unit = Code.of(Line(text) for text in PROBE.strip().splitlines())
    try:
        threads = build_library(unit, "probe", cache=False).handle.probe()
    except (LabError, OSError) as problem:
        return Row("probe kernel", "", needed=True, todo=str(problem))
    return Row("probe kernel", f"compiled, loaded and ran on {threads} threads", needed=True)


def _whose_threads() -> str:
    """Who runs the parallel loops of kernels (docs/threads.md)."""
    with suppress(LabError):
        if thread_team.is_used(find_toolchain()):
            always = thread_team.is_always_used()
            return "our own" if always else "OpenMP's; our own on a busy machine"
    return "OpenMP's"


def _graphviz() -> Row:
    dot = shutil.which("dot")
    if dot is None:
        return Row("graphviz dot", "", todo="not needed: graphs are drawn without it")
    done = subprocess.run([dot, "-V"], capture_output=True, text=True, check=False)
    return Row("graphviz dot", (done.stderr or done.stdout).strip())


def _cache() -> Row:
    try:
        cache = open_cache()
    except LabError as problem:
        return Row("cache", "", needed=True, todo=f"{problem.what}\n{problem.todo}")
    return Row("cache", f"{cache.root}, {cache.nbytes() / 2**20:.1f} MiB", needed=True)


def _gpus() -> str:
    if not torch.cuda.is_available():
        return ""
    cards = [torch.cuda.get_device_properties(n) for n in range(torch.cuda.device_count())]
    kind = f"ROCm {torch.version.hip}" if torch.version.hip else f"CUDA {torch.version.cuda}"
    return "\n".join(f"{c.name}, {c.total_memory / 2**30:.0f} GiB, {kind}" for c in cards)


def cpu_name() -> str:
    """The name of the processor."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as info:
            names = (line.split(":", 1)[1].strip() for line in info if "model name" in line)
            return next(names, platform.machine())
    except OSError:
        return platform.processor() or platform.machine()


def _version(package: str) -> str:
    here = "in this checkout" if importlib.util.find_spec(package) else ""
    return _installed(package) or here


def _installed(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
