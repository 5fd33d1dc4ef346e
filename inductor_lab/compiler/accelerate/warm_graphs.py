"""Loads compiled graphs from disk in a new process, without running AOTAutograd or the compiler.

AOTAutograd stores its facts about a graph on disk, together with the compiled result if this is an
`OutputCode`.  Ours is a `Part`.  It contains schedule, kernels and host program, which are loaded
as in a compile.  The C++ libraries are in our own cache.  The key is torch's key (the graph, facts
about its inputs, torch's version and settings, the machine), plus everything else that our compiler
depends on.

Inductor: FxGraphCache in `codecache.py`, CompiledFxGraph in `output_code.py`.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import os
import pickle
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Protocol

import torch
import torch.distributed as dist

import inductor_lab
from inductor_lab.compiler.accelerate.bare_calls import Compiled
from inductor_lab.compiler.accelerate.pool import reserve_pool
from inductor_lab.compiler.base.errors import NoCompiler
from inductor_lab.compiler.base.options import Options
from inductor_lab.compiler.codegen.kernel import HostProgram, Kernel
from inductor_lab.compiler.lower.ops.create import fills_new_memory
from inductor_lab.compiler.runtime.cache.folder_permissions import trust_problem
from inductor_lab.compiler.runtime.cuda_graphs import with_cuda_graphs
from inductor_lab.compiler.runtime.executable import build_executable
from inductor_lab.compiler.runtime.toolchain.find_compiler import find_toolchain
from inductor_lab.compiler.schedule.schedule import Schedule
from inductor_lab.compiler.torch_door import torch_aot, torch_api
from inductor_lab.compiler.torch_door.torch_aot import KEY
from inductor_lab.compiler.torch_door.torch_api import (
    FakeTensor,
    OperatorBase,
    OpOverloadPacket,
    functorch_config,
)
from inductor_lab.compiler.torch_door.torch_logs import Shared
from inductor_lab.compiler.torch_door.torch_names import optional

_CACHE = "torch._functorch._aot_autograd.autograd_cache."
_torchs_own_key = optional(_CACHE + "autograd_cache_key")
_Pickler = optional(_CACHE + "AOTAutogradCachePickler")
_detect_fake_mode = optional("torch._guards.detect_fake_mode")
_groups = optional("torch.distributed.distributed_c10d._get_all_pg_configs")
_TracingContext = optional("torch._guards.TracingContext")
Bypass: Any = optional(_CACHE + "BypassAOTAutogradCache")
OutputCode: Any = optional("torch._functorch._aot_autograd.aot_autograd_result.OutputCode", object)


class Finder(Protocol):
    """The caller of AOTAutograd, which receives a graph that is found on disk (`first_call.py`)."""

    traces: Sequence[str]
    found: Callable[[Any], None]

    def learn(self, kind: str, compiled: Compiled, known: Any) -> None: ...


FINDER: ContextVar[Finder] = ContextVar("the caller of AOTAutograd")


def loaded_call(
    schedule: Schedule,
    kernels: Sequence[Kernel],
    host: HostProgram,
    options: Options,
    traces: Mapping[str, str],
    shorten: Callable[..., Any] | None = None,
) -> Callable[[list[Any]], tuple[Any, ...]]:
    """Load a graph that another process compiled; `traces` as for `build_executable`.

    `shorten` is a hook of an accelerator (`accelerator.py`).
    """
    reserve_pool(schedule, options)
    built = build_executable(schedule, kernels, host, options, traces, ahead=True)
    call = shorten(built, schedule, kernels, options, traces) if shorten else built.call
    return with_cuda_graphs(call, schedule.program, options)


def warm_key(options: Options, parameters: Iterable[int], changed: str = "") -> str:
    """Return a hash of everything that a compile depends on, but torch's key does not contain.

    This is our compiler, its changes at run time (`changed`, see `overrides.py`), its options, the
    parameters among the inputs, the number of threads, and the C++ compiler.  Returns "" if nothing
    is to be stored on disk, or if the folder cannot be trusted.
    """
    folder = options.cache and options.target is None and torch_aot.cache_folder()
    if not folder or trust_problem(Path(folder)):
        return ""
    with suppress(NoCompiler):
        own, compiler = compiler_itself(), find_toolchain().identity
        threads, precision = torch.get_num_threads(), torch.get_float32_matmul_precision()
        facts = (own, changed, options, sorted(parameters), threads, precision, compiler)
        return hashlib.sha256(repr(facts).encode()).hexdigest()
    return ""


@functools.cache
def compiler_itself() -> str:
    """Return a checksum of the source of inductor_lab."""
    digest = hashlib.sha256()
    folder = Path(inductor_lab.__file__).parent
    for path in sorted(folder.rglob("*")):
        if path.suffix in (".py", ".h", ".toml"):
            digest.update(f"{path.relative_to(folder)}\0".encode() + path.read_bytes())
    return digest.hexdigest()


class Part(OutputCode):  # type: ignore[misc]  # some versions of torch lack it
    """A compiled graph, forward or backward, that AOTAutograd can store on disk.

    call    takes a list of inputs, and empties it
    remake  creates `call` in another process, given the stack traces of the user's code by FX
            node; None if only this process can run it
    traces  these stack traces
    """

    def __init__(
        self,
        call: Compiled,
        remake: Callable[[Mapping[str, str]], Compiled] | None,
        traces: Mapping[str, str],
    ) -> None:
        self.call: Any = call
        self.remake, self.traces = remake, traces
        self.kept = b""
        self._boxed_call = True

    def __call__(self, args: Any) -> Any:
        return self.call(args)

    def with_context(self, kind: str, bare: Any, captured: Sequence[str]) -> Part:
        """Attach the kind of graph, and the facts for a bare call, which are stored with it.

        The user's file can have changed elsewhere when the graph is loaded.  Therefore nodes refer
        to stack traces by their position among those of the captured graph.
        """
        places = {trace: place for place, trace in enumerate(captured)}
        found = {node: places[trace] for node, trace in self.traces.items() if trace in places}
        self.context = kind, bare, found
        return self

    def prepare_for_serialization(self) -> None:
        """Called before this copy is written to disk."""
        if self.remake is None:
            raise Bypass("only this process can run it")
        context = _TracingContext.get()
        if context.guards_context.aotautograd_guards or _floats_are_fixed(context.fake_mode):
            raise Bypass("guards that AOTAutograd has added cannot be stored")
        try:
            self.kept = pickle.dumps((self.remake, *self.context))
        except (pickle.PicklingError, TypeError, AttributeError, RecursionError) as problem:
            raise Bypass("it refers to objects of this process") from problem
        self.call, self.remake, self.traces = None, None, {}
        del self.context

    def post_compile(self, inputs: Any, constants: Any, settings: Any) -> None:
        """Called after this copy was loaded from disk."""
        finder = FINDER.get()
        remake, kind, bare, places = pickle.loads(self.kept)
        self.call = remake({node: finder.traces[place] for node, place in places.items()})
        self.kept = b""
        finder.found(remake)
        finder.learn(kind, self.call, bare)


def _key_of_graph(module: Any, inputs: Sequence[Any], config: Any, *more: Any) -> Any:
    """Return the key of a captured graph, for graphs that we compile.  Replaces torch's function.

    torch's function takes two seconds in a new process, because it reads all files of Inductor and
    Triton.  Its pickler covers graphs, tensors and AOTAutograd's settings.  A graph gets no key if
    it has constants, modules or subgraphs, or operators that other Python code traces.
    """
    if not hasattr(module, KEY):
        return _torchs_own_key(module, inputs, config, *more)
    with optional(_CACHE + "sanitize_gm_for_cache")(module):
        optional(_CACHE + "check_cacheable")(module)
        if optional("torch._C._functorch.peek_interpreter_stack")() is not None:
            raise Bypass("a torch.func transform is active")
        if any(True for _ in module.children()):
            raise Bypass("it has subgraphs or modules")
        arguments = {name for name, _ in (*module.named_parameters(), *module.named_buffers())}
        for node in module.graph.nodes:
            if not (_is_known(node) or (node.op == "get_attr" and node.target in arguments)):
                raise Bypass(f"{node.op} {node.target}")
        inputs = list(_without_meshes(inputs))
        facts = (module, inputs, _places(inputs), _ranges(inputs), config, _settings())
        key = KEY + _Pickler(module).get_hash(facts)
        with suppress(OSError):  # recently used entries are pruned last
            os.utime(os.path.join(torch_aot.cache_folder(), key))
            discard_damaged(Path(torch_aot.cache_folder(), key))
        return key, []


def _give_our_keys() -> Callable[[], None]:
    autograd_cache: Any = sys.modules[_torchs_own_key.__module__]
    autograd_cache.autograd_cache_key = _key_of_graph
    return functools.partial(setattr, autograd_cache, "autograd_cache_key", _torchs_own_key)


OUR_KEYS = Shared(_give_our_keys)
"""Active while AOTAutograd handles one of our graphs.  Other graphs get torch's key."""


