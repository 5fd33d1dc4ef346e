"""TorchDynamo's work in one call: graphs, guards, graph breaks, bytecode, symbols, recompiles.

`compile_id` is Dynamo's name of one compilation, `"frame/attempt"`: `"0/0"` is the first
compilation of the first frame, `"0/1"` a recompile of it, and `"1/0"` belongs to another frame,
such as the code after a graph break.  torch's logs and tlparse use the same ids.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from inductor_lab.compiler.base.display import Shown, counted
from inductor_lab.compiler.base.errors import NotRunnable
from inductor_lab.compiler.capture.fx_graph import FxGraph, Span

_LOCAL_OR_GLOBAL = re.compile(r"[LG]\['(\w+)'\]")
_ROUTINE = ("DIMENSION_DYNAMIC_MARKING_GUARD",)
"""Kinds of guard that every tensor gets; they are not printed, because no size was marked."""


def readable_source(source: str) -> str:
    """`L['x'].size()[0]` → `x.size()[0]`."""
    return _LOCAL_OR_GLOBAL.sub(r"\1", source)


@dataclass(frozen=True)
class Guard:
    """A condition that is checked before compiled code is used again.

    kind     Dynamo's type of guard (`TENSOR_MATCH`, `EQUALS_MATCH`, `SHAPE`)
    code     the condition
    source   the guarded object (`L['x']`: local x, `G['K']`: global K); "" for torch's state
    span     the user's line that created the guard, if there is one
    """

    kind: str
    code: str
    source: str
    span: Span | None
    compile_id: str

    def __str__(self) -> str:
        what = f"{self.kind}: {readable_source(self.code)}"
        return f"{what}    {self.span}  {self.span.code}" if self.span else what


@dataclass(frozen=True)
class GraphBreak:
    """A place where capture stopped, the reason, and possible fixes; `user_stack` has the outermost
    frame first.

    link   the page of PyTorch's documentation about this kind of graph break
    """

    reason: str
    explanation: str
    hints: tuple[str, ...]
    span: Span | None
    user_stack: tuple[Span, ...]
    compile_id: str
    link: str = ""

    @property
    def code(self) -> str:
        """PyTorch's code of this kind of graph break, such as `GB0059`; "" if it has none."""
        return self.link.rpartition("/")[2].partition(".")[0].upper()

    def __str__(self) -> str:
        lines = [f"graph break: {self.reason}"]
        lines += [f"  {self.span.code}    {self.span}"] if self.span else []
        lines += [f"  {self.explanation}"] if self.explanation else []
        lines += [f"  hint: {hint}" for hint in self.hints]
        return "\n".join(lines + ([f"  {self.code}: {self.link}"] if self.link else []))


@dataclass(frozen=True)
class Bytecode:
    """The disassembled bytecode of one frame: Python's own, and as rewritten by Dynamo."""

    compile_id: str
    function: str
    original: str
    rewritten: str


@dataclass(frozen=True, slots=True)
class Instruction:
    """One bytecode instruction as TorchDynamo traced it.

    depth   0 in the function itself, more in functions that were inlined
    stack   the symbolic stack before it, bottom first: names of FX nodes, constants, sources
    added   lines of the FX graph that it added
    renamed names of FX nodes before and after: a result gets the name of its variable
    """

    depth: int
    function: str
    file: str
    line: int
    opname: str
    argument: str
    stack: tuple[str, ...]
    added: tuple[str, ...] = ()
    renamed: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        # some instructions have no line number
        text = f"{'  ' * self.depth}{max(self.line, 0) or '':>4} {self.opname} {self.argument}"
        became = [f"+{line}" for line in self.added] + [f"{a} -> {b}" for a, b in self.renamed]
        return "  ".join([f"{text:44} [{', '.join(self.stack)}]", *became])


@dataclass(frozen=True, eq=False)
class SymbolicRun:
    """One attempt of TorchDynamo to trace a frame, instruction by instruction.

    A frame has several runs if Dynamo restarts, such as for a graph break.  Of a long run only the
    first instructions are kept; `total` counts all.
    """

    compile_id: str
    function: str
    instructions: tuple[Instruction, ...]
    total: int

    def __str__(self) -> str:
        return "\n".join([f"# {self.function}  {self.compile_id}", *map(str, self.instructions)])


