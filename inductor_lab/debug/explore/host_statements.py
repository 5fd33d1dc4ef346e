"""Run a host program statement by statement: what it allocates, calls and frees.

Each statement is executed separately with its original file and line, so that breakpoints in that
file work.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from inductor_lab.compiler.base.errors import NotRunnable
from inductor_lab.compiler.records import CompiledPart

RETURNED = "__returned__"


@dataclass(frozen=True)
class Statement:
    """One statement of a host program that has just run.

    line    its first line in the program's text (1-based)
    called  the function that it calls, if the statement is a single call
    made    names that are new or bound to another object
    freed   names that were deleted
    """

    line: int
    text: str
    called: str
    made: tuple[str, ...]
    freed: tuple[str, ...]


class HostRun:
    """One call of a part's host program.

    `names` are the current variables.  The call may write to `inputs`.  `results` are set once it
    has returned.
    """

    def __init__(self, part: CompiledPart, inputs: Sequence[Any]) -> None:
        if part.executable is None:
            raise NotRunnable(
                f"the {part.name} was loaded from a file, or compiled for another machine",
                todo="call lab.inspect(f, x) again on this machine",
            )
        self.part = part
        self.file = part.executable.call.__code__.co_filename
        self.names: dict[str, Any] = dict(part.executable.call.__globals__)
        self._known = set(self.names)
        self.names["args"] = list(inputs)
        self.results: tuple[Any, ...] | None = None
        self._text = str(part.host)

    @property
    def tensors(self) -> Mapping[str, torch.Tensor]:
        """The buffers that currently exist, including inputs."""
        return {
            name: value for name, value in self.names.items()
            if name not in self._known and isinstance(value, torch.Tensor)
        }  # fmt: skip

    @property
    def held(self) -> int:
        """Bytes of memory of these buffers; a storage with several views counts once."""
        storages = {
            t.untyped_storage()._cdata: t.untyped_storage().nbytes()
            for t in self.tensors.values() if t.layout is torch.strided
        }  # fmt: skip
        return sum(storages.values())

    def __iter__(self) -> Iterator[Statement]:
        tree = ast.parse(self._text)
        function = next(node for node in tree.body if isinstance(node, ast.FunctionDef))
        lines = self._text.splitlines()
        for statement in self._statements(function.body):
            before = {name: id(value) for name, value in self.names.items()}
            self._execute(statement)
            now = {n: id(v) for n, v in self.names.items() if n not in self._known}
            made = tuple(n for n, v in now.items() if before.get(n) != v and n != RETURNED)
            freed = tuple(n for n in before if n not in self.names)
            text = lines[statement.lineno - 1 : statement.end_lineno]
            yield Statement(
                statement.lineno, "\n".join(text), _called(statement), made, freed
            )

    def _statements(self, body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
        """The statements; the body of a `with` is yielded one by one inside its context."""
        for statement in body:
            if not isinstance(statement, ast.With):
                yield statement
                continue
            (item,) = statement.items
            code = compile(ast.Expression(item.context_expr), self.file, "eval")
            with eval(code, self.names):
                yield from self._statements(statement.body)

    def _execute(self, statement: ast.stmt) -> None:
        if isinstance(statement, ast.Return):
            assert statement.value is not None, "a host program returns its results"
            code = compile(ast.Expression(statement.value), self.file, "eval")
            self.results = eval(code, self.names)
        else:
            code = compile(ast.Module([statement], []), self.file, "exec")
            exec(code, self.names)


def _called(statement: ast.stmt) -> str:
    """`f` for the statement `f(...)`."""
    match statement:
        case ast.Expr(ast.Call(ast.Name(name))):
            return name
    return ""
