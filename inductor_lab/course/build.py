"""Write the notebooks of the course from their sources: `inductor-lab course build`.

notebooks/source/01_capture.md       →  notebooks/tutorials/en|zh/01_capture.ipynb
notebooks/source/lab_01_capture.md   →  notebooks/labs/en|zh/01_capture.ipynb        stubs
                                        notebooks/instructor/en|zh/01_capture.ipynb  solutions
notebooks/source/guide_07_stock.md   →  notebooks/guides/en|zh/07_stock.ipynb
"""

from __future__ import annotations

import json
import shutil
import tarfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import inductor_lab
from inductor_lab.compiler.base.display import write_errors
from inductor_lab.compiler.base.errors import BadArguments
from inductor_lab.course.language import LANGUAGES, Language
from inductor_lab.course.one_language import in_one_language
from inductor_lab.course.source import Source, read_source

SOURCES = "source"


def own_folder() -> Path:
    """The folder `notebooks/` of the installation or the checkout."""
    package = Path(inductor_lab.__file__).parent
    return next(filter(Path.is_dir, (package / "notebooks", package.parent / "notebooks")))


def copy_for_students(folder: Path) -> None:
    """Copy the notebooks, without sources and solutions; raises BadArguments if the folder already
    exists, CannotWrite if it cannot be created."""
    if folder.exists():
        raise BadArguments(f"{folder} is there already", todo="give another folder")
    spared = shutil.ignore_patterns(".*", "__pycache__", *INSTRUCTORS)
    with write_errors(folder, "notebooks"):
        shutil.copytree(own_folder(), folder, ignore=spared)


INSTRUCTORS = ("source", "instructor")
"""Folders below `notebooks/` with solutions, which are not installed."""


def instructor_archive(folder: Path, path: Path) -> Path:
    """Write what instructors have and students do not, the sources and the solved labs, as one
    `.tar.gz`.  Raises BadArguments if there are no sources, CannotWrite if it cannot be written."""
    sources(folder)
    with write_errors(path, "archive"), tarfile.open(path, "w:gz") as archive:
        for name in INSTRUCTORS:
            for each in sorted((folder / name).rglob("*")):
                is_ours = ".ipynb_checkpoints" not in each.parts
                if is_ours and each.suffix in (".md", ".toml", ".ipynb"):
                    archive.add(each, f"notebooks/{each.relative_to(folder).as_posix()}")
    return path


def sources(folder: Path) -> list[Source]:
    """All sources below the folder `notebooks/`; raises BadArguments if there are none."""
    paths = sorted((folder / SOURCES).glob("*.md"))
    found = [read_source(path) for path in paths if path.stem != "glossary"]
    if not found:
        todo = "unpack the instructors' archive, and name its notebooks/ with --folder"
        raise BadArguments(f"no sources in {folder / SOURCES}", todo=todo)
    return found


def notebooks(source: Source) -> Iterator[tuple[str, str]]:
    """(path below the folder, text of the file) of each notebook that a source generates."""
    folders = {
        "tutorial": {"tutorials": True},
        "lab": {"labs": False, "instructor": True},
        "guide": {"guides": True},
    }
    for place, solved in folders[source.kind].items():
        for language in LANGUAGES:
            text = notebook_text(source, language, solved=solved)
            yield f"{place}/{language}/{source.stem}.ipynb", text


def notebook_text(source: Source, language: Language, *, solved: bool) -> str:
    """The text of the notebook's file: without outputs, with cell ids in order."""
    cells = [Cell(kind, text) for kind, text in source.cells(language, solved=solved)]
    return file_text(source, language, cells)


@dataclass(frozen=True)
class Cell:
    """A cell of a notebook: "markdown" or "code", with the metadata of tools."""

    kind: str
    text: str
    metadata: Mapping[str, object] = field(default_factory=dict)


def file_text(source: Source, language: Language, cells: Iterable[Cell]) -> str:
    """The text of a notebook's file: its title, a cell with the imports, then the cells.

    Code cells keep the texts of this language only.
    """
    cells = [*preface(source, language), *cells]
    written: list[dict[str, object]] = [
        {
            "cell_type": cell.kind,
            "id": f"{source.name}-{number}",
            "metadata": dict(cell.metadata),
            "source": _text(cell, language).splitlines(keepends=True),
            **({"execution_count": None, "outputs": []} if cell.kind == "code" else {}),
        }
        for number, cell in enumerate(cells)
    ]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    whole = {"cells": written, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(whole, ensure_ascii=False, indent=1) + "\n"


def preface(source: Source, language: Language) -> list[Cell]:
    """The first cells of each notebook: its title, and the imports."""
    title = f"# {source.number} · {source.titles[language]}"
    return [Cell("markdown", title), Cell("code", start(language))]


def _text(cell: Cell, language: Language) -> str:
    return in_one_language(cell.text, language) if cell.kind == "code" else cell.text


def start(language: Language) -> str:
    """The first code cell."""
    speak = "" if language == "en" else '\ncourse.speak("zh")'
    return f"import torch\nimport inductor_lab as lab\nfrom inductor_lab import course{speak}"


def build(folder: Path) -> list[Path]:
    """Write every notebook whose text has changed; returns the written paths."""
    made = (one for source in sources(folder) for one in notebooks(source))
    return write_changed(folder, made)


def write_changed(folder: Path, files: Iterable[tuple[str, str]]) -> list[Path]:
    """Write each file (path below the folder, text) whose text has changed; returns their paths."""
    written = []
    for name, text in files:
        path = folder / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            with write_errors(path, "notebook"):
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
            written.append(path)
    return written
