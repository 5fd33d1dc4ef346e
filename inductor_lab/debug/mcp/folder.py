"""Paths that a client names: only files inside the folder that the user named."""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import inductor_lab
from inductor_lab.compiler.base.errors import LabError

SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/dev",
          "/nix/store", "/sys", "/proc/self", "/proc/cpuinfo", "/proc/meminfo", "/proc/stat",
          "/proc/sys")  # fmt: skip
"""Folders of the system that compilers and libraries read; of /proc nothing about other
processes, whose environment may have secrets."""


class OutsideFolder(LabError):
    """A path that is not inside the folder of the server."""


@dataclass(frozen=True)
class Folder:
    """The folder of a server; its path contains no symbolic link."""

    root: Path

    @staticmethod
    def of(path: Path) -> Folder:
        """Raises OutsideFolder if it is not a folder, or if it contains the whole system."""
        root = path.resolve()
        if not root.is_dir():
            raise OutsideFolder(f"{path} is not a folder", todo="name the folder of your project")
        if root == Path(root.anchor):
            what = f"{path} contains the whole system"
            raise OutsideFolder(what, todo="name the folder of your project")
        return Folder(root)

    def inside(self, name: str) -> str:
        """The path of a file, relative to the folder; raises OutsideFolder.

        Symbolic links are followed before the path is checked.
        """
        todo = f"name a file inside of {self.root}"
        if not name or "\0" in name:
            raise OutsideFolder(f"{name!r} is not a path", todo=todo)
        try:
            path = (self.root / name).resolve(strict=True)
        except (OSError, RuntimeError):  # RuntimeError: links in a circle
            raise OutsideFolder(f"there is no file {name}", todo=todo) from None
        if not path.is_relative_to(self.root):
            raise OutsideFolder(f"{name} is outside of the folder of this server", todo=todo)
        return str(path.relative_to(self.root))

    def readable(self) -> list[Path]:
        """What a process of the user's code may read."""
        return [self.root, *(Path(name) for name in SYSTEM), *_installation()]


def _installation() -> Iterator[Path]:
    """Python, the installed packages, this package, and the C++ compiler."""
    for name in (sys.prefix, sys.base_prefix, *sysconfig.get_paths().values()):
        yield Path(name).resolve()
    # other folders with packages, such as those of .pth files; not the current folder
    for name in sys.path:
        if name.endswith("-packages") and (folder := Path(name).resolve()).is_dir():
            yield folder
            yield from (path.resolve() for path in folder.iterdir() if path.is_symlink())
    package = Path(inductor_lab.__file__).resolve().parent
    yield from (package, package.parent / "widgets", package.parent / "docs")
    yield from package.parent.glob("inductor_lab*-info")  # it names our backends to torch.compile
    if found := shutil.which(os.environ.get("CXX", "")):
        yield Path(found).resolve().parents[1]
