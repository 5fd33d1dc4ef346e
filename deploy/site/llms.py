"""`llms.txt` of the site: what it has, for language models (llmstxt.org).

The pages of the docs are linked as Markdown, which Sphinx copies into the site.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from inductor_lab.course.build import sources

ROOT = Path(__file__).parents[2]
SENTENCE = re.compile(r"[^|].*?[.:](?=\s|$)")
"""The first of a paragraph; a table has none."""
KINDS = {"tutorial": "tutorials", "lab": "labs"}


def llms_text() -> str:
    """The text of the file; its links are relative to it."""
    _, welcome = _beginning(ROOT / "README.md")
    docs = [_entry(path) for path in sorted((ROOT / "docs").glob("*.md"))]
    return "\n".join([
        "# inductor_lab", "", f"> {welcome}", "",
        "Install and first steps: [README](en/_sources/index.md.txt)", "",
        "## Docs", "", *docs, "", "## Course", "", *_course(), "",
        "## API", "", "- [inductor_lab](en/api/inductor_lab.html): all public functions", "",
    ])  # fmt: skip


def _entry(path: Path) -> str:
    title, paragraph = _beginning(path)
    link = f"- [{title}](en/_sources/docs/{path.name}.txt)"
    found = SENTENCE.match(paragraph)
    return link if found is None else f"{link}: {found[0].rstrip(':.')}."


def _beginning(path: Path) -> tuple[str, str]:
    """The title of a page and its first paragraph, without links and line breaks."""
    title, paragraph, *_ = path.read_text(encoding="utf-8").split("\n\n", 2)
    bare = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", paragraph)
    return title.removeprefix("# "), " ".join(bare.split())


def _course() -> Iterator[str]:
    for source in sources(ROOT / "notebooks"):
        if source.kind in KINDS:
            path = f"en/notebooks/{KINDS[source.kind]}/en/{source.number:02d}_{source.name}.html"
            yield f"- [{source.titles['en']}]({path})"
