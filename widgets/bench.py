"""Pages of benchmarks: of a finished result, and of a running benchmark."""

from __future__ import annotations

import secrets
from pathlib import Path

from inductor_lab.bench.bench_result import BenchResult, Experiments, Measured, SweepResult
from inductor_lab.compiler.base.display import Svg, write_text
from inductor_lab.compiler.base.errors import UnknownName
from inductor_lab.notebook.language import say
from inductor_lab.widgets.charts import (
    bench_chart,
    experiments_chart,
    roofline_chart,
    sweep_chart,
)
from inductor_lab.widgets.markup import Tree, element, said_heads, table, written
from inductor_lab.widgets.page import bench_script, bench_style, page


def chart(result: Measured) -> Tree | None:
    """The main chart of a result; None if nothing has been measured."""
    match result:
        case SweepResult():
            return sweep_chart(result)
        case Experiments():
            return experiments_chart(result)
        case BenchResult():
            return bench_chart(result)
    raise TypeError(f"no chart of a {type(result).__name__}")


def roofline(result: Measured) -> Tree | None:
    """The roofline chart; None if the machine's limits are unknown or unreliable."""
    if isinstance(result, BenchResult) and result.limits is not None and not result.limits.doubt:
        return roofline_chart(result.steps, result.limits)
    return None


def svg(result: Measured, view: str = "chart") -> Svg:
    """The "chart" or the "roofline" as SVG text; raises UnknownName."""
    drawn = {"chart": chart, "roofline": roofline}.get(view, lambda _: None)(result)
    if drawn is None:
        raise UnknownName(
            f"this {type(result).__name__} has no view {view!r}",
            todo='"chart" needs measured times, "roofline" needs timed kernels',
        )
    return Svg(written(drawn) + "\n")


def tree(result: Measured, running: Tree | None = None) -> Tree:
    """The page of a result, which may be incomplete."""
    first, *others = result.tables
    return element(
        "div",
        {"class": "lab-bench"},
        *head(result, running),
        chart(result),
        element("div", {"class": "lab-table"}, table(said_heads(first.columns), first.rows))
        if len(first.columns) > 1 else None,
        roofline(result),
        *(part for more in others for part in (
            element("h2", {}, say(more.title)),
            element("div", {"class": "lab-table"}, table(said_heads(more.columns), more.rows)))),
        markdown(result),
    )  # fmt: skip


def head(result: Measured, running: Tree | None = None) -> tuple[Tree | None, ...]:
    """The title, the machine, and the results in sentences."""
    return (
        element("h1", {}, result.title),
        element("p", {"class": "lab-machine"}, str(result.machine)),
        running,
        element("ul", {}, *(element("li", {}, sentence) for sentence in result.sentences)),
    )


def markdown(result: Measured) -> Tree:
    """The result as Markdown, closed, for the button that copies it."""
    texts = {"data-copy": say("Copy as Markdown"), "data-copied": say("copied")}
    text = element("pre", {"class": "lab-markdown", **texts}, result.to_markdown())
    return element("details", {}, element("summary", {}, say("as Markdown")), text)


def html(result: Measured) -> str:
    """HTML for a cell's output; it is readable without its script, which only adds a button."""
    name = f"lab-{secrets.token_hex(6)}"
    return (
        f'<style>{bench_style()}</style><div id="{name}">{written(tree(result))}</div>'
        f'<script type="module">\n{bench_script()}\n'
        f'addButtons(document.getElementById("{name}"));\n</script>'
    )


def write_page(result: Measured, path: Path) -> Path:
    """Write a self-contained HTML file; raises CannotWrite."""
    return write_text(path, page(result.title, html(result)), "report")
