"""The docs as a site: it builds without warnings, has no broken links and fetches nothing."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
from pathlib import Path, PurePosixPath

import pytest

from deploy.site.api import as_restructured_text, pages
from deploy.site.book import BROWSERS, STYLE, book, missing_font, with_headings_of_text
from deploy.site.check import problems
from deploy.site.gather import PACKAGES, ROOT, linked
from deploy.site.llms import llms_text
from inductor_lab import course
from inductor_lab.course.build import sources
from inductor_lab.course.language import LANGUAGES, Language

needs_sphinx = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("sphinx", "myst_nb", "furo")),
    reason="no Sphinx: pip install 'inductor-lab[docs]'",
)


@needs_sphinx
def test_the_site_builds_in_both_languages_without_broken_links(tmp_path: Path) -> None:
    from deploy.site.build import build

    assert build(tmp_path, run=[1]) == []
    html = tmp_path / "html"
    for language, word in (("en", "Tutorials"), ("zh", "教程")):
        index = (html / language / "index.html").read_text(encoding="utf-8")
        assert word in index and "theme-toggle" in index
        assert (html / language / "searchindex.js").stat().st_size > 10_000
        tutorials = html / language / "notebooks" / "tutorials" / language
        assert "<svg" in (tutorials / "01_capture.html").read_text(encoding="utf-8")
        assert len(list(tutorials.glob("*.html"))) >= 7
    api = (html / "en" / "api" / "inductor_lab.compiler.schedule.html").read_text(encoding="utf-8")
    assert 'id="module-inductor_lab.compiler.schedule.user_schedule"' in api
    for language, lang in (("en", "en"), ("zh", "zh-CN")):
        start = (html / language / "index.html").read_text(encoding="utf-8")
        before, frame, _ = start.partition('<iframe class="lab-home"')
        assert frame and "<h2" not in before, "the explorer is on the first screen"
        explorer = (html / language / "explorer.html").read_text(encoding="utf-8")
        assert f'<html lang="{lang}">' in explorer and "inductorLab" in explorer
    text = (html / "llms.txt").read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)]*)\)", text)
    assert len(links) > 50 and [link for link in links if not (html / link).exists()] == []
    assert "# I use stock torch.compile" in (html / "en/_sources/docs/stock.md.txt").read_text()


def test_a_workflow_publishes_the_site_that_make_docs_builds() -> None:
    yaml = pytest.importorskip("yaml")
    text = (ROOT / ".github" / "workflows" / "pages.yml").read_text(encoding="utf-8")
    steps = yaml.safe_load(text)["jobs"]["site"]["steps"]
    assert "make docs" in [step.get("run") for step in steps]
    uploaded = [step["with"]["path"] for step in steps if "upload" in step.get("uses", "")]
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert uploaded == ["build/site/html"] and f"in {uploaded[0]};" in makefile


def test_the_beginning_of_llms_txt_says_what_this_is() -> None:
    """As llmstxt.org wants it: a title, a quotation, lists of links with a sentence."""
    title, quotation, _, *lists = llms_text().split("\n\n")
    assert title == "# inductor_lab" and quotation.startswith("> inductor_lab is a deep-learning")
    lines = [line for block in lists for line in block.splitlines() if line[:1] != "#"]
    assert [line for line in lines if not line.startswith("- [")] == []
    said = {line.partition("](")[0]: line.partition("): ")[2] for line in lines}
    assert said["- [Extending the compiler"].startswith("This page shows how to add an operator, a")


def test_a_broken_link_is_reported(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(
        '<p id="here"></p><a href="#here">1</a><a href="b.html#there">2</a><a href="c.html">3</a>'
        '<a href="https://example.org/">4</a><a href="d%20e.txt">5</a>'
        '<script src="https://cdn.example.org/x.js"></script>'
    )
    (tmp_path / "b.html").write_text("<p></p>")
    (tmp_path / "d e.txt").write_text("")
    assert sorted(problems(tmp_path)) == [
        "a.html fetches https://cdn.example.org/x.js",
        "a.html links to b.html#there: no such place in that page",
        "a.html links to c.html, which is not there",
    ]


def test_docstrings_keep_their_pictures_and_all_characters() -> None:
    text = ["Add `a_b`s to", "*c* | d.", "", "    x  →  y", "", ">>> f(1)", "    2"]
    assert as_restructured_text(text) == [
        r"Add ``a_b``\ s to", r"\*c\* \| d.", "", "::", "", "    x  →  y", "",
        "::", "", "    >>> f(1)", "        2", "",
    ]  # fmt: skip


USER_SCHEDULE = (
    "api/inductor_lab.compiler.schedule.html#module-inductor_lab.compiler.schedule.user_schedule"
)


@pytest.mark.parametrize("text, made", [
    ("[r](rules.md#a)", "[r](rules.md#a)"),
    ("[r](https://x.org)", "[r](https://x.org)"),
    ("![p](p.png)", "![p](p.png)"),
    ("[`given.py`](../inductor_lab/compiler/schedule/user_schedule.py)",
     f'<a href="../{USER_SCHEDULE}">given.py</a>'),
    ("[tests](../tests/course)", "tests"),
    ("[start](../README.md)", "[start](../index.md)"),
    ("[中文](../notebooks/labs/zh/01_capture.ipynb)",
     '<a href="../../zh/notebooks/labs/zh/01_capture.html">中文</a>'),
])  # fmt: skip
def test_links_of_a_page_stay_inside_the_site(text: str, made: str) -> None:
    on = {"inductor_lab.compiler.schedule.user_schedule": USER_SCHEDULE}
    assert linked(text, PurePosixPath("docs"), on) == made


def test_the_reference_has_every_public_module_once() -> None:
    found = [m for top, p in PACKAGES.items() for ms in pages(p, top).values() for m in ms]
    assert len(found) == len(set(found)) > 200
    some = {"inductor_lab", "inductor_lab.compiler.pipeline", "inductor_lab.widgets.model"}
    assert some <= set(found)


def outline(pdf: bytes) -> list[str]:
    """The titles of the outline of a PDF that Chromium wrote."""
    found = re.findall(rb"/Title\s*(<[^>]*>|\((?:\\.|[^\\)])*\))", pdf)
    return [bytes.fromhex(one[1:-1].decode()).decode("utf-16") if one[:1] == b"<"
            else re.sub(r"\\(.)", r"\1", one[1:-1].decode("latin1")) for one in found]  # fmt: skip


@needs_sphinx
@pytest.mark.parametrize("language", LANGUAGES)
def test_the_book_has_all_chapters(language: Language, tmp_path: Path) -> None:
    pytest.importorskip("playwright")
    if not (os.environ.get("CHROMIUM") or any(map(shutil.which, BROWSERS))):
        pytest.skip("no Chromium")
    pdf = book(tmp_path, language, run=[]).read_bytes()
    chapters = [one for one in sources(ROOT / "notebooks") if one.kind in ("tutorial", "lab")]
    plain = [re.sub(r"\W", "", title) for title in outline(pdf)]
    wanted = [re.sub(r"\W", "", f"{one.number}{one.titles[language]}") for one in chapters]
    assert len(wanted) > 26 and [title for title in wanted if title not in plain] == []
    assert len(re.findall(rb"/Type\s*/Page\b", pdf)) > 2 * len(chapters)


def test_headings_of_outputs_are_not_in_the_outline() -> None:
    chapter = '<h3>1 · Capture<a class="headerlink" href="#capture">¶</a></h3>'
    found = with_headings_of_text(f"{chapter}<div><h1>f (x)  cpu</h1><h2 class='x'>source</h2>")
    assert found == (f'{chapter}<div><p class="output-heading">f (x)  cpu</p>'
                     '<p class="output-heading">source</p>')  # fmt: skip


def test_answers_are_printed(tmp_path: Path) -> None:
    """The answer to a question is in an element that is closed on a screen."""
    playwright = pytest.importorskip("playwright.sync_api")
    browser = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, BROWSERS)), None)
    if not browser:
        pytest.skip("no Chromium")
    page = tmp_path / "page.html"
    answer = course.predict("kernels", None, 2)._repr_html_()
    style = STYLE.read_text(encoding="utf-8")
    with playwright.sync_playwright() as started:
        shown = started.chromium.launch(executable_path=browser, args=["--no-sandbox"]).new_page()
        heights = []
        for css in ("", style):
            page.write_text(f"<style>{css}</style>{answer}", encoding="utf-8")
            shown.goto(page.as_uri())
            heights.append(shown.evaluate(
                "d => d.clientHeight - d.querySelector('summary').clientHeight",
                shown.query_selector("details"),
            ))  # fmt: skip
    closed, printed = heights
    assert closed == 0 < printed


def test_a_missing_font_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "fc-list").write_text("#!/bin/sh\n", encoding="utf-8")
    (tmp_path / "fc-list").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert "fonts-noto-cjk" in missing_font("zh") and not missing_font("en")
    (tmp_path / "fc-list").write_text("#!/bin/sh\necho Noto Sans CJK SC\n", encoding="utf-8")
    assert not missing_font("zh")
