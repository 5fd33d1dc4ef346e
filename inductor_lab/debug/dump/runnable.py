"""What a graph needs to be a standalone program: sub-graphs, tensors and the user's operators.

    true_graph_0 = self.true_graph_0     class true_graph_0(torch.nn.Module):     the sub-graph of a
    cond = torch.ops.higher_order...         def forward(self, arg0_1): ...       torch.cond

    torch.ops.mine.twice.default(x)      import mine_operators                    where the user has
                                                                                  defined it
"""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Iterator, Mapping
from types import FunctionType
from typing import Any

import torch
from torch.fx import GraphModule

from inductor_lab.compiler.capture.span import shown_file
from inductor_lab.compiler.torch_door.torch_api import OpOverload, is_own
from inductor_lab.compiler.torch_door.torch_names import optional

_DEFINED: Mapping[str, Any] = optional("torch._library.custom_ops.OPDEFS", {})
"""Every operator of `torch.library.custom_op`, by its name `mine::twice`."""


def sub_graphs(module: torch.nn.Module | None, holder: str) -> Iterator[str]:
    """The sub-graphs of a module as Python, each an attribute of `holder`; inner ones first."""
    for name, inner in [] if module is None else module.named_children():
        if not isinstance(inner, GraphModule):
            continue
        kind = f"{holder}_{name}"
        code = inner.graph.python_code("self").src.strip()
        yield f"class {kind}(torch.nn.Module):\n{textwrap.indent(code, '    ')}\n\n"
        yield from sub_graphs(inner, kind)
        for tensor in tensors_of(inner):
            yield f"{kind}.{tensor} = constants[{f'{kind}.{tensor}'!r}]\n"
        yield f"{holder}.{name} = {kind}()\n"


def tensors_of(module: GraphModule) -> dict[str, torch.Tensor]:
    """Tensors that a graph has as attributes."""
    names = [str(node.target) for node in module.graph.find_nodes(op="get_attr")]
    found = ((name, getattr(module, name, None)) for name in names)
    return {name: value.detach() for name, value in found if isinstance(value, torch.Tensor)}


def inner_tensors(module: torch.nn.Module | None, holder: str) -> dict[str, torch.Tensor]:
    """The tensors of its sub-graphs, by the names that `sub_graphs` uses."""
    found: dict[str, torch.Tensor] = {}
    for name, inner in [] if module is None else module.named_children():
        if isinstance(inner, GraphModule):
            kind = f"{holder}_{name}"
            found |= {f"{kind}.{tensor}": value for tensor, value in tensors_of(inner).items()}
            found |= inner_tensors(inner, kind)
    return found


def operators_of_the_user(module: GraphModule | None) -> str:
    """Python code that imports the user's operators that a graph calls; "" if it calls none.

    The code exits with a message if an operator is still missing.
    """
    graphs = [] if module is None else [m for m in module.modules() if isinstance(m, GraphModule)]
    targets = dict.fromkeys(node.target for graph in graphs for node in graph.graph.nodes)
    own = [t for t in targets if isinstance(t, OpOverload) and not is_own(t)]
    lines = [line for target in own for line in _import_of(target)]
    return "".join(["import sys\n\nimport torch\n\n", *dict.fromkeys(lines)]) if lines else ""


def _import_of(target: OpOverload) -> Iterator[str]:
    name = str(target._schema.name)
    function = getattr(_DEFINED.get(name), "_init_fn", None)
    place = ""
    if isinstance(function, FunctionType):
        code = function.__code__
        place = f"; it was in {shown_file(code.co_filename)}, line {code.co_firstlineno}"
        module = function.__module__
        file = getattr(sys.modules.get(module), "__file__", None)
        if module != "__main__" and file is not None:
            yield f"sys.path.append({_root(module, file)!r})\n"
            yield f"import {module}  # {name}\n"
            return
    space, _, operator = name.partition("::")
    says = f"define the operator {name}, or import what defines it, above this line{place}"
    yield f"if not hasattr(torch.ops.{space}, {operator!r}):\n    sys.exit({says!r})\n"


def _root(module: str, file: str) -> str:
    """The folder from which a module is imported by its name."""
    path = os.path.abspath(file)
    if os.path.basename(path) == "__init__.py":
        path = os.path.dirname(path)
    for _ in module.split("."):
        path = os.path.dirname(path)
    return path
