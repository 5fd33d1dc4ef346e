"""Lowering: each operator of an FX graph becomes one loop nest, or one call of ATen.

In:    a graph of ATen operators; each node has a fake tensor with its dtype, size and strides.
Out:   a `Program`.

    add(x, y.t())   ->   for i0 < 4, i1 < 6: buf0[6*i0 + i1] = add(x[6*i0 + i1], y[i0 + 4*i1])

A view makes no nest: it is a size, strides and an offset into the buffer of its base, which torch
has computed.  Rules build the bodies of nests.  An operator without a rule,
or with a dtype that has no loops (16-bit floats, complex numbers), becomes a `Call`.
"""

import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from torch.fx import GraphModule, Node
from torch.utils import _pytree as pytree

import inductor_lab.mini.loops as loops
from inductor_lab.mini.loops import Affine, Call, Const, Expr, Index, Load, Nest, Op, View

FLOATS = (torch.float32, torch.float64)
DTYPES = (*FLOATS, torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool)
SAME_NAME = ["mul", "neg", "abs", "sign", "maximum", "minimum", "relu"]
"""Operators of ATen that are one operation with the same name, for all dtypes."""
FLOAT_ONLY = """exp exp2 expm1 log log2 log10 log1p sqrt rsqrt reciprocal sigmoid tanh sin cos tan
    asin acos atan sinh cosh asinh acosh atanh atan2 erf erfc floor ceil round trunc""".split()
"""The same, where the result is a float; an operand that is an integer is converted first."""
COMPARISONS = ["eq", "ne", "lt", "le", "gt", "ge", "isnan", "isinf"]
LOGICAL = ["logical_and", "logical_or", "logical_xor", "logical_not"]
BITWISE = ["bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not"]
ONE_OPERATION = [*SAME_NAME, *FLOAT_ONLY, *COMPARISONS, *LOGICAL, *BITWISE]
REDUCTIONS = ["sum", "prod", "amax", "amin", "any", "all"]
def name_of(node: Node) -> str:
    """The name of an operator without its overload: "add" of `aten.add.Tensor`."""
    return getattr(getattr(node.target, "overloadpacket", node.target), "__name__", "")


def is_view_op(node: Node) -> bool:
    schema = getattr(node.target, "_schema", None)
    results = schema.returns if schema else ()
    is_alias = any(each.alias_info and not each.alias_info.is_write for each in results)
    return is_alias or name_of(node) in ("_unsafe_view", "getitem")


class Body(NamedTuple):
    """What a rule needs to build the body of a nest: the result, and expressions."""

    val: torch.Tensor

    def load(self, view: View) -> Load:
        """An element of a tensor that is broadcast to the size of the result.

        The result is 4 × 6:   x of size 6 -> x[i1]   y of size 4 × 1 -> y[i0]   z -> z[6*i0 + i1]
        """
        missing = self.val.dim() - len(view.size)
        pairs = zip(view.size, view.stride, self.val.shape[missing:], strict=True)
        strides = (0 if size == 1 != n else stride for size, stride, n in pairs)
        at = Affine(view.offset, (0,) * missing + tuple(strides))
        return Load(view.buffer, at, view.dtype)

    def arg(self, value: Any, dtype: torch.dtype | None = None) -> Expr:
        """A tensor, a number or an expression as an expression of this dtype."""
        if isinstance(value, View):
            value = self.load(value)
        elif not isinstance(value, Expr):
            return Const(value, dtype or self.val.dtype)
        same = value.dtype == (dtype or self.val.dtype)
        return value if same else Op("cast", (value,), dtype or self.val.dtype)

    def op(self, name: str, *args: Any, of: torch.dtype | None = None) -> Expr:
        """The operation; operands are converted to `of`, by default the dtype of the result."""
        return Op(name, tuple(self.arg(arg, of) for arg in args), self.val.dtype)


def one_operation(b: Body, name: str, args: Sequence[Any]) -> Expr | None:
    """The rule of an operator that is one operation with the same name."""
    if name in COMPARISONS:
        samples = [torch.empty((1,) * len(a.size), dtype=a.dtype) if isinstance(a, View) else a
                   for a in args]  # fmt: skip
        return b.op(name, *args, of=torch.result_type(samples[0], samples[-1]))
    if name in LOGICAL:
        return b.op(name, *args, of=torch.bool)
    if name in BITWISE and b.val.dtype == torch.bool:
        return b.op(name.replace("bitwise", "logical"), *args)
    return b.op(name, *args) if name not in FLOAT_ONLY or b.val.dtype in FLOATS else None


