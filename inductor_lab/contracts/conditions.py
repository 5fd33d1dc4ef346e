"""The conditions of a contract, read from what the user writes.

    kernels=12          exactly 12
    kernels="<= 12"     at most 12
    bytes="80 MB"       at most 80 MB: sizes are limits
    generated="90 %"    at least 90 %: shares are goals
    cudagraphs="all"    100 %
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from inductor_lab.compiler.base.display import bytes_text
from inductor_lab.compiler.base.errors import BadOption
from inductor_lab.contracts.facts import NAMES

SIZES = ("bytes", "peak")
SHARES = ("generated", "cudagraphs")
UNITS = {"B": 1.0, "kB": 1e3, "MB": 1e6, "GB": 1e9, "%": 0.01, "": 1.0}
SIGNS: Mapping[str, Callable[[float, float], bool]] = {
    "==": operator.eq, "<=": operator.le, ">=": operator.ge, "<": operator.lt, ">": operator.gt,
}
_TEXT = re.compile(r"\s*(==|<=|>=|<|>)?\s*(\d+(?:\.\d+)?)\s*(B|kB|MB|GB|%)?\s*")
EXPECTED = 'a number such as 12, or a text such as "<= 12", "80 MB", "90 %", "all"'


@dataclass(frozen=True)
class Condition:
    """`name sign value`, such as kernels <= 12."""

    name: str
    sign: str
    value: float

    @classmethod
    def read(cls, name: str, given: object) -> Condition:
        """Read a value that the user wrote; raises BadOption for anything else."""
        if isinstance(given, bool) or not isinstance(given, int | float | str):
            raise BadOption(name, given, EXPECTED)
        found = _TEXT.fullmatch("100 %" if given == "all" and name in SHARES else str(given))
        if found is None:
            raise BadOption(name, given, EXPECTED)
        usual = "<=" if name in SIZES else ">=" if name in SHARES else "=="
        return cls(name, found[1] or usual, float(found[2]) * UNITS[found[3] or ""])

    def holds(self, found: float) -> bool:
        return SIGNS[self.sign](found, self.value)

    def __str__(self) -> str:
        return f"{self.name} {self.sign} {shown(self.name, self.value)}"


def shown(name: str, value: float) -> str:
    """A count, size or share as text.

    >>> shown("kernels", 3.0), shown("bytes", 8e6), shown("generated", 0.955)
    ('3', '8.0 MB', '95.5 %')
    """
    if name in SIZES:
        return bytes_text(int(value))
    return f"{100 * value:.1f} %" if name in SHARES else f"{value:,.0f}"


def read_all(given: Mapping[str, object]) -> tuple[Condition, ...]:
    """The conditions in the order of `NAMES`; raises BadOption for an unknown name."""
    BadOption.refuse_unknown("compiles", given, NAMES)
    return tuple(Condition.read(name, given[name]) for name in NAMES if name in given)
