"""The classes that a student's code may return: parts of loop programs, and programs as data."""

from __future__ import annotations

from enum import Enum
from typing import Any

from inductor_lab.compiler.codegen.tree import loop_tree
from inductor_lab.compiler.ir import expr, index
from inductor_lab.compiler.ir.value import Value
from inductor_lab.course.given.graphs import Graph, Node, Ref


def _of(module: Any) -> dict[str, type]:
    """The values and enumerations that a module defines."""
    return {
        name: one
        for name, one in vars(module).items()
        if isinstance(one, type)
        and one.__module__ == module.__name__
        and issubclass(one, Value | Enum)
        and not name.startswith("_")
    }


CLASSES: dict[str, type] = {
    **_of(loop_tree), **_of(expr), **_of(index), "Graph": Graph, "Node": Node, "Ref": Ref,
}  # fmt: skip
"""By name."""
