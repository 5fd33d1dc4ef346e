"""`make dist`: the sdist and, from it, the wheel.

    python -m tests.wheel.build [FOLDER]        FOLDER is dist/ if none is given

Both are made from a copy, since setuptools would leave files in the checkout, and put what an
earlier build left there into the next wheel.  Nothing is downloaded: torch brings setuptools.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
PARTS = ("inductor_lab", "widgets", "notebooks", "javascript", "tests", "docs", "benchmarks",
         "deploy", ".ci")  # fmt: skip
SDIST = "import sys, setuptools.build_meta as b; print(b.build_sdist(sys.argv[1]))"


def copied(folder: Path) -> Path:
    """What belongs to the project, without caches and builds, below `folder`."""
    spared = shutil.ignore_patterns(
        "__pycache__", ".ipynb_checkpoints", "*.egg-info", "node_modules"
    )
    for name in PARTS:
        shutil.copytree(ROOT / name, folder / name, ignore=spared)
    for path in ROOT.iterdir():
        if path.is_file() and path.name != ".git":
            shutil.copy(path, folder)
    return folder


def build(into: Path) -> tuple[Path, Path]:
    """Make (sdist, wheel) in the folder `into`; raises RuntimeError with what pip said."""
    into = into.resolve()
    into.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        source = copied(Path(temporary))
        made = _run([sys.executable, "-c", SDIST, str(into)], source)
        sdist = into / made.split()[-1]
        pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-index",
               "--no-build-isolation", "--no-cache-dir", "--wheel-dir", temporary]  # fmt: skip
        _run([*pip, str(sdist)], source)
        (wheel,) = Path(temporary).glob("*.whl")
        return sdist, Path(shutil.move(wheel, into / wheel.name))


def _run(command: list[str], folder: Path) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}\n{done.stdout}\n{done.stderr}")
    return done.stdout


if __name__ == "__main__":
    for path in build(Path(sys.argv[1] if len(sys.argv) > 1 else "dist")):
        print(f"{path}  {path.stat().st_size / 1e6:.1f} MB")
