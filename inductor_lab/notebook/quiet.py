"""Torch's log lines that the explorer shows better are not printed above it."""

from __future__ import annotations

import logging
import threading
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

EXPLAINED = ("torch._subclasses", "torch._dynamo", "torch.fx")
"""Loggers that speak of graph breaks, and of operations whose operands do not fit."""


class _Hushed(logging.Filter):
    """Drops warnings of this thread that the explorer has a place for; what was asked for with
    TORCH_LOGS comes below the level of a warning, and stays."""

    def __init__(self) -> None:
        super().__init__()
        self.thread = threading.get_ident()

    def filter(self, record: logging.LogRecord) -> bool:
        mine = record.thread == self.thread and record.name.startswith(EXPLAINED)
        told = record.levelno >= logging.ERROR or "raph break" in record.getMessage()
        return not (mine and told and record.levelno >= logging.WARNING)


@contextmanager
def hushed() -> Iterator[None]:
    """While the block runs, torch's handlers print nothing that is explained below."""
    quiet = _Hushed()
    with ExitStack() as undo:
        for handler in _handlers():
            handler.addFilter(quiet)
            undo.callback(handler.removeFilter, quiet)
        undo.enter_context(warnings.catch_warnings())
        warnings.filterwarnings("ignore", message="Dynamo does not know how to trace")
        yield


def _handlers() -> set[logging.Handler]:
    """Of the loggers that are explained and of those above them."""
    loggers = dict(logging.Logger.manager.loggerDict)
    torchs = [logger for name, logger in loggers.items() if name.split(".")[0] == "torch"]
    return {h for each in torchs if isinstance(each, logging.Logger) for h in each.handlers}
