"""The API reference: a page for each folder of the package, from the docstrings of its modules.

Not a page for each module: the theme draws the whole sidebar on each page, which takes minutes for
four hundred of them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

_MARKS = re.compile(r"([*_|`\\])")
_CODE = re.compile(r"`([^`]+)`")


def pages(package: Path, name: str) -> dict[str, list[str]]:
    """By folder below `package`, the names of its public modules, the folder's own first."""
    found: dict[str, list[str]] = {}
    for path in sorted(package.rglob("*.py")):
        parts = (name, *path.relative_to(package).with_suffix("").parts)
        if not any(part.startswith("_") for part in parts if part != "__init__"):
            module = ".".join(parts)
            found.setdefault(module.rpartition(".")[0], []).append(module.removesuffix(".__init__"))
    return found


def page(folder: str, modules: Sequence[str]) -> str:
    """The page of one folder, in MyST."""
    parts = [f"# {folder}"]
    for module in modules:
        heading = [f"## {module.rpartition('.')[2]}"] if module != folder else []
        # a function that a folder offers may have the name of the module that defines it
        own = "\n   :ignore-module-all:" if module == folder and "." in module else ""
        parts += [*heading, f"```{{eval-rst}}\n.. automodule:: {module}{own}\n```"]
    return "\n\n".join(parts) + "\n"


def as_restructured_text(lines: Sequence[str]) -> list[str]:
    """A docstring as it is meant: sentences, and pictures of code that keep their columns.

    >>> as_restructured_text(["Add `a_b`.", "", "    x  →  y"])
    ['Add ``a_b``.', '', '::', '', '    x  →  y', '']
    """
    made: list[str] = []
    for blank, block in groupby(lines, lambda line: not line.strip()):
        if blank:
            continue
        text = list(block)
        if any(line[:1] == " " or "   " in line.strip() or line[:3] == ">>>" for line in text):
            inside = "" if all(line[:4] == "    " for line in text) else "    "
            indented = [f"{inside}{line}" for line in text]
            made += ["::", "", *indented, ""]
        else:
            made += [*_paragraph("\n".join(text)).splitlines(), ""]
    return made


def _paragraph(text: str) -> str:
    """Escape marks of reStructuredText outside of code, and let code end inside of a word."""
    parts = _CODE.split(text)
    made = _escaped(parts[0])
    for code, after in zip(parts[1::2], parts[2::2], strict=True):
        apart = "\\ " if made[-1:].isalnum() else ""
        made += f"{apart}``{code.strip()}``"
        made += "\\ " + _escaped(after) if after[:1].isalnum() else _escaped(after)
    return made


def _escaped(text: str) -> str:
    return _MARKS.sub(r"\\\1", text)
