"""Parse the text of stock's `output_code.py` into its kernels and the wrapper, with origins.

The text is Python that defines kernels as strings; it is parsed and never executed.  Stock's
provenance artifact lists the FX nodes of each kernel under `name:handle`.  A comment above each
call contains the same handle, so every call and every definition is linked to its nodes.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from inductor_lab.compiler.capture.fx_graph import FxGraph, FxNode
from inductor_lab.compiler.codegen.kernel import Code, Line
from inductor_lab.stock.stock_compilation import Language, StockKernel

Origins = frozenset[str]

_HANDLE = re.compile(r"# \[Provenance debug handles\] (\S+)")
_SOURCE_NODES = re.compile(r"# Topologically Sorted Source Nodes: \[(.*?)\]")
_FRAGMENT = re.compile(r"^#\s+%(\w+) : ")
_EXTERN = re.compile(
    r"^\s*(?:\w+(?:, \w+)* = )?((?:extern_kernels|torch\.ops|aten|inductor_ops)\.\S+?)\("
)
_FUNCTION = re.compile(r"\b([a-z]\w*)\(")
_LANGUAGES: dict[str, Language] = {"cpp": "cpp", "triton": "triton"}
_NO_STATEMENT = ("#", "//", "extern", "import ", "from ", "@", "def ", '"""')
_BLOCK = re.compile(r"^\s*(for|while|if|else)\b")


@dataclass(frozen=True)
class OutputCode:
    """The content of a file; `direction` (forward, backward or inference) is from its heading."""

    direction: str
    kernels: tuple[StockKernel, ...]
    host: Code
    problem: str = ""


def read_output_code(
    text: str, provenance: Mapping[str, Iterable[str]], graph: FxGraph
) -> OutputCode:
    """Kernels and wrapper; `provenance` has the FX nodes of each `name:handle`."""
    lines = text.split("\n")
    try:
        definitions = list(_definitions(ast.parse(text)))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return OutputCode(_direction(text), (), Code.of(map(Line, lines)), f"output code: {error}")
    each_call: dict[str, list[Origins]] = {}
    for key, names in provenance.items():
        each_call.setdefault(key.rpartition(":")[0] or key, []).append(frozenset(names))
    nodes = {name: frozenset().union(*calls) for name, calls in each_call.items()}
    inside = {n for d in definitions for n in range(d.first, d.last + 1)}
    for definition in definitions:
        nodes.setdefault(definition.name, _fragment(lines, definition.first, graph))
    called, host = _wrapper(lines, inside, nodes, provenance)
    traffic = _Traffic(graph)
    kernels = [
        traffic.counted(
            StockKernel(
                d.name, d.language, kernel_code(d.text, nodes[d.name], graph),
                tuple(sorted(nodes[d.name])), called.pop(d.name, 0),
            ),
            each_call.get(d.name, [nodes[d.name]]),
        )
        for d in definitions
    ]
    kernels += [
        traffic.counted(
            StockKernel(name, "extern", Code(()), tuple(sorted(nodes.get(name, ()))), calls),
            each_call.get(name, []),
        )
        for name, calls in called.items()
    ]
    return OutputCode(_direction(text), tuple(kernels), host)


@dataclass(frozen=True)
class _Definition:
    name: str
    language: Language
    text: str
    first: int
    last: int


def _definitions(tree: ast.Module) -> Iterator[_Definition]:
    """`name = async_compile.cpp_pybinding([...], '''text''')`, and the same for Triton."""
    for statement in tree.body:
        match statement:
            case ast.Assign(
                targets=[ast.Name(id=name)],
                value=ast.Call(func=ast.Attribute(value=ast.Name("async_compile"), attr=kind)),
            ):
                texts = [
                    a.value for a in statement.value.args  # type: ignore[attr-defined]
                    if isinstance(a, ast.Constant) and isinstance(a.value, str)
                ]
                language = _LANGUAGES.get(kind.partition("_")[0])
                if language and texts:
                    yield _Definition(name, language, texts[-1].strip("\n"), statement.lineno,
                                      statement.end_lineno or statement.lineno)


def _direction(text: str) -> str:
    head = re.match(r"# AOT ID: \['\d+_(\w+)'\]", text)
    return head[1] if head else ""


def _fragment(lines: list[str], first: int, graph: FxGraph) -> Origins:
    """The nodes in the comment above a kernel, which lists its part of the graph."""
    known = {node.name for node in graph.nodes}
    found = set()
    for line in reversed(lines[: first - 1]):
        if not line.startswith("#"):
            break
        match = _FRAGMENT.match(line)
        if match and match[1] in known:
            found.add(match[1])
    return frozenset(found)


