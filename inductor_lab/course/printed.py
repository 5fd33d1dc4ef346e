"""What a cell of the course prints, in lines that fit into a notebook."""

from __future__ import annotations

from inductor_lab.notebook.columns import folded


def show(*things: object) -> None:
    """`print`, each thing in lines of its own; a long line goes on below itself at a word."""
    print("\n".join(folded(str(thing)) for thing in things))
