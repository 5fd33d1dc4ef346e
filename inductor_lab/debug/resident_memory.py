"""The peak memory of this process, as Linux counts it.

Linux keeps the largest resident size of a process (VmHWM), and sets it to the present size when
"5" is written to /proc/self/clear_refs.
"""

from __future__ import annotations

from pathlib import Path


def status_bytes(name: str) -> int:
    """A field of /proc/self/status in bytes: VmRSS is the present size, VmHWM the peak."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    (line,) = [line for line in lines if line.startswith(f"{name}:")]
    return int(line.split()[1]) << 10


class ResidentPeak:
    """How much more memory than now this process uses from now on."""

    def __init__(self) -> None:
        try:
            self._before: int | None = status_bytes("VmRSS")
            Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
        except (OSError, ValueError):  # not Linux, or not allowed
            self._before = None

    def bytes(self) -> int | None:
        """The largest increase so far; None if the system does not count it."""
        return None if self._before is None else status_bytes("VmHWM") - self._before
