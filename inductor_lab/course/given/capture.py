"""Lab 1: bytecode that is the same in every Python, and counters of what TorchDynamo captures."""

from __future__ import annotations

import dis
import operator
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import torch

Simple: TypeAlias = tuple[str, Any]
"""An instruction: its name and what it is about, such as ("LOAD_FAST", "a")."""


OPERATIONS = {"+": operator.add, "-": operator.sub, "*": operator.mul}


def bytecode(function: Callable[..., Any]) -> list[Simple]:
    """The instructions of a straight-line function, the same in every version of Python.

    >>> bytecode(lambda a: a - 1)
    [('LOAD_FAST', 'a'), ('LOAD_CONST', 1), ('BINARY_OP', '-'), ('RETURN_VALUE', None)]
    """
    found: list[Simple] = []
    for each in dis.get_instructions(function):
        name, what = each.opname, each.argval
        if name in ("RESUME", "CACHE", "NOP"):
            continue
        if name == "RETURN_CONST":
            found += [("LOAD_CONST", what), ("RETURN_VALUE", None)]
        elif name == "STORE_FAST_LOAD_FAST":
            found += [("STORE_FAST", what[0]), ("LOAD_FAST", what[1])]
        elif name in ("LOAD_FAST_LOAD_FAST", "STORE_FAST_STORE_FAST"):
            found += [(name[: len(name) // 2], part) for part in what]
        elif name == "BINARY_OP":
            found.append((name, each.argrepr))
        else:
            found.append((name, None if name == "RETURN_VALUE" else what))
    return found


def gate(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """Attention-like; the branch depends on data, and TorchDynamo breaks the graph here."""
    y = torch.softmax(x @ w, -1)
    if y.max() > 0.5:
        return y * 2
    return y - 1


def operations_captured(function: Callable[..., Any], *args: Any) -> list[list[str]]:
    """The operations of each graph that the real TorchDynamo captures in one call."""
    found: list[list[str]] = []

    def backend(module: torch.fx.GraphModule, inputs: list[Any]) -> Any:
        found.append([node.name for node in module.graph.nodes if node.op.startswith("call")])
        return module.forward

    torch.compiler.reset()
    torch.compile(function, backend=backend)(*args)
    torch.compiler.reset()
    return found


def graphs_captured(function: Callable[..., Any], *args: Any) -> int:
    """How many graphs the real TorchDynamo captures in one call."""
    return compiles_in(function, [args])


def compiles_in(function: Callable[..., Any], calls: Iterable[tuple[Any, ...]]) -> int:
    """How many times the real TorchDynamo compiles a graph in these calls."""
    return len(compiling_in(function, calls))


def compiling_in(function: Callable[..., Any], calls: Iterable[tuple[Any, ...]]) -> list[int]:
    """The number of the call, for each graph that the real TorchDynamo compiles."""
    found: list[int] = []
    served = 0

    def backend(module: torch.fx.GraphModule, inputs: list[Any]) -> Any:
        found.append(served)
        return module.forward

    torch.compiler.reset()
    compiled = torch.compile(function, backend=backend)
    for args in calls:
        compiled(*args)
        served += 1
    torch.compiler.reset()
    return found
