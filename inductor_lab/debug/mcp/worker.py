"""The side of the user's code: run one command of `inductor-lab` in this process.

`begin` is called in a confined process, which ends after one command.  Everything here may be
changed by the code that runs; the server believes nothing but that bytes came back.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

Run = Callable[[list[str], str | None, Mapping[str, str], Callable[[str], None]], str]


def begin(argument: Mapping[str, Any]) -> Run:
    """Enter the folder of the user and return the function `run`."""
    scratch = Path(os.environ["HOME"])
    sys.path[:] = filter(None, sys.path)  # the current folder: a file there may hide a module
    os.chdir(argument["folder"])

    def run(
        arguments: list[str], text: str | None, outputs: Mapping[str, str],
        tell: Callable[[str], None],
    ) -> str:  # fmt: skip
        """Run a command; returns the JSON that it prints.

        text     becomes a file, whose path is the last argument
        outputs  options that take a path: it is a file of this name outside of the user's folder
        """
        from inductor_lab.cli import main

        given = list(arguments)
        if text is not None:
            path = scratch / "text"
            path.write_text(text, encoding="utf-8")
            given.append(str(path))
        given += [f"{option}={scratch / name}" for option, name in outputs.items()]
        printed = io.StringIO()
        with redirect_stdout(printed):
            main([*given, "--json"], tell)
        return printed.getvalue()

    return run


CLASSES: Mapping[str, type] = {}
"""Classes that may come back: none."""