@dataclass(frozen=True)
class Symbol:
    """A size or number that is symbolic: its name, its value in this call, its range, its
    source."""

    name: str
    hint: str
    range: str
    source: str
    span: Span | None
    compile_id: str

    def __str__(self) -> str:
        return f"{self.name} = {readable_source(self.source)}, here {self.hint}, in {self.range}"


@dataclass(frozen=True)
class AsCaptured:
    """A captured graph that runs in eager mode: the rule of `capture/eager_rules.py` and the
    reason.

    span     the user's line that causes it, if there is one
    """

    rule: str
    reason: str
    span: Span | None

    def __str__(self) -> str:
        where = f"\n  {self.span.code}    {self.span}" if self.span else ""
        return f"a graph runs in eager mode: {self.reason}{where}"


@dataclass(frozen=True)
class Recompile:
    """Compiled code could not be used: `reason` is a guard of `failed` that was false.

    span    the user's line that created the guard; for a guard that library code created, the
            user's line that called it
    kind    Dynamo's type of guard; "" if it is unknown
    source  the guarded object, such as `L['x']`; "" if it is unknown or there is none
    value   the guarded object in the new call, as short text
    via     the line of library code that created the guard; None if the user's line did
    """

    compile_id: str
    failed: str
    reason: str
    span: Span | None
    kind: str = ""
    source: str = ""
    value: str = ""
    via: Span | None = None

    def __str__(self) -> str:
        fact = readable_source(self.reason)
        wrong = fact if " mismatch" in fact else f"not {fact}"
        what = f"recompile {self.compile_id}: {wrong} (of {self.failed})"
        called = f" (through {self.via})" if self.via else ""
        return f"{what}    {self.span}  {self.span.code}{called}" if self.span else what


@dataclass(frozen=True, eq=False)
class Capture(Shown):
    """Everything that TorchDynamo did during one call.

    graphs       one for each captured part of the code, in order; a graph break gives several
    compile_ids  the compilation that each graph belongs to
    runs         Dynamo's work, instruction by instruction
    as_captured  graphs that run in eager mode instead of being compiled, each with its reason
    seconds      Dynamo's own timing by phase; a nested phase counts in the outer one too
    """

    graphs: tuple[FxGraph, ...]
    guards: tuple[Guard, ...] = ()
    breaks: tuple[GraphBreak, ...] = ()
    bytecode: tuple[Bytecode, ...] = ()
    symbols: tuple[Symbol, ...] = ()
    recompiles: tuple[Recompile, ...] = ()
    compile_ids: tuple[str, ...] = ()
    seconds: Mapping[str, float] = field(default_factory=dict)
    runs: tuple[SymbolicRun, ...] = ()
    as_captured: tuple[AsCaptured, ...] = ()

    def __repr__(self) -> str:
        counts = {
            "graph": self.graphs,
            "guard": self.guards,
            "break": self.breaks,
            "symbol": self.symbols,
            "recompile": self.recompiles,
        }
        shown = (counted(len(items), noun) for noun, items in counts.items() if items)
        return f"Capture({', '.join(shown)})"

    def __str__(self) -> str:
        about_code = [g for g in self.guards if (g.source or g.span) and g.kind not in _ROUTINE]
        guards = f"guards ({len(about_code):,} of {len(self.guards):,} are about the user's code)"
        sections = {
            "graph breaks": self.breaks,
            "in eager mode": self.as_captured,
            "recompiles": self.recompiles,
            "symbols": self.symbols,
            guards: about_code,
            "graphs": self.graphs,
        }
        return "\n".join(
            f"== {title}\n" + "\n".join(map(str, items))
            for title, items in sections.items()
            if items
        )

    def run(self, *inputs: Any) -> Any:
        """Run the captured graph with torch on the graph's own inputs (`graphs[0]`'s placeholders).

        Raises NotRunnable if there are several graphs: then Python runs between them.
        """
        if len(self.graphs) != 1:
            raise NotRunnable(
                f"the capture has {len(self.graphs)} graphs, with Python between them",
                todo="run one of them: capture.graphs[i].run(*inputs)",
            )
        return self.graphs[0].run(*inputs)
