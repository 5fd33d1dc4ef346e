"""Imported once by the server process: the processes it forks begin with warm caches."""

from __future__ import annotations

from tests.fuzz import check
from tests.opinfo import warm

__all__ = ["check", "warm"]
