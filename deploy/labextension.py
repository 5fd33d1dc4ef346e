"""Copy the JupyterLab extension into an environment, as pip does when it installs the wheel.

    python -m deploy.labextension [FOLDER]        FOLDER is the environment if none is given

An editable install does not copy these files, so `make install` does.
"""

from __future__ import annotations

import shutil
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]


def install(folder: Path) -> None:
    """Copy each file of setuptools' table `data-files` to its place below `folder`."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    for place, names in project["tool"]["setuptools"]["data-files"].items():
        (folder / place).mkdir(parents=True, exist_ok=True)
        for name in names:
            shutil.copy(ROOT / name, folder / place)


if __name__ == "__main__":
    install(Path(sys.argv[1] if len(sys.argv) > 1 else sys.prefix))
