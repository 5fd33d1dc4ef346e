"""Bytecode: an installation has it, a checkout only after each module was imported once."""

from __future__ import annotations

import compileall
from pathlib import Path

import inductor_lab


def write_bytecode() -> None:
    """Compile our modules, as pip compiled torch's; otherwise a measured first call would do it."""
    compileall.compile_dir(Path(inductor_lab.__file__).parent, quiet=1)
