"""The language of the explorer, the checks and the questions: English or Chinese.

    lab.language("zh")             set it; INDUCTOR_LAB_LANGUAGE=zh sets it for a process
    say("{n} found", n=3)          in English: "3 found"; in Chinese: "找到 3 处"

    translate("they are 9 steps apart")       in Chinese: "两者相隔 9 步"

The English text is the key in the table `texts.toml`.  A document of the explorer contains the part
of the table that it needs, which `say` of say.js reads.
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
    """Return the current language; with an argument, set it.

    Raises BadArguments for an unknown language.
    """
    if wanted:
        if wanted not in LANGUAGES:
            todo = f"one of {', '.join(LANGUAGES)}"
            raise BadArguments(f"unknown language {wanted!r}", todo=todo)
        _NOW[0] = "zh" if wanted == "zh" else "en"
    return _NOW[0]


@cache
def table() -> dict[str, dict[str, str]]:
    """The texts by section: English → Chinese."""
    with TABLE.open("rb") as file:
        return tomllib.load(file)


def say(text: str, /, **values: Any) -> str:
    """A text in the current language, with `{name}` replaced by values.

    A text that is not in the table is returned unchanged: a name, a number, or a translated text.
    """
    if _NOW[0] == "zh":  # called for each row of a table
        text = _chinese().get(text, text)
    return text.format(**values) if values else text


def translate(sentence: str) -> str:
    """A sentence of the compiler, which already contains its values, in the current language.

    A sentence that is not in the table is returned unchanged.
    """
    return _translated(sentence) if _NOW[0] == "zh" else sentence


class Spoken(TypedDict, total=False):
    """The name of a language and its table of texts."""

    language: str
    texts: dict[str, str]


def spoken() -> Spoken:
    """The language data of a document for its page; empty for English."""
    return {"language": "zh", "texts": table()["explorer"]} if language() == "zh" else {}


@cache
def _chinese() -> dict[str, str]:
    sections = table()
    return {**sections["course"], **sections["explorer"]}


@cache
def _templates() -> list[tuple[re.Pattern[str], str]]:
    """The sentences of the compiler and of tools as patterns, each with its Chinese.

    Sentences that start with a word come before those that start with a value, because the value
    may match the word.  Among these, the most specific pattern comes first.
    """
    known = {**table()["sentences"], **table()["lines"], **table()["tools"]}
    by_words = sorted(
        known, key=lambda text: (text.startswith("{"), -len(re.sub(r"\{\w+\}", "", text)))
    )
    return [(re.compile(_pattern(text), re.DOTALL), known[text]) for text in by_words]


def _pattern(text: str) -> str:
    return re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>.*?)", re.escape(text))


def _translated(sentence: str) -> str:
    """Translate a sentence; its values may be sentences too."""
    for pattern, chinese in _templates():
        if found := pattern.fullmatch(sentence):
            values = {name: _translated(value) for name, value in found.groupdict().items()}
            return chinese.format(**values)
    return sentence
