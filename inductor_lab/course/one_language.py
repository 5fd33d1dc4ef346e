"""Keep one language of the texts in a code cell.

    course.predict(("kernels", "kernel 数"), guess, 2)  →  course.predict("kernels", guess, 2)

A source has one code cell for both languages.  A text of it is a pair, in English and in Chinese.
The generated notebook contains only the text in its own language.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from inductor_lab.course.language import LANGUAGES, Language

WIDTH = 88
"""A call that was split over lines is joined if it has at most this many columns; a Chinese
character takes 1.65 of them."""
CHINESE = re.compile("[\u3000-\u303f\u4e00-\u9fff\uff00-\uffef]")
_MAGIC = re.compile(r"^[%!](.*)$", re.MULTILINE)
_HERE = "\0"
"""Marks a replaced text until the calls are joined."""
_SPLIT = re.compile(rf"\(\n[ ]+([^\n]*{_HERE}[^\n]*?),?\n[ ]*\)")


def in_one_language(code: str, language: Language) -> str:
    """The code with each pair of texts replaced by the text in this language."""
    tree = ast.parse(_MAGIC.sub(r"#\1", code))
    starts = _line_starts(code)
    encoded = code.encode()

    def span(node: ast.expr) -> tuple[int, int]:
        assert node.end_lineno is not None and node.end_col_offset is not None
        first = starts[node.lineno - 1] + node.col_offset
        return first, starts[node.end_lineno - 1] + node.end_col_offset

    for pair in sorted(_pairs(tree), key=lambda pair: span(pair), reverse=True):
        first, end = span(pair)
        kept = slice(*span(pair.elts[LANGUAGES.index(language)]))
        text = _HERE.encode() + _moved(encoded[kept].decode(), pair).encode()
        encoded = encoded[:first] + text + encoded[end:]
    return _joined(encoded.decode()).replace(_HERE, "")


def _line_starts(code: str) -> list[int]:
    """The offset in bytes of each line."""
    starts = [0]
    for line in code.split("\n"):
        starts.append(starts[-1] + len(line.encode()) + 1)
    return starts


def _pairs(tree: ast.AST) -> Iterator[ast.Tuple]:
    """Two texts of which only the second contains Chinese characters."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Tuple) and len(node.elts) == 2 and all(map(_is_text, node.elts)):
            english, chinese = map(ast.unparse, node.elts)
            if CHINESE.search(chinese) and not CHINESE.search(english):
                yield node


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str)
    )


def _moved(text: str, pair: ast.Tuple) -> str:
    """A text of several lines, indented like the pair that contained it."""
    first, *rest = text.split("\n")
    return "\n".join([first, *(" " * pair.col_offset + line.lstrip(" ") for line in rest)])


def columns(line: str) -> float:
    """The width of a line."""
    return len(line) + 0.65 * len(CHINESE.findall(line))


def _joined(code: str) -> str:
    """Put a call on one line again where that is short enough."""
    for found in reversed(list(_SPLIT.finditer(code))):
        start = code.rfind("\n", 0, found.start()) + 1
        line_end = code.find("\n", found.end())
        line_end = len(code) if line_end < 0 else line_end
        joined = f"{code[start:found.start()]}({found[1]}){code[found.end():line_end]}"
        if columns(joined.replace(_HERE, "")) <= WIDTH:
            code = f"{code[:start]}{joined}{code[line_end:]}"
    return code
