"""Sphinx's configuration: one site for each language; `build.py` says which, and what runs."""

import os
import sys
from pathlib import Path

HERE = Path(os.environ["INDUCTOR_LAB_SITE_CODE"])
sys.path.insert(0, str(HERE.parents[1]))

from deploy.site.api import as_restructured_text  # noqa: E402

project = "inductor_lab"
author = "the authors of inductor_lab"
language = os.environ["INDUCTOR_LAB_SITE_LANGUAGE"]
english = language == "en"
extensions = ["myst_nb", *(["sphinx.ext.autodoc"] if english else [])]
exclude_patterns = ["build"]
templates_path: list[str] = []

joined = os.environ["INDUCTOR_LAB_SITE_BUILDER"] == "singlehtml"  # of the book
html_theme = "basic" if joined else "furo"  # furo: light and dark, by the system or by hand
html_title = "inductor_lab"
html_static_path = ["_static"]
html_css_files = ["book.css" if joined else "site.css"]
html_show_sphinx = False
myst_heading_anchors = 4
# A public name is documented where it is offered, and where it is defined.
suppress_warnings = [
    "misc.highlighting_failure",
    "ref.python",
    "mystnb.unknown_mime_type",  # the explorer's data for JupyterLab, next to its HTML
]
nb_execution_mode = os.environ["INDUCTOR_LAB_SITE_EXECUTION"]
nb_execution_cache_path = os.environ["INDUCTOR_LAB_SITE_CACHE"]
nb_execution_excludepatterns = [p for p in os.environ["INDUCTOR_LAB_SITE_SPARED"].split(",") if p]
nb_execution_timeout = 300
nb_execution_raise_on_error = True
nb_merge_streams = True
nb_ipywidgets_js: dict[str, dict[str, str]] = {}  # they would come from the network
nb_mime_priority_overrides = [("html", "application/vnd.jupyter.widget-view+json", None)]

autodoc_default_options = {"members": True, "show-inheritance": True}
autodoc_typehints = "signature"
autodoc_member_order = "bysource"


def setup(app: object) -> None:
    """Docstrings here are plain text with pictures of code, not reStructuredText."""

    def announce(
        app: object, page: str, template: str, context: dict[str, object], doc: object
    ) -> None:
        """Each page leads to the other language: to the same notebook, or to the start."""
        here, other, words = ("en", "zh", "中文") if english else ("zh", "en", "English")
        same = page.replace(f"/{here}/", f"/{other}/") if page.startswith("notebooks/") else "index"
        up = "../" * (page.count("/") + 1)
        context["theme_announcement"] = f'<a href="{up}{other}/{same}.html">{words}</a>'

    def convert(
        app: object, what: str, name: str, obj: object, options: object, lines: list[str]
    ) -> None:
        lines[:] = as_restructured_text(lines)

    app.connect("html-page-context", announce)  # type: ignore[attr-defined]
    if english:
        app.connect("autodoc-process-docstring", convert)  # type: ignore[attr-defined]
