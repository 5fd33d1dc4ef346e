"""`make lite`: a JupyterLite site next to the docs, in build/site/html/lite.

    python -m deploy.lite.build [--into FOLDER] [--cache FOLDER]

Serve the folder (`python -m http.server -d build/site/html`): browsers start no workers from the
disk.  Everything comes from the site, and after the first load it needs no network.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from typing import Any

from deploy import labextension
from deploy.lite.contents import write_contents
from deploy.lite.pyodide import KERNEL, download, gather

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PACKAGES = ("jupyterlite-core", "jupyterlite-pyodide-kernel", "jupyter-server")
EXTENSION = "@jupyterlite/pyodide-kernel-extension"
WORKER = (
    ("enableCache=!1", "enableCache=!0"),
    ("addAll([])", "addAll(FILES)"),
    ('t.pathname.includes("/api/")}',
     't.pathname.includes("/api/")&&!t.pathname.includes("/api/contents/")}'),
)  # fmt: skip
"""Changes to JupyterLite's service worker: it keeps the files of the site, and the contents too."""


def build(into: Path, cache: Path, wheel: Path | None = None) -> None:
    """Make the site in the folder `into`; `wheel` is ours, and is built if it is not given."""
    shutil.rmtree(into, ignore_errors=True)
    with tempfile.TemporaryDirectory() as temporary:
        work = Path(temporary)
        labextension.install(work / "environment")
        write_contents(work / "contents", cache)
        own = environment(cache)
        packages = gather(work / "lite" / "static" / "pyodide", cache,
                          [*_of_the_kernel(own), wheel or _own_wheel(work)])  # fmt: skip
        _write_settings(work / "lite" / "jupyter-lite.json", packages)
        _jupyterlite(own, work, into)
    shutil.copy(HERE / "start.html", into)
    _keep_files(into)


def environment(cache: Path) -> Path:
    """An environment with JupyterLite, made once.  Raises Missing.

    It is separate, because the kernel's extension for JupyterLite causes an error in a JupyterLab
    of the same environment.
    """
    made = cache / "environment"
    done = made / "installed"
    if not done.exists():
        venv.create(made, with_pip=True, clear=True)
        download([str(made / "bin" / "python"), "-m", "pip", "install", "--quiet",
                  "-c", str(ROOT / "constraints.txt"), *PACKAGES], cache)  # fmt: skip
        done.touch()
    return made


def _of_the_kernel(own: Path) -> list[Path]:
    folder = _extension(own) / "static" / "pypi"
    return sorted(path for path in folder.glob("*.whl") if path.name.startswith(KERNEL))


def _extension(own: Path) -> Path:
    """The folder of the kernel's JupyterLab extension in an environment."""
    return own / "share" / "jupyter" / "labextensions" / EXTENSION


def _own_wheel(work: Path) -> Path:
    made = subprocess.run([sys.executable, "-m", "tests.wheel.build", str(work / "dist")], cwd=ROOT,
                          capture_output=True, text=True)  # fmt: skip
    if made.returncode:
        raise RuntimeError(made.stderr)
    (wheel,) = (work / "dist").glob("*.whl")
    return wheel


def _write_settings(path: Path, packages: list[str]) -> None:
    """All packages are loaded from the lock file when a kernel starts; nothing is installed."""
    names = [name.replace("pyodide-kernel", "pyodide_kernel") for name in packages]
    kernel = {
        "pyodideUrl": "./static/pyodide/pyodide.js",
        "disablePyPIFallback": True,
        "loadPyodideOptions": {"packages": names},
    }
    data: dict[str, Any] = {
        "appName": "inductor_lab",
        "enableServiceWorkerCache": "true",
        "exposeAppInBrowser": "true",
        "litePluginSettings": {f"{EXTENSION}:kernel": kernel},
    }
    settings = {"jupyter-lite-schema-version": 0, "jupyter-config-data": data}
    path.write_text(json.dumps(settings, indent=1), encoding="utf-8")


def _jupyterlite(own: Path, work: Path, into: Path) -> None:
    extensions = [_extension(own), work / "environment/share/jupyter/labextensions/inductor-lab"]
    config = {
        "LiteBuildConfig": {
            "ignore_sys_prefix": ["federated_extensions"],
            "federated_extensions": [str(path) for path in extensions],
            "apps": ["lab"],
            "no_sourcemaps": True,
            "no_unused_shared_packages": True,
        }
    }
    (work / "lite" / "jupyter_lite_config.json").write_text(json.dumps(config), encoding="utf-8")
    command = [own / "bin" / "python", "-m", "jupyterlite_core", "build",
               "--lite-dir", work / "lite", "--contents", work / "contents",
               "--output-dir", into]  # fmt: skip
    done = subprocess.run(command, cwd=work / "lite", capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}")


def _keep_files(site: Path) -> None:
    """Let the service worker fetch every file of the site at its first start.  Raises RuntimeError
    if the worker is not the one that is known here."""
    worker = site / "service-worker.js"
    text = worker.read_text(encoding="utf-8")
    for old, new in WORKER:
        if text.count(old) != 1:
            raise RuntimeError(f"another service worker: {old} is not there")
        text = text.replace(old, new)
    files = sorted(path.relative_to(site).as_posix() for path in site.rglob("*") if path.is_file())
    files.remove(worker.name)
    worker.write_text(f"const FILES={json.dumps(files)};{text}", encoding="utf-8")


def main() -> int:
    """Build, and say how large the site is."""
    parser = argparse.ArgumentParser(prog="python -m deploy.lite.build", description=__doc__)
    parser.add_argument("--into", type=Path, default=ROOT / "build" / "site" / "html" / "lite")
    parser.add_argument("--cache", type=Path, default=ROOT / "build" / "lite")
    given = parser.parse_args()
    build(given.into.resolve(), given.cache.resolve())
    size = sum(path.stat().st_size for path in given.into.rglob("*") if path.is_file())
    print(f"{given.into}/start.html  {size / 1e6:.0f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