def _wrapper(
    lines: list[str],
    inside: set[int],
    nodes: Mapping[str, Origins],
    provenance: Mapping[str, Iterable[str]],
) -> tuple[dict[str, int], Code]:
    """The number of calls of each kernel, and the text without the kernels, with origins."""
    calls: Counter[str] = Counter()
    shown: list[Line] = []
    origins: Origins = frozenset()
    call = re.compile(rf"^\s*({'|'.join(map(re.escape, nodes)) or '(?!)'})(?:\.run)?\(")
    for number, line in enumerate(lines, 1):
        if number in inside:
            continue
        handle = _HANDLE.search(line)
        source = _SOURCE_NODES.search(line)
        if handle:
            origins = frozenset(provenance.get(handle[1], ()))
        elif source and not provenance:
            origins = frozenset(source[1].split(", "))
        if line.strip().startswith("#"):
            shown.append(Line(line, origins, statement=False))
            continue
        found = call.match(line) or _EXTERN.match(line)
        if found:
            calls[found[1]] += 1
            shown.append(Line(line, origins or nodes.get(found[1], frozenset())))
        else:
            shown.append(Line(line, statement=False))
        origins = frozenset()
    return dict(calls), Code.of(shown)


def kernel_code(text: str, nodes: Origins, graph: FxGraph) -> Code:
    """A kernel's lines; a statement belongs to the nodes whose operator it calls by name.

    `auto tmp7 = tmp6.erf();` belongs to the kernel's erf nodes.  A statement that names none of the
    kernel's operators (loads, arithmetic, loops) belongs to all its nodes.
    """
    by_op: dict[str, set[str]] = {}
    for node in graph.nodes:
        if node.name in nodes:
            by_op.setdefault(operator_of(node), set()).add(node.name)
    lines = []
    for line in text.split("\n"):
        if not _is_statement(line):
            lines.append(Line(line, statement=False))
            continue
        named = [by_op[f] for f in _FUNCTION.findall(line) if f in by_op]
        lines.append(Line(line, frozenset().union(*named) if named else nodes))
    return Code.of(lines)


def operator_of(node: FxNode) -> str:
    """`torch.ops.aten.exp.default` → `exp`."""
    parts = node.target.split(".")
    return parts[3] if node.target.startswith("torch.ops.") and len(parts) > 3 else parts[-1]


def _is_statement(line: str) -> bool:
    """A loop, a branch, or a line that ends a C++ statement or assigns or stores in Triton."""
    text = line.strip()
    if text.startswith(_NO_STATEMENT):
        return False
    python = (" = " in text and not text.endswith(",")) or text.startswith("tl.")
    return python or bool(_BLOCK.match(text)) or text.endswith(";")


class _Traffic:
    """Counts the bytes that nodes read from other nodes, and that other nodes read from them.

    A `copy_` into an argument counts as a write, although nothing in the graph reads its result.
    """

    def __init__(self, graph: FxGraph) -> None:
        self.nodes = {node.name: node for node in graph.nodes}
        self.users: dict[str, set[str]] = {}
        for node in graph.nodes:
            for source in node.inputs:
                self.users.setdefault(source, set()).add(node.name)

    def counted(self, kernel: StockKernel, calls: Iterable[Origins]) -> StockKernel:
        """The kernel with its bytes; `calls` has the nodes of each call."""
        read = written = 0
        for call in calls:
            own = {name for name in call if name in self.nodes}
            sources = {source for name in own for source in _read(self.nodes[name])} - own
            results = {name for name in own if self._leaves(name, own)}
            read += sum(map(self._nbytes, sources))
            written += sum(map(self._nbytes, results))
        return replace(kernel, bytes_read=read, bytes_written=written)

    def _leaves(self, name: str, own: set[str]) -> bool:
        return bool(self.users.get(name, set()) - own) or _is_copy(self.nodes[name])

    def _nbytes(self, name: str) -> int:
        tensor = self.nodes[name].tensor
        return tensor.nbytes if tensor is not None else 0


def _is_copy(node: FxNode) -> bool:
    return operator_of(node) == "copy_"


def _read(node: FxNode) -> tuple[str, ...]:
    """The inputs whose elements a node reads: `copy_` only writes its first input."""
    return node.inputs[1:] if _is_copy(node) else node.inputs
