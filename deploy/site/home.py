"""The first screen of the site: what this is, where to go, and an explorer to click on."""

from __future__ import annotations

import re
from pathlib import Path

import torch

import inductor_lab as lab
from inductor_lab.course.language import Language

EXPLORER = "explorer.html"
PICTURE = re.compile(r"^!\[.*\]\(.*\)\n\n", re.MULTILINE)
LINKS: dict[Language, dict[str, str]] = {
    "en": {
        "../lite/start.html": "Try it in this browser: labs and a gallery of saved compilations, "
                              "without an install",
        "docs/stock.html": "I use stock torch.compile",
        "docs/course.html": "Course",
        "api/inductor_lab.html": "API",
    },
    "zh": {
        "../lite/start.html": "在浏览器里打开实验和保存的编译结果，无需安装",
        "notebooks/guides/zh/07_stock.html": "我用原版 torch.compile",
        "notebooks/tutorials/zh/01_capture.html": "课程",
        "../en/api/inductor_lab.html": "API（英文）",
    },
}  # fmt: skip
TITLES: dict[Language, str] = {
    "en": "An explorer: click on a line, a node or a kernel",
    "zh": "编译结果：点击代码行、节点或 kernel",
}


def first_screen(welcome: str, language: Language) -> str:
    """The text of the start page, with links and an explorer in place of its first picture."""
    title, paragraph, rest = welcome.split("\n\n", 2)
    links = " · ".join(f'<a href="{to}">{words}</a>' for to, words in LINKS[language].items())
    frame = f'<iframe class="lab-home" src="{EXPLORER}" title="{TITLES[language]}"></iframe>'
    return "\n\n".join([title, paragraph, links, frame, PICTURE.sub("", rest, count=1)])


def write_explorer(folder: Path, language: Language) -> None:
    """Compile a function, and write its page into the folder of a language."""
    before = lab.language()
    lab.language(language)
    try:
        lab.inspect(trig, torch.randn(1000, requires_grad=True)).report(folder / EXPLORER)
    finally:
        lab.language(before)


def trig(x: torch.Tensor) -> torch.Tensor:
    one = torch.sin(x) ** 2
    return one + torch.cos(x) ** 2
