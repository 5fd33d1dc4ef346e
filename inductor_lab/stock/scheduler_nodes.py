"""The nodes of stock's scheduler as data: iteration, layouts, ordered operations.

Stock prints a node as text (`IrNode.text`); `NodeFacts.of` reads it.

```
op0.group.iteration = ((64,), (64,))          iterates, reduced
buf0_layout = FixedLayout('cpu', torch.float32, size=[64, 1], stride=[1, 64])
class op0_loop_body:
    def body(self, ops):
        load = ops.load('x', get_index)        operations, in order
```
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod

from inductor_lab.compiler.torch_door.torch_types import torch
from inductor_lab.stock.stock_compilation import IrNode, NestKind, Sizes

_LAYOUT = re.compile(
    r"^\s*(\w+)[._]layout = \w+\('([\w:]+)', torch\.(\w+), size=\[(.*?)\], stride=\[(.*?)\]", re.M
)
_ITERATION = re.compile(r"\.group\.iteration = (.*)")
_OUTPUT = re.compile(r"^    (\w+): \w+$", re.M)
_MUTATED = re.compile(r"^    \w+\.mutations = \[(.*)\]", re.M)
_LIBRARY = re.compile(r"\.node\.kernel = (\S+)")
_VALUE = re.compile(r"^\s*\w+ = ops\.(\w+)\(", re.M)
_NO_ARITHMETIC = {
    "constant", "index_expr", "load", "load_seed", "masked", "reduction", "store",
    "store_reduction", "to_dtype", "to_dtype_bitcast",
}  # fmt: skip
"""Operations that are not arithmetic; a reduction counts one operation for each element."""


@dataclass(frozen=True, slots=True)
class LayoutFacts:
    """The layout of a buffer: sizes and strides are numbers, or expressions of symbols as text."""

    device: str
    dtype: str
    size: Sizes
    stride: Sizes

    @property
    def nbytes(self) -> int:
        """The size in bytes; 0 if a size is symbolic."""
        numbers = [n for n in self.size if isinstance(n, int)]
        dtype = getattr(torch, self.dtype, None)
        if len(numbers) < len(self.size) or not isinstance(dtype, torch.dtype):
            return 0
        return prod(numbers) * dtype.itemsize


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """What stock prints about a node of its scheduler.

    buffer      the first buffer that it computes; the node's name if there is none
    iterates, reduced   sizes of the loops; None for a library function
    mutates     buffers that it overwrites
    library     the library function, for an extern kernel
    body        the ordered operations, as text
    operations  the names of the operations, in order
    is_result   does the graph return it?
    """

    name: str
    kind: str
    buffer: str
    outputs: tuple[str, ...]
    reads: tuple[str, ...]
    mutates: tuple[str, ...]
    iterates: Sizes | None
    reduced: Sizes
    library: str
    body: tuple[str, ...]
    operations: tuple[str, ...]
    layouts: Mapping[str, LayoutFacts]
    origins: frozenset[str]
    is_result: bool = False

    @staticmethod
    def of(node: IrNode) -> NodeFacts:
        iteration = _iteration(node.text)
        outputs = tuple(_OUTPUT.findall(node.text)) or node.writes
        mutated = [name for text in _MUTATED.findall(node.text) for name in _names(text)]
        library = _LIBRARY.search(node.text)
        body = tuple(_body(node.text))
        return NodeFacts(
            name=node.name,
            kind=node.kind,
            buffer=outputs[0] if outputs else node.name,
            outputs=outputs,
            reads=node.reads,
            mutates=tuple(dict.fromkeys(mutated)),
            iterates=None if iteration is None else iteration[0],
            reduced=() if iteration is None else iteration[1],
            library=library[1] if library else "",
            body=body,
            operations=tuple(_VALUE.findall("\n".join(body))),
            layouts=dict(_layouts(node.text)),
            origins=node.origins,
            is_result="NodeUser(node=OUTPUT" in node.text,
        )

    @property
    def is_generated(self) -> bool:
        """Does stock generate code for it?"""
        return self.iterates is not None

    @property
    def nest(self) -> NestKind:
        """What its loops do: `"pointwise"`, `"reduction"`, `"scan"` or `"scatter"`."""
        if "'atomic_add')" in "\n".join(self.body):
            return "scatter"
        if "scan" in self.operations:
            return "scan"
        return "reduction" if self.reduced else "pointwise"

    @property
    def flops(self) -> int:
        """Its arithmetic operations; 0 if a size is symbolic."""
        sizes = [n for n in (*(self.iterates or ()), *self.reduced) if isinstance(n, int)]
        if not self.is_generated or len(sizes) < len(self.iterates or ()) + len(self.reduced):
            return 0
        per_element = sum(name not in _NO_ARITHMETIC for name in self.operations)
        return prod(sizes) * (per_element + ("reduction" in self.operations))


def _iteration(text: str) -> tuple[Sizes, Sizes] | None:
    """`((64,), (64,))`, also with symbols: `((s0, 64), ())`."""
    found = _ITERATION.search(text)
    if found is None:
        return None
    try:
        tree = ast.parse(found[1].strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    if not isinstance(tree, ast.Tuple) or len(tree.elts) != 2:
        return None
    both = [_sizes(part) for part in tree.elts]
    return both[0], both[1]


def _sizes(tree: ast.expr) -> Sizes:
    elements = tree.elts if isinstance(tree, ast.Tuple) else [tree]
    return tuple(_size(element) for element in elements)


def _size(tree: ast.expr) -> int | str:
    if isinstance(tree, ast.Constant) and isinstance(tree.value, int):
        return tree.value
    return ast.unparse(tree)


def _layouts(text: str) -> Iterator[tuple[str, LayoutFacts]]:
    for name, device, dtype, size, stride in _LAYOUT.findall(text):
        yield name, LayoutFacts(device, dtype, _listed(size), _listed(stride))


def _listed(text: str) -> Sizes:
    """`64, s0*(s1//2)` → `(64, "s0 * (s1 // 2)")`; empty if it cannot be read."""
    try:
        return _sizes(ast.parse(f"({text},)" if text else "()", mode="eval").body)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return (text,)


def _names(text: str) -> list[str]:
    return re.findall(r"'(\w+)'", text)


def _body(text: str) -> Iterator[str]:
    """The lines of the loop body that compute something, without the class around them."""
    inside, indent = False, 4
    for line in text.split("\n"):
        if line.startswith("class ") and line.endswith("_loop_body:"):
            inside = True
        elif inside and line and not line.startswith(" "):
            inside = False
        elif inside and line.strip() == "def body(self, ops):":
            indent = 8
        elif inside and line.strip() and not line.strip().startswith("return "):
            indent = 4 if line.strip().startswith("def ") else indent
            yield line[indent:]