def discard_damaged(folder: Path) -> None:
    """Delete entries that have changed since torch wrote them.

    torch names each entry by its checksum, but does not verify it when it loads the entry.
    """
    for path in folder.iterdir():
        digest = base64.b32encode(hashlib.sha256(path.read_bytes()).digest()).decode().lower()
        if len(path.name) == NAME_LENGTH and path.name != digest[:NAME_LENGTH]:
            path.unlink()


NAME_LENGTH = 51
"""The length of the name of an entry.  Files with other names are not entries."""


def _is_known(node: torch.fx.Node) -> bool:
    if isinstance(node.target, OpOverloadPacket | OperatorBase):
        return str(node.target).startswith(("aten.", "prims."))
    return node.op in ("placeholder", "call_function", "call_method", "output")


def _without_meshes(inputs: Iterable[Any]) -> Iterator[Any]:
    """Replace device meshes among inputs by facts: their layout, the rank, and all process groups.

    Process groups matter, because a graph contains their names.  A DTensor becomes these facts, and
    the tensor of this rank.
    """
    for given in inputs:
        mesh = given.real_obj if isinstance(given, torch_api.FakeScriptObject) else given
        ask = getattr(mesh, "_stable_hash_for_caching", getattr(mesh, "_stable_hash", None))
        if ask is None or _groups is None:
            yield given
        else:
            yield ask(), dist.get_rank(), _groups()
            held = mesh.__tensor_flatten__()[0] if isinstance(given, torch.Tensor) else ()
            yield from _without_meshes(getattr(given, name) for name in held)


