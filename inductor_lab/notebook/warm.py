"""Run notebooks to fill the cache on disk: `inductor-lab warm notebooks/tutorials`.

`--into FOLDER` copies the entries to a shared class cache, which all users can read and only its
owner can write.  Kernels find it by `INDUCTOR_LAB_SHARED_CACHE` (`runtime/cache/kernel_cache.py`).

Compiled code depends on the number of threads and on the CPU, so use the students'
`OMP_NUM_THREADS` and their machine.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inductor_lab.compiler.base.display import write_errors
from inductor_lab.compiler.base.errors import BadArguments, MissingPackage
from inductor_lab.compiler.runtime.cache.kernel_cache import SHARED, VARIABLE
from inductor_lab.compiler.runtime.cache.prune import libraries

SECONDS = 600
"""Time limit of one cell in seconds."""
OPEN_TO_ALL = stat.S_IRUSR | stat.S_IRGRP | stat.S_IROTH
FOLDER_MODE = OPEN_TO_ALL | stat.S_IWUSR | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH


@dataclass(frozen=True)
class Ran:
    """One notebook that was run: its seconds, and the number of cells that raised."""

    path: Path
    seconds: float
    failed: int

    def __str__(self) -> str:
        errors = f"  {self.failed} cells raised" if self.failed else ""
        return f"{self.seconds:6.1f} s  {self.path}{errors}"


def warm(paths: Sequence[Path], into: Path | None, tell: Callable[[str], None]) -> int:
    """Run all notebooks in `paths`, then publish the compiled code; returns the number of entries.

    A notebook in another language with the same code is not run again.  Raises BadArguments if
    there is no notebook, and CannotWrite if `into` cannot be written.
    """
    found = list(_notebooks(paths))
    if not found:
        raise BadArguments(f"no notebook in {', '.join(map(str, paths))}", todo="give others")
    with tempfile.TemporaryDirectory(prefix="inductor_lab-") as scratch:
        environment = {"INDUCTOR_LAB_COURSE_FILE": f"{scratch}/course.json"}
        if into is not None:
            environment |= {VARIABLE: scratch, SHARED: ""}
        for path, notebook in found:
            tell(str(_run(path, notebook, environment)))
        return 0 if into is None else publish(Path(scratch) / "inductor_lab", into)


def publish(root: Path, into: Path) -> int:
    """Copy the cache entries that `into` lacks; returns their number."""
    made = 0
    with write_errors(into, "compiled libraries"):
        for entry in libraries(root):
            final = into / entry.relative_to(root)
            if final.exists():
                continue
            for folder in (final.parent.parent, final.parent):
                folder.mkdir(parents=True, exist_ok=True)
                folder.chmod(FOLDER_MODE)
            fresh = final.with_name(f"{final.name}.{os.getpid()}")
            shutil.copytree(entry, fresh)
            for path in (fresh, *fresh.rglob("*")):
                path.chmod(FOLDER_MODE if path.is_dir() else OPEN_TO_ALL)
            fresh.rename(final)
            made += 1
    return made


def _notebooks(paths: Sequence[Path]) -> Iterator[tuple[Path, Any]]:
    """Each notebook whose code differs from the notebooks before it."""
    try:
        import nbformat
    except ImportError as missing:
        raise MissingPackage("nbformat") from missing
    seen = set()
    for given in paths:
        if not given.exists():
            raise BadArguments(f"there is no {given}", todo="give notebooks, or folders of them")
        for path in sorted(given.rglob("*.ipynb")) if given.is_dir() else [given]:
            if ".ipynb_checkpoints" in path.parts:
                continue
            try:
                notebook = nbformat.read(path, as_version=4)
            except (ValueError, nbformat.ValidationError) as error:
                said = next(iter(str(error).splitlines()), "")
                what = f"{path} is not a notebook: {said}"
                raise BadArguments(what, todo="give others") from error
            code = tuple(c.source for c in notebook.cells if c.cell_type == "code")[1:]
            if code not in seen:
                seen.add(code)
                yield path, notebook


def _run(path: Path, notebook: Any, environment: Mapping[str, str]) -> Ran:
    from nbclient import NotebookClient

    started = time.perf_counter()
    client = NotebookClient(
        notebook,
        timeout=SECONDS,
        allow_errors=True,
        kernel_name="python3",
        resources={"metadata": {"path": str(path.parent)}},
    )
    client.execute(env=os.environ | environment)
    outputs = [c.outputs for c in notebook.cells if c.cell_type == "code"]
    failed = sum(any(one.output_type == "error" for one in cell) for cell in outputs)
    return Ran(path, time.perf_counter() - started, failed)
