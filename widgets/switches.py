"""The changes of options that a live explorer offers."""

from __future__ import annotations

from typing import Any

from inductor_lab.compiler.rewrite.passes import PASSES
from inductor_lab.compiler.schedule.fusion.rules import PROFIT
from inductor_lab.notebook.language import say
from inductor_lab.widgets.shapes import Switches
from inductor_lab.widgets.words import description


def switches() -> list[Switches]:
    """What can be changed: titled lists of [label, arguments of `Compilation.what_if`, meaning].

    Pairs have buttons in the table of decisions; the memory budget has a slider.
    """
    fusion: list[list[Any]] = [
        [say("disable fusion"), {"fusion": False}, say("one kernel for each operator")]
    ]
    fusion += [
        [say("disable fusion rule: {rule}", rule=name), {"fusion_off": [name]},
         description(name, rule)]
        for name, rule in PROFIT.items()
    ]  # fmt: skip
    rewrites = [
        [say("disable rewrite: {name}", name=name), {"rewrites_off": [name]},
         description(name, run)]
        for name, run in PASSES.items()
    ]  # fmt: skip
    return [{"title": "fusion", "changes": fusion}, {"title": "rewrites", "changes": rewrites}]
