"""The interface to torch's private modules, together with `torch_logs`, `torch_aot` and the names
that `optional` looks up: only these files change if a torch release moves something.

`torch_names` has the tables of required and optional names and is imported first: if required names
are missing, it lists all of them.  Written for torch 2.11 to 2.15.
"""

from __future__ import annotations

from inductor_lab.compiler.torch_door.sympy_classes import SYMPY_CLASSES
from inductor_lab.compiler.torch_door.torch_logs import Shared
from inductor_lab.compiler.torch_door.torch_names import missing, optional

# isort: split
import contextlib
import copy
import inspect
import math
from collections.abc import Callable, Iterator, Mapping
from types import CodeType
from typing import Any

import sympy
import torch
import torch._dynamo.config as dynamo_config
import torch._functorch.config as _functorch_config
from torch._decomp import _core_aten_decompositions_post_autograd as _core_decompositions
from torch._decomp import decomposition_table as _decomposition_table
from torch._dynamo.exc import BackendCompilerFailed as BackendCompilerFailed
from torch._functorch.aot_autograd import aot_module_simplified as aot_module_simplified
from torch._functorch.partitioners import _extract_fwd_bwd_modules
from torch._ops import HigherOrderOperator as HigherOrderOperator
from torch._ops import OperatorBase as OperatorBase
from torch._ops import OpOverload as OpOverload
from torch._ops import OpOverloadPacket as OpOverloadPacket
from torch._prims_common import ELEMENTWISE_TYPE_PROMOTION_KIND as _PROMOTION
from torch._prims_common import elementwise_dtypes as elementwise_dtypes
from torch._prims_common import suggest_memory_format as suggest_memory_format
from torch._subclasses.fake_tensor import FakeTensor as FakeTensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx as make_fx
from torch.fx.experimental.symbolic_shapes import ShapeEnv as ShapeEnv
from torch.fx.experimental.symbolic_shapes import (
    statically_known_true as statically_known_true,
)
from torch.fx.graph import magic_methods as _infix
from torch.utils import _pytree
from torch.utils._python_dispatch import TorchDispatchMode as TorchDispatchMode
from torch.utils._python_dispatch import _disable_current_modes
from torch.utils._sympy import functions as _sympy_functions
from torch.utils._sympy import numbers as _sympy_numbers
from torch.utils._sympy.printers import PythonPrinter as PythonPrinter
from torch.utils.checkpoint import CheckpointPolicy as CheckpointPolicy

pytree = _pytree
functorch_config = _functorch_config
GraphModule = torch.fx.GraphModule
PROMOTION = _PROMOTION
core_decompositions = _core_decompositions

INFIX_TEXT: dict[str, str] = dict(_infix)
"""Function name in `operator` → Python, such as `"add": "{} + {}"`."""
DTYPE_NAMES: dict[torch.dtype, str] = dict(
    optional("torch.utils._dtype_abbrs.dtype_abbrs")
    or {d: str(d)[len("torch.") :] for d in vars(torch).values() if isinstance(d, torch.dtype)}
)
"""Short names, such as `f32`."""


def _reinterpreted(
    tensor: torch.Tensor, size: Any, stride: Any, offset: int | torch.SymInt = 0
) -> torch.Tensor:
    same = torch.empty(0, dtype=tensor.dtype, device=tensor.device)
    return same.set_(tensor.untyped_storage(), tensor.storage_offset() + offset, size, stride)


reinterpret: Callable[..., torch.Tensor] = optional(
    "torch._C._dynamo.guards._reinterpret_tensor", _reinterpreted
)
"""`reinterpret(tensor, size, stride, offset=0)`: a view of the same storage with another layout.

`offset` counts from the tensor's first element; autograd does not record it.  (`torch.as_strided`
takes twice as long and counts from the start of the storage.)
"""

empty_strided_cpu: Callable[..., torch.Tensor] = optional(
    "torch._C._dynamo.guards._empty_strided_cpu",
    lambda size, stride, dtype: torch.empty_strided(size, stride, dtype=dtype, device="cpu"),
)
"""`empty_strided_cpu(size, stride, dtype)`: `torch.empty_strided` in half the time."""

