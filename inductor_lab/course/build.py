"""Write the notebooks of the course from their sources: `inductor-lab course build`.

notebooks/source/01_capture.md       →  notebooks/tutorials/en|zh/01_capture.ipynb
notebooks/source/lab_01_capture.md   →  notebooks/labs/en|zh/01_capture.ipynb        stubs
                                        notebooks/instructor/en|zh/01_capture.ipynb  solutions
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from inductor_lab.course.language import LANGUAGES, Language
from inductor_lab.course.scores import board
from inductor_lab.course.source import Source, read_source
from inductor_lab.errors import BadArguments

SOURCES = "source"


def sources(folder: Path) -> list[Source]:
    """All sources below the folder `notebooks/`; raises BadArguments if there are none."""
    paths = sorted((folder / SOURCES).glob("*.md"))
    found = [read_source(path) for path in paths if path.stem != "glossary"]
    if not found:
        raise BadArguments(f"no sources in {folder / SOURCES}", todo="--folder names notebooks/")
    return found


def notebooks(source: Source) -> Iterator[tuple[str, str]]:
    """(path below the folder, text of the file) of each notebook that is made from a source."""
    folders = {"tutorial": {"tutorials": True}, "lab": {"labs": False, "instructor": True}}
    for place, solved in folders[source.kind].items():
        for language in LANGUAGES:
            text = notebook_text(source, language, solved=solved)
            yield f"{place}/{language}/{source.stem}.ipynb", text


def notebook_text(source: Source, language: Language, *, solved: bool) -> str:
    """The notebook as a file: no outputs, cells named by their order."""
    cells: list[dict[str, object]] = [
        {
            "cell_type": kind,
            "id": f"{source.name}-{number}",
            "metadata": {},
            "source": text.splitlines(keepends=True),
            **({"execution_count": None, "outputs": []} if kind == "code" else {}),
        }
        for number, (kind, text) in enumerate(_cells(source, language, solved))
    ]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    whole = {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(whole, ensure_ascii=False, indent=1) + "\n"


def _cells(source: Source, language: Language, solved: bool) -> list[tuple[str, str]]:
    cells = source.cells(language, solved=solved)
    title = ("markdown", f"# {source.number} · {source.titles[language]}")
    speak = "" if language == "en" else '\ncourse.speak("zh")'
    start = f"import torch\nimport inductor_lab as lab\nfrom inductor_lab import course{speak}"
    return [title, ("code", start), *cells]


def command(what: str, folder: Path) -> str:
    """`inductor-lab course status` and `build`: what to print."""
    if what == "status":
        return str(board())
    written = build(folder)
    return "\n".join([*map(str, written), f"{len(written)} notebooks written"])


def build(folder: Path) -> list[Path]:
    """Write every notebook whose text has changed; the paths written."""
    written = []
    for source in sources(folder):
        for name, text in notebooks(source):
            path = folder / name
            if not path.exists() or path.read_text(encoding="utf-8") != text:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
                written.append(path)
    return written
