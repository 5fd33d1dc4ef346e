"""All programs: importing the modules registers them."""

from __future__ import annotations

from tests.programs.reports import (  # noqa: F401
    layers,
    overlapping,
    shapes,
    storage,
    transforms,
    values,
)
from tests.programs.reports.case import CASES as CASES
