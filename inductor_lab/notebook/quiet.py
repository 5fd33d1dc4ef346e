"""Suppress log lines of torch whose content the explorer shows."""

from __future__ import annotations

import logging
import threading
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

EXPLAINED = ("torch._subclasses", "torch._dynamo", "torch.fx")
"""Loggers of graph breaks, and of operations with incompatible operands."""


class _DropWarnings(logging.Filter):
    """Drops warnings of this thread that the explorer shows.

    Lines enabled with TORCH_LOGS have a lower level than warnings, and are kept.
    """

    def __init__(self) -> None:
        super().__init__()
        self.thread = threading.get_ident()

    def filter(self, record: logging.LogRecord) -> bool:
        mine = record.thread == self.thread and record.name.startswith(EXPLAINED)
        told = record.levelno >= logging.ERROR or "raph break" in record.getMessage()
        return not (mine and told and record.levelno >= logging.WARNING)


@contextmanager
def suppress_warnings() -> Iterator[None]:
    """Suppress torch's warnings that the explorer shows, while the block runs."""
    quiet = _DropWarnings()
    with ExitStack() as undo:
        for handler in _handlers():
            handler.addFilter(quiet)
            undo.callback(handler.removeFilter, quiet)
        undo.enter_context(warnings.catch_warnings())
        warnings.filterwarnings("ignore", message="Dynamo does not know how to trace")
        yield


def _handlers() -> set[logging.Handler]:
    """The handlers of these loggers and of their parents."""
    loggers = dict(logging.Logger.manager.loggerDict)
    torchs = [logger for name, logger in loggers.items() if name.split(".")[0] == "torch"]
    return {h for each in torchs if isinstance(each, logging.Logger) for h in each.handlers}
