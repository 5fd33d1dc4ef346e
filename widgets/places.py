"""What programs may set in a widget: the checks of the traits `selected` and `view`.

A selection of the explorer is a plain dict, `{}` for nothing:

    stage    a pane, as `view` names it: "source", "g0.forward.code"; if left out, the stage with
             the kernel, otherwise the visible one
    kernel   a kernel of a stage of code; without a line, all of it
    line     a number that the stage shows before a line, of this kernel if one is given
    node     an FX node or a buffer, as the explorer writes it

`javascript/traits.js` shows it, and reports clicks in the same form.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

import traitlets

from inductor_lab.compiler.base.errors import UnknownName, unknown_name
from inductor_lab.widgets.links import Links
from inductor_lab.widgets.shapes import Document, Pane

KEYS = ("stage", "kernel", "line", "node")


class WrongTrait(UnknownName, traitlets.TraitError):
    """A widget has nothing with this name; the trait keeps its value."""


class Lines(NamedTuple):
    """The lines of a kernel (of a text, if it is ""), by the numbers that are shown."""

    kernel: str
    numbers: range

    def __str__(self) -> str:
        of = f" of {self.kernel}" if self.kernel else ""
        return f"{self.numbers.start} to {self.numbers.stop - 1}{of}"


class Places:
    """The stages of an explorer with their lines, and the names of its nodes."""

    def __init__(self, shown: Document, links: Links) -> None:
        self._links = links
        self._stages: dict[str, list[Lines]] = {}
        self.add(shown["panes"])

    def add(self, panes: Mapping[str, Pane]) -> None:
        """Add panes that were made on request, such as those of a comparison."""
        for stage, pane in panes.items():
            self._stages[stage] = list(_lines(stage, pane))

    def view(self, wanted: str) -> str:
        """The name of a stage; raises WrongTrait for an unknown one."""
        return known("view", wanted, self._stages)

    def selected(self, wanted: Mapping[str, Any], view: str) -> dict[str, Any]:
        """The selection with its stage; raises WrongTrait for a name that does not exist."""
        for key in wanted:
            known("key", key, KEYS)
        if not wanted:
            return {}
        kernel, line, node = (wanted.get(key) for key in KEYS[1:])
        stage = known("stage", wanted.get("stage") or self._stage(kernel) or view, self._stages)
        here = self._stages[stage]
        if kernel is not None:
            known("kernel", kernel, [each.kernel for each in here if each.kernel])
            here = [each for each in here if each.kernel == kernel]
        if line is not None and not any(line in each.numbers for each in here):
            valid = ", ".join(map(str, here)) or "none: it shows no text"
            raise WrongTrait(f"{stage} has no line {line!r}", todo=f"Valid lines: {valid}")
        if node is not None:
            known("node", node, self._links.labels())
        given = {key: value for key, value in wanted.items() if value is not None}
        return {**given, "stage": stage}

    def _stage(self, kernel: str | None) -> str | None:
        """The first stage with this kernel."""
        found = (stage for stage, lines in self._stages.items()
                 if kernel in [each.kernel for each in lines])  # fmt: skip
        return next(found, None) if kernel else None


def known(kind: str, name: Any, names: Collection[str]) -> str:
    """The name; raises WrongTrait, which lists the valid names."""
    if str(name) not in names:
        what, todo = unknown_name(kind, name, names)
        raise WrongTrait(what, todo=todo)
    return str(name)


def _lines(stage: str, pane: Pane) -> Iterable[Lines]:
    """The blocks of the first text of a pane."""
    for view in pane["views"]:
        if view["kind"] == "text":
            for block in view["blocks"]:
                first = block["first"] or 1
                kernel = block["title"].split(" ")[0] if stage.endswith(".code") else ""
                yield Lines(kernel, range(first, first + len(block["lines"])))
            return
