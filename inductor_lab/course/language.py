"""The language that checks and questions speak: English or Chinese.

    both("{n} kernels", "{n} 个 kernel", n=3)      in English: "3 kernels"

A generated notebook says which one in its first cell; else `INDUCTOR_LAB_LANGUAGE` (en, zh) does.
"""

from __future__ import annotations

import os
from typing import Any, Literal

from inductor_lab.errors import BadArguments

Language = Literal["en", "zh"]
LANGUAGES: tuple[Language, ...] = ("en", "zh")
VARIABLE = "INDUCTOR_LAB_LANGUAGE"
_NOW: list[Language] = ["zh" if os.environ.get(VARIABLE) == "zh" else "en"]


def language() -> Language:
    """The one that is spoken now."""
    return _NOW[0]


def speak(wanted: str) -> None:
    """Speak another language from now on; raises BadArguments for one that is not known."""
    if wanted not in LANGUAGES:
        raise BadArguments(f"no language {wanted!r}", todo=f"one of {', '.join(LANGUAGES)}")
    _NOW[0] = "zh" if wanted == "zh" else "en"


def both(en: str, zh: str, **values: Any) -> str:
    """The text in the language that is spoken, with `{name}` replaced by values."""
    text = zh if language() == "zh" else en
    return text.format(**values) if values else text