def clamp(b: Body, x: Any, low: Any = None, high: Any = None) -> Expr:
    x = b.arg(x) if low is None else b.op("maximum", x, low)
    return x if high is None else b.op("minimum", x, high)


def arange(b: Body, start: Any, end: Any = None, step: Any = 1, **options: Any) -> Expr | None:
    start = start if end is not None else 0
    is_whole = isinstance(start, int) and isinstance(step, int)
    return b.arg(Index(Affine(start, (step,)))) if is_whole else None


RULES: dict[str, Callable[..., Expr | None]] = {
    "add": lambda b, x, y, alpha=1: b.op("add", x, y if alpha == 1 else b.op("mul", y, alpha)),
    "sub": lambda b, x, y, alpha=1: b.op("sub", x, y if alpha == 1 else b.op("mul", y, alpha)),
    "div": lambda b, x, y, rounding_mode=None: (
        b.op("true_divide", x, y) if b.val.dtype in FLOATS and rounding_mode is None else None),
    "where": lambda b, chosen, x, y: (
        Op("where", (b.arg(chosen, torch.bool), b.arg(x), b.arg(y)), b.val.dtype)),
    "pow": lambda b, x, y: (
        None if b.val.dtype not in FLOATS else b.op("mul", x, x) if y == 2 else b.op("pow", x, y)),
    "clamp": clamp, "clamp_min": clamp, "arange": arange,
    **dict.fromkeys(["clone", "_to_copy", "lift_fresh_copy", "scalar_tensor"],
                    lambda b, x, *args, **options: b.arg(x)),
    **dict.fromkeys(["full", "full_like", "copy"], lambda b, _, x, *args, **options: b.arg(x)),
}  # fmt: skip
"""Operator → its rule, which takes a `Body` and the operands; None: it is a call of ATen."""


class Lowering:
    """Lowers one graph, node by node; `env` has the view, or the other value, of each node."""

    def __init__(self, module: GraphModule) -> None:
        self.module = module
        self.env: dict[Node, Any] = {}
        self.buffers: dict[str, View] = {}
        self.constants: dict[str, torch.Tensor] = {}
        self.steps: list[loops.Step] = []

    def program(self) -> loops.Program:
        inputs: list[str] = []
        for node in self.module.graph.nodes:
            if node.op == "call_function":
                self.env[node] = self.call_function(node)
            elif node.op != "output":
                is_input = node.op == "placeholder"
                val = node.meta.get("val") if is_input else getattr(self.module, str(node.target))
                view = self.buffer(val, node.name) if isinstance(val, torch.Tensor) else None
                self.env[node] = view or val  # a number, or the graph of a branch
                inputs += [view.buffer if view else ""] if is_input else []
                self.constants |= {view.buffer: val} if view and not is_input else {}
        (results,) = self.module.graph.output_node().args
        outputs = tuple(self.known(each) for each in pytree.tree_leaves(results))
        steps = tuple(self.steps)
        return loops.Program(tuple(inputs), self.buffers, self.constants, steps, outputs)

    def known(self, argument: Any) -> Any:
        """An argument of a node, with views for tensors."""
        return self.env[argument] if isinstance(argument, Node) else argument

    def buffer(self, val: torch.Tensor, name: str = "") -> View:
        """A new buffer for this tensor; the view is all of it."""
        name = name or f"buf{len(self.buffers)}"
        if not re.search(r"(_|^buf)\d+$", name):
            name += "_0"  # `exp`, a saved value, is a function in C++
        self.buffers[name] = View(name, val.dtype, tuple(val.shape), tuple(val.stride()), 0)
        return self.buffers[name]

    def call_function(self, node: Node) -> Any:
        val: Any = node.meta.get("val")
        if node.target is operator.getitem:
            owner, index = map(self.known, node.args)
            return owner[index]
        if is_view_op(node) and isinstance(base := node.args[0], Node):
            of = base.meta["val"]
            known = [view_of(self.env[base], of, each) for each in pytree.tree_leaves(val)]
            if None not in known:
                return known[0] if isinstance(val, torch.Tensor) else known
        if all(map(has_loops, [val, *(n.meta.get("val") for n in node.all_input_nodes)])):
            nest = self.reduction(node, val) or self.pointwise(node, val)
            if nest is not None:
                view = self.buffer(val)
                self.steps.append(in_memory_order(replace(nest, out=view.buffer)))
                return view
        return self.call(node, val)

    def pointwise(self, node: Node, val: torch.Tensor) -> Nest | None:
        """`neg(x)` of 4 × 6: all axes are kept, body `neg(x[6*i0 + i1])`; None without a rule."""
        name, b, body = name_of(node), Body(val), None
        args, kwargs = pytree.tree_map(self.known, (node.args, node.kwargs))
        if name in RULES:
            body = RULES[name](b, *args, **kwargs)
        elif name in ONE_OPERATION and not kwargs:
            body = one_operation(b, name, args)
        whole = (tuple(val.shape), val.dim(), Affine(0, tuple(val.stride())), "")
        return Nest("", *whole, b.arg(body)) if body is not None else None

    def reduction(self, node: Node, val: torch.Tensor) -> Nest | None:
        """`sum(x, [1])` of 4 × 6: axes i0 < 4 (kept), i1 < 6 (reduced)."""
        kind, b = name_of(node), Body(val)
        if kind not in REDUCTIONS or (kind in ("amax", "amin") and val.dtype == torch.bool):
            return None
        x, dim, *_ = *map(self.known, node.args), node.kwargs.get("dim"), None
        rank = len(x.size)
        dims: Any = [dim] if isinstance(dim, int) else dim or range(rank)
        reduced = sorted({d % rank for d in dims}) if rank else []
        kept = [d for d in range(rank) if d not in reduced]
        order = [*kept, *reduced]
        strides = [val.stride(d if val.dim() == rank else k) for k, d in enumerate(kept)]
        load = Load(x.buffer, Affine(x.offset, tuple(x.stride[d] for d in order)), x.dtype)
        store = Affine(0, (*strides, *(0 for _ in reduced)))
        return Nest("", tuple(x.size[d] for d in order), len(kept), store, kind, b.arg(load))

    def call(self, node: Node, val: Any) -> Any:
        """A call of the operator itself; each tensor of its result gets a buffer."""
        args, kwargs = pytree.tree_map(self.known, (node.args, node.kwargs))
        known = pytree.tree_map_only(torch.Tensor, self.buffer, val)
        outs = [x.buffer for x in pytree.tree_leaves(known) if isinstance(x, View)]
        assert callable(node.target)
        self.steps.append(Call(tuple(outs), node.target, args, kwargs))
        return known


