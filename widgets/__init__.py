"""The user interface: pictures, the explorer and reports, drawn from finished results.

`links` records which code came from which, `model` turns a compilation into plain JSON data, and
the ES modules in `javascript/` draw that data.  The compiler does not import this package: it calls
`display`, which calls `drawing`.
"""

from collections.abc import Callable
from importlib import import_module
from operator import attrgetter
from typing import Any

_HOMES = {
    "plot": "plots.plot",
    "to_dot": "dot.to_dot",
    "to_pydot": "dot.to_pydot",
    "html": "show.html",
    "svg": "show.svg",
    "report": "report.write_report",
    "trace_report": "trace.write_trace_report",
    "widget": "live.Explorer.of",
    "marimo_output": "home.marimo_output",
    "benchmark_widget": "bench_widget.BenchmarkWidget",
    "course_bars": "course.bars",
    "course_cells": "course.cells",
    "course_levels": "levels.levels",
    "course_race": "traffic.race",
    "mime_bundle": "show.mime_bundle",
    "explorers_bundle": "show.explorers_bundle",
    "explorer_data": "mime.explorer_data",
    "close_explorers": "home.close_explorers",
    "annotated": "annotate.Annotated",
    "benchmark_svg": "bench.svg",
    "benchmark_page": "bench.write_page",
    "live_benchmark": "home.live_benchmark",
    "live_recompiles": "home.live_recompiles",
    "lesson": "lesson.write_lesson",
    "lesson_difference": "lesson_diff.write_difference",
    "class_at_a_glance": "glance.write_glance",
    "live_steps": "debug_live.live_steps",
    "steps_bundle": "home.steps_bundle",
}


def drawing(name: str) -> Callable[..., Any]:
    """The drawing function that `inductor_lab.compiler.base.display` requests by this name."""
    module, function = _HOMES[name].split(".", 1)
    found: Callable[..., Any] = attrgetter(function)(import_module(f"{__name__}.{module}"))
    return found