def _places(inputs: Sequence[Any]) -> list[tuple[str, str, str]]:
    """Return which tensors share storages, with sizes and offsets, which torch's key omits."""
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
    """Return the ranges of symbolic sizes before AOTAutograd; torch compares only guards."""
    shapes = getattr(_detect_fake_mode(inputs), "shape_env", None)
    known = {} if shapes is None else shapes.var_to_range
    return sorted((str(symbol), str(reach)) for symbol, reach in known.items())


def _floats_are_fixed(mode: Any) -> bool:
    """Has AOTAutograd specialized a symbolic float?  torch stores only guards on ints."""
    shapes = getattr(mode, "shape_env", None)
    used = [guard.expr.free_symbols for guard in shapes.guards] if shapes is not None else []
    return any(symbol.is_integer is not True for symbols in used for symbol in symbols)


def _settings() -> tuple[Any, ...]:
    """Return all settings that AOTAutograd, decompositions and our compiler depend on."""
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
        fills_new_memory(),
        str(torch.get_default_dtype()),
        str(torch.get_default_device()),
        *(optional(f"torch._C._get_{library}_enabled")() for library in LIBRARIES),
    )


LIBRARIES = ("flash_sdp", "mem_efficient_sdp", "math_sdp", "mkldnn")
"""The libraries of torch that can be switched off."""
