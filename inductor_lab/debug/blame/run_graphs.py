"""Run an FX graph and keep every value: unchanged, in float64, or perturbed.

In float64, equivalent stages agree to 12 digits, whatever the dtype of the program.  In a perturbed
run, each intermediate value is changed by up to half a unit of its dtype in the program (Monte
Carlo arithmetic), which measures the rounding error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.fx import GraphModule, Interpreter, Node
from torch.fx.node import Argument

from inductor_lab.debug.compare.flatten_values import is_plain
from inductor_lab.debug.compare.functorch_transforms import transforms_end, transforms_on
from inductor_lab.debug.compare.values import WIDE, whole_storage

WIDENING = {
    name: "double" for name in ("half", "bfloat16", "float")
} | {"cfloat": "cdouble", "chalf": "cdouble"}  # fmt: skip
"""Methods that convert to a dtype → the method that the float64 run calls."""
AUTOCAST = ("_enter_autocast", "_exit_autocast")
HOOK = "register_hook"
"""Registers a hook on the gradient of a value, and returns the value."""
SHAKES = 3
"""Number of perturbed runs."""
RANDOM = frozenset(
    """rand randn rand_like randn_like randint randint_like randperm bernoulli bernoulli_ dropout
    native_dropout uniform uniform_ normal normal_ multinomial poisson rrelu exponential
    exponential_ alpha_dropout feature_dropout dropout1d dropout2d dropout3d cauchy log_normal
    geometric rrelu_with_noise rrelu_with_noise_functional fractional_max_pool2d
    fractional_max_pool3d""".split()
)
"""Names of random functions that have no tag."""


@dataclass(eq=False)
class Keeping(Interpreter):
    """Runs a graph node by node; `values` has the value of each node.

    wide      compute in float64
    shaken    the seed of the perturbation; None: no perturbation
    replaced  values that replace the results of nodes (random numbers)
    """

    graph_module: GraphModule
    wide: bool = False
    shaken: int | None = None
    replaced: Mapping[str, Any] = field(default_factory=dict)
    keep: bool = True

    def __post_init__(self) -> None:
        super().__init__(self.graph_module)
        self.values: dict[str, Any] = {}
        self._writes = any(map(may_write, self.graph_module.graph.nodes))
        self._random = torch.Generator().manual_seed(self.shaken or 0)

    def run_graph(self, inputs: Sequence[Any]) -> Any:
        usual = torch.get_default_dtype()
        torch.set_default_dtype(WIDE.get(usual, usual) if self.wide else usual)
        self._outside = transforms_on()
        try:
            with transforms_end():
                return self.run(*inputs, enable_io_processing=False)
        finally:
            torch.set_default_dtype(usual)

    def run_node(self, n: Node) -> Any:
        if n.name in self.replaced:
            value = self._as_wanted(self.replaced[n.name])
        elif str(n.target) == HOOK and not self.env[n.all_input_nodes[0]].requires_grad:
            value = self.env[n.all_input_nodes[0]]
        elif self.wide:
            value = self._wide(n)
        else:
            value = super().run_node(n)
        if self.keep and n.op == "get_attr" and isinstance(value, torch.Tensor):
            value = value.detach()  # a parameter, which the graph may write to
        # within a transform of torch.func, values are wrapped and cannot be used outside of it
        whole = n.op != "output" and transforms_on() == self._outside
        if self.shaken is not None and whole:
            value = self._shake(n, value)
        if self.keep and whole:
            self.values[n.name] = _snapshot(value, self._writes)
        return value

    def _as_wanted(self, value: Any) -> Any:
        if isinstance(value, tuple | list):
            return type(value)(map(self._as_wanted, value))
        if self.wide and isinstance(value, torch.Tensor):
            return value.to(WIDE.get(value.dtype, value.dtype))
        return value

    def _wide(self, node: Node) -> Any:
        args, kwargs = self.fetch_args_kwargs_from_env(node)
        args = tuple(torch.fx.node.map_aggregate(a, _wide_argument) for a in args)
        kwargs = {k: torch.fx.node.map_aggregate(a, _wide_argument) for k, a in kwargs.items()}
        target = node.target
        if node.op == "call_function" and getattr(target, "__name__", "") in AUTOCAST:
            return None
        if node.op == "call_method":
            return self.call_method(WIDENING.get(str(target), target), args, kwargs)
        if node.op == "get_attr":
            return self._as_wanted(self.get_attr(target, args, kwargs))
        return getattr(self, node.op)(target, args, kwargs)

    def _shake(self, node: Node, value: Any) -> Any:
        """Perturb the result of a node; the values of a view have been perturbed already."""
        moves = isinstance(value, torch.Tensor) and value.dtype.is_floating_point
        if not moves or not is_plain(value):
            return value
        given = [self.env.get(n) for n in node.all_input_nodes]
        if any(isinstance(g, torch.Tensor) and _share(g, value) for g in given):
            return value
        dtype = dtype_of(node) or value.dtype
        if not dtype.is_floating_point:
            return value
        if value.requires_grad or value.is_neg():
            return value * rounding_factors(value, dtype, self._random)
        whole = whole_storage(value)  # strides decide which writes eager mode accepts
        moved = whole * rounding_factors(whole, dtype, self._random)
        return moved.as_strided(value.shape, value.stride(), value.storage_offset())


def rounding_factors(
    value: torch.Tensor, dtype: torch.dtype, random: torch.Generator
) -> torch.Tensor:
    """Factors within half a unit of 1 for a float64 value that has this dtype in the program.

    For float64 within two units: half a unit would be rounded back to 1.
    """
    most = torch.finfo(dtype).eps * (2 if dtype is torch.float64 else 0.5)
    moved = 2 * torch.rand(value.shape, generator=random, dtype=torch.float64) - 1
    return (1 + moved * most).to(value.device, value.dtype)


def dtype_of(node: Node) -> torch.dtype | None:
    """The dtype of a node in the program."""
    fake = node.meta.get("val", node.meta.get("example_value"))
    return fake.dtype if isinstance(fake, torch.Tensor) else None


def is_random(node: Node) -> bool:
    """Does this node draw random numbers?"""
    if node.op not in ("call_function", "call_method"):
        return False
    tags = getattr(node.target, "tags", ())
    if torch.Tag.nondeterministic_seeded in tags:
        return not _is_zero(node.kwargs.get("p")) and not _never_drops(node)
    name = node.target if isinstance(node.target, str) else getattr(node.target, "__name__", "")
    return name in RANDOM and not _never_drops(node)


def _never_drops(node: Node) -> bool:
    """Is it a disabled dropout, or attention without dropout?"""
    name = str(node.target)
    if "attention" in name:
        return not any(isinstance(a, float) and a > 0 for a in node.args[3:]) and not (
            node.kwargs.get("dropout_p")
        )
    if "dropout" not in name:
        return False
    training = node.kwargs.get("training", node.args[2] if len(node.args) > 2 else True)
    p = node.kwargs.get("p", node.args[1] if len(node.args) > 1 else 0.5)
    return training is False or _is_zero(p)


def _is_zero(given: Argument) -> bool:
    return isinstance(given, int | float) and given == 0


def may_write(node: Node) -> bool:
    """May this node write to one of its inputs?"""
    schema = getattr(node.target, "_schema", None)
    if schema is not None:
        return bool(schema.is_mutable)
    name = node.target if isinstance(node.target, str) else getattr(node.target, "__name__", "")
    if node.op not in ("call_function", "call_method"):
        return False
    in_place = name.endswith("_") and not name.endswith("__")
    return in_place or name in ("setitem", "iadd", "isub", "imul", "itruediv", "copy_") or (
        node.kwargs.get("inplace") is True or "out" in node.kwargs or True in node.args[1:]
    )


def _snapshot(value: Any, clone: bool) -> Any:
    if isinstance(value, torch.Tensor):
        return value.detach().clone() if clone else value.detach()
    if isinstance(value, tuple | list):
        return tuple(_snapshot(item, clone) for item in value)
    return value


def _wide_argument(argument: Any) -> Any:
    return WIDE.get(argument, argument) if isinstance(argument, torch.dtype) else argument


def _share(first: torch.Tensor, second: torch.Tensor) -> bool:
    if first.layout is not second.layout:
        return False
    if first.layout is not torch.strided:
        return first is second
    return bool(first.untyped_storage()._cdata == second.untyped_storage()._cdata)


Runner = Callable[..., Any]


def runner(module: GraphModule, **how: Any) -> Runner:
    """The graph as a function of its inputs, without keeping values."""
    return lambda *inputs: Keeping(module, keep=False, **how).run_graph(inputs)


def values_of(module: GraphModule, inputs: Sequence[Any], **how: Any) -> dict[str, Any]:
    """The value of each node, by name."""
    run = Keeping(module, **how)
    given = [v.detach() if isinstance(v, torch.Tensor) else v for v in inputs]
    with torch.enable_grad():  # some transforms of torch.func record gradients themselves
        run.run_graph(given)
    return run.values
