"""What the site is made of, in a folder as Sphinx wants it: copies, with links that lead inside.

README.md              index          docs/x.md               docs/x
notebooks/…/en/y.ipynb notebooks/…/y  inductor_lab/a/b.py     api/inductor_lab.a
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path, PurePosixPath

from deploy.site.api import page, pages
from inductor_lab.course.language import Language

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)#\s]+)(#[^)\s]*)?\)")
PACKAGES = {"inductor_lab": ROOT / "inductor_lab", "inductor_lab.widgets": ROOT / "widgets"}
WORDS: dict[Language, dict[str, str]] = {
    "en": {"tutorials": "Tutorials", "labs": "Labs", "guides": "Guides"},
    "zh": {"tutorials": "教程", "labs": "实验", "guides": "指南"},
}
KINDS = tuple(WORDS["en"])
"""The folders of notebooks that the site has."""


def gather(language: Language, into: Path, *, api: bool = True) -> None:
    """Fill an empty folder with the sources of the site in one language, with or without the pages
    of the API."""
    (into / "_static").mkdir(parents=True)
    shutil.copy(HERE / "site.css", into / "_static")
    shutil.copy(HERE / "conf.py", into)
    modules = _api(into) if language == "en" and api else {}
    for kind in KINDS:
        target = into / "notebooks" / kind / language
        shutil.copytree(ROOT / "notebooks" / kind / language, target,
                        ignore=shutil.ignore_patterns(".*"))  # fmt: skip
    if language == "en":
        (into / "docs").mkdir()
        for path in (ROOT / "docs").iterdir():
            if path.suffix == ".png":
                shutil.copy(path, into / "docs")
        for path in [*(ROOT / "docs").glob("*.md"), ROOT / "CHANGELOG.md"]:
            _write(path, into, modules)
    start = ROOT / "README.md" if language == "en" else HERE / "welcome_zh.md"
    welcome = linked(start.read_text(encoding="utf-8"), PurePosixPath(), modules)
    text = f"{welcome}\n{contents(language, into)}"
    (into / "index.md").write_text(text, encoding="utf-8")


def _api(into: Path) -> dict[str, str]:
    """Write the pages of the API; by module, the page that it is on."""
    (into / "api").mkdir()
    on: dict[str, str] = {}
    for top, package in PACKAGES.items():
        for folder, modules in pages(package, top).items():
            (into / "api" / f"{folder}.md").write_text(page(folder, modules), encoding="utf-8")
            on |= {module: f"api/{folder}.html#module-{module}" for module in modules}
    return on


def _write(path: Path, into: Path, modules: dict[str, str]) -> None:
    place = PurePosixPath(path.relative_to(ROOT).as_posix())
    text = linked(path.read_text(encoding="utf-8"), place.parent, modules)
    (into / place).write_text(text, encoding="utf-8")


def linked(text: str, folder: PurePosixPath, modules: dict[str, str]) -> str:
    """The text of a page in `folder`, whose links to code lead to the API, and which has no link to
    what the site does not hold."""
    up = "../" * len(folder.parts)

    def lead(found: re.Match[str]) -> str:
        picture, words, target, anchor = found.groups()
        if picture or "://" in target:
            return found[0]
        inside = _normal(folder / target)
        module = (
            inside.replace("widgets", "inductor_lab/widgets", 1)
            .removesuffix(".py")
            .replace("/", ".")
        )
        if module in modules:
            return f'<a href="{up}{modules[module]}">{words.strip("`")}</a>'
        if inside == "README.md":
            return f"[{words}]({up}index.md)"
        english = (f"notebooks/{kind}/en" for kind in KINDS)
        kept = inside.startswith(("docs/", "CHANGELOG", *english))
        if inside.startswith(tuple(f"notebooks/{kind}/zh" for kind in KINDS)):
            return f'<a href="{up}../zh/{inside.removesuffix(".ipynb")}.html">{words}</a>'
        return f"[{words}]({target}{anchor or ''})" if kept else words

    return LINK.sub(lead, text)


def _normal(path: PurePosixPath) -> str:
    """`docs/../a/b` → `a/b`."""
    kept: list[str] = []
    for part in path.parts:
        kept = kept[:-1] if part == ".." else [*kept, part]
    return "/".join(kept)


def contents(language: Language, into: Path) -> str:
    """The tables of contents, which the sidebar shows."""
    groups = {
        words: [f"notebooks/{kind}/{language}/{p.stem}" for p in
                sorted((into / "notebooks" / kind / language).glob("*.ipynb"))]
        for kind, words in WORDS[language].items()
    }  # fmt: skip
    if language == "en":
        docs = sorted(path.stem for path in (into / "docs").glob("*.md"))
        groups["Docs"] = [*(f"docs/{name}" for name in docs), "CHANGELOG"]
        pages_of_api = sorted(f"api/{path.stem}" for path in (into / "api").glob("*.md"))
        groups |= {"API": pages_of_api} if pages_of_api else {}
    return "\n".join(
        f"```{{toctree}}\n:hidden:\n:maxdepth: 1\n:caption: {words}\n\n"
        + "\n".join(pages)
        + "\n```\n"
        for words, pages in groups.items()
    )
