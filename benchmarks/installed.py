"""What an installation has and a checkout lacks until each module was once imported: bytecode."""

from __future__ import annotations

import compileall
from pathlib import Path

import inductor_lab


def write_bytecode() -> None:
    """Compile our modules, as pip did torch's: else first calls that are measured would do it."""
    compileall.compile_dir(Path(inductor_lab.__file__).parent, quiet=1)
