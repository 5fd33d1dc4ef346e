"""Programs as data: a function of tensors becomes ATen operators and their arguments, and back.

    data = traced(softmax, torch.randn(2, 3))     Graph(inputs=("x_1",), nodes=(...), ...)
    rebuilt(data)(x)                              the same computation, somewhere else

A judge that runs the data on values of its own knows what the function computes, whatever the
process did that traced it.  `rebuilt` accepts functional ATen operators and arithmetic of sizes.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import torch

from inductor_lab.compiler.base.errors import Refused
from inductor_lab.compiler.torch_door.torch_api import OpOverload, make_fx
from inductor_lab.course.given.graphs import Graph, Node, Ref

ARITHMETIC: dict[str, Callable[..., Any]] = {
    name: getattr(operator, name)
    for name in ("add", "sub", "mul", "floordiv", "truediv", "mod", "neg", "getitem",
                 "eq", "ne", "lt", "le", "gt", "ge")
}  # fmt: skip
LEFT_OUT = ("device", "layout", "pin_memory", "memory_format")
"""Arguments that do not change values on a CPU."""


def traced(function: Callable[..., Any], *args: torch.Tensor, sizes: bool = False) -> Graph:
    """What a function does with tensors like these; with `sizes`, for tensors of other sizes too.

    Raises Refused where it looks at values, or brings values of its own.
    """
    try:
        module = make_fx(function, tracing_mode="symbolic" if sizes else "real")(*args)
    except RuntimeError as error:
        if "data-dependent" in str(error) or "tracing tensor" in str(error):
            what = "the function looks at values to decide what to do, so it is no one graph"
            raise Refused(what) from error
        raise
    return graph_data(module)


def traced_for_all_sizes(function: Callable[..., Any], *args: torch.Tensor) -> Graph:
    """`traced`, with sizes that are symbols."""
    return traced(function, *args, sizes=True)


def graph_data(module: torch.fx.GraphModule) -> Graph:
    """A graph of ATen operators as data.  Raises Refused for what has no data form."""
    inputs, nodes, output = [], list[Node](), None
    for node in module.graph.nodes:
        args = tuple(_data(arg) for arg in node.args)
        kwargs = {n: _data(arg) for n, arg in node.kwargs.items() if n not in LEFT_OUT}
        if node.op == "placeholder":
            inputs.append(node.name)
        elif node.op == "get_attr":
            nodes.append(Node(node.name, "constant", (_constant(module, node.target),), {}))
        elif node.op == "call_function":
            nodes.append(Node(node.name, _name_of(node.target), args, kwargs))
        elif node.op == "output":
            (output,) = args
        else:
            raise Refused(f"{node.format_node()} is no operator")
    return Graph(tuple(inputs), tuple(nodes), output)


def _constant(module: torch.fx.GraphModule, name: str) -> torch.Tensor:
    found: Any = module
    for part in name.split("."):
        found = getattr(found, part)
    if not isinstance(found, torch.Tensor) or found.numel() != 1:
        raise Refused("a tensor of several values that are not computed from the inputs")
    return found


def _data(value: Any) -> Any:
    if isinstance(value, torch.fx.Node):
        return Ref(value.name)
    if isinstance(value, list | tuple):
        return [_data(part) for part in value]
    if value is None or isinstance(value, bool | int | float | str | torch.dtype):
        return value
    if isinstance(value, slice):
        return ["slice", _data(value.start), _data(value.stop), _data(value.step)]
    if isinstance(value, torch.device | torch.layout | torch.memory_format):
        return None
    raise Refused(f"{value!r} is no plain argument")


def _name_of(target: Any) -> str:
    if isinstance(target, OpOverload):
        return str(target)
    for name, function in ARITHMETIC.items():
        if target is function:
            return f"operator.{name}"
    raise Refused(f"{getattr(target, '__name__', target)} is no ATen operator")


def operators_of(data: Graph) -> list[str]:
    """The names of its ATen operators, in order: `_softmax`, `mul`."""
    return [node.target.split(".")[1] for node in data.nodes if node.target.startswith("aten.")]


def rebuilt(data: Graph) -> torch.fx.GraphModule:
    """The program as a graph module.  Raises Refused for data that are no program."""
    graph = torch.fx.Graph()
    root = torch.nn.Module()
    known = {name: graph.placeholder(name) for name in data.inputs}
    for node in data.nodes:
        args = [_argument(arg, known) for arg in node.args]
        if node.target == "constant":
            (value,) = args
            if not isinstance(value, torch.Tensor) or value.numel() != 1:
                raise Refused("a constant is one value")
            root.register_buffer(name := f"constant_{len(known)}", value)
            known[node.name] = graph.get_attr(name)
            continue
        kwargs = {name: _argument(arg, known) for name, arg in node.kwargs.items()}
        known[node.name] = graph.call_function(_target(node.target), tuple(args), kwargs)
    graph.output(_argument(data.output, known))
    return torch.fx.GraphModule(root, graph)


def _argument(value: Any, known: dict[str, torch.fx.Node]) -> Any:
    if isinstance(value, Ref):
        if value.name not in known:
            raise Refused(f"{value.name} is read before it is made")
        return known[value.name]
    if isinstance(value, list):
        if value[:1] == ["slice"]:
            return slice(*(_argument(part, known) for part in value[1:4]))
        return [_argument(part, known) for part in value]
    return value


def _target(name: str) -> Callable[..., Any]:
    kind, _, rest = name.partition(".")
    if kind == "operator" and rest in ARITHMETIC:
        return ARITHMETIC[rest]
    packet, _, overload = rest.partition(".")
    if kind == "aten" and packet != "from_file":
        found = getattr(getattr(torch.ops.aten, packet, None), overload, None)
        if isinstance(found, OpOverload) and not found._schema.is_mutable:
            return found
    raise Refused(f"{name} is no functional ATen operator")