empty_strided_cuda: Callable[..., torch.Tensor] = optional(
    "torch._C._dynamo.guards._empty_strided_cuda",
    lambda size, stride, dtype: torch.empty_strided(size, stride, dtype=dtype, device="cuda"),
)
"""The same on the current CUDA or ROCm device."""

current_device: Callable[[], int] = optional("torch._C._cuda_getDevice", torch.cuda.current_device)
"""`torch.cuda.current_device()` of a process that has used CUDA."""

current_stream: Callable[[int], int] = optional(
    "torch._C._cuda_getCurrentRawStream",
    lambda device: torch.cuda.current_stream(device).cuda_stream,
)
"""The address of a device's current stream."""

load_cubin: Any = optional("torch._C._StaticCudaLauncher._load_kernel")
"""`load_cubin(file, name, shared, device)`: ..., the function's address, registers, spills."""

run_cubin: Any = optional("torch._C._StaticCudaLauncher._launch_kernel")
"""`run_cubin(function, x, y, z, warps, shared, kinds, arguments, stream)` launches a grid."""

storage_references: Callable[[int], int] = optional("torch._C._storage_Use_Count")
"""The number of tensors, views, arrays etc. that hold the storage with this
`untyped_storage()._cdata`."""

data_address: Callable[[torch.Tensor], int] = optional("torch._C._data_address")
"""The address of a tensor's memory, for reading only: a copy-on-write tensor stays one."""

lazy_clone: Callable[[torch.Tensor], torch.Tensor] = optional("torch._lazy_clone")
"""A copy that shares its original's memory until one of them is written.

RuntimeError if torch did not allocate that memory.
"""

profiler = torch.autograd.profiler
"""Has `_is_profiler_enabled`, unless that is missing (see `profiles`)."""

record_event: Callable[..., Any] = optional("torch._C._profiler._RecordFunctionFast")
"""`with record_event(name, keyword_values={})`: an event of torch's profiler."""

profiles = not missing("kernels under torch's profiler")
"""Can a host program check whether a profiler runs, and report its kernels to it?"""

BackwardState: type[Any] = optional(
    "torch.fx.experimental._backward_state.BackwardState", type("NoBackwardState", (), {})
)
"""The placeholder of compiled autograd for an input that hooks fill later."""

FakeScriptObject: type[Any] = optional(
    "torch._library.fake_class_registry.FakeScriptObject", type("NoScriptObject", (), {})
)
"""The placeholder for a process group or a device mesh that is an input of a graph."""


