"""The front end as text: the scripts that `npm run build` made from `javascript/`, the style
sheets, and the frame of a self-contained page."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from html import escape
from importlib.resources import files
from typing import Any

from inductor_lab.notebook.language import language

LANG = {"en": "en", "zh": "zh-CN"}


@cache
def script() -> str:
    """The explorer as an inline module that defines `renderZipped(root, document)`.

    Without exports, since anywidget would use an exported `render`.
    """
    return f"{_built('page')}\nconst {{ render, renderZipped, renderTabs }} = inductorLab;"


@cache
def widget_script() -> str:
    """The same for anywidget: `initialize` announces a model, `render` draws its document."""
    return f"{_built('page')}\nexport default inductorLab.widget;\n"


@cache
def connection_script() -> str:
    """Only the part that connects a model to an existing explorer."""
    return f"{_built('line')}\nexport default inductorLab.widget;\n"


@cache
def style() -> str:
    return _read("explorer.css")


@cache
def bench_script() -> str:
    """The script of a benchmark's page: `addButtons`."""
    return f"{_built('bench')}\nconst {{ addButtons }} = inductorLab;"


@cache
def bench_widget_script() -> str:
    """The same for anywidget: a running benchmark."""
    return f"{_built('bench')}\nexport default inductorLab.benchWidget;\n"


@cache
def choice_widget_script() -> str:
    """The same for anywidget: a benchmark's result, whose rows can be selected."""
    return f"{_built('bench')}\nexport default inductorLab.choiceWidget;\n"


@cache
def steps_widget_script() -> str:
    """The stepper for anywidget."""
    return f"{_built('bench')}\nexport default inductorLab.stepsWidget;\n"


@cache
def steps_script() -> str:
    """The script that adds the stepper's buttons to a cell's output: `stepsInPage`."""
    return f"{_built('bench')}\nconst {{ stepsInPage }} = inductorLab;"


@cache
def debug_style() -> str:
    """The style of the debugging tools, used together with that of a benchmark."""
    return _read("debug.css")


@cache
def lesson_style() -> str:
    return _read("lesson.css")


@cache
def bench_style() -> str:
    return _read("bench.css")


def page(title: str, body: str, *styles: str, scripts: str = "'unsafe-inline'") -> str:
    """A self-contained HTML page around `body`; `scripts` is the policy for scripts."""
    sheets = "\n".join(f"<style>{text}</style>" for text in ("body{margin:0}", *styles))
    return f"""<!doctype html>
<html lang="{LANG[language()]}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; script-src {scripts}; style-src 'unsafe-inline'; img-src data:">
<link rel="icon" href="data:,">
<title>{escape(title)} - inductor_lab</title>
{sheets}
</head>
<body>
{body}
</body>
</html>
"""


def json_for_html(data: Mapping[str, Any]) -> str:
    """JSON that is safe inside a `<script>` element: no `<` and no line separators."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _built(name: str) -> str:
    """A built script, which defines `inductorLab` (see javascript/build.mjs)."""
    return _read(f"built/{name}.js")


def _read(name: str) -> str:
    return files("inductor_lab.widgets").joinpath(name).read_text(encoding="utf-8")
