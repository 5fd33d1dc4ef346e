"""A pass, and how a list of passes is applied.  The compiler has four lists, one for each level.

    FX graph          rewrite/passes.py             Inductor: fx_passes/
    loop program      lower/passes/pass_list.py
    schedule          schedule/passes.py            Inductor: scheduler.py
    loop tree         codegen/cpu/passes.py

Each stage builds the simplest correct form and then applies its list:

    form  →  pass 1  →  pass 2  →  ...  →  result

`options={"passes_off": [...]}` leaves passes of any list out, `"all"` leaves out every one that is
not needed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any, TypeAlias, TypeVar

T = TypeVar("T")
Apply: TypeAlias = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Pass:
    """A function that preserves the meaning of what it changes.

    name    the name in `passes_off`
    what    what it does, in a few words
    apply   `(value, facts)`: returns the new value, or the same object if there is nothing to do.
            A pass over FX graphs edits the graph and returns the rules that it applied.
    needed  without it the result cannot be used, or is not exact enough: it is always on
    """

    name: str
    what: str
    apply: Apply
    needed: bool = False


@dataclass(frozen=True)
class Later:
    """A function that is imported when it is first called: a pass that is off loads no module."""

    module: str
    name: str

    def __call__(self, *given: Any) -> Any:
        return getattr(import_module(self.module), self.name)(*given)


def is_there(step: Pass) -> bool:
    """Has the module of an optional pass not been deleted?"""
    if step.needed or not isinstance(step.apply, Later):
        return True
    try:
        return find_spec(step.apply.module) is not None
    except ModuleNotFoundError:
        return False


def table_of(*passes: Pass) -> dict[str, Pass]:
    """Passes by name, in the order in which they run, without those that were deleted."""
    table = {step.name: step for step in passes}
    assert len(table) == len(passes), "each pass has a name of its own"
    return {name: step for name, step in table.items() if is_there(step)}


def add_before(table: dict[str, Pass], added: Pass, before: str) -> None:
    """Add a pass to a list, to run just before another one; at the end if that is ""."""
    place = list(table).index(before) if before else len(table)
    later = {name: table.pop(name) for name in list(table)[place:]}
    table.update({added.name: added, **later})


def optional(table: Mapping[str, Pass]) -> frozenset[str]:
    """The passes that may be left out."""
    return frozenset(step.name for step in table.values() if not step.needed)


def switched_off(table: Mapping[str, Pass], names: Collection[str]) -> frozenset[str]:
    """The passes of one list that `options.passes_off` leaves out."""
    return optional(table) if "all" in names else optional(table).intersection(names)


def apply_passes(
    passes: Iterable[Pass],
    value: T,
    facts: Any,
    off: Collection[str] = (),
    changed: Callable[[str, T], object] | None = None,
) -> T:
    """Apply the passes that are not `off`; `changed` is called with the name of each pass that
    changed the value, and the new value."""
    for step in passes:
        if step.needed or step.name not in off:
            new: T = step.apply(value, facts)
            if new is not value and changed is not None:
                changed(step.name, new)
            value = new
    return value
