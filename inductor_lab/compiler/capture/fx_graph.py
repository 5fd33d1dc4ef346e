"""FX graphs as data, for printing, drawing and saving; the live module is what runs.

Used for every graph of a compilation: captured, joint, forward, backward, and around each rewrite.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from inductor_lab.compiler.base.display import Shown, counted
from inductor_lab.compiler.base.operations import perform


@dataclass(frozen=True, slots=True)
class Span:
    """A location in the user's code.  Lines and columns count from 1; `column` 0 means unknown.

    `file` is a path, or a cell (`"cell 3"`); `code` is the text of the line(s) it covers.
    """

    file: str
    line: int
    column: int = 0
    end_line: int = 0
    end_column: int = 0
    function: str = ""
    code: str = ""

    def __str__(self) -> str:
        at = f"{self.line}:{self.column}" if self.column else str(self.line)
        return f"{self.file}:{at}"


@dataclass(frozen=True, slots=True)
class TensorFacts:
    """The metadata of a tensor at compile time.  Sizes are printed (`"128"`, `"s0"`)."""

    dtype: str
    shape: tuple[str, ...]
    stride: tuple[str, ...]
    device: str
    nbytes: int

    def __str__(self) -> str:
        return f"{self.dtype}[{', '.join(self.shape)}]"


@dataclass(frozen=True, slots=True)
class FxNode:
    """One node.

    `came_from` names its ancestors in the graph that this one was made from (forward/backward →
    joint → captured).  `given` is the user's name of an input: `x`, or `h.0.attn.weight` for a
    parameter.
    """

    name: str
    op: str
    target: str
    args: str
    inputs: tuple[str, ...]
    tensor: TensorFacts | None
    span: Span | None
    module_path: str = ""
    came_from: tuple[str, ...] = ()
    is_backward: bool = False
    given: str = ""


@dataclass(frozen=True, eq=False)
class FxGraph(Shown):
    """One graph: its nodes, its text (runnable Python), and the live module if there is one."""

    name: str
    nodes: tuple[FxNode, ...]
    text: str
    module: Any = field(default=None, repr=False, metadata={"live": True})

    def __repr__(self) -> str:
        calls = sum(n.op.startswith("call") for n in self.nodes)
        return f"FxGraph({self.name}: {counted(calls, 'op')}, {counted(len(self.nodes), 'node')})"

    def __str__(self) -> str:
        return self.text

    def node(self, name: str) -> FxNode | None:
        return next((n for n in self.nodes if n.name == name), None)

    def run(self, *inputs: Any) -> Any:
        """Run the graph with torch, node by node, on one real input for each placeholder."""
        return perform("run_graph", self, inputs)
