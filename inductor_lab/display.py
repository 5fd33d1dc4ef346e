"""How the compiler's values show themselves in a notebook: by asking the widgets, when asked.

The compiler imports nothing that draws.  `Shown` reaches `inductor_lab.widgets` only at the moment
a notebook wants a picture, so that compiling never pays for it.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

from inductor_lab.errors import CannotWrite


def bytes_text(count: Any) -> str:
    """A number of bytes to read; one that is made of symbols stays as it is.

    >>> bytes_text(512), bytes_text(80_000_000)
    ('512 B', '80.0 MB')
    """
    if not isinstance(count, int):
        return f"{count} B"
    value, units = float(count), ["B", "kB", "MB", "GB", "TB"]
    while abs(value) >= 1000 and len(units) > 1:
        value, units = value / 1000, units[1:]
    return f"{count} B" if units[0] == "B" else f"{value:.1f} {units[0]}"


class Shown:
    """Mixin of every station value: a picture and a page for notebooks, `str` for terminals."""

    __slots__ = ()

    def plot(self, view: str = "graph") -> Svg:
        """A picture as SVG text, to be shown or written with `.save(path)`.

        "graph" of everything that is a graph, "memory" of a Schedule, "budget" of a Partition,
        "time" of a Compilation.  Raises UnknownName for a view that this value does not have.
        """
        drawn: Svg = _widgets("plots").plot(self, view)
        return drawn

    def to_dot(self) -> Any:
        """Its graph as a `graphviz.Digraph`: `.source` is text, drawing it needs Graphviz."""
        return _widgets("dot").to_dot(self)

    def to_pydot(self) -> Any:
        """Its graph as a `pydot.Dot`, whose nodes and edges can be walked and changed."""
        return _widgets("dot").to_pydot(self)

    def _repr_html_(self) -> str | None:
        html: str | None = _widgets("show").html(self)
        return html

    def _repr_svg_(self) -> str | None:
        svg: str | None = _widgets("show").svg(self)
        return svg


class Svg(str):
    """The text of an SVG file, which a notebook draws."""

    __slots__ = ()

    def _repr_svg_(self) -> str:
        return str(self)

    def save(self, path: str | Path) -> Path:
        """Write the file; raises CannotWrite."""
        return write_text(Path(path), self, "picture")


def write_report(
    compilation: Any, path: Path, ladder: str | None = None, assembly: bool = False
) -> Path:
    """Write the self-contained HTML page of a compilation; raises CannotWrite."""
    written: Path = _widgets("report").write_report(compilation, path, ladder, assembly)
    return written


def live_widget(compilation: Any) -> Any:
    """The explorer of a compilation as an anywidget."""
    return _widgets("live").Explorer.of(compilation)


def mime_bundle(compilation: Any) -> dict[str, Any] | None:
    """What a notebook gets beside HTML, where HTML alone cannot be live; None elsewhere."""
    bundle: dict[str, Any] | None = _widgets("live").mime_bundle(compilation)
    return bundle


def annotated(compilation: Any) -> Any:
    """The source with bytes moved beside each line; shows itself as HTML and as text."""
    return _widgets("annotate").Annotated(compilation)


def benchmark_svg(result: Any, view: str) -> Svg:
    """A picture of a benchmark's result; raises UnknownName."""
    drawn: Svg = _widgets("bench").svg(result, view)
    return drawn


def write_benchmark(result: Any, path: Path) -> Path:
    """Write a benchmark's result as one self-contained HTML page; raises CannotWrite."""
    written: Path = _widgets("bench").write_page(result, path)
    return written


def live_benchmark() -> Any:
    """A view of a running benchmark in the cell that runs; None where there is no notebook."""
    return _widgets("bench").live()


def close_explorers() -> None:
    """Let go of the compilations that live explorers hold."""
    _widgets("live").close_all()


def _widgets(module: str) -> Any:
    return importlib.import_module(f"inductor_lab.widgets.{module}")


def write_text(path: Path, text: str, what: str) -> Path:
    """Write a file that a person asked for; raises CannotWrite, which says what it was to hold."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise CannotWrite(
            f"the {what} cannot be written to {path}: {error.strerror or error}",
            todo="give a path in a folder that exists and that you may write to",
        ) from error
    return path