def boxed(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap `f(*args)` as `g(list_of_args)`, which clears the list so that inputs can be freed
    early."""

    def call(args: list[Any]) -> Any:
        given = tuple(args)
        args.clear()
        return function(*given)

    return mark_boxed(call)


def mark_boxed(function: Callable[[list[Any]], Any]) -> Callable[[list[Any]], Any]:
    """Declare that `function` already takes one list of arguments."""
    function._boxed_call = True  # type: ignore[attr-defined]
    return function


_compile_context = optional("torch._guards.CompileContext")
_compilations = optional("torch._dynamo.callback.callback_handler")


def compile_id() -> str:
    """Dynamo's id of the compilation in progress, such as `"0/1"` (frame / attempt); "" outside."""
    current = _compile_context.current_compile_id() if _compile_context is not None else None
    return "" if current is None else str(current)


def around_compilations(
    begin: Callable[[Any], None], end: Callable[[Any], None] = lambda _: None
) -> None:
    """Call these before and after each compilation of TorchDynamo, until the next `reset()`."""
    if _compilations is not None and begin not in _compilations.start_callbacks:
        _compilations.register_start_callback(begin)
        _compilations.register_end_callback(end)


def reset() -> None:
    """Forget every compiled function, so that the next call compiles again."""
    torch.compiler.reset()


def suppresses_errors() -> bool:
    """Does the user want functions that cannot be compiled to run uncompiled?"""
    return bool(dynamo_config.suppress_errors)


_asked = optional("torch._dynamo.convert_frame.input_codes")
_set_strategy = optional("torch._C._dynamo.eval_frame.set_code_exec_strategy")
_Strategy = optional("torch._dynamo.types.FrameExecStrategy")
_Action = optional("torch._dynamo.types.FrameAction")


def _retry_skipped_code() -> None:
    """Let TorchDynamo compile code again that it has skipped because a call raised or had no
    operator."""
    codes = [] if missing("functions that raised") else [seen() for seen in _asked.seen]
    for code in filter(None, codes):
        if not code.co_filename.startswith(torch.__path__[0]):
            _set_strategy(code, _Strategy(_Action.DEFAULT, _Action.DEFAULT))


compiled_versions: Callable[[CodeType], list[Any]] = optional(
    "torch._dynamo.eval_frame._debug_get_cache_entry_list", lambda code: []
)
"""TorchDynamo's compiled versions of a function's code, in the order in which it checks their
guards; each has `compile_id`, `guard_manager` and `backend`."""

_code_state: Callable[[], dict[Any, Any]] = optional("torch._dynamo.pgo.get_code_state", dict)


@contextlib.contextmanager
def fresh_compile(sizes: dict[Any, Any]) -> Iterator[None]:
    """Make the next call of a compiled function run the complete pipeline, immediately.

    torch's caches are not used in place of our backend, the backward graph is compiled together
    with the forward one, and the recompile limit does not apply.  Of the sizes of earlier calls
    (they make dimensions dynamic) only those in `sizes` are known; the sizes of this call are
    added.  TorchDynamo tries again to compile code that it skipped earlier.
    """
    _retry_skipped_code()
    settings: tuple[tuple[Any, str, Any], ...] = (
        (functorch_config, "enable_autograd_cache", False),
        (functorch_config, "enable_remote_autograd_cache", False),
        (functorch_config, "strict_autograd_cache", False),
        (functorch_config, "force_non_lazy_backward_lowering", True),
        (dynamo_config, "caching_precompile", False),
        (dynamo_config, "recompile_limit", 1_000),
        (dynamo_config, "accumulated_recompile_limit", 100_000),
    )
    with contextlib.ExitStack() as stack:
        for config, name, value in settings:
            if hasattr(config, name):
                stack.enter_context(config.patch({name: value}))
        stack.enter_context(_SIZES.set())
        remembered = _code_state()
        remembered.update(sizes)
        try:
            yield
        finally:
            sizes.update(remembered)


def remember_sizes(sizes: dict[Any, Any]) -> None:
    """Give TorchDynamo the sizes of an inspected call, as if the user's program had made the call.

    Then another size in a later call makes the dimension dynamic immediately.
    """
    _code_state().update(sizes)


def _remove_sizes() -> Callable[[], None]:
    """Remove the sizes that Dynamo remembers per function; returns a function that restores
    them."""
    remembered = _code_state()
    kept = dict(remembered)
    remembered.clear()

    def restore() -> None:
        remembered.clear()
        remembered.update(kept)

    return restore


_SIZES = Shared(_remove_sizes)


def size_hint(size: Any) -> int:
    """A concrete number for a size, without adding a guard; 4096 if there is no hint.  A jagged
    size (`torch.jagged`) is not a number and is returned unchanged."""
    if isinstance(size, int):
        return size
    node = size.node
    known = node.maybe_as_int()
    hint = known if known is not None else getattr(node, "_hint", None)
    if hint is None and node.has_hint():
        hint = node.hint
    return 4096 if hint is None else hint if node.is_nested_int() else int(hint)


def specialized(size: Any) -> int | None:
    """The value of a size, which guards keep equal in all calls; None if it is known only at run
    time."""
    return int(size) if isinstance(size, int) or size.node.has_hint() else None


def surely_positive(size: Any, fake: FakeTensor) -> bool:
    """Do the known ranges of its symbols prove that a size is positive?  `fake` is a tensor of the
    graph."""
    if isinstance(size, int):
        return size > 0
    shapes = fake.fake_mode.shape_env
    return shapes is not None and bool(shapes.bound_sympy(size).lower > 0)


def is_sure(test: sympy.Basic, fake: FakeTensor) -> bool:
    """Do the known ranges of its symbols prove a test?  `fake` is a tensor of the graph."""
    if not test.free_symbols:
        return bool(test)
    shapes = fake.fake_mode.shape_env
    if shapes is None or not test.free_symbols <= shapes.var_to_range.keys():
        return False
    return shapes._maybe_evaluate_static(test) is sympy.true


def rename_symbol(fake: FakeTensor, old: sympy.Symbol, new: sympy.Symbol) -> None:
    """Replace `old` by `new` in the sizes of all tensors of a graph; `fake` is one of them."""
    if (shapes := fake.fake_mode.shape_env) is not None:
        shapes._set_replacement(old, new, "the same number, traced twice")


def deferred_equalities(module: torch.fx.GraphModule) -> list[sympy.Basic]:
    """Equalities of unbacked sizes that torch assumed because an operator needs them.  torch keeps
    these assertions outside the graph."""
    fakes = (node.meta.get("val") for node in module.graph.nodes)
    modes = (fake.fake_mode for fake in fakes if isinstance(fake, FakeTensor))
    shapes = next((mode.shape_env for mode in modes if mode.shape_env is not None), None)
    found = shapes.deferred_runtime_asserts.values() if shapes is not None else ()
    return [one.expr for several in found for one in several if isinstance(one.expr, sympy.Eq)]


def expression_of(number: Any) -> Any:
    """The sympy expression of a symbolic number of torch; other values are unchanged."""
    return number.node.expr if hasattr(number, "node") else number


def surely_one(size: Any) -> bool:
    """Do guards specialize a computed size to 1?  (A symbol that is specialized to 1 is already a
    number.)"""
    plain = isinstance(size, int) or size.node.expr.is_Symbol
    return not plain and statically_known_true(size == 1)


def share_elements(first: torch.Tensor, second: torch.Tensor) -> bool:
    """Do two tensors, which may be fake, have the same storage and the same layout in it?"""
    if not first.layout == second.layout == torch.strided:
        return False
    read = {(x.dtype, x.is_conj(), x.is_neg(), x.untyped_storage()._cdata) for x in (first, second)}
    return len(read) == 1


def nbytes_hint(value: Any) -> int:
    """Bytes of a (fake) tensor, or of all tensors in a tuple, list or dict; 8 for a symbolic
    number."""
    if hasattr(value, "__tensor_flatten__"):
        return sum(nbytes_hint(getattr(value, name)) for name in value.__tensor_flatten__()[0])
    if isinstance(value, torch.Tensor):
        return math.prod(map(size_hint, value.shape)) * value.dtype.itemsize
    if isinstance(value, list | tuple):
        return sum(nbytes_hint(item) for item in value)
    if isinstance(value, dict):
        return nbytes_hint(list(value.values()))
    return 8 if isinstance(value, torch.SymInt | torch.SymFloat | torch.SymBool) else 0


_qualified_name: Callable[..., str] = optional(
    "torch.fx.node._get_qualified_name", lambda f: f"{f.__module__}.{f.__name__}"
)


def qualified_name(function: Callable[..., Any]) -> str:
    """The importable name of a function in an FX graph, such as `torch.ops.aten.sin.default`."""
    return _qualified_name(function)


_LazyModule = optional("torch.fx._lazy_graph_module._LazyGraphModule", GraphModule)
_use_lazy_modules = optional(
    "torch.fx._lazy_graph_module._use_lazy_graph_module", contextlib.nullcontext
)


def extract_modules(
    joint: GraphModule,
    saved_tensors: list[torch.fx.Node],
    saved_sizes: list[torch.fx.Node],
    *,
    num_fwd_outputs: int,
    static_lifetime_input_nodes: Any = None,
) -> tuple[GraphModule, GraphModule]:
    """Partition a joint graph at the saved values, in AOTAutograd's calling convention.

    Both graphs become Python text only when the text is read, as in `copy_of`.
    """
    extract = _extract_fwd_bwd_modules
    optional = {"static_lifetime_input_nodes": static_lifetime_input_nodes}
    accepted = inspect.signature(extract).parameters
    with _use_lazy_modules(True):
        return extract(
            joint,
            saved_tensors,
            saved_sym_nodes=saved_sizes,
            num_fwd_outputs=num_fwd_outputs,
            **{name: value for name, value in optional.items() if name in accepted},
        )


def copy_of(module: GraphModule) -> GraphModule:
    """The module with a copy of its graph, which becomes Python text only when the text is read."""
    return with_graph(module, copy.deepcopy(module.graph))


def with_graph(module: GraphModule, graph: torch.fx.Graph) -> GraphModule:
    """A module with this graph and the tensors of another module; the graph becomes Python text
    only when the text is read."""
    made: GraphModule = _LazyModule(module, graph)
    made.meta = dict(module.meta)
    return made


_DESCRIPTORS = "torch._functorch._aot_autograd.descriptors."
_InputMutation = optional(_DESCRIPTORS + "InputMutationAOTOutput")
_PlainInput = optional(_DESCRIPTORS + "PlainAOTInput", ())
_Saved = optional(_DESCRIPTORS + "SavedForBackwardsAOTOutput", ())


def written_inputs(graph: torch.fx.Graph) -> frozenset[str]:
    """The names of inputs to which AOTAutograd writes new values after the forward; all inputs if
    that is unknown."""
    (output,) = graph.find_nodes(op="output")
    inputs = graph.find_nodes(op="placeholder")
    if _InputMutation is None:
        return frozenset(node.name for node in inputs)
    results = output.meta.get("desc") or ()
    written = {r.mutated_input for r in results if isinstance(r, _InputMutation)}
    return frozenset(node.name for node in inputs if node.meta.get("desc") in written)


def inputs_among(graph: torch.fx.Graph, positions: frozenset[int]) -> frozenset[str]:
    """The names of the inputs that are the arguments at some positions of the captured graph, if
    known."""
    known = ((n.name, n.meta.get("desc")) for n in graph.find_nodes(op="placeholder"))
    plain = ((name, what) for name, what in known if isinstance(what, _PlainInput))
    return frozenset(name for name, what in plain if what.idx in positions)


def forward_results(output: torch.fx.Node) -> tuple[Any, ...]:
    """The results of a graph without the values saved for its backward, which come last."""
    results = output.args[0]
    results = results if isinstance(results, tuple | list) else (results,)
    known = output.meta.get("desc") or ()
    saved = sum(isinstance(result, _Saved) for result in known)
    return tuple(results[: len(results) - saved])


def is_own(operator: Any) -> bool:
    """Is it an operator of torch or of ours, which accepts any strides?  A user's operators and
    functions may depend on strides."""
    namespace = getattr(operator, "namespace", None)
    return isinstance(operator, OpOverload) and namespace in OWN_NAMESPACES


OWN_NAMESPACES = ("aten", "prims", "inductor_lab")


def is_random(operator: Any) -> bool:
    """Does an operator draw random numbers?"""
    return torch.Tag.nondeterministic_seeded in getattr(operator, "tags", ())


def known_decompositions() -> Mapping[Any, Callable[..., Any]]:
    """All of torch's decompositions of ATen operators, by overload."""
    return _decomposition_table


current_autograd_node: Callable[[], Any] = optional("torch._C._current_autograd_node", lambda: None)
"""The node of autograd that runs in this thread; None outside of a backward."""


def fake_mode() -> contextlib.AbstractContextManager[Any]:
    """Inside the block, tensors have sizes, strides and dtypes, but no data; real tensors raise."""
    return FakeTensorMode()


def without_modes() -> contextlib.AbstractContextManager[Any]:
    """Compute with real tensors, although a fake-tensor or tracing mode may be active."""
    return _disable_current_modes()


def _own_sympy_classes() -> dict[str, type[sympy.Basic]]:
    found: dict[str, type[sympy.Basic]] = {}
    for module in (_sympy_functions, _sympy_numbers):
        for name, item in vars(module).items():
            own = isinstance(item, type) and item.__module__ == module.__name__
            if own and issubclass(item, sympy.Basic):
                found[f"torch.{name}"] = item
    return found


SYMPY_FUNCTIONS: dict[str, type[sympy.Basic]] = {**SYMPY_CLASSES, **_own_sympy_classes()}
"""Every function that may occur in a size, by name: `"sympy.Add"`, `"torch.FloorDiv"`."""
