"""Shell scripts that stand in for a compiler."""

from __future__ import annotations

from pathlib import Path


def script(path: Path, body: str) -> Path:
    """An executable shell script."""
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path
