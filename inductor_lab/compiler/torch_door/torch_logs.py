"""TorchDynamo's reports during a compilation: the part of the interface to torch's private names
for its logs, its traces and its bytecode hook."""

from __future__ import annotations

from inductor_lab.compiler.torch_door.torch_names import optional

# isort: split
import contextlib
import logging
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from types import CodeType
from typing import Any, NamedTuple

import torch
from torch.utils.hooks import RemovableHandle

TRACE_LOGGER = logging.getLogger("torch.__trace")
ARTIFACTS = ("fusion", "ir_post_fusion", "ir_pre_fusion", "output_code", "post_grad_graphs",
             "schedule")  # fmt: skip
"""The artifacts of `TORCH_LOGS` that our compiler writes."""

_trace_structured = optional("torch._logging.trace_structured", lambda *given, **named: None)
_artifact_logger = optional("torch._logging.getArtifactLogger")


def are_read() -> bool:
    """Does the user ask for logs, a trace or a debug folder of compiles?"""
    artifacts = (_artifact_logger("torch.inductor_lab", name) for name in ARTIFACTS
                 if _artifact_logger is not None)  # fmt: skip
    return (
        debug_folder_wanted()
        or bool(TRACE_LOGGER.handlers)
        or any(log is not None and log.isEnabledFor(logging.DEBUG) for log in artifacts)
    )


def debug_folder_wanted() -> bool:
    """Does the user ask for files of each compile?"""
    return os.environ.get("TORCH_COMPILE_DEBUG") == "1"


def write_trace_artifact(kind: str, text: Callable[[], str]) -> None:
    """Write an artifact to torch's structured trace; `text` is called only if there is a
    listener."""
    _trace_structured("artifact", lambda: {"name": kind, "encoding": "string"}, payload_fn=text)


def write_log(artifact: str, text: Callable[[], str]) -> None:
    """Write a line for `TORCH_LOGS`; `text` is called only if that artifact is enabled."""
    # torch prints the records of child loggers of its own
    log = _artifact_logger("torch.inductor_lab", artifact) if _artifact_logger else None
    if log is not None and log.isEnabledFor(logging.DEBUG):
        log.debug("%s", text())


def on_bytecode(hook: Callable[[CodeType, CodeType], CodeType | None]) -> RemovableHandle:
    """Call `hook(original, rewritten)` for each frame that Dynamo compiles, until `.remove()`.
    Code that it returns replaces the rewritten code."""
    register = optional("torch._dynamo.convert_frame.register_bytecode_hook")
    if register is None:
        return RemovableHandle(OrderedDict())
    handle: RemovableHandle = register(hook)
    return handle


class Traced(NamedTuple):
    """TorchDynamo is about to execute one instruction symbolically.

    run     the object of this attempt to trace the frame
    depth   0 in the frame itself, more in functions that it inlines
    stack   the symbolic stack as text, bottom first
    graph   the FX graph so far
    """

    run: object
    depth: int
    code: CodeType
    line: int
    opname: str
    argument: Any
    stack: tuple[str, ...]
    graph: torch.fx.Graph


class Shared:
    """A global setting that blocks change temporarily, and that several threads share.

    The first block that is entered calls `begin`; the last one that is left calls its result.
    """

    def __init__(self, begin: Callable[[], Callable[[], None]]) -> None:
        self._begin = begin
        self._end: Callable[[], None] = lambda: None
        self._inside, self._lock = 0, threading.Lock()

    @contextlib.contextmanager
    def set(self) -> Iterator[None]:
        with self._lock:
            if not self._inside:
                self._end = self._begin()
            self._inside += 1
        try:
            yield
        finally:
            with self._lock:
                self._inside -= 1
                if not self._inside:
                    self._end()


