"""Tab after `%%compile` and `%compile`: the options, and the choices of an option."""

from __future__ import annotations

from typing import Any


def complete_options(shell: Any, event: Any) -> list[str]:
    """The options, if the word starts with a dash, or the choices of the option before the word;
    none otherwise, so that Python names are completed.

    `event` has the `line` up to the cursor and the `symbol`, the word that is completed.
    """
    parser = shell.find_cell_magic("compile").parser
    options = {name: action for action in parser._actions for name in action.option_strings}
    before = event.line.removesuffix(event.symbol).split()
    chosen = options.get(before[-1]) if before else None
    if chosen is not None and chosen.choices:
        return list(chosen.choices)
    return [name for name in options if name.startswith("--")] if event.symbol[:1] == "-" else []
