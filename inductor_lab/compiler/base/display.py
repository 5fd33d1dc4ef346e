"""How the compiler's values are displayed in a notebook: they call a package that draws, on demand.

The compiler does not depend on that package.  `drawn_by` sets its name (`inductor_lab` does that
once, when it is imported).  The package is imported when a notebook needs a picture, so compiling
never imports it.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from inductor_lab.compiler.base.errors import CannotWrite, MissingPackage, needing_torch
from inductor_lab.compiler.base.operations import perform

_PAINTERS: list[str] = []


def drawn_by(package: str) -> None:
    """Set the package that draws: its `drawing("plot")` returns the function that makes a plot."""
    _PAINTERS[:] = [package]


def draw(name: str, *args: Any) -> Any:
    assert _PAINTERS, "no package that draws is set"
    try:
        with needing_torch():
            drawing = importlib.import_module(_PAINTERS[0]).drawing(name)
    except ModuleNotFoundError as error:
        raise MissingPackage(error.name or str(error)) from None
    return drawing(*args)


def bytes_text(count: Any) -> str:
    """A readable number of bytes; a symbolic one is unchanged.

    >>> bytes_text(512), bytes_text(80_000_000), bytes_text(999_960)
    ('512 B', '80.0 MB', '1.0 MB')
    """
    if not isinstance(count, int):
        return f"{count} B"
    value, units = float(count), ["B", "kB", "MB", "GB", "TB"]
    while abs(round(value, 1)) >= 1000 and len(units) > 1:
        value, units = value / 1000, units[1:]
    return f"{count} B" if units[0] == "B" else f"{value:.1f} {units[0]}"


def counted(count: int, noun: str) -> str:
    """A number with its noun.

    >>> counted(1, "kernel"), counted(2, "memory pass")
    ('1 kernel', '2 memory passes')
    """
    return f"{count:,} {noun}{'' if count == 1 else 'es' if noun.endswith('s') else 's'}"


MARKDOWN_CHARACTERS = 4000
"""A longer text is cut in the Markdown form of a notebook's output."""


class Documented:
    """Mixin of everything that prints: its data as JSON, its text as Markdown."""

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        """The data as JSON (docs/json.md); `inductor-lab schema KIND` prints the schema."""
        return dict(perform("document_of", self))

    def _repr_markdown_(self) -> str:
        text = str(self)
        if len(text) > MARKDOWN_CHARACTERS:
            kept = text[:MARKDOWN_CHARACTERS].rpartition("\n")[0] or text[:MARKDOWN_CHARACTERS]
            text = f"{kept}\n... ({len(text) - len(kept):,} more characters)"
        fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
        return f"{fence}text\n{text}\n{fence}"


class Shown(Documented):
    """Mixin of every recorded value: a picture and a page for notebooks, `str` for terminals."""

    __slots__ = ()

    def plot(self, view: str = "graph") -> Svg:
        """A picture as SVG text, to be displayed or written with `.save(path)`.

        "graph" for all graphs, "memory" for a Schedule, "budget" for a Partition, "time" for a
        Compilation.  Raises UnknownName for a view that this value does not have.
        """
        return Svg(draw("plot", self, view))

    def to_dot(self) -> Any:
        """Its graph as a `graphviz.Digraph`: `.source` is text; drawing it requires Graphviz."""
        return draw("to_dot", self)

    def to_pydot(self) -> Any:
        """Its graph as a `pydot.Dot`, whose nodes and edges can be read and changed."""
        return draw("to_pydot", self)

    def _repr_html_(self) -> str | None:
        return draw("html", self) or None

    def _repr_svg_(self) -> str | None:
        return draw("svg", self) or None


class HasWidget:
    """Mixin of values that a widget shows in a notebook."""

    __slots__ = ()

    def widget(self) -> Any:
        """An anywidget of this value."""
        raise NotImplementedError

    def _display_(self) -> Any:
        """What marimo shows as the result of a cell."""
        return draw("marimo_output", self)


class Svg(str):
    """The text of an SVG file, which a notebook displays."""

    __slots__ = ()

    _repr_html_ = _repr_svg_ = str.__str__
    """A notebook displays the HTML form as a part of its page, so that screen readers can read its
    text and it has the colours of the notebook."""

    def save(self, path: str | Path) -> Path:
        """Write the file; raises CannotWrite."""
        return write_text(Path(path), self, "picture")


def write_report(
    compilation: Any, path: Path, ladder: str | None = None, assembly: bool = False
) -> Path:
    """Write the self-contained HTML page of a compilation; raises CannotWrite."""
    return Path(draw("report", compilation, path, ladder, assembly))


def write_trace_report(log: Any, path: Path, progress: Any = None) -> Path:
    """Write a trace log's index and compile ids as one HTML page; raises CannotWrite."""
    return Path(draw("trace_report", log, path, progress))


def live_widget(compilation: Any) -> Any:
    """The explorer of a compilation as an anywidget."""
    return draw("widget", compilation)


def mime_bundle(compilation: Any) -> dict[str, Any] | None:
    """The output of a notebook cell besides HTML, in frontends where HTML is not interactive; None
    elsewhere."""
    return draw("mime_bundle", compilation) or None


def explorers_bundle(several: Any) -> dict[str, Any] | None:
    """The same for several compilations in tabs; None outside notebooks."""
    return draw("explorers_bundle", several) or None


def annotated(compilation: Any) -> Any:
    """The source with the bytes moved next to each line; it is displayed as HTML and as text."""
    return draw("annotated", compilation)


def benchmark_svg(result: Any, view: str) -> Svg:
    """A picture of a benchmark result; raises UnknownName."""
    return Svg(draw("benchmark_svg", result, view))


def write_benchmark(result: Any, path: Path) -> Path:
    """Write a benchmark result as one self-contained HTML page; raises CannotWrite."""
    return Path(draw("benchmark_page", result, path))


def live_benchmark() -> Any:
    """A view of a running benchmark in the current cell; None outside notebooks."""
    return draw("live_benchmark")


def benchmark_widget(result: Any) -> Any:
    """A benchmark result as an anywidget."""
    return draw("benchmark_widget", result)


def live_steps(steps: Any) -> Any:
    """A call as steps, as an anywidget with buttons."""
    return draw("live_steps", steps)


def steps_bundle(steps: Any) -> dict[str, Any] | None:
    """The same for a notebook's output; None outside notebooks."""
    return draw("steps_bundle", steps) or None


def close_explorers() -> None:
    """Release the compilations that live explorers hold."""
    draw("close_explorers")


@contextmanager
def write_errors(path: Path, what: str) -> Iterator[None]:
    """Convert errors of writing inside the block to CannotWrite, whose message names the
    content."""
    try:
        yield
    except OSError as error:
        raise CannotWrite(
            f"the {what} cannot be written to {path}: {error.strerror or error}",
            todo="give a path in a folder that exists and that you may write to",
        ) from error


@contextmanager
def writing(path: Path, what: str) -> Iterator[TextIO]:
    """A text file that is written in pieces; raises CannotWrite, whose message names the
    content."""
    # a lone surrogate, which Python uses for bytes that are not UTF-8, is written as \ud800
    with write_errors(path, what), path.open("w", -1, "utf-8", "backslashreplace") as file:
        yield file


def write_text(path: Path, text: str, what: str) -> Path:
    """Write a file for the user; raises CannotWrite, whose message names the content."""
    with writing(path, what) as file:
        file.write(text)
    return path
