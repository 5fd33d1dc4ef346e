"""`make book`: the tutorials, labs, guides and docs as a PDF in each language.

    python -m deploy.site.book [--into FOLDER] [--run 1 2] [--language zh] [--font FILE]

Sphinx joins all pages into one, and Chromium prints it (`CHROMIUM=path` names another one).
Executed tutorials are those of `make docs`, from the same cache.  Explorers are printed in their
static form.  Chinese needs a font: Debian's `fonts-noto-cjk`, or a file given with `--font`.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from deploy.site.build import not_executed, sphinx
from deploy.site.gather import HERE, ROOT, gather
from inductor_lab.course.language import LANGUAGES, Language

STYLE = HERE / "book.css"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
FONT = """@font-face { font-family: "Book CJK"; src: url("%s"); }
body { font-family: sans-serif, "Book CJK"; }
code, pre { font-family: monospace, "Book CJK"; }
"""
FOOT = ('<div style="width: 100%; text-align: center; font-size: 8px">'
        '<span class="pageNumber"></span></div>')  # fmt: skip
HEADING = re.compile(r"<h([1-6])[^>]*>((?:(?!</h\1>).)*)</h\1>", re.DOTALL)
PATIENCE = 600_000
"""Milliseconds for the browser to print."""


def book(into: Path, language: Language, run: Sequence[int] | None = None,
         font: Path | None = None) -> Path:  # fmt: skip
    """Write the book in one language; returns the path of the PDF.

    `run` is as in `build`.  Raises RuntimeError without Chromium, or with the words of Sphinx.
    """
    browser = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        raise RuntimeError("no Chromium: install Debian's package chromium, or set CHROMIUM=path")
    folders = (into / "book" / name / language for name in ("source", "html", "doctrees"))
    source, joined, doctrees = folders
    for folder in (source, doctrees):  # old doctrees would have old outputs
        shutil.rmtree(folder, ignore_errors=True)
    gather(language, source, api=False)
    style = STYLE.read_text(encoding="utf-8")
    if font is not None:
        style = FONT % font.resolve().as_uri() + style
    (source / "_static" / STYLE.name).write_text(style, encoding="utf-8")
    sphinx("singlehtml", source, doctrees, joined, into, language,
           not_executed(source / "notebooks", language, run))  # fmt: skip
    page = joined / "index.html"
    page.write_text(with_headings_of_text(page.read_text(encoding="utf-8")), encoding="utf-8")
    path = into / f"inductor_lab_{language}.pdf"
    printed(Path(browser), page, path)
    return path


def with_headings_of_text(page: str) -> str:
    """The page, with the headings of outputs as paragraphs: the PDF's outline has chapters and
    sections only.  Those of Sphinx have a link to themselves."""
    return HEADING.sub(
        lambda found: found[0] if "headerlink" in found[2]
        else f'<p class="output-heading">{found[2]}</p>', page,
    )  # fmt: skip


def printed(browser: Path, page: Path, path: Path) -> None:
    """Print a page as PDF, with an outline of its headings."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(
            executable_path=str(browser), args=["--no-sandbox", "--disable-gpu"]
        )
        shown = started.new_context(java_script_enabled=False, offline=True).new_page()
        shown.set_default_timeout(PATIENCE)
        shown.goto(page.as_uri())
        shown.pdf(path=path, format="A4", outline=True, tagged=True, display_header_footer=True,
                  header_template="<span></span>", footer_template=FOOT,
                  margin={"top": "16mm", "bottom": "16mm", "left": "16mm", "right": "16mm"})
        started.close()


def missing_font(language: Language) -> str:
    """A sentence if no font on this machine has Chinese characters; "" otherwise."""
    if language != "zh" or shutil.which("fc-list") is None:
        return ""
    command = ["fc-list", ":lang=zh-cn", "family"]
    found = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    return "" if found else (
        "no font with Chinese characters was found, so they are printed as boxes: install Debian's "
        "package fonts-noto-cjk, or give a font file with --font"
    )  # fmt: skip


def main() -> int:
    """Write the books; 1 if Chinese was printed without a font."""
    parser = argparse.ArgumentParser(prog="python -m deploy.site.book", description=__doc__)
    parser.add_argument("--into", type=Path, default=ROOT / "build" / "site")
    parser.add_argument("--run", type=int, nargs="*", help="numbers of tutorials; none: all")
    parser.add_argument("--language", choices=LANGUAGES, nargs="*", default=LANGUAGES)
    parser.add_argument("--font", type=Path, metavar="FILE", help="with Chinese characters")
    given = parser.parse_args()
    wrong = ""
    for language in given.language:
        print(book(given.into.resolve(), language, given.run, given.font), flush=True)
        wrong = wrong or ("" if given.font else missing_font(language))
    if wrong:
        print(wrong, file=sys.stderr)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
