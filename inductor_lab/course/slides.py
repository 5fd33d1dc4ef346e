"""Slides of a notebook, for a lecture: `inductor-lab course slides notebook.ipynb`.

    # heading          a new slide to the right
    ### heading        a new slide below
    code, output       appear with the next key press, so that a class can predict the output

nbconvert writes the page.  It shows the slides with reveal.js, from the network or a local copy.
A local copy becomes part of the page, which then makes no request: it has none of nbconvert's other
scripts, so formulas are not typeset, and the theme uses fonts of the machine.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from inductor_lab.compiler.base.display import write_text
from inductor_lab.compiler.base.errors import MissingPackage, UnreadableFile

REVEAL = "https://unpkg.com/reveal.js@4.0.2"
"""The version that nbconvert's pages are written for."""
_OTHER_SCRIPTS = re.compile(
    r'<script[^>]*\bsrc="https?://[^"]*"[^>]*>\s*</script>|<script type="module">.*?</script>',
    re.DOTALL,
)
"""jQuery, RequireJS, MathJax and Mermaid."""
_START = re.compile(r"<script>\s*require\(.*?</script>", re.DOTALL)
_STYLES = re.compile(r'<link href="[^"]*/(dist/[\w./]+\.css)"[^>]*>')
_IMPORT = re.compile(r"@import url\([^)]*\);")
"""Fonts from the network."""
SCRIPTS = ("dist/reveal.js", "plugin/notes/notes.js")
_OWN_STYLE = ".reveal .slides > section > section { max-height: 800px; overflow-y: auto; }"
_OWN_START = "Reveal.initialize({ hash: true, width: 1200, height: 800, plugins: [RevealNotes] });"
_HEADING = re.compile(r"^(?=#{1,6} )", re.MULTILINE)


def slides(notebook: Path, output: Path, reveal: str = REVEAL) -> Path:
    """Write the slides of an executed notebook as an HTML file.

    `reveal` is the address or folder of reveal.js.  Raises UnreadableFile for the notebook or a
    file of that folder, CannotWrite, and MissingPackage without nbconvert.
    """
    try:
        import nbformat
        from nbconvert import SlidesExporter
    except ImportError:
        raise MissingPackage("nbconvert") from None
    try:
        read = nbformat.read(notebook, as_version=4)
    except Exception as problem:  # nbformat raises many kinds
        what = f"{notebook} is no notebook: {problem}"
        raise UnreadableFile(what, todo="give an executed .ipynb file") from problem
    read.cells = [part for cell in read.cells for part in _parts(cell)]
    exporter: Any = SlidesExporter
    page, _ = exporter(reveal_url_prefix=reveal, reveal_scroll=True).from_notebook_node(read)
    if "://" not in reveal:
        page = _in_one_file(page, Path(reveal))
    return write_text(output, page, "slides")


def _in_one_file(page: str, reveal: Path) -> str:
    """The page with the scripts and styles of reveal.js, and without those of the network."""
    def read(name: str) -> str:
        try:
            return (reveal / name).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as problem:
            what = f"{reveal / name} cannot be read: {problem}"
            todo = f"give a folder with {REVEAL.rpartition('/')[2]}"
            raise UnreadableFile(what, todo=todo) from problem

    texts = [*(read(name).replace("</script", r"<\/script") for name in SCRIPTS), _OWN_START]
    start = "\n".join([f"<style>{_OWN_STYLE}</style>", *(f"<script>{t}</script>" for t in texts)])
    page = _START.sub(lambda _: start, _OTHER_SCRIPTS.sub("", page))
    return _STYLES.sub(lambda link: f"<style>{_IMPORT.sub('', read(link[1]))}</style>", page)


def _parts(cell: Any) -> Iterator[Any]:
    """The cell, or a cell for each heading in it, with the kind of slide that it begins."""
    from nbformat.v4 import new_markdown_cell

    if cell.cell_type != "markdown":
        cell.metadata.slideshow = {"slide_type": "fragment"}
        yield cell
        return
    for text in filter(str.strip, _HEADING.split(cell.source)):
        level = len(text) - len(text.lstrip("#"))
        kind = "-" if not level else "slide" if level <= 2 else "subslide"
        yield new_markdown_cell(text, metadata={"slideshow": {"slide_type": kind}})
