"""Collects the lines of a Triton kernel, and tracks variable names and masks.

`statements.py` prints statements, `accumulate.py` prints accumulators.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from inductor_lab.compiler.codegen.kernel import Line, Parameter
from inductor_lab.compiler.codegen.tree.loop_tree import Init, Stmt
from inductor_lab.compiler.codegen.triton.blocks import Blocks, Row
from inductor_lab.compiler.codegen.triton.expressions import Dims, Expressions, Value
from inductor_lab.compiler.ir.expr import NO_ORIGINS, Load, Origins


class Lines:
    """Collects lines; subclasses print statements.  `block` is the text of the block number."""

    def __init__(
        self,
        name: str,
        parameters: tuple[Parameter, ...],
        blocks: Blocks,
        ops: Mapping[str, str],
        index_type: str,
        block: str = "tl.program_id(0)",
    ) -> None:
        self.name, self.parameters, self.blocks = name, parameters, blocks
        self.index_type, self.block = index_type, block
        if blocks.shared is not None:
            self.block = f"({block} // {blocks.shared.parts})"
        self.buffer = {p.buffer: p.name for p in parameters if p.buffer is not None}
        symbols = {p.symbol: p.name for p in parameters if p.symbol is not None}
        self.text = Expressions(ops, symbols, self._load, self._named)
        self.lines: list[Line] = []
        self.indent = 1
        self.origins: Origins = NO_ORIGINS
        self.scopes: list[dict[str, Value]] = [{}]
        self.names_used: dict[str, int] = {}
        self.row: Row | None = None
        self.scanning = False
        self.guards: list[Value] = []
        self.inits: dict[str, Init] = {}
        self.blocks_kept: dict[str, Row] = {}
        self.kept: dict[str, str] = {}
        self.unsynced: set[str] = set()
        self.loaded: dict[str, list[str]] = {}
        self.asserts = False

    def _load(self, load: Load) -> Value:
        raise NotImplementedError

    def _statements(self, body: tuple[Stmt, ...]) -> None:
        raise NotImplementedError

    def _index_dtype(self) -> str:
        return "INDEX" if self.index_type == "INDEX" else f"tl.{self.index_type}"

    def _frame(self, text: str) -> None:
        """Add a line that has no origins in the user's program."""
        self.lines.append(Line("    " * self.indent + text, statement=False))

    def _line(self, text: str) -> None:
        self.lines.append(Line("    " * self.indent + text, self.origins))

    def _known(self, text: str) -> Value | None:
        for scope in reversed(self.scopes):
            if text in scope:
                return scope[text]
        return None

    def _bind(self, name: str, value: Value) -> Value:
        """Add `name = value`, unless a visible variable already has this value."""
        known = self._known(value.text)
        if known is not None:
            return known
        if value.text.isidentifier():
            return value
        self._line(f"{name} = {value.text}")
        bound = Value(name, value.dims)
        self.scopes[-1][value.text] = bound
        return bound

    def _named(self, value: Value, letter: str) -> Value:
        """Give a part of an index a short name: `x0 = xindex // 512`."""
        known = self._known(value.text)
        if known is not None:
            return known
        number = self.names_used.get(letter, 0)
        self.names_used[letter] = number + 1
        self._frame(f"{letter}{number} = {value.text}")
        bound = Value(f"{letter}{number}", value.dims)
        self.scopes[-1][value.text] = bound
        return bound

    @contextmanager
    def _inside(self) -> Iterator[None]:
        """Enter the body of a loop.  Values computed in it are not visible after it."""
        self.indent += 1
        self.scopes.append({})
        yield
        self.scopes.pop()
        self.indent -= 1

    # ---- masks -------------------------------------------------------------------------------

    def _mask(self, dims: Dims) -> list[Value]:
        """Return the masks of an access that varies along `dims`."""
        masks = []
        if "x" in dims and self.blocks.masked:
            masks.append(Value("xmask", frozenset("x")))
        for row in self.blocks.rows.values():
            if row.prefix in dims and row.masked:
                masks.append(Value(f"{row.prefix}mask", frozenset([row.prefix])))
        return [*masks, *self.guards]

    def _shape(self, dims: Dims) -> str:
        """Return the shape of a block that varies along `dims`."""
        if not self.blocks.rows:
            return "[XBLOCK]"
        row = next((r for r in self.blocks.rows.values() if r.prefix in dims), None)
        return f"[XBLOCK, {row.block_name if row else 1}]"
