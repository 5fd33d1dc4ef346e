"""FX graphs as runnable Python text.

One line per node, with its type; the user's line is printed above the nodes that came from it:

    # cell 3:2  y = x.sin()
    sin: "f32[3, 4]" = torch.ops.aten.sin.default(x)

If the graph has parameters or submodules it is written as `def forward(self, ...)`, and `self` is
the live module; otherwise the text is self-contained and can be pasted.
"""

from __future__ import annotations

import builtins
import math
import operator
from collections.abc import Callable, Iterator
from typing import Any

import torch

from inductor_lab.compiler.base.display import counted
from inductor_lab.compiler.capture.fx_graph import FxNode
from inductor_lab.compiler.torch_door.torch_api import INFIX_TEXT, qualified_name


def node_value(node: torch.fx.Node) -> Any:
    """The fake value of a node: `meta["val"]` after AOTAutograd, `meta["example_value"]` before."""
    return node.meta.get("val", node.meta.get("example_value"))


def value_text(value: Any) -> str:
    """An argument of a node as Python source; a node is its name."""
    match value:
        case torch.fx.Node():
            return value.name
        case tuple():
            inside = ", ".join(map(value_text, value))
            return f"({inside},)" if len(value) == 1 else f"({inside})"
        case list():
            return f"[{', '.join(map(value_text, value))}]"
        case dict():
            return "{" + ", ".join(f"{k!r}: {value_text(v)}" for k, v in value.items()) + "}"
        case slice():
            return f"slice({', '.join(map(value_text, (value.start, value.stop, value.step)))})"
        case float() if not math.isfinite(value):
            return f'float("{value}")'
        case torch.device():
            return f'torch.device("{value}")'
        case torch.dtype() | torch.memory_format() | torch.layout():
            return str(value)
        case _ if callable(value):
            return target_text(value)
    return repr(value)


def target_text(target: str | Callable[..., Any]) -> str:
    """The callee of a node: `torch.ops.aten.sin.default`, or a method's or attribute's name."""
    if isinstance(target, str):
        return target
    try:
        name = qualified_name(target)
    except (RuntimeError, AttributeError):
        name = getattr(target, "__name__", None) or type(target).__name__
    return name.replace("_operator.", "operator.")


def arguments_text(node: torch.fx.Node) -> str:
    """Positional and keyword arguments, comma-separated."""
    given = [value_text(a) for a in node.args]
    given += [f"{name}={value_text(value)}" for name, value in node.kwargs.items()]
    return ", ".join(given)


def expression_text(node: torch.fx.Node) -> str:
    """The right-hand side of a node's line."""
    if node.op == "get_attr":
        return f"self.{node.target}"
    if node.op == "call_module":
        return f"self.{node.target}({arguments_text(node)})"
    if node.op == "call_method":
        receiver, *rest = (_operand(a) for a in node.args)
        rest += [f"{name}={value_text(value)}" for name, value in node.kwargs.items()]
        return f"{receiver}.{node.target}({', '.join(rest)})"
    return _call_text(node)


def _call_text(node: torch.fx.Node) -> str:
    if node.target is operator.getitem:
        return f"{_operand(node.args[0])}[{value_text(node.args[1])}]"
    if _is_infix(node.target):
        operator_name = getattr(node.target, "__name__", "")
        return INFIX_TEXT[operator_name].format(*map(_operand, node.args))
    if node.target is getattr and len(node.args) == 2 and str(node.args[1]).isidentifier():
        return f"{_operand(node.args[0])}.{node.args[1]}"
    return f"{target_text(node.target)}({arguments_text(node)})"


def _is_infix(target: Any) -> bool:
    name = getattr(target, "__name__", "")
    known = name == "getitem" or name in INFIX_TEXT
    return known and getattr(operator, name, None) is target


def _operand(value: Any) -> str:
    """An operand of an operator or before a dot; negative and literal numbers get parentheses."""
    text = value_text(value)
    return f"({text})" if text.startswith("-") else text


def graph_text(name: str, graph: torch.fx.Graph, nodes: tuple[FxNode, ...]) -> str:
    """The graph as one Python function (see the module's docstring)."""
    live = list(graph.nodes)
    holds = [n for n in live if n.op in ("get_attr", "call_module")]
    inputs = [_declared(f, n) for n, f in zip(live, nodes, strict=True) if n.op == "placeholder"]
    signature = ", ".join((["self"] if holds else []) + inputs)
    if len(signature) > 80:
        parts = (["self"] if holds else []) + inputs
        signature = "\n    " + ",\n    ".join(parts) + ",\n"
    body = list(_body(live, nodes))
    return "\n".join([*_header(name, live, holds), f"def forward({signature}):", *body]) + "\n"


def _header(name: str, live: list[torch.fx.Node], holds: list[torch.fx.Node]) -> Iterator[str]:
    calls = sum(n.op.startswith("call") for n in live)
    yield f"# {name}: {counted(calls, 'op')}"
    if holds:
        held = ", ".join(dict.fromkeys(str(n.target) for n in holds))
        yield f"# not runnable alone: self holds {held}; .run(*inputs) has the live module"
    modules, missing = _needed(live)
    if missing:
        yield f"# not runnable alone: needs {', '.join(missing)}"
    yield from (f"import {module}" for module in modules)
    yield ""


def _needed(live: list[torch.fx.Node]) -> tuple[list[str], list[str]]:
    """Modules to import for the calls of a graph, and callees that cannot be imported by name."""
    modules = {"torch"}
    missing: dict[str, None] = {}
    targets = [n.target for n in live if n.op == "call_function"]
    for target in targets:
        if _is_infix(target):
            continue
        path = target_text(target)
        root, dot, _ = path.rpartition(".")
        if path.startswith("torch."):
            if not _reachable(path):
                missing[path] = None
        elif dot and root.split(".")[0] != "__main__" and "<" not in path:
            modules.add(root)
        elif dot or not hasattr(builtins, path):
            missing[path] = None
    return sorted(modules), list(missing)


def _reachable(path: str) -> bool:
    found: Any = torch
    for part in path.split(".")[1:]:
        found = getattr(found, part, None)
    return found is not None


def _declared(node: FxNode, live: torch.fx.Node) -> str:
    if node.tensor:
        return f'{node.name}: "{node.tensor}"'
    value = node_value(live)
    if isinstance(value, torch.SymInt | torch.SymFloat | torch.SymBool):
        return f'{node.name}: "Sym({value})"'
    return node.name


def _body(live: list[torch.fx.Node], nodes: tuple[FxNode, ...]) -> Iterator[str]:
    place = ""
    for node, facts in zip(live, nodes, strict=True):
        if node.op == "placeholder":
            continue
        if node.op == "output":
            yield f"    return {value_text(node.args[0])}"
            continue
        here = f"{facts.span}  {facts.span.code}" if facts.span else ""
        if facts.is_backward and here:
            here = f"gradient of {here}"
        if here and here != place:
            yield f"    # {here}"
            place = here
        yield f"    {_declared(facts, node)} = {expression_text(node)}"
