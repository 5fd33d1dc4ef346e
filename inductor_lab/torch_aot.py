"""The way through AOTAutograd, or past it where its cache on disk knows the graph.

A part of the door to torch's private modules (`torch_names`).

AOTAutograd keeps what it has learned of a graph on disk, and with it what a backend made of the
graph, if that is an `OutputCode`.  The key is torch's own: the graph, what is known of its inputs,
torch's version and settings, the machine.  What our compiler looks at besides is added to it.

Inductor: `compile_fx.py`, and CompiledFxGraph in `output_code.py`.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import os
import pickle
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import torch
from torch.fx import GraphModule

from inductor_lab.torch_api import (
    FakeTensor,
    OperatorBase,
    OpOverloadPacket,
    aot_module_simplified,
    functorch_config,
)
from inductor_lab.torch_bare import (
    Compiled,
    Gradient,
    Trained,
    direct_call,
    facts_if_bare,
    function_behind,
    is_plain_call,
)
from inductor_lab.torch_logs import Shared
from inductor_lab.torch_names import missing, optional

_SCHEMAS = "torch._functorch._aot_autograd.schemas."
_CACHE = "torch._functorch._aot_autograd.autograd_cache."
_torchs_own_key = optional(_CACHE + "autograd_cache_key")
_Pickler = optional(_CACHE + "AOTAutogradCachePickler")
_detect_fake_mode = optional("torch._guards.detect_fake_mode")
_TracingContext = optional("torch._guards.TracingContext")
_COUNTERS: Any = optional("torch._dynamo.utils.counters", {"aot_autograd": {"total": 0}})
Bypass: Any = optional(_CACHE + "BypassAOTAutogradCache")
OutputCode: Any = optional("torch._functorch._aot_autograd.aot_autograd_result.OutputCode", object)
IS_WARM = not missing("warm graphs")
"""Can AOTAutograd keep what we compile on disk?"""

Compiler = Callable[[GraphModule, Sequence[Any]], Callable[..., Any]]
PartitionFn = Callable[..., tuple[GraphModule, GraphModule]]

BARE: dict[str, Callable[[GraphModule, Any], Any]] = {
    "inference": lambda graph, facts: True,
    "forward": Trained.of,
    "backward": Gradient.of,
}
"""Kind of graph → what a call that does no more than that needs to know, if that is all."""

KEY = "inductor_lab_key"
"""The attribute of a captured graph that has our part of its key."""

SETTINGS = {"bundled_autograd_cache": True, "force_non_lazy_backward_lowering": True}
"""AOTAutograd's entries hold what the backend made, instead of where Inductor has it; and backwards
are compiled while the C++ compiler is busy with their forwards."""


def cache_folder() -> str:
    """Where AOTAutograd keeps compiled graphs, a folder for each key; "" if there can be none."""
    if not IS_WARM:
        return ""
    try:
        return os.path.join(optional(_CACHE + "cache_dir")(), "aotautograd")
    except OSError:
        return ""


class Part(OutputCode):
    """A compiled graph, forward or backward, that AOTAutograd can keep on disk.

    call    takes a list of inputs, which it empties
    again   makes `call` once more, given stack traces of the user's code by FX node; None if only
            this process can
    traces  those stack traces
    """

    def __init__(
        self,
        call: Compiled,
        again: Callable[[Mapping[str, str]], Compiled] | None,
        traces: Mapping[str, str],
    ) -> None:
        self.call: Any = call
        self.again, self.traces = again, traces
        self.kept = b""
        self._boxed_call = True

    def __call__(self, args: Any) -> Any:
        return self.call(args)

    def told(self, kind: str, bare: Any, captured: Sequence[str]) -> Part:
        """With what is kept beside it: the method of `_Around` that takes it, and what that is to
        know.

        The user's file may have changed otherwise when the graph is found again, so a node has
        the place of a stack trace among those of the captured graph.
        """
        places = {trace: place for place, trace in enumerate(captured)}
        found = {node: places[trace] for node, trace in self.traces.items() if trace in places}
        self.beside = kind, bare, found
        return self

    def prepare_for_serialization(self) -> None:
        """This copy is about to be written to disk."""
        if self.again is None:
            raise Bypass("only this process can make it")
        context = _TracingContext.get()
        if context.guards_context.aotautograd_guards or _floats_are_fixed(context.fake_mode):
            raise Bypass("the guards that AOTAutograd has added are not found again")
        try:
            self.kept = pickle.dumps((self.again, *self.beside))
        except (pickle.PicklingError, TypeError, AttributeError, RecursionError) as problem:
            raise Bypass("it consists of what only this process has") from problem
        self.call, self.again, self.traces = None, None, {}
        del self.beside

    def post_compile(self, inputs: Any, constants: Any, settings: Any) -> None:
        """This copy was found on disk, by the right key."""
        around = _AROUND.get()
        again, kind, bare, places = pickle.loads(self.kept)
        self.call = again({node: around.traces[place] for node, place in places.items()})
        self.kept = b""
        around.found(again)
        getattr(around, kind)(self.call, bare)


def aot_autograd(
    module: GraphModule,
    inputs: Sequence[Any],
    *,
    fw_compiler: Compiler,
    bw_compiler: Compiler,
    partition_fn: PartitionFn,
    decompositions: Mapping[Any, Callable[..., Any]] | None = None,
    inference_compiler: Compiler | None = None,
    keep_input_writes: bool = False,
    key: str = "",
    found: Callable[[Any], None] = lambda again: None,
) -> Callable[..., Any]:
    """Functionalize and differentiate a captured graph, partition it, and call the compilers.

    Each compiler takes a GraphModule of ATen ops and fake example inputs, and returns a *boxed*
    function (see `torch_api.boxed`).  Without gradients only the inference compiler runs (default:
    the forward's); with gradients the backward compiler is called right after the forward's, not at
    the first `.backward()`.  With `keep_input_writes`, writes to inputs are the last calls of the
    graph; without, AOTAutograd makes them after the call.

    With a `key` the compilers return a `Part`, which is kept on disk, and are not called for a
    graph that was compiled before under this key (and under torch's own, see above): `found` is
    told the part's `again`.
    """
    flatten = optional("torch._dynamo.utils.flatten_graph_inputs")
    if flatten is not None and any(isinstance(given, list | tuple | dict) for given in inputs):
        # compiled autograd gives lists: they are laid flat, and we are called again
        again = functools.partial(
            aot_autograd,
            fw_compiler=fw_compiler,
            bw_compiler=bw_compiler,
            partition_fn=partition_fn,
            decompositions=decompositions,
            inference_compiler=inference_compiler,
            keep_input_writes=keep_input_writes,
        )
        return flatten(module, inputs, again)
    key = key if IS_WARM and isinstance(module, GraphModule) else ""
    _COUNTERS["aot_autograd"]["total"] += 1  # DistributedDataParallel's splitter looks at it
    around = _Around(module, inputs, bool(key), found)
    first: Any = around.watching("forward", fw_compiler)
    with ExitStack() as stack:
        stack.enter_context(functorch_config.patch(_known_settings()))
        if key:
            setattr(module, KEY, key)
            stack.enter_context(_OUR_KEYS.set())
            first = optional(_SCHEMAS + "SerializableAOTDispatchCompiler")(Part, first)
            stack.callback(_AROUND.reset, _AROUND.set(around))
        wrapped = aot_module_simplified(
            module,
            list(inputs),
            fw_compiler=first,
            bw_compiler=around.watching("backward", bw_compiler),
            inference_compiler=around.watching("inference", inference_compiler or fw_compiler),
            partition_fn=partition_fn,
            decompositions=dict(decompositions or {}),
            keep_inference_input_mutations=keep_input_writes,
        )
    return around.call(wrapped)


def _known_settings() -> dict[str, bool]:
    return {name: value for name, value in SETTINGS.items() if hasattr(functorch_config, name)}


def _key_of_graph(module: Any, inputs: Sequence[Any], config: Any, *more: Any) -> Any:
    """In place of torch's function, for graphs on the way to us: the key of a captured graph.

    torch's own takes two seconds in a new process, in which it reads all of Inductor and Triton.
    Its pickler says what matters of a graph, of tensors and of AOTAutograd's settings.  A graph
    with state of its own (constants, modules, sub-graphs) and with operators whose tracing is
    somebody else's Python gets no key.
    """
    if not hasattr(module, KEY):
        return _torchs_own_key(module, inputs, config, *more)
    with optional(_CACHE + "sanitize_gm_for_cache")(module):
        optional(_CACHE + "check_cacheable")(module)
        if optional("torch._C._functorch.peek_interpreter_stack")() is not None:
            raise Bypass("a transformation of torch.func is at work")
        if any(True for _ in module.children()):
            raise Bypass("it has sub-graphs or modules")
        arguments = {name for name, _ in (*module.named_parameters(), *module.named_buffers())}
        for node in module.graph.nodes:
            if not (_is_known(node) or (node.op == "get_attr" and node.target in arguments)):
                raise Bypass(f"{node.op} {node.target}")
        facts = (module, list(inputs), _places(inputs), _ranges(inputs), config, _settings())
        key = KEY + _Pickler(module).get_hash(facts)
        with suppress(OSError):  # what is used now goes last, when room is made
            os.utime(os.path.join(cache_folder(), key))
            discard_damaged(Path(cache_folder(), key))
        return key, []


def _give_our_keys() -> Callable[[], None]:
    autograd_cache = sys.modules[_torchs_own_key.__module__]
    autograd_cache.autograd_cache_key = _key_of_graph

    def end() -> None:
        autograd_cache.autograd_cache_key = _torchs_own_key

    return end


_OUR_KEYS = Shared(_give_our_keys)
"""While a graph of ours is in AOTAutograd's hands; it asks torch itself for graphs of others."""


def discard_damaged(folder: Path) -> None:
    """Delete entries that have changed since torch wrote them: it names each by its checksum, but
    does not look at that when it loads one."""
    for path in folder.iterdir():
        digest = base64.b32encode(hashlib.sha256(path.read_bytes()).digest()).decode().lower()
        if len(path.name) == NAME_LENGTH and path.name != digest[:NAME_LENGTH]:
            path.unlink()


NAME_LENGTH = 51
"""Of the name of an entry; a file of another name was not written so, and is torch's affair."""


def _is_known(node: torch.fx.Node) -> bool:
    target = node.target
    if isinstance(target, OpOverloadPacket):
        return target._qualified_op_name.startswith(("aten::", "prims::"))
    if isinstance(target, OperatorBase):
        return getattr(target, "namespace", "") in ("aten", "prims")
    return node.op in ("placeholder", "call_function", "call_method", "output")


def _places(inputs: Sequence[Any]) -> list[tuple[str, ...]]:
    """Which tensors share a storage, its size, and where they lie in it: torch leaves that out."""
    storages: dict[int, int] = {}
    places = []
    for given in inputs:
        if isinstance(given, torch.Tensor):
            if type(given) is not FakeTensor:
                raise Bypass(f"a tensor of class {type(given).__name__}")
            storage = given.untyped_storage()
            number = storages.setdefault(storage._cdata, len(storages))
            places.append((str(number), str(storage.nbytes()), str(given.storage_offset())))
    return places


def _ranges(inputs: Sequence[Any]) -> list[tuple[str, str]]:
    """What is known of each symbolic size before AOTAutograd; torch compares guards alone."""
    shapes = getattr(_detect_fake_mode(inputs), "shape_env", None)
    known = {} if shapes is None else shapes.var_to_range
    return sorted((str(symbol), str(reach)) for symbol, reach in known.items())


def _floats_are_fixed(mode: Any) -> bool:
    """Has AOTAutograd taken a symbolic float for its value?  torch keeps guards of ints alone."""
    shapes = getattr(mode, "shape_env", None)
    used = [guard.expr.free_symbols for guard in shapes.guards] if shapes is not None else []
    return any(symbol.is_integer is not True for symbols in used for symbol in symbols)


def _settings() -> tuple[Any, ...]:
    """All that AOTAutograd, decompositions and we look at besides the graph."""
    devices = optional("torch._C._autocast_supported_devices")()
    gpus = range(torch.cuda.device_count() if torch.cuda.is_initialized() else 0)
    return (
        [(g.name, g.multi_processor_count) for g in map(torch.cuda.get_device_properties, gpus)],
        torch.__version__,
        torch.version.git_version,
        functorch_config.save_config(),
        torch.is_grad_enabled(),
        torch.is_inference_mode_enabled(),
        [(d, str(torch.get_autocast_dtype(d))) for d in devices if torch.is_autocast_enabled(d)],
        torch.are_deterministic_algorithms_enabled(),
        str(torch.get_default_dtype()),
        str(torch.get_default_device()),
        *(optional(f"torch._C._get_{library}_enabled")() for library in LIBRARIES),
    )


LIBRARIES = ("flash_sdp", "mem_efficient_sdp", "math_sdp", "mkldnn")
"""Which of torch's libraries may be switched off."""


class _Around:
    """What is left to do around one graph in a call, learned while AOTAutograd has it compiled or
    finds it on disk.

    traces    the stack traces of the captured graph's nodes, by which a graph on disk finds its own
    facts     AOTAutograd's, if a call does no more than the compiled graph
    direct    the whole call without AOTAutograd's wrapper, once it is known to do the same
    pretends  whether AOTAutograd answers the first call with fake tensors: where the buckets of
              DistributedDataParallel cut a graph in pieces, each is to see the strides of the last
    """

    def __init__(
        self,
        module: GraphModule,
        inputs: Sequence[Any],
        keeps: bool,
        found: Callable[[Any], None],
    ) -> None:
        self.found = found
        self.gradients = torch.is_grad_enabled() and any(map(_requires_grad, inputs))
        self.plain = isinstance(module, GraphModule) and is_plain_call(inputs)
        context = _TracingContext and _TracingContext.try_get()
        self.pretends = bool(context) and context.fakify_first_call
        self.keeps, self.arguments = keeps, len(inputs)
        self.traces = [node.stack_trace or "" for node in module.graph.nodes] if keeps else []
        self.facts: Any = None
        self.forwards: tuple[Compiled, Trained] | None = None
        self.backwards: tuple[Compiled, Gradient] | None = None
        self.direct: Callable[..., Any] | None = None

    def watching(self, kind: str, compiler: Compiler) -> Compiler:
        """The compiler of one kind of graph, from which we learn of what it has compiled."""

        def compile_and_tell(graph: GraphModule, examples: Sequence[Any]) -> Callable[..., Any]:
            compiled = compiler(graph, examples)
            if kind != "backward":
                self.facts = facts_if_bare(graph, self.arguments)
            bare = None if self.facts is None else BARE[kind](graph, self.facts)
            call = compiled.call if isinstance(compiled, Part) else compiled
            getattr(self, kind)(call, bare)
            if self.keeps and isinstance(compiled, Part):
                return compiled.told(kind, bare, self.traces)
            return call

        if kind == "backward":
            # it may be compiled, and called, in the middle of a frame that Dynamo looks at
            compiler, disable = torch.compiler.disable(compiler), torch.compiler.disable
            return lambda graph, examples: disable(compile_and_tell(graph, examples))
        return compile_and_tell

    def inference(self, compiled: Compiled, bare: bool | None) -> None:
        """A graph without gradients is compiled, or was found."""
        if self.plain and not self.gradients and bare:
            self.direct = lambda *args: compiled(list(args))

    def forward(self, compiled: Compiled, bare: Trained | None) -> None:
        """So is the forward of a graph with gradients."""
        if self.plain and self.gradients and bare is not None:
            self.forwards = compiled, bare

    def backward(self, compiled: Compiled, bare: Gradient | None) -> None:
        """So is its backward."""
        if bare is not None:
            self.backwards = compiled, bare

    def call(self, wrapped: Callable[..., Any]) -> Callable[..., Any]:
        """What Dynamo's code calls."""
        if not self.pretends:
            return self._shortest(wrapped)
        first, then = iter([wrapped]), self._shortest(wrapped)
        return lambda *args: next(first, then)(*args)

    def _shortest(self, wrapped: Callable[..., Any]) -> Callable[..., Any]:
        forwards, backwards = self.forwards, self.backwards
        if forwards is None or backwards is None:
            return self.direct or wrapped

        def call(*args: Any) -> Any:
            if self.direct is not None:
                return self.direct(*args)
            results = wrapped(*args)
            function = function_behind(results)
            if function is not None:  # several threads may come here; each finds the same
                self.direct = direct_call(*forwards, *backwards, function)
            return results

        return call


_AROUND: ContextVar[_Around] = ContextVar("graph in AOTAutograd's hands")


def _requires_grad(given: Any) -> bool:
    return isinstance(given, torch.Tensor) and given.requires_grad