def has_loops(val: Any) -> bool:
    """Is it a tensor that kernels may read and write?"""
    return (isinstance(val, torch.Tensor) and val.dtype in DTYPES
            and val.device.type == "cpu" and val.layout == torch.strided)  # fmt: skip


def view_of(base: View, of: torch.Tensor, val: torch.Tensor) -> View | None:
    """The view that torch computed for `val`, a view of `of`; None if it is no strided view.

    x is 4 × 6 at offset 0, val is x.t()[1:]   ->   size 5 × 4, strides 1 and 6, offset 1
    """
    if val.dtype != of.dtype or val.layout != torch.strided or val.is_complex():
        return None
    offset = base.offset + int(val.storage_offset()) - int(of.storage_offset())
    return View(base.buffer, val.dtype, tuple(val.shape), tuple(val.stride()), offset)


def in_memory_order(nest: Nest) -> Nest:
    """The nest with its kept axes in the order of the result's memory, the last one contiguous.

    Axes of one point disappear.  Reduced axes are in the order of the first load.
    `z.t() + 1`  ->  rows of z, then columns.
    """
    first = [*(load.at for load in nest.loads()), nest.store][0]
    strides = [abs(c) for c in nest.store.coefs[: nest.kept] + first.coefs[nest.kept :]]
    axes = [k for k, n in enumerate(nest.sizes) if n != 1]
    order = sorted(axes, key=lambda k: (k >= nest.kept, -strides[k]))
    kept = sum(k < nest.kept for k in axes)
    return nest.with_axes([nest.sizes[k] for k in order], kept, lambda at: at.of_axes(order))


def is_symbolic(value: Any) -> bool:
    """Is it a symbolic size, or a tensor with one?"""
    is_strided = isinstance(value, torch.Tensor) and value.layout == torch.strided
    sizes = (*value.shape, *value.stride()) if is_strided else (value,)
    return any(isinstance(size, torch.SymInt | torch.SymFloat) for size in sizes)


# What the full compiler does differently
#
# - compiler/lower/graph.py, ops/: a file for each family of operators, 400 of them; gather, cat,
#   pad, cumsum and scatter are loops too.
# - compiler/lower/ops/view.py: views of symbolic sizes; a reshape divides its index.
# - compiler/lower/passes/: rewrites of the loop program, such as splitting a long reduction.
