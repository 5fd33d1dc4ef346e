"""Other values for the tuning constants of the compiler, for a while."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from unittest import mock

CODEGEN = "inductor_lab.compiler.codegen"


@contextmanager
def tuned(package: str = CODEGEN, **constants: int) -> Iterator[None]:
    """Replace constants by name, in every loaded module of a package that has one of this name.

    Raises AttributeError for a name that no module has: a constant that was renamed is an error.
    """
    modules = [module for name, module in sys.modules.items() if name.startswith(package)]
    with ExitStack() as stack:
        for name, value in constants.items():
            found = [module for module in modules if name in vars(module)]
            if not found:
                raise AttributeError(f"no module of {package} has {name}")
            for module in found:
                stack.enter_context(mock.patch.object(module, name, value))
        yield
