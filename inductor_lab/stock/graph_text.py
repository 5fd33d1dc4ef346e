"""Parse the text of an FX graph, as `print_readable` writes it, into nodes.

A trace log contains graphs only as text.  The text is Python; it is parsed and never executed.

```
# File: m.py:7 in forward, code: y = x.sin()
sin: "f32[8, 32][32, 1]cpu" = torch.ops.aten.sin.default(x);  x = None
```
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator, Mapping

from inductor_lab.compiler.capture.fx_graph import FxGraph, FxNode, Span, TensorFacts
from inductor_lab.compiler.capture.span import shown_file
from inductor_lab.compiler.torch_door.torch_tables import DTYPE_NAMES

_PLACE = re.compile(
    r"#(?: .*?)? File: (?P<file>.*?):(?P<line>\d+)"
    r" in (?P<function>[^,]*?)(?:, code: (?P<code>.*))?$"
)
_NOWHERE = "No stacktrace found"
_TENSOR = re.compile(r"^(\w+)\[([^\]]*)\](?:\[([^\]]*)\])?(\S*)$")
_BYTES = {short: dtype.itemsize for dtype, short in DTYPE_NAMES.items()}
_LAMBDA = re.compile(r"^class <\w+>", re.M)
_NOTHING = ast.Constant(None)


def read_graph(
    name: str,
    text: str,
    came_from: Mapping[str, tuple[str, ...]] | None = None,
    hints: Mapping[str, int] | None = None,
) -> FxGraph:
    """The graph of a printed module; `hints` are the values of symbolic sizes.

    Text that is not Python results in a graph without nodes, which shows only the text.
    """
    text = text.strip()
    try:
        tree = ast.parse(_LAMBDA.sub("class GraphModule", text))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return FxGraph(name, (), text)
    forward = next((n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)), None)
    if forward is None:
        return FxGraph(name, (), text)
    reader = _Reader(text.split("\n"), came_from or {}, hints or {})
    nodes = tuple(reader.nodes(forward))
    return FxGraph(name, nodes, text + "\n")


class _Reader:
    def __init__(
        self, lines: list[str], came_from: Mapping[str, tuple[str, ...]], hints: Mapping[str, int]
    ) -> None:
        self.came_from, self.hints = came_from, hints
        self.spans = list(_spans(lines))
        self.known: dict[str, None] = {}

    def nodes(self, forward: ast.FunctionDef) -> Iterator[FxNode]:
        arguments = [*forward.args.args, *forward.args.kwonlyargs]
        annotations = {a.arg: _text_of(a.annotation) for a in arguments}
        renamed = {
            s.value.id: s.targets[0].id
            for s in forward.body
            if isinstance(s, ast.Assign) and isinstance(s.targets[0], ast.Name)
            and isinstance(s.value, ast.Name)
        }
        for argument, annotation in annotations.items():
            if annotation:
                yield self._node(renamed.get(argument, argument), "placeholder", _NOTHING,
                                 annotation, argument, 0)
        for statement in forward.body:
            yield from self._statement(statement)

    def _statement(self, statement: ast.stmt) -> Iterator[FxNode]:
        match statement:
            case ast.AnnAssign(target=ast.Name(id=name), value=None):
                yield self._node(name, "placeholder", _NOTHING, _text_of(statement.annotation),
                                 name, 0)
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                yield self._value(name, value, _text_of(statement.annotation), statement.lineno)
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                freed = isinstance(value, ast.Constant) and value.value is None
                if not freed and not isinstance(value, ast.Name):
                    yield self._value(name, value, "", statement.lineno)
            case ast.Return(value=ast.expr() as value):
                yield self._node("output", "output", value, "", "output", 0)

    def _value(self, name: str, value: ast.expr, annotation: str, line: int) -> FxNode:
        attribute = isinstance(value, ast.Attribute) and ast.unparse(value).startswith("self.")
        op = "get_attr" if attribute else "call_function"
        target = ast.unparse(value.func) if isinstance(value, ast.Call) else _operator(value)
        return self._node(name, op, value, annotation, target, line)

    def _node(
        self, name: str, op: str, value: ast.expr, annotation: str, target: str, line: int
    ) -> FxNode:
        arguments: list[ast.AST] = [value]
        if isinstance(value, ast.Call):
            arguments = [*value.args, *value.keywords]
        used = (n.id for part in arguments for n in ast.walk(part) if isinstance(n, ast.Name))
        inputs = tuple(dict.fromkeys(n for n in used if n in self.known))
        self.known[name] = None
        return FxNode(
            name=name,
            op=op,
            target=target,
            args=", ".join(map(ast.unparse, arguments)) if value is not _NOTHING else "",
            inputs=inputs,
            tensor=tensor_facts(annotation, self.hints),
            span=self.spans[line - 1] if line else None,
            came_from=self.came_from.get(name, ()),
        )


def _spans(lines: list[str]) -> Iterator[Span | None]:
    """For each line, the source location in the last comment above it."""
    place: Span | None = None
    for line in lines:
        comment = line.strip()
        if comment.startswith("#"):
            place = place_in(comment) or (None if _NOWHERE in comment else place)
        yield place


def place_in(comment: str) -> Span | None:
    """`# File: m.py:7 in forward, code: y = x.sin()` → the span.

    Words may precede the file: `# Backward of forward node: File: m.py:7 in forward`.
    """
    found = _PLACE.search(comment)
    if found is None:
        return None
    code = (found["code"] or "").strip()
    return Span(
        shown_file(found["file"]), int(found["line"]), function=found["function"], code=code
    )


def _text_of(annotation: ast.expr | None) -> str:
    match annotation:
        case ast.Constant(str() as text):
            return text
    return ""


def _operator(value: ast.expr) -> str:
    match value:
        case ast.Subscript():
            return "operator.getitem"
        case ast.BinOp(op=op) | ast.UnaryOp(op=op):
            return f"operator.{_function_of(op)}"
        case ast.Compare(ops=[op, *_]):
            return f"operator.{_function_of(op)}"
    return ast.unparse(value)


_FUNCTIONS = {
    "mult": "mul", "matmult": "matmul", "div": "truediv", "bitand": "and_", "bitor": "or_",
    "bitxor": "xor", "usub": "neg", "uadd": "pos", "not": "not_", "noteq": "ne", "lte": "le",
    "gte": "ge",
}  # fmt: skip
"""The functions of module `operator` whose names differ from those of the syntax tree."""


def _function_of(op: ast.AST) -> str:
    name = type(op).__name__.lower()
    return _FUNCTIONS.get(name, name)


def tensor_facts(annotation: str, hints: Mapping[str, int]) -> TensorFacts | None:
    """`f32[8, 32][32, 1]cpu` → the properties of the tensor; None for `Sym(s0)` and similar."""
    found = _TENSOR.match(annotation.strip())
    if found is None:
        return None
    dtype, sizes, strides, device = found.groups()
    shape = tuple(filter(None, sizes.split(", ")))
    stride = tuple(filter(None, (strides or "").split(", ")))
    known = [int(size) if size.isdigit() else hints.get(size, 0) for size in shape]
    return TensorFacts(dtype, shape, stride, device, math.prod(known) * _BYTES.get(dtype, 0))
