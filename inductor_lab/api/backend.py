"""The entry points: `lab.compile`, `lab.inspect`, and the backend "inductor_lab"."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from inductor_lab.api.arguments import expect
from inductor_lab.api.compilation import Compilation
from inductor_lab.api.expect_data import expect_data
from inductor_lab.api.fusion_names import refuse_unknown
from inductor_lab.compiler.base.errors import BadOption, LabError
from inductor_lab.compiler.base.garbage_in_captures import no_collection_in_captures
from inductor_lab.compiler.base.observer import Observer, Stopwatch, in_order
from inductor_lab.compiler.base.operations import find, perform
from inductor_lab.compiler.base.options import Options
from inductor_lab.compiler.base.thread_state import start_autograd
from inductor_lab.compiler.capture.dynamo_listener import recording
from inductor_lab.compiler.capture.source import source_of_call
from inductor_lab.compiler.pipeline import GraphCompiler
from inductor_lab.compiler.records import Call
from inductor_lab.compiler.runtime.prestart import before_capture
from inductor_lab.compiler.torch_door import torch_api, torch_logs

start_autograd()


def inductor_lab(
    module: torch.fx.GraphModule,
    inputs: Sequence[Any],
    *,
    mode: str | None = None,
    options: dict[str, Any] | None = None,
) -> Callable[..., Any]:
    """The backend of `torch.compile(f, backend="inductor_lab")`.

    `mode` and `options` are those of torch.compile; see `Options`.  Raises BadOption for options
    that torch handles before it calls a backend.
    """
    chosen = Options.make(options, mode=mode)
    for name in {"dynamic", "fullgraph"}.intersection(options or ()):
        what = f"it as an argument of its own: torch.compile(f, backend=..., {name}=...)"
        raise BadOption(name, getattr(chosen, name), what)
    backend: Callable[..., Callable[..., Any]] = backend_with(chosen)
    return backend(module, inputs)


def compile(
    fn: Callable[..., Any] | None = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    disable: bool = False,
) -> Any:
    """`torch.compile` with our backend; the signature is torch's, without `backend`.

    Returns the compiled function or module (or a decorator, without `fn`).  `dynamic`, `fullgraph`
    and `mode` are also accepted in `options`.  Raises BadOption at once for an unknown option.
    """
    if fn is None:
        return functools.partial(
            compile, fullgraph=fullgraph, dynamic=dynamic, mode=mode, options=options,
            disable=disable,
        )  # fmt: skip
    expect("compile", "fn", fn, Callable[..., Any])
    chosen = Options.make(options, mode=mode, dynamic=dynamic, fullgraph=fullgraph or None)
    return torch.compile(
        fn, backend=backend_with(chosen), disable=disable,
        fullgraph=chosen.fullgraph, dynamic=chosen.dynamic,
    )  # fmt: skip


def backend_with(options: Options, observer: Observer | None = None) -> Callable[..., Any]:
    """A backend for `torch.compile` that compiles under these options, observed by `observer`.

    With TORCH_COMPILE_DEBUG=1 it writes graphs and code to files.
    """
    def backend(module: torch.fx.GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
        logging = find("logging_compiler") if torch_logs.are_read() else None
        make = logging or GraphCompiler
        compiler: GraphCompiler = make(_with_settings(options), observer or Observer())
        return compiler.compile(module, inputs, "graph")

    _before_captures()
    return backend


def _with_settings(options: Options) -> Options:
    """The options, and the settings of TorchInductor that our compiler uses too."""
    settled: Callable[[Options], Options] | None = find("with_settings")
    return settled(options) if settled else options


def _before_captures() -> None:
    """Install hooks that run before each capture of TorchDynamo, until torch is reset."""
    no_collection_in_captures()
    torch_api.around_compilations(before_capture)


_before_captures()  # torch.compile(f, backend="inductor_lab") calls the backend after a capture


def inspect(
    fn: Callable[..., Any],
    /,
    *args: Any,
    options: Options | dict[str, Any] | None = None,
    target: str | None = None,
    observer: Observer | None = None,
    compiler: str = "inductor_lab",
    **kwargs: Any,
) -> Any:
    """Compile `fn`, run it once with these arguments, and keep the result of every stage.

    Returns a `Compilation`; with `compiler="stock"`, a `StockCompilation` of torch's own compiler.

    target     `"cuda:90"`, `"hip:gfx942"`: write Triton code for it; the call runs uncompiled
    observer   its methods are called when a phase starts and ends

    An exception of `fn` is raised unchanged; one of the compiler is a LabError.
    """
    expect("inspect", "fn", fn, Callable[..., Any])
    expect_data("inspect", fn, (args, kwargs))
    chosen = options if isinstance(options, Options) else Options.make(options, target=target)
    if compiler != "inductor_lab":
        return _inspect_stock(compiler, fn, chosen, observer, args, kwargs)
    if prepare_notebook := find("compiled_functions_go_first"):
        prepare_notebook()
    watch = Stopwatch(also=observer)
    compilers: list[GraphCompiler] = []
    backend = _backend_that_keeps(compilers, chosen, watch)
    compiled = torch.compile(
        fn, backend=backend, fullgraph=chosen.fullgraph, dynamic=chosen.dynamic
    )
    call = Call(fn, args, kwargs, chosen, torch.is_grad_enabled(), inspect)
    fresh = torch_api.fresh_compile(call.sizes)
    with recording() as record, fresh, _our_own_errors():
        try:
            with watch.phase("total"):
                result = compiled(*args, **kwargs)
        except Exception:
            watch.entered("capture")
            watch.left("capture", record.graph_so_far())
            raise
    graphs = tuple(compiler.result() for compiler in compilers if compiler.parts)
    as_captured = tuple(filter(None, (compiler.as_captured for compiler in compilers)))
    refuse_unknown(chosen.fusion, graphs)
    return Compilation(
        name=getattr(fn, "__name__", type(fn).__name__),
        source=source_of_call(fn),
        capture=record.capture(tuple(graph.captured for graph in graphs), as_captured),
        graphs=graphs,
        seconds=dict(watch.seconds),
        phases=in_order((*watch.phases, *record.phases)),
        target=chosen.target, torch_version=str(torch.__version__),
        result=result, compiled=compiled, call=call,
    )  # fmt: skip


def _backend_that_keeps(
    compilers: list[GraphCompiler], options: Options, watch: Stopwatch
) -> Callable[..., Any]:
    """A backend that adds the compiler of each graph to `compilers`."""
    def backend(module: torch.fx.GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
        # torch may abandon an attempt before it calls our compiler, and capture again
        compilers[:] = [each for each in compilers if each.parts or each.as_captured]
        watching, number = Stopwatch(also=watch), sum(bool(each.parts) for each in compilers)
        settled = _with_settings(options)
        compilers.append(GraphCompiler(settled, watching, keep=True, number=number))
        with watch.phase("graph"):
            return compilers[-1].compile(module, inputs, f"graph{number}")

    return backend


def _inspect_stock(
    compiler: str,
    fn: Callable[..., Any],
    chosen: Options,
    observer: Observer | None,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """`inspect` with torch's own compiler and those of our options that it supports."""
    if compiler != "stock":
        raise BadOption("compiler", compiler, "'inductor_lab' or 'stock'")
    if chosen.target is not None:
        raise BadOption("target", chosen.target, "stock compiles for this machine only")
    return perform("inspect_stock", fn, args, kwargs, chosen, observer)


ENDLESS = (
    "Python's limit of recursion was reached while TorchDynamo captured the function:"
    " does it call itself without an end?  A deep recursion that ends needs a higher"
    " sys.setrecursionlimit."
)


@contextmanager
def _our_own_errors() -> Iterator[None]:
    """Unwrap the errors that TorchDynamo wraps: a LabError, and a function without an end.

    For the latter, TorchDynamo's own error has some thousand lines of its own frames.
    """
    try:
        yield
    except torch_api.BackendCompilerFailed as failed:
        inner = failed.inner_exception
        if isinstance(inner, LabError):
            raise inner from inner.__cause__
        raise
    except Exception as error:
        if isinstance(error.__cause__ or error.__context__, RecursionError):
            raise RecursionError(ENDLESS) from None
        raise
