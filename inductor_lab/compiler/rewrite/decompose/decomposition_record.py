"""The record of decompositions: op → the ops it became; `find_decomposed.py` makes it.

```
aten.softmax.int → aten.amax, aten.sub, aten.exp, aten.sum, aten.div      m.py:12
```
"""

from __future__ import annotations

from dataclasses import dataclass

from inductor_lab.compiler.capture.fx_graph import Span


@dataclass(frozen=True, slots=True)
class Decomposed:
    """The op that was called, the ops it became, and the names of their nodes (same order)."""

    op: str
    became: tuple[str, ...]
    nodes: tuple[str, ...]
    span: Span | None

    def __str__(self) -> str:
        where = f"      {self.span}" if self.span else ""
        return f"{self.op} → {', '.join(self.became)}{where}"
