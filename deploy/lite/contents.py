"""The files that the site shows: a start page, the first tutorial, three labs, and the gallery.

    en/start.ipynb  en/gallery.ipynb  en/tutorial_01_capture.ipynb  ...     also in zh/
    gallery/softmax.lab.json  gallery/softmax-stock.lab.json  ...
    programs/          saved programs of the labs

The tutorial has the outputs of a run with torch.  Compiling all this takes minutes, so it is kept
until our sources change.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch

from deploy.lite.gallery import GALLERY, write_gallery
from deploy.lite.programs import write_programs
from inductor_lab.course.language import LANGUAGES, Language

ROOT = Path(__file__).parents[2]
TUTORIAL = "01_capture"
LABS = ("03_gradients", "05_fusion", "08_memory")
NEEDS_TORCH = ("lab.inspect(", "given.recompute")
"""A cell of a lab with one of these is left out."""
WORDS: dict[Language, dict[str, str]] = {
    "en": {
        "left out": "*(A cell that compiles is left out here; it needs torch.)*",
        "tutorial": "*This notebook was run with torch {torch}, and its outputs are saved. Nothing "
                    "can be compiled in a browser; the last cell opens a saved compilation.*",
        "open": "## A saved compilation\nRun the cell, and click on *captured*, *guards* and "
                "*bytecode*.",
        "title": "# inductor_lab in a browser",
        "text": "Everything here runs in this page, without an install and without torch. What you "
                "write stays in this browser.\n\nThe labs are for practice: they have the checks "
                "of the course, but your code runs in the same process as its judge, so the points "
                "are no grades.",
        "gallery": "Gallery: saved compilations", "ours": "{title}", "stock": "{title}, by stock "
        "torch.compile", "first": "Tutorial 1: capture",
    },
    "zh": {
        "left out": "*（此处省略了一个需要编译的单元格，它需要 torch。）*",
        "tutorial": "*本笔记本已用 torch {torch} 运行，输出已保存。浏览器里不能编译；"
                    "最后一个单元格会打开一份保存的编译结果。*",
        "open": "## 一份保存的编译结果\n运行下面的单元格，然后点击“捕获”“guard”和“字节码”。",
        "title": "# 浏览器里的 inductor_lab",
        "text": "这里的一切都在本页面中运行，不需要安装，也不需要 torch。"
                "你写的内容保存在这个浏览器里。\n\n这些实验用于练习：检查与课程相同，但你的代码与评判在同一个进程里运行，"
                "所以得分不作为成绩。",
        "gallery": "画廊：保存的编译结果", "ours": "{title}", "stock": "{title}，由原版 "
        "torch.compile 编译", "first": "教程 1：捕获",
    },
}  # fmt: skip


def write_contents(into: Path, cache: Path) -> None:
    """Write all files below the folder `into`."""
    kept = cache / f"made-{sources_hash()}"
    if not (kept / "done").exists():
        shutil.rmtree(kept, ignore_errors=True)
        write_gallery(kept / "gallery")
        write_programs(kept / "programs")
        for language in LANGUAGES:
            path = kept / f"{language}.ipynb"
            path.write_text(json.dumps(executed(_notebook("tutorials", TUTORIAL, language))))
        (kept / "done").touch()
    for name in ("gallery", "programs"):
        shutil.copytree(kept / name, into / name)
    for language in LANGUAGES:
        folder = into / language
        folder.mkdir()
        _write(folder / "start.ipynb", start(language))
        _write(folder / "gallery.ipynb", gallery(language))
        run = json.loads((kept / f"{language}.ipynb").read_text())
        _write(folder / f"tutorial_{TUTORIAL}.ipynb", tutorial(run, language))
        for name in LABS:
            _write(folder / f"lab_{name}.ipynb", lab_without_torch(
                _notebook("labs", name, language), language))  # fmt: skip


def sources_hash() -> str:
    """A name for our sources and the torch they run with."""
    digest = hashlib.sha256(torch.__version__.encode())
    for folder in ("inductor_lab", "widgets", "notebooks/tutorials", "deploy/lite"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".py", ".h", ".js", ".css", ".toml", ".ipynb"):
                digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _notebook(kind: str, name: str, language: Language) -> dict[str, Any]:
    path = ROOT / "notebooks" / kind / language / f"{name}.ipynb"
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def _write(path: Path, notebook: dict[str, Any]) -> None:
    """Write a notebook for the kernel of the site."""
    kernel = {"display_name": "Python (Pyodide)", "language": "python", "name": "python"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    path.write_text(json.dumps({**notebook, "metadata": metadata}, ensure_ascii=False))


def markdown(text: str) -> dict[str, Any]:
    """A cell of text."""
    return {"cell_type": "markdown", "metadata": {}, "source": text}


def code(text: str) -> dict[str, Any]:
    """A cell of code that has not run."""
    return {"cell_type": "code", "metadata": {}, "source": text, "outputs": [],
            "execution_count": None}  # fmt: skip


def notebook_of(cells: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """A notebook of these cells."""
    numbered = [{**cell, "id": f"cell-{n}"} for n, cell in enumerate(cells)]
    return {"cells": numbered, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}


def start(language: Language) -> dict[str, Any]:
    """The notebook that opens first: what is here, and a cell that opens a saved compilation."""
    words = WORDS[language]
    links = [f"- [{words['first']}](tutorial_{TUTORIAL}.ipynb)"]
    for name in LABS:
        title = "".join(_notebook("labs", name, language)["cells"][0]["source"]).lstrip("# ")
        links.append(f"- [{title}](lab_{name}.ipynb)")
    links.append(f"- [{words['gallery']}](gallery.ipynb)")
    text = "\n\n".join([words["title"], words["text"], "\n".join(links)])
    first = f'{_imports(language)}\nlab.load("../gallery/{GALLERY[0].name}.lab.json")'
    return notebook_of([markdown(text), code(first)])


def gallery(language: Language) -> dict[str, Any]:
    """The notebook of the gallery: a cell for each file."""
    words = WORDS[language]
    cells = [markdown(f"# {words['gallery']}"), code(_imports(language))]
    for entry in GALLERY:
        title = entry.titles[language]
        for who, end in (("ours", ""), ("stock", "-stock")):
            cells.append(markdown(f"## {words[who].format(title=title)}"))
            cells.append(code(f'lab.load("../gallery/{entry.name}{end}.lab.json")'))
    return notebook_of(cells)


def _imports(language: Language) -> str:
    speak = "" if language == "en" else '\nlab.language("zh")'
    return f"import inductor_lab as lab{speak}"


def tutorial(run: dict[str, Any], language: Language) -> dict[str, Any]:
    """The tutorial with its outputs, and a cell that opens a saved compilation."""
    words = WORDS[language]
    head, *rest = run["cells"]
    note = markdown(words["tutorial"].format(torch=torch.__version__.partition("+")[0]))
    last = code(f'{_imports(language)}\nlab.load("../gallery/attention.lab.json")')
    return notebook_of([head, note, *rest, markdown(words["open"]), last])


def lab_without_torch(notebook: dict[str, Any], language: Language) -> dict[str, Any]:
    """A lab without the cells that compile."""
    cells = []
    for cell in notebook["cells"]:
        text = "".join(cell["source"])
        if cell["cell_type"] == "code" and any(each in text for each in NEEDS_TORCH):
            cell = markdown(WORDS[language]["left out"])
        elif text.startswith("import torch\n"):
            cell = {**cell, "source": text.removeprefix("import torch\n")}
        cells.append(cell)
    return notebook_of(cells)


def executed(notebook: dict[str, Any]) -> dict[str, Any]:
    """A notebook with the outputs of a run in this environment."""
    import nbformat
    from nbclient import NotebookClient

    node = nbformat.reads(json.dumps(notebook), as_version=4)
    NotebookClient(node, timeout=900, kernel_name="python3").execute()
    found: dict[str, Any] = json.loads(nbformat.writes(node))
    return found
