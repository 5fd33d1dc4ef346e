"""From an FX graph of ATen operators to a program of loop nests.

    graph():                               x: f32[4, 8] input
        %x = placeholder                   buf0[i0, i1] : f32   # sin
        %t = aten.t(%x)            →         = sin(x[i1, i0])
        %sin = aten.sin(%t)
        return (%sin,)

It visits each node once and calls the lowering of its operator, or makes an extern call.

Inductor: `graph.py`, `GraphLowering.run_node`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import FunctionType
from typing import Any

import sympy
import torch
from torch.fx.node import map_aggregate, map_arg

from inductor_lab.compiler.base.errors import LabError, LeftToATen, working_on
from inductor_lab.compiler.base.options import Options
from inductor_lab.compiler.base.passes import apply_passes, switched_off
from inductor_lab.compiler.capture.operands import operand, results_of
from inductor_lab.compiler.ir.effects import EAGERS_RANDOM, EFFECT
from inductor_lab.compiler.ir.higher_order import PREFIX
from inductor_lab.compiler.ir.index import at_most_one, is_int
from inductor_lab.compiler.ir.program import (
    BufferKind,
    BufferView,
    Callee,
    Input,
    Layout,
    LoopProgram,
    Output,
    Write,
)
from inductor_lab.compiler.ir.slice_ops import OPERATORS
from inductor_lab.compiler.lower import fits
from inductor_lab.compiler.lower.builder import (
    Builder,
    TensorMeta,
    size_of,
    source_line,
    symbols_in,
)
from inductor_lab.compiler.lower.chains import chains_of, writes_to_arguments
from inductor_lab.compiler.lower.extern import (
    always_called,
    argument,
    call,
    fallback,
    is_token,
    leading_to_storage,
    needs_extern,
    to_device,
)
from inductor_lab.compiler.lower.ops import (
    activations,
    bits,
    create,
    division,
    index,
    matmul,
    pointwise,
    pool,
    pool_backward,
    random,
    reduce,
    regions,
    scan,
    scatter,
    searchsorted,
    variance,
    view,
)
from inductor_lab.compiler.lower.ops.empty import is_only_empty
from inductor_lab.compiler.lower.ops.mutating import call_mutating
from inductor_lab.compiler.lower.ops.user_triton_kernels import call_by_name
from inductor_lab.compiler.lower.passes.facts import ProgramFacts
from inductor_lab.compiler.lower.passes.pass_list import PASSES
from inductor_lab.compiler.lower.registry import LOWERINGS, Lowering, Operator
from inductor_lab.compiler.lower.tensor import TensorValue, identity, layout_of, same_strides
from inductor_lab.compiler.rewrite.aliases import has_absolute_offset, storage_of
from inductor_lab.compiler.torch_door import torch_api

aten = torch.ops.aten
FAMILIES = (
    pointwise, bits, division, activations, reduce, variance, scan, searchsorted, pool,
    pool_backward, view, index, scatter, regions, create, random, matmul,
)  # fmt: skip
"""The modules that register lowerings when they are imported."""


def lowered() -> frozenset[Operator]:
    """The operators that have a lowering; they are not decomposed."""
    return frozenset(LOWERINGS)


SIZES = frozenset(
    {
        aten.sym_size.int, aten.sym_stride.int, aten.sym_numel.default,
        aten.sym_storage_offset.default, aten.sym_is_contiguous.default,
    }
)  # fmt: skip
"""Operators whose result depends only on the sizes of their tensor."""


def lower_graph(
    module: torch.fx.GraphModule,
    name: str,
    options: Options,
    registry: Mapping[Operator, Lowering] = LOWERINGS,
    writes: tuple[Write, ...] = (),
    trained: bool = False,
    changed: Callable[[str, LoopProgram], object] | None = None,
) -> LoopProgram:
    """Lower a functional ATen graph whose nodes have fake tensors in `meta["val"]`.

    Its last results are the new values of inputs that `writes` describes (`lower/input_writes.py`).
    `trained` graphs run inside an autograd function.  `changed` is called with the name
    and the result of each pass of `passes/pass_list.py` that changed the program.

    Raises MissingLowering under `options.strict` if an operator has no lowering, and LabError for
    operators that cannot be lowered at all (those that write to their arguments).
    """
    build = Builder(name, options)
    program = _Walk(module, build, registry, writes, trained).run()
    off = switched_off(PASSES, options.passes_off)
    facts = ProgramFacts(options, build)
    if changed is not None:
        changed("build", program)
    return apply_passes(PASSES.values(), program, facts, off, changed)


class _Walk:
    """The state while the nodes of one graph are visited."""

    def __init__(
        self,
        module: torch.fx.GraphModule,
        build: Builder,
        registry: Mapping[Operator, Lowering],
        writes: tuple[Write, ...],
        trained: bool,
    ) -> None:
        self.module, self.build, self.registry, self.writes = module, build, registry, writes
        self.trained, self.values = trained, build.values
        build.chains = chains_of(module.graph, writes)
        self.inputs: list[Input] = []
        self.outputs: tuple[Output, ...] = ()
        self.callees: dict[str, Any] = {}
        self.assumed = torch_api.deferred_equalities(module)
        self.to_storage = leading_to_storage(module.graph)
        self.spread: dict[torch.fx.Node, BufferView] = {}
        """Nodes whose results have gaps in memory → the view with these gaps."""

    def run(self) -> LoopProgram:
        for node in self.module.graph.nodes:
            self.build.begin(node)
            with working_on((node.name,)):
                self.values[node] = getattr(self, node.op)(node)
            fits.check_unbacked(self.build, self.assumed)
        build = self.build
        return LoopProgram(
            build.name,
            tuple(self.inputs),
            dict(build.buffers),
            tuple(build.steps),
            self.outputs,
            build.constants,
            self.callees,
            self.writes,
            self._relates_results(),
            tuple(build.partial_writes),
        )

    # ---- one method for each kind of FX node ----

    def placeholder(self, node: torch.fx.Node) -> Any:
        fake = node.meta.get("val")
        if isinstance(fake, torch.Tensor):
            self.inputs.append(node.name)
            value = self.build.given(node.name, BufferKind.INPUT, fake)
            if fake.is_neg():
                return fallback(self.build, aten.clone.default, (value,), {}, "negated in memory")
            return None if is_token(node) else value
        if isinstance(fake, torch_api.BackwardState | torch_api.FakeScriptObject):
            self.inputs.append(sympy.Symbol(node.name))
            return Callee(node.name)
        size = size_of(fake) if isinstance(fake, torch.SymInt) else fake
        symbol = size if isinstance(size, sympy.Symbol) else sympy.Symbol(node.name, integer=True)
        self.inputs.append(symbol)
        self.build.symbols |= symbols_in((symbol,))
        return size

    def get_attr(self, node: torch.fx.Node) -> TensorValue | Callee:
        value = operator.attrgetter(str(node.target))(self.module)
        if not isinstance(value, torch.Tensor):
            return self._callee(node.name, value)
        self.build.constants[node.name] = value
        return self.build.given(node.name, BufferKind.CONSTANT, value)

    def call_function(self, node: torch.fx.Node) -> Any:
        if node.target is operator.getitem:
            return self.values[operand(node)][node.args[1]]
        result = node.meta.get("val")
        number = isinstance(result, torch.SymInt | torch.SymFloat | torch.SymBool | int | float)
        called = isinstance(node.target, torch_api.OpOverload)
        if number and (torch_api.is_own(node.target) or not called):
            return self._number(node, result)
        if node.target is torch.ops.higher_order.with_effects:
            return self._with_effects(node)
        if isinstance(node.target, FunctionType) or "lab_kernels" in node.meta:
            return self._opaque(node)
        if isinstance(node.target, torch_api.HigherOrderOperator):
            return self._higher_order(node)
        if not isinstance(node.target, torch_api.OpOverload):
            raise self._refused(node, f"{node.target}, which is not an ATen operator")
        if node.target._schema.is_mutable:
            raise self._refused(node, f"{node.target}, which writes to its arguments")
        random = self.build.options.fallback_random and torch_api.is_random(node.target)
        own = not random and (torch_api.is_own(node.target) or node.target in self.registry)
        value = self.values.__getitem__ if own else self._as_in_eager
        args, kwargs = map_arg((node.args, node.kwargs), value)
        if node.target is aten._assert_scalar.default and self._uses_unbound_symbol(args[0]):
            return None
        if reason := EAGERS_RANDOM if random else always_called(node.target):
            return fallback(self.build, node.target, args, kwargs, reason)
        lowering = self.registry.get(node.target)
        binds = node.meta.get("unbacked_bindings") and node.target not in view.AT_NUMBERS
        if lowering is None or needs_extern(node, self.to_storage) or binds:
            return fallback(self.build, node.target, args, kwargs)
        if scatter.has_no_atomic(node):
            return fallback(self.build, node.target, args, kwargs, reason="no atomic operation")
        return self._lowered(node, lowering, args, kwargs)

    def _uses_unbound_symbol(self, test: Any) -> bool:
        """Does it use an unbound symbol?  torch 2.11 makes one for the storage offset of a view and
        asserts that it is not negative, but does not use it."""
        return isinstance(test, sympy.Basic) and not symbols_in((test,)) <= self.build.symbols

    def _lowered(self, node: torch.fx.Node, lowering: Lowering, args: Any, kwargs: Any) -> Any:
        try:
            fits.numbers_must_fit(self.build, args, kwargs)
            if isinstance(result := node.meta.get("val"), torch.Tensor):
                if is_only_empty(node) and node not in self.to_storage:
                    return self.build.pointwise(self.build.const(0, result.dtype))
                args, kwargs = to_device(self.build, node.target, (args, kwargs))
            return lowering(self.build, *args, **kwargs)
        except LeftToATen as left:
            return fallback(self.build, node.target, args, kwargs, left.reason)

    def _with_effects(self, node: torch.fx.Node) -> Any:
        """A call with effects besides its results: `(token, *results)`.  The token, which orders
        such calls, is None, because steps stay in order."""
        token, op, *args = map_arg(node.args, self._as_in_eager)
        if not isinstance(op, torch_api.OpOverload) or op._schema.is_mutable:
            raise self._refused(node, f"the operator {op}, which has effects,")
        kwargs = map_arg(node.kwargs, self._as_in_eager)
        results = call(self.build, op, args, kwargs, EFFECT, self.build.results[1:])
        return (token, *results)

    def _higher_order(self, node: torch.fx.Node) -> Any:
        """A call with sub-graphs or operators among its arguments (`torch.cond`), or a call by
        name."""
        if writes_to_arguments(node):
            if (made := call_mutating(self.build, node, self._as_in_eager)) is not None:
                return made
        if isinstance(node.meta.get("val"), dict):
            return call_by_name(self.build, node, self._callee, self._as_in_eager)

        def value(item: Any) -> Any:
            if isinstance(item, torch_api.OpOverload):
                return self._callee(str(item).replace(".", "_"), item)
            return self._as_in_eager(item) if isinstance(item, torch.fx.Node) else item

        args, kwargs = map_aggregate((node.args, node.kwargs), value)
        return call(self.build, f"{PREFIX}{node.target}", args, kwargs, reason="control flow")

    def _opaque(self, node: torch.fx.Node) -> Any:
        """A call of generated kernels or of a Python function: a hook in compiled autograd."""
        hook, given = (node.target, None, f"{PREFIX}wrap", "hook"), (node.args, node.kwargs)
        function, places, op, reason = node.meta.get("lab_kernels", hook)
        if places is not None:
            given = tuple(map(torch_api.pytree.tree_leaves(given).__getitem__, places)), {}
        args, kwargs = map_arg(given, self._as_in_eager)
        return call(self.build, op, (self._callee(node.name, function), *args), kwargs, reason)

    def _as_in_eager(self, node: torch.fx.Node) -> Any:
        """A value with its strides in eager mode, for operators whose result may depend on them."""
        value, layout = self.values[node], getattr(node.meta.get("val"), "layout", None)
        if not isinstance(value, TensorValue) or layout is not torch.strided:
            return value
        return self._strided_output(value, TensorMeta.of(node.meta["val"]))

    def _callee(self, name: str, function: Any) -> Callee:
        """A function that is an argument of an extern call."""
        self.callees[name] = function
        return Callee(name)

    def call_method(self, node: torch.fx.Node) -> Any:
        raise self._refused(node, f"a call of the method {node.target}")

    def call_module(self, node: torch.fx.Node) -> Any:
        raise self._refused(node, f"a call of the module {node.target}")

    def output(self, node: torch.fx.Node) -> None:
        results = node.args[0]
        results = results if isinstance(results, tuple | list) else (results,)
        first = len(results) - len(self.writes)
        own = min(first, len(torch_api.forward_results(node)))
        returned: dict[Output, Any] = {}
        self.outputs = (
            *(self._result(result, returned) for result in results[:own]),
            *(self._output(result) for result in results[own:first]),
            *map(self._new_value, results[first:], self.writes),
        )

    # ---- results ----

    def _output(self, result: Any) -> Output:
        if not isinstance(result, torch.fx.Node):
            return result
        value = self.values[result]
        if not isinstance(value, TensorValue):
            return value
        self.build.begin(result)
        fake = result.meta["val"]
        output = self._strided_output(value, TensorMeta.of(fake))
        base = storage_of(result)
        apart = base is not result and self.values[base].buffer != output.buffer
        viewed = self._within(base, fake) if apart else None
        if viewed is None and output.buffer != value.buffer:
            viewed = self._part_of(value, fake)
        if viewed and has_absolute_offset(result) and base in self._updates():
            return self._placed(output, viewed.layout, None, size_of(fake.storage_offset()))
        if viewed and symbols_in((viewed.layout.offset,)) <= self.build.symbols:
            return viewed
        return self._of_written(output, value, fake)

    def _part_of(self, value: TensorValue, fake: torch.Tensor) -> BufferView | None:
        """A view of a complete tensor with the same buffer; that tensor is copied once if it needs
        gaps."""
        whole = identity(self.build.buffers[value.buffer].layout.size)
        for node, known in list(self.values.items()):
            given = node.meta.get("val")
            if not isinstance(known, TensorValue) or not isinstance(given, torch.Tensor):
                continue
            if known.buffer == value.buffer and known.index == whole:
                return self._within(node, fake)
        return None

    def _within(self, node: Any, fake: torch.Tensor) -> BufferView | None:
        """A view of the result of a node; its offset may be unknown before the call."""
        known, given = self.values[node], node.meta["val"]
        if known.index != identity(self.build.buffers[known.buffer].layout.size):
            return None
        if node not in self.spread:
            self.spread[node] = self._strided_output(known, TensorMeta.of(given))
        layout = fits.layout_within(given, self.spread[node].layout, fake)
        return None if layout is None else BufferView(self.spread[node].buffer, layout)

    def _result(self, result: Any, returned: dict[Output, Any]) -> Output:
        """An output that is a separate tensor, even if it shares the memory of another output: of
        `x, x.detach()`, one result is marked as not requiring a gradient."""
        output = self._output(result)
        if not isinstance(output, BufferView) or returned.setdefault(output, result) is result:
            return output
        if self._relates_results():
            return output
        return self._made(OPERATORS.again.default, output, output.layout, reason="alias")

    def _relates_results(self) -> bool:
        """Should results that share memory be views of one tensor?  Not inside an autograd
        function, which relates its results itself, nor with symbolic sizes, which TorchDynamo could
        not name in a view."""
        return not (self.trained or self._has_symbols())

    def _has_symbols(self) -> bool:
        return any(isinstance(given, sympy.Symbol) for given in self.inputs)

    def _of_written(self, output: BufferView, value: TensorValue, fake: torch.Tensor) -> BufferView:
        """A view of the new value of an input, with the storage offset that it has in the input's
        storage.

        With symbolic sizes, AOTAutograd recreates the result from the input and that offset.
        """
        for new, write in self._updates().items():
            if self.values[new].buffer == value.buffer != write.input:
                layout = self.build.buffers[write.input].layout
                buffer = self.build.buffers[value.buffer]
                if self.values[new].index == identity(layout.size):
                    buffer = replace(buffer, layout=layout)  # the input's layout
                own = layout_of(value, buffer) or fits.layout_within(new.meta["val"], layout, fake)
                whole = own or output.layout
                return self._placed(output, whole, BufferView(write.input, layout), whole.offset)
        return output

    def _updates(self) -> dict[Any, Write]:
        """The new values of inputs → their writes, if AOTAutograd recreates views of them.  It does
        so with symbolic sizes."""
        if not (self.writes and self._has_symbols()):
            return {}
        return dict(zip(results_of(self.module)[-len(self.writes) :], self.writes, strict=True))

    def _placed(self, view: BufferView, layout: Layout, *where: Any) -> BufferView:
        return self._made(OPERATORS.placed.default, view, layout, *where, reason="place in storage")

    def _made(
        self, op: Operator, view: BufferView, layout: Layout, *more: Any, reason: str
    ) -> BufferView:
        """The result of one of our operators on a view, with the strides of `layout`.  The operator
        gets each expanded dimension with size 1 (0 if it is empty)."""
        pairs = zip(layout.size, layout.stride, strict=True)
        once = tuple(at_most_one(size) if is_int(stride, 0) else size for size, stride in pairs)
        buffer = self.build.buffers[view.buffer]
        meta = TensorMeta(once, layout.stride, buffer.dtype, buffer.device)
        given = replace(view, layout=replace(view.layout, size=once))
        (made,) = self.build.extern(str(op), (given, *more), None, [meta], reason)
        return BufferView(made.buffer, replace(layout, offset=0))

    def _new_value(self, result: torch.fx.Node, write: Write) -> BufferView:
        """The new value of an input: not an input itself, because that one may be written first
        (`set_` shares memory on purpose)."""
        value = self.values[result]
        self.build.begin(result)
        meta = TensorMeta.of(result.meta["val"])
        given = self.build.buffers[value.buffer].kind in (BufferKind.INPUT, BufferKind.CONSTANT)
        if given and write.method != "set_":
            value = self.build.copy(value, meta)
        layout = self.build.buffers[write.input].layout
        if write.method == "copy_" and layout_of(value, self.build.buffers[value.buffer]) == layout:
            return BufferView(value.buffer, layout)  # the fake tensor may have other strides
        return self._strided_output(value, meta)

    def _strided_output(self, value: TensorValue, meta: TensorMeta) -> BufferView:
        """The result with the strides of eager mode, because users can see them."""
        wanted = Layout(meta.shape, meta.stride)
        layout = layout_of(value, self.build.buffers[value.buffer])
        fine = (wanted, meta.exact_layout)
        if layout is None or not any(same_strides(layout, one) for one in fine):
            value = self.build.copy(value, meta, exact=True)
            layout = self.build.buffers[value.buffer].layout
        if same_strides(layout, wanted):
            layout = replace(wanted, offset=layout.offset)
        return BufferView(value.buffer, layout)

    def _number(self, node: torch.fx.Node, value: Any) -> Any:
        """A symbolic number of the graph as a sympy expression; a Python number is unchanged."""
        if node.target is aten._local_scalar_dense.default:
            return self._read_number(node, value)
        if any(isinstance(n.meta.get("val"), torch.Tensor) for n in node.all_input_nodes):
            if node.target not in SIZES:
                raise self._refused(node, "a number that is read from a tensor")
        return torch_api.expression_of(value)

    def _read_number(self, node: torch.fx.Node, value: Any) -> Any:
        """A number that is stored in a tensor: the host program waits for it and reads it.

        If a check in the program made torch replace the number by an expression, the two are
        compared, or the expression is solved for its unbound symbol.
        """
        expression = sympy.sympify(torch_api.expression_of(value))
        (tensor,) = (self.values[n] for n in node.all_input_nodes)
        own = expression.free_symbols - self.build.symbols
        read = (argument(self.build, tensor),)
        if own:
            (symbol,) = own
            if fits.only_expands(node):
                given = self.build.number(str(node.target), read)
                self.build.number(str(OPERATORS.expanded_from_one.default), (given,), symbol)
                return expression
            if expression != symbol and isinstance(expression, sympy.Expr):  # not a test
                return fits.solve_for(self.build, symbol, expression, read)
            self.build.number(str(node.target), read, symbol)
            self.build.numbers[symbol] = tensor
        else:
            is_float = tensor.dtype.is_floating_point  # an integer symbol is never 0.5
            symbol = sympy.Symbol(f"{node.name}_at", real=True) if is_float else None
            symbol = self.build.number(str(node.target), read, symbol)
            said = f"{symbol} is not {expression}, but a check in the program requires it"
            self.build.check(sympy.Eq(symbol, expression), said)
        return expression if hasattr(value, "node") else value

    def _refused(self, node: torch.fx.Node, what: str) -> LabError:
        return LabError(
            f"cannot compile {what}",
            source_line(node),
            "keep it out of the compiled function, for instance with torch.compiler.disable",
        )
