"""A program's text with its syntax tree: find compiled calls, and edit the lines near them."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from inductor_lab.debug.advice.trial import Site

LOOPS = (ast.For, ast.While, ast.AsyncFor)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True)
class Change:
    """Replace the bytes from `start` to `end` of the text."""

    start: int
    end: int
    new: str


@dataclass(frozen=True)
class Source:
    """Python text."""

    text: str

    @cached_property
    def data(self) -> bytes:
        return self.text.encode()

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @cached_property
    def _starts(self) -> list[int]:
        """The byte at which each line starts."""
        starts = [0]
        for line in self.data.splitlines(keepends=True):
            starts.append(starts[-1] + len(line))
        return starts

    @cached_property
    def parents(self) -> dict[ast.AST, ast.AST]:
        return {c: node for node in ast.walk(self.tree) for c in ast.iter_child_nodes(node)}

    def place(self, line: int, column: int) -> int:
        return self._starts[line - 1] + column

    def segment(self, node: ast.AST) -> str:
        return self.data[self.start(node) : self.end(node)].decode()

    def start(self, node: ast.AST) -> int:
        return self.place(node.lineno, node.col_offset)  # type: ignore[attr-defined]

    def end(self, node: ast.AST) -> int:
        return self.place(node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]

    def call_at(self, site: Site) -> ast.Call | None:
        """The call with exactly this position."""
        wanted = (site.line, site.column, site.end_line, site.end_column)
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Call):
                at = (node.lineno, node.col_offset, node.end_lineno, node.end_col_offset)
                if at == wanted:
                    return node
        return None

    def above(self, node: ast.AST) -> Iterator[ast.AST]:
        """The nodes that contain a node, innermost first."""
        while node in self.parents:
            node = self.parents[node]
            yield node

    def statement(self, node: ast.AST) -> ast.stmt | None:
        """The innermost statement that contains a node."""
        return next((n for n in (node, *self.above(node)) if isinstance(n, ast.stmt)), None)

    def loop(self, node: ast.AST) -> ast.stmt | None:
        """The outermost loop that contains a node, within its function."""
        found = None
        for each in self.above(node):
            if isinstance(each, LOOPS):
                found = each
            if isinstance(each, FUNCTIONS):
                break
        return found

    def before(self, statement: ast.stmt, text: str) -> Change:
        """Insert lines before a statement, with its indentation."""
        at = self.place(_first_line(statement), 0)
        indent = " " * statement.col_offset
        lines = "".join(f"{indent}{line}\n" for line in text.splitlines())
        return Change(at, at, lines)

    def after(self, statement: ast.stmt, text: str) -> Change:
        """Insert a line after a statement, with its indentation."""
        at = self._starts[statement.end_lineno or statement.lineno]
        return Change(at, at, f"{' ' * statement.col_offset}{text}\n")

    def replace(self, node: ast.AST, text: str) -> Change:
        return Change(self.start(node), self.end(node), text)

    def remove_lines(self, statement: ast.stmt) -> Change:
        first = _first_line(statement)
        return Change(self._starts[first - 1], self._starts[statement.end_lineno or first], "")

    def lines_of(self, statement: ast.stmt) -> str:
        """The statement's lines without its indentation."""
        change = self.remove_lines(statement)
        lines = self.data[change.start : change.end].decode().splitlines()
        return "\n".join(line[statement.col_offset :] for line in lines)

    def after_imports(self, text: str) -> Change:
        """Insert lines after the last import at the top level."""
        body = self.tree.body
        imports = [n for n in body if isinstance(n, ast.Import | ast.ImportFrom)]
        line = (imports[-1].end_lineno or 0) if imports else 0
        return Change(self._starts[line], self._starts[line], f"{text}\n")

    def changed(self, changes: Iterable[Change]) -> str | None:
        """The text with all changes; None if they overlap or the result is no Python."""
        data, at = self.data, len(self.data) + 1
        # of insertions at one place, the first one is the first in the text
        ordered = sorted(dict.fromkeys(changes), key=lambda each: (each.start, each.end))
        for each in reversed(ordered):
            if each.end > at:
                return None
            data = data[: each.start] + each.new.encode() + data[each.end :]
            at = each.start
        text = data.decode()
        try:
            ast.parse(text)
        except SyntaxError:
            return None
        return text


def _first_line(statement: ast.stmt) -> int:
    """The line of a statement, or of its first decorator."""
    decorated = isinstance(statement, (*FUNCTIONS, ast.ClassDef)) and statement.decorator_list
    return decorated[0].lineno if decorated else statement.lineno


def diff(path: str, before: str, after: str) -> str:
    """A unified diff."""
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), path, path, lineterm="")
    return "\n".join(lines)
