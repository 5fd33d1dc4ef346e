"""Entries of torch's structured trace log → guards, breaks, symbols, recompiles, timings.

An entry is a dictionary of metadata, with one key for its kind, and often a text payload.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from inductor_lab.compiler.base.observer import Phase
from inductor_lab.compiler.capture.capture import GraphBreak, Guard, Recompile, Symbol
from inductor_lab.compiler.capture.fx_graph import Span
from inductor_lab.compiler.capture.span import outside_torch, shown_file, spans_in
from inductor_lab.compiler.torch_door.torch_logs import traced_file

_WANTED = (
    "artifact", "chromium_event", "create_symbol", "create_unbacked_symbol",
    "dynamo_cpp_guards_str", "dynamo_output_graph", "guard_added", "guard_added_fast",
)  # fmt: skip
_MANAGER = re.compile(r"GuardManager: source=(?P<source>.*?), accessed_by=")
_GUARD = re.compile(r"\+- (?P<kind>[A-Z][A-Z_0-9]+): (?P<code>.*)$")
_PLACE = re.compile(r"#\s+(?P<file>[^#]*?):(?P<line>\d+) in (?P<function>[\w<>]+)")
_USER_TRACEBACK = "User code traceback:"


@dataclass(frozen=True)
class Event:
    """One entry of the log."""

    metadata: Mapping[str, Any]
    payload: Any

    @property
    def compile_id(self) -> str:
        frame, autograd = (self.metadata.get(f"{of}_id") for of in ("frame", "compiled_autograd"))
        outer = "" if autograd is None else f"!{autograd}/"
        return "" if frame is None else f"{outer}{frame}/{self.metadata.get('frame_compile_id')}"

    def is_artifact(self, name: str) -> bool:
        return bool(self.metadata.get("artifact", {}).get("name") == name)


def is_wanted(metadata: Mapping[str, Any]) -> bool:
    """Does the compiler read entries of this kind?"""
    return any(kind in metadata for kind in _WANTED)


def compile_ids(log: Iterable[Event]) -> Iterator[str]:
    """The compilation of each captured graph, in order."""
    return (event.compile_id for event in log if "dynamo_output_graph" in event.metadata)


def phases(log: Iterable[Event]) -> Iterator[Phase]:
    """The intervals between begin and end events of Dynamo's phases."""
    started: dict[str, list[float]] = defaultdict(list)
    for event in log:
        if "chromium_event" not in event.metadata:
            continue
        entry = json.loads(event.payload)
        name, microseconds = entry["name"], entry["ts"]
        if entry["ph"] == "B":
            started[name].append(microseconds)
        elif entry["ph"] == "E" and started[name]:
            start = started[name].pop()
            yield Phase(name, "TorchDynamo", start / 1e6, (microseconds - start) / 1e6)


def seconds_by_phase(found: Iterable[Phase]) -> dict[str, float]:
    """Seconds of each phase, summed."""
    total: dict[str, float] = {}
    for phase in found:
        total[phase.name] = total.get(phase.name, 0.0) + phase.seconds
    return total


