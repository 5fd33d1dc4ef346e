"""Write the results of our compiler to torch's logs: `TORCH_LOGS` and `TORCH_TRACE` (tlparse).

TORCH_LOGS="output_code,fusion,schedule,ir_pre_fusion,ir_post_fusion,post_grad_graphs" python …
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from inductor_lab.compiler.base.observer import Observer
from inductor_lab.compiler.torch_door.torch_logs import write_log, write_trace_artifact

Text = Callable[[], str]


class ReportsToTorch(Observer):
    """Reports results to torch's loggers and structured trace; text is made only if it is enabled.

    `also` is another observer that receives the same calls.
    """

    def __init__(self, also: Observer) -> None:
        self._also = also
        self._kernels: tuple[Any, ...] = ()

    def entered(self, phase: str) -> None:
        self._also.entered(phase)

    def left(self, phase: str, result: Any) -> None:
        part, _, step = phase.rpartition(".")
        if result is not None and step in _ENTRIES:
            for log, trace, text in _ENTRIES[step](result, part, self._kernels):
                if log:
                    write_log(log, text)
                if trace:
                    write_trace_artifact(trace, text)
        if step == "codegen":
            self._kernels = result or ()
        self._also.left(phase, result)


Entry = tuple[str, str, Text]
"""The log, the kind of trace entry, and the text."""


def _rewritten(result: Any, part: str, kernels: tuple[Any, ...]) -> Iterator[Entry]:
    def text() -> str:
        return str(result.module.print_readable(print_output=False))

    yield "post_grad_graphs", "inductor_post_grad_graph", text


def _lowered(result: Any, part: str, kernels: tuple[Any, ...]) -> Iterator[Entry]:
    yield "ir_pre_fusion", "ir_pre_fusion", lambda: str(result)


def _scheduled(result: Any, part: str, kernels: tuple[Any, ...]) -> Iterator[Entry]:
    yield "ir_post_fusion", "ir_post_fusion", lambda: str(result)
    yield "schedule", "", lambda: str(result)
    yield "fusion", "fusion", lambda: str(result.decisions)


def _hosted(result: Any, part: str, kernels: tuple[Any, ...]) -> Iterator[Entry]:
    def text() -> str:
        made = "\n".join(str(kernel) for kernel in {k.name: k for k in kernels}.values())
        return f"# AOT ID: ['0_{part}']\nKERNELS = r'''\n{made}'''\n\n{result}"

    yield "output_code", "inductor_output_code", text


_ENTRIES: dict[str, Callable[[Any, str, tuple[Any, ...]], Iterator[Entry]]] = {
    "rewrite": _rewritten,
    "lower": _lowered,
    "schedule": _scheduled,
    "host": _hosted,
}
