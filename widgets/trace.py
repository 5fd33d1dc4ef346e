"""A trace log as a page: an index of its compile ids, each of which opens in the explorer.

The page contains every document as JSON.  The address selects the document (`#1/0`), so the
browser's back button returns to the index.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from inductor_lab.compiler.base.display import writing
from inductor_lab.notebook.language import say
from inductor_lab.widgets.compressed import zipped
from inductor_lab.widgets.function_name import function_name
from inductor_lab.widgets.markup import Tree, element, said_heads, table, written
from inductor_lab.widgets.model import document
from inductor_lab.widgets.page import (
    bench_style,
    page,
    script,
    style,
)
from inductor_lab.widgets.time import seconds_text

if TYPE_CHECKING:
    from inductor_lab.stock.trace_log import Compiled, TraceLog

MOST_BYTES = 120 << 20
"""Maximum total size of the explorers in a page; the index lists the others without a link."""
SPLIT = "<!-- explorers -->"
COLUMNS = ("compile id", "function", "where", ">time", "status", "what happened")

_SCRIPT = """
const index = document.getElementById("lab-index");
const opened = document.getElementById("lab");
const wanted = decodeURIComponent(location.hash.slice(1));
const held = [...document.querySelectorAll("script[data-key]")];
const data = held.find((element) => element.dataset.key === wanted);
if (data) {
  index.hidden = true;
  document.getElementById("lab-back").hidden = false;
  renderZipped(opened, data.textContent);
}
addEventListener("hashchange", () => location.reload());
"""
_STYLE = """
.lab-bench[hidden]{display:none}
.lab-bench .warn{font-weight:600}
.lab-bench a{color:var(--bar)}
#lab-index{min-height:100vh;box-sizing:border-box}
#lab-index th{white-space:nowrap}
#lab-index td:nth-child(2),#lab-index td:nth-child(5){min-width:min(13em,14vw)}
#lab-back{padding:6px 10px}
#lab.lab-explorer{height:calc(100vh - 36px);border-radius:0}
"""


def write_trace_report(
    log: TraceLog, path: Path, progress: Callable[[int, int], None] | None = None
) -> Path:
    """Write the page incrementally, with one explorer in memory at a time; raises CannotWrite."""
    frame = page(log.name, SPLIT, bench_style(), style(), _STYLE)
    before, _, after = frame.partition(SPLIT)
    held: set[str] = set()
    room = MOST_BYTES
    with writing(path, "report") as file:
        back = f'<a href="#">← {escape(say("all compile ids"))}</a>'
        file.write(f'{before}<div id="lab-back" class="lab-bench" hidden>{back}</div>\n')
        file.write('<div id="lab"></div>\n')
        for number, found in enumerate(log.compiled, 1):
            text = zipped(document(log[found.key])) if room > 0 else ""
            room -= len(text)
            if room > 0:
                held.add(found.key)
                key = escape(found.key)
                file.write(f'<script type="text/plain" data-key="{key}">{text}</script>\n')
            if progress is not None:
                progress(number, len(log))
        index = written(index_tree(log, held))
        file.write(f'{index}<script type="module">\n{script()}\n{_SCRIPT}</script>{after}')
    return path


def trace_html(log: TraceLog) -> str:
    """The index for a notebook cell; `log["0/0"]` opens an explorer."""
    return f"<style>{bench_style()}</style>{written(index_tree(log, set()))}"


def index_tree(log: TraceLog, held: set[str]) -> Tree:
    """All compile ids with their status and events; those in `held` are links."""
    compiled = log.compiled
    total = sum(found.seconds for found in compiled)
    kinds = [kind for found in compiled for kind, _ in found.happened]
    counted = [f"{kinds.count(kind)} × {say(kind)}" for kind in dict.fromkeys(kinds)]
    missed = sum(found.caches.count("miss") for found in compiled)
    facts = [say("{n} compile ids", n=len(compiled)), seconds_text(total), *counted]
    facts += [f"{missed} × {say('cache miss')}"] * bool(missed)
    head = f"{log.name}  torch {log.torch_version}" if log.torch_version else log.name
    grid = table(said_heads(COLUMNS), (_cells(found) for found in compiled))
    for line, found in zip(grid[3][2:], compiled, strict=True):
        line[2][2:] = [_opener(found, held)]
        line[-1][2:] = list(_happened(found))
    return element(
        "div", {"class": "lab-bench", "id": "lab-index"},
        element("h1", {}, head),
        element("p", {"class": "lab-machine"}, " · ".join(facts)),
        *_problems(log),
        element("div", {"class": "lab-table"}, grid),
    )  # fmt: skip


def _cells(found: Compiled) -> tuple[str, ...]:
    answers = Counter(found.caches)  # of the forward and the backward graph
    caches = "".join(
        say(", cache {answer}", answer=say(answer)) + f" ×\N{NO-BREAK SPACE}{times}" * (times > 1)
        for answer, times in answers.items()
    )
    where = str(found.where or "")
    name = function_name(found.function)
    return ("", name, where, seconds_text(found.seconds), say(found.status) + caches, "")


def _opener(found: Compiled, held: set[str]) -> Tree | str:
    if found.key not in held:
        return found.key
    return element("a", {"href": f"#{quote(found.key)}"}, found.key)


def _happened(found: Compiled) -> Iterator[Tree]:
    for kind, text in found.happened:
        yield element("div", {}, element("span", {"class": "warn"}, say(kind)), f" {text}")


def _problems(log: TraceLog) -> Iterator[Tree]:
    if log.problems:
        skipped = say("{n} damaged entries were skipped:", n=len(log.problems))
        yield element("p", {"class": "warn"}, skipped)
        yield element("ul", {}, *(element("li", {}, problem) for problem in log.problems))
