"""`lab.inspect(f, x, compiler="stock")`: record one call of stock `torch.compile`.

Stock writes a structured trace and, for IR and fusion, log lines.  Logging handlers record both
while the call runs.  Torch is not patched; a view is empty if this version of torch does not report
its data.
"""

from __future__ import annotations

import contextlib
import importlib
import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch

from inductor_lab.compiler.base.observer import Observer, Stopwatch, in_order
from inductor_lab.compiler.base.options import Options
from inductor_lab.compiler.capture.dynamo_listener import recording
from inductor_lab.compiler.capture.events import Event
from inductor_lab.compiler.capture.fx_graph import FxGraph
from inductor_lab.compiler.capture.fx_to_record import fx_graph
from inductor_lab.compiler.capture.source import function_source
from inductor_lab.compiler.records import Call
from inductor_lab.compiler.torch_door import torch_api, torch_logs
from inductor_lab.stock.graphs import stock_graph
from inductor_lab.stock.phases import by_compiler
from inductor_lab.stock.stock_compilation import StockCompilation
from inductor_lab.stock.trace_index import by_compile_id, size_hints

_LOGGERS = {
    logger: (kind, torch_logs.shared_listener(logger))
    for logger, kind in (
        (logging.getLogger("torch._inductor.debug.__ir_pre_fusion"), "ir_pre_fusion"),
        (logging.getLogger("torch._inductor.debug.__ir_post_fusion"), "ir_post_fusion"),
        (logging.getLogger("torch._inductor.scheduler.__fusion"), "fusion"),
        (logging.getLogger("torch._inductor.cudagraph_utils.__cudagraphs"), "cudagraphs"),
    )
}
"""Logger → the kind of its messages, and its shared listener."""

_OF_USE = ("  SchedulerNode", "fusing ", "cannot fuse ")
"""Prefixes of the fusion log lines that are read; other lines repeat all nodes in each round."""

_SETTINGS = {
    "trace.provenance_tracking_level": 1,
    "fx_graph_cache": False,
    "fx_graph_remote_cache": False,
}
"""Settings that link kernels to FX nodes and disable stock's caches."""


def inspect_stock(
    fn: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    options: Options,
    observer: Observer | None = None,
) -> StockCompilation:
    """Compile `fn` with stock `torch.compile`, run it once, and return what stock reported.

    Of the options, only `mode`, `fullgraph`, `dynamic` and `require_cuda_graphs` apply.  Stock's
    caches are not used, so that scheduling and code generation run.  Exceptions are passed on.
    """
    watch = Stopwatch(also=observer)
    dynamic = options.dynamic
    captured: list[FxGraph] = []
    backend = _backend(options.mode, dynamic, captured)
    compiled = torch.compile(fn, backend=backend, fullgraph=options.fullgraph, dynamic=dynamic)
    call = Call(fn, args, dict(kwargs), options, torch.is_grad_enabled(), _inspect_again)
    fresh = torch_api.fresh_compile(call.sizes)
    with recording(is_not_a_string) as record, fresh, _settings():
        with _logs(record.events), watch.phase("total"):
            result = compiled(*args, **kwargs)
    found = by_compile_id(record.events)
    hints = size_hints(record.events)
    graphs = tuple(
        stock_graph(one, hints, f"graph{number}")
        for number, one in enumerate(one for one in found.values() if one.captured)
    )
    compilation = StockCompilation(
        name=getattr(fn, "__name__", type(fn).__name__),
        source=function_source(fn),
        capture=record.capture(tuple(graph.captured for graph in graphs)),
        graphs=graphs,
        seconds=dict(watch.seconds),
        phases=by_compiler(in_order((*watch.phases, *record.phases))),
        torch_version=str(torch.__version__),
        result=result,
        compiled=compiled,
        call=call,
        as_captured=tuple(captured),
    )
    if options.require_cuda_graphs:
        compilation.cuda_graphs(require=True)
    return compilation


def _inspect_again(
    fn: Callable[..., Any], *args: Any, options: Options, **kwargs: Any
) -> StockCompilation:
    return inspect_stock(fn, args, kwargs, options)


def is_not_a_string(metadata: Mapping[str, Any]) -> bool:
    """Is this an entry about a compile?  Strings of the log's table are not."""
    return "str" not in metadata


def _backend(
    mode: str, dynamic: bool | None, captured: list[FxGraph]
) -> Callable[..., Any]:
    """Stock's compiler as a new backend, so that code compiled earlier is not reused; it adds the
    graphs that it is given to `captured`."""
    inductor = importlib.import_module("torch._inductor")
    compile_fx = importlib.import_module("torch._inductor.compile_fx").compile_fx
    patches = inductor.list_mode_options(mode, dynamic) if mode != "default" else {}

    def backend(module: torch.fx.GraphModule, inputs: Any) -> Callable[..., Any]:
        captured.append(fx_graph(module, f"graph{len(captured)}"))
        compiled: Callable[..., Any] = compile_fx(module, inputs, config_patches=patches or None)
        return compiled

    return backend


@contextlib.contextmanager
def _settings() -> Iterator[None]:
    """Change stock's settings for the call; settings that this torch lacks are skipped."""
    config = importlib.import_module("torch._inductor.config")
    known = config.get_config_copy()
    with config.patch({name: value for name, value in _SETTINGS.items() if name in known}):
        yield


@contextlib.contextmanager
def _logs(events: list[Event]) -> Iterator[None]:
    """Add log lines about IR, fusion and CUDA graphs to `events` while the block runs."""
    with contextlib.ExitStack() as stack:
        for logger, (kind, shared_listener) in _LOGGERS.items():
            listener = _LogListener(kind, events)
            stack.enter_context(shared_listener.set())
            logger.addHandler(listener)
            stack.callback(logger.removeHandler, listener)
        yield


class _LogListener(logging.Handler):
    """Stores log lines of one thread as trace entries."""

    def __init__(self, kind: str, events: list[Event]) -> None:
        super().__init__(logging.DEBUG)
        self.kind, self.events = kind, events
        self.thread_id = threading.get_ident()

    def emit(self, record: logging.LogRecord) -> None:
        if record.thread not in (None, self.thread_id):
            return
        text = record.getMessage()
        if self.kind == "fusion" and not text.startswith(_OF_USE):
            return
        if self.kind == "cudagraphs" and record.levelno < logging.WARNING:
            return
        frame, attempt = self._compile_id()
        if not attempt:
            return
        metadata = {
            "artifact": {"name": self.kind},
            "frame_id": frame,
            "frame_compile_id": attempt.partition("_")[0],
        }
        self.events.append(Event(metadata, text))

    def _compile_id(self) -> tuple[str, str]:
        """Frame and attempt.  Some reasons against a CUDA graph are found when a graph first runs,
        which is after its compile and before the next one."""
        frame, _, attempt = torch_api.compile_id().partition("/")
        if not attempt and self.kind == "cudagraphs":
            for event in reversed(self.events):
                if "frame_compile_id" in event.metadata:
                    return str(event.metadata["frame_id"]), str(event.metadata["frame_compile_id"])
        return frame, attempt
