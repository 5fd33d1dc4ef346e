"""TorchDynamo's symbolic execution, instruction by instruction, as data."""

from __future__ import annotations

import opcode
import re
from dataclasses import dataclass, field, replace
from typing import Any

from torch.fx import Node

from inductor_lab.compiler.capture.capture import Instruction, SymbolicRun
from inductor_lab.compiler.capture.span import shown_file
from inductor_lab.compiler.capture.text import expression_text
from inductor_lab.compiler.torch_door.torch_api import compile_id
from inductor_lab.compiler.torch_door.torch_logs import Traced

KEPT = 3_000
"""The number of recorded instructions of all runs together; BERT-base has ten times as many."""
LONGEST_TEXT = 60

_BUILTIN = re.compile(r"G\['__builtins_dict___\d+'\]\['(\w+)'\]")
_OPERATORS: tuple[str, ...] = tuple(text for _, text in getattr(opcode, "_nb_ops", ()))
"""Texts of Python's binary operators, by their number in the bytecode."""


@dataclass
class StepRecord:
    """A listener for `torch_logs.watched_instructions`."""

    runs: list[_Run] = field(default_factory=list)
    kept: int = 0

    def tell(self, traced: Traced) -> None:
        if not self.runs or self.runs[-1].root is not traced.run:
            self.runs.append(_Run(traced.run, compile_id(), traced.code.co_name))
        run = self.runs[-1]
        run.total += 1
        if self.kept < KEPT:
            self.kept += 1
            run.add(traced)

    def finished(self) -> tuple[SymbolicRun, ...]:
        return tuple(
            SymbolicRun(run.compile_id, run.function, tuple(run.instructions), run.total)
            for run in self.runs
        )


@dataclass
class _Run:
    root: object
    compile_id: str
    function: str
    instructions: list[Instruction] = field(default_factory=list)
    total: int = 0
    names: dict[Node, str] = field(default_factory=dict)

    def add(self, traced: Traced) -> None:
        """Add an instruction; the previous one has finished, so its effect on the graph is
        known."""
        self._finish_last(traced)
        code = traced.code
        self.instructions.append(
            Instruction(
                depth=traced.depth,
                function=code.co_name,
                file=shown_file(code.co_filename),
                line=traced.line,
                opname=traced.opname,
                argument=_short(_argument_text(traced.opname, traced.argument)),
                stack=tuple(_short(_BUILTIN.sub(r"\1", value)) for value in traced.stack),
            )
        )

    def _finish_last(self, traced: Traced) -> None:
        nodes = traced.graph.nodes
        last = self.instructions[-1] if self.instructions else None
        if last is None or (len(nodes) == len(self.names) and "STORE" not in last.opname):
            return
        old, self.names = self.names, {node: node.name for node in nodes}
        added = tuple(_line(node) for node in nodes if node not in old)
        renamed = tuple((old[n], n.name) for n in nodes if n in old and old[n] != n.name)
        self.instructions[-1] = replace(last, added=added, renamed=renamed)


def _line(node: Node) -> str:
    return node.name if node.op == "placeholder" else f"{node.name} = {expression_text(node)}"


def _argument_text(opname: str, argument: Any) -> str:
    """`argval` of an instruction: a name, a constant, a jump target, or an operator."""
    if argument is None:
        return ""
    if opname == "BINARY_OP" and argument in range(len(_OPERATORS)):
        return _OPERATORS[int(argument)]
    return argument if isinstance(argument, str) else repr(argument)


def _short(text: str) -> str:
    return text if len(text) <= LONGEST_TEXT else f"{text[: LONGEST_TEXT - 1]}…"
