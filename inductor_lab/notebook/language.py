"""The language that the explorer, the checks and the questions speak: English or Chinese.

    lab.language("zh")             from now on; INDUCTOR_LAB_LANGUAGE=zh says it for a whole process
    say("{n} found", n=3)          in English: "3 found"; in Chinese: "找到 3 处"

    translate("they are 9 steps apart")       in Chinese: "两者相隔 9 步"

The English text is the key; `texts.toml`, the one table, has the Chinese next to it.  A document of
the explorer carries its part of the table, which `say` of say.js reads.
"""

from __future__ import annotations

import os
import re
import tomllib
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypedDict

from inductor_lab.api.arguments import checked
from inductor_lab.compiler.base.errors import BadArguments

Language = Literal["en", "zh"]
LANGUAGES: tuple[Language, ...] = ("en", "zh")
VARIABLE = "INDUCTOR_LAB_LANGUAGE"
TABLE = Path(__file__).with_name("texts.toml")
_NOW: list[Language] = ["zh" if os.environ.get(VARIABLE) == "zh" else "en"]


@checked
def language(wanted: str = "") -> Language:
    """The language that is spoken now; with an argument, another one from now on.

    Raises BadArguments for one that is not known.
    """
    if wanted:
        if wanted not in LANGUAGES:
            raise BadArguments(f"no language {wanted!r}", todo=f"one of {', '.join(LANGUAGES)}")
        _NOW[0] = "zh" if wanted == "zh" else "en"
    return _NOW[0]


@cache
def table() -> dict[str, dict[str, str]]:
    """The texts by section, each English text with its Chinese."""
    with TABLE.open("rb") as file:
        return tomllib.load(file)


def say(text: str, /, **values: Any) -> str:
    """A text in the language that is spoken, with `{name}` replaced by values.

    What the table does not have stays as it is: a name, a number, or a text that is said already.
    """
    if language() == "zh":
        text = _chinese().get(text, text)
    return text.format(**values) if values else text


def translate(sentence: str) -> str:
    """What the compiler said of a decision, its values already in it, in the language that is
    spoken; a sentence that the table does not have stays as it is."""
    return _translated(sentence) if language() == "zh" else sentence


class Spoken(TypedDict, total=False):
    """The name of a language and its table of texts."""

    language: str
    texts: dict[str, str]


def spoken() -> Spoken:
    """What a document carries so that the page speaks as Python does: nothing for English."""
    return {"language": "zh", "texts": table()["explorer"]} if language() == "zh" else {}


@cache
def _chinese() -> dict[str, str]:
    sections = table()
    return {**sections["course"], **sections["explorer"]}


@cache
def _templates() -> list[tuple[re.Pattern[str], str]]:
    """The compiler's sentences as patterns, each with its Chinese; those that begin with a word
    before those that begin with a value, which may be such a beginning; then the most particular
    one first."""
    known = {**table()["sentences"], **table()["lines"]}
    by_words = sorted(
        known, key=lambda text: (text.startswith("{"), -len(re.sub(r"\{\w+\}", "", text)))
    )
    return [(re.compile(_pattern(text), re.DOTALL), known[text]) for text in by_words]


def _pattern(text: str) -> str:
    return re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>.*?)", re.escape(text))


def _translated(sentence: str) -> str:
    """A value may be a sentence itself."""
    for pattern, chinese in _templates():
        if found := pattern.fullmatch(sentence):
            values = {name: _translated(value) for name, value in found.groupdict().items()}
            return chinese.format(**values)
    return sentence