def shared_listener(logger: logging.Logger) -> Shared:
    """Inside a block the logger passes all records to its handlers.

    The previous handlers are restored afterwards (torch's own may remove itself when it gets a
    record).
    """

    def begin() -> Callable[[], None]:
        level, propagate, handlers = logger.level, logger.propagate, list(logger.handlers)
        logger.setLevel(logging.DEBUG)
        logger.propagate = propagate and level == logging.DEBUG

        def end() -> None:
            logger.setLevel(level)
            logger.propagate = propagate
            logger.handlers[:] = [*handlers, *(h for h in logger.handlers if h not in handlers)]

        return end

    return Shared(begin)


_TRACES = shared_listener(TRACE_LOGGER)
_INSTRUCTION_LOGGER = logging.getLogger("torch._dynamo.symbolic_convert.__trace_bytecode")
_INSTRUCTIONS = shared_listener(_INSTRUCTION_LOGGER)


@contextlib.contextmanager
def traces_to(handler: logging.Handler) -> Iterator[None]:
    """Pass the records of the structured trace log to a handler, from all threads.

    The handler comes first: torch's own handler may remove itself while it gets a record, and the
    logger would then leave out the next handler in the list.
    """
    with _TRACES.set():
        TRACE_LOGGER.handlers.insert(0, handler)
        try:
            yield
        finally:
            TRACE_LOGGER.removeHandler(handler)


@contextlib.contextmanager
def watched_instructions(tell: Callable[[Traced], None]) -> Iterator[None]:
    """Call `tell` for every instruction that Dynamo traces in this thread.

    Dynamo logs them for `TORCH_LOGS="trace_bytecode"`; inside the block, only `tell` gets that log.
    """
    if _instruction_translator is None:
        yield
        return
    listener = _InstructionListener(tell)
    with _INSTRUCTIONS.set():
        _INSTRUCTION_LOGGER.addHandler(listener)
        try:
            yield
        finally:
            _INSTRUCTION_LOGGER.removeHandler(listener)


_instruction_translator = optional("torch._dynamo.symbolic_convert.InstructionTranslator")


class _InstructionListener(logging.Handler):
    def __init__(self, tell: Callable[[Traced], None]) -> None:
        super().__init__(logging.DEBUG)
        self.tell = tell
        self.thread_id = threading.get_ident()

    def emit(self, record: logging.LogRecord) -> None:
        if record.thread not in (None, self.thread_id) or not isinstance(record.args, tuple):
            return
        root = _instruction_translator.current_tx()
        frame = root.output.current_tx
        stack = tuple(map(_on_stack, frame.stack))
        line = frame.current_instruction.starts_line or frame.lineno
        opname, argument = str(record.args[0]), record.args[1]
        graph, depth = root.output.graph, frame.inline_depth
        self.tell(Traced(root, depth, frame.f_code, line, opname, argument, stack, graph))


def _on_stack(variable: Any) -> str:
    """Dynamo's name of a value on its stack; it only reads fields, because methods may add
    guards."""
    facts = vars(variable)
    if "_cache" in facts and getattr(facts["_cache"], "vt", None) is not None:
        return _on_stack(facts["_cache"].vt)
    node = getattr(facts.get("proxy"), "node", None)
    if node is not None:
        return str(node.name)
    if type(variable).__name__ == "ConstantVariable":
        return repr(facts.get("value"))
    if facts.get("source") is not None:
        with contextlib.suppress(NotImplementedError):  # a cell has no name
            name = facts["source"].name
            return str(name() if callable(name) else name)
    return f"<{type(variable).__name__.removesuffix('Variable')}>"


_file_numbers: Mapping[str, int] = optional("torch._logging.structured.INTERN_TABLE", {})


def traced_files() -> tuple[str, ...]:
    """Every file name in the structured trace log."""
    return tuple(_file_numbers)


def traced_file(number: int) -> str:
    """The file name of a number in the structured trace log; "" if there is none."""
    numbers = {index: name for name, index in _file_numbers.items()}
    return numbers.get(number, "")