@dataclass(frozen=True)
class Reader:
    """Reads the entries that have locations; `files` are the full paths of shortened ones, and
    `file_of` returns the path of a number in the log."""

    files: set[str]
    file_of: Callable[[int], str] = traced_file

    def guards(self, log: Iterable[Event]) -> Iterator[Guard]:
        """Guards on values (from the printed guard tree), then guards on symbolic sizes."""
        events = list(log)
        symbols = (e.metadata["create_symbol"] for e in events if "create_symbol" in e.metadata)
        sources = {str(entry["symbol"]): str(entry["source"]) for entry in symbols}
        for event in events:
            if "dynamo_cpp_guards_str" in event.metadata:
                yield from self._tree(event)
            for kind in ("guard_added", "guard_added_fast"):
                if kind in event.metadata:
                    yield self._shape_guard(event, event.metadata[kind], sources)

    def _tree(self, event: Event) -> Iterator[Guard]:
        source = ""
        for line in str(event.payload).splitlines():
            manager = _MANAGER.search(line)
            if manager:
                source = manager["source"]
            guard = _GUARD.search(line)
            if guard:
                code, _, comment = guard["code"].partition("  # ")
                span = self._span(f"# {comment}") if comment else None
                about = source if source and source in code else ""
                yield Guard(guard["kind"], code.strip(), about, span, event.compile_id)

    def _span(self, comment: str) -> Span | None:
        """`# y = x.sin()  # /shortened/m.py:3 in f` → the span, if the file is known."""
        place = _PLACE.search(comment)
        if place is None:
            return None
        file = next((f for f in sorted(self.files) if f.endswith(place["file"])), "")
        if not file or not outside_torch(file):
            return None
        code = comment[: place.start()].strip("# ")
        return Span(shown_file(file), int(place["line"]), function=place["function"], code=code)

    def breaks(self, log: Iterable[Event]) -> Iterator[GraphBreak]:
        """Graph breaks, each once (Dynamo reports a break again when it restarts a frame)."""
        seen: set[tuple[str, str, Span | None]] = set()
        for event in log:
            if event.is_artifact("dynamo_graph_break_reason"):
                found = _graph_break(event)
                key = (found.compile_id, found.reason, found.span)
                if key not in seen:
                    seen.add(key)
                    yield found

    def symbols(self, log: Iterable[Event]) -> Iterator[Symbol]:
        """Symbolic sizes and numbers; unbacked ones (known only at run time) have no hint."""
        for event in log:
            for kind in ("create_symbol", "create_unbacked_symbol"):
                entry = event.metadata.get(kind)
                if entry:
                    yield Symbol(
                        name=str(entry["symbol"]),
                        hint=str(entry.get("val", "unknown")),
                        range=str(entry.get("vr", "")),
                        source=str(entry.get("source", "data")),
                        span=self._logged_span(entry.get("user_stack")),
                        compile_id=event.compile_id,
                    )

    def recompiles(self, log: Iterable[Event]) -> Iterator[Recompile]:
        """The guards that failed, one for each recompile.

        Recompiles because of code from another `lab.inspect` of the same function are skipped.
        """
        for event in log:
            if event.is_artifact("recompile_reasons"):
                reasons = _reasons(event.payload)
                for reason in (one for one in reasons if "BACKEND_MATCH" not in one):
                    failed, _, text = reason.partition(": ")
                    code, _, comment = text.partition("\n")[0].partition("  # ")
                    span = self._span(f"# {comment}") if comment else None
                    yield Recompile(event.compile_id, failed, code.strip(), span)

    def _shape_guard(
        self, event: Event, entry: Mapping[str, Any], sources: Mapping[str, str]
    ) -> Guard:
        expression = str(entry.get("expr", ""))
        names = sorted(set(re.findall(r"[a-z]\w*", expression)) & sources.keys())
        expression = re.sub(r"\b[a-z]\w*", lambda name: sources.get(name[0], name[0]), expression)
        about = ", ".join(sources[name] for name in names)
        span = self._logged_span(entry.get("user_stack"))
        return Guard("SHAPE", expression, about, span, event.compile_id)

    def _logged_span(self, stack: list[dict[str, Any]] | None) -> Span | None:
        """The innermost frame of a logged stack; its `filename` is a number in torch's table."""
        frames = [f for f in stack or [] if outside_torch(self.file_of(f["filename"]))]
        if not frames:
            return None
        frame = frames[-1]
        file = shown_file(self.file_of(frame["filename"]))
        line, function = int(frame["line"]), str(frame["name"])
        return Span(file, line, function=function, code=str(frame.get("loc") or ""))


def _reasons(payload: Any) -> list[str]:
    if isinstance(payload, list):
        return [str(reason) for reason in payload]
    text = str(payload)
    return [str(r) for r in json.loads(text)] if text.startswith("[") else [text]


def _graph_break(event: Event) -> GraphBreak:
    head, _, rest = str(event.payload).partition(_USER_TRACEBACK)
    stack = tuple(spans_in(rest.partition("\nTraceback (most recent")[0], skip_torch=True))
    reason = _after("Graph Break Reason:", head) or head.strip().partition("\n")[0]
    return GraphBreak(
        reason=reason,
        explanation=_after("Explanation:", head),
        hints=tuple(re.findall(r"^\s*Hint: (.*)$", head, re.M)),
        span=stack[-1] if stack else None,
        user_stack=stack,
        compile_id=event.compile_id,
        link=_after("please visit:", head).partition(" ")[0],
    )


def _after(label: str, text: str) -> str:
    """The text after a label up to the next labelled line, as one line."""
    ends = r"\n\s*(?:Explanation|Hint|Developer debug context|For more details)[: ]|\Z"
    match = re.search(rf"{re.escape(label)}(.*?)(?={ends})", text, re.S)
    return " ".join(match[1].split()) if match else ""
