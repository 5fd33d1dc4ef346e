"""Entries of torch's structured trace log → guards, breaks, symbols, recompiles, timings.

An entry is a dictionary of metadata, with one key for its kind, and often a text payload.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from inductor_lab.compiler.base.observer import Phase
from inductor_lab.compiler.capture.capture import GraphBreak, Guard, Recompile, Symbol
from inductor_lab.compiler.capture.fx_graph import Span
from inductor_lab.compiler.capture.span import outside_torch, shown_file, spans_in
from inductor_lab.compiler.torch_door.failed_guard import FailedGuard

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
    file_of: Callable[[int], str]

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
        """The guards that failed: the first of each earlier version, or all if the entry has a
        `FailedGuard` for each.

        Recompiles because of code from another `lab.inspect` of the same function are skipped.
        """
        events = list(log)
        stacks = _stacks_of_sizes(events)
        for event in events:
            if event.is_artifact("recompile_reasons"):
                if isinstance(event.payload, tuple):
                    yield from (self._failed(event, guard, stacks) for guard in event.payload)
                    continue
                reasons = _reasons(event.payload)
                for reason in (one for one in reasons if "BACKEND_MATCH" not in one):
                    failed, _, text = reason.partition(": ")
                    code, _, comment = text.partition("\n")[0].partition("  # ")
                    span = self._span(f"# {comment}") if comment else None
                    yield Recompile(event.compile_id, failed, code.strip(), span)

    def _failed(
        self, event: Event, guard: FailedGuard, stacks: Mapping[str, list[dict[str, Any]]]
    ) -> Recompile:
        code, _, comment = guard.text.partition("\n")[0].partition("  # ")
        frames = [_span(*frame) for frame in guard.stack]
        known = [frame[0] for frame in guard.stack]
        span, via = _origin(known, frames) if frames else self.origin(stacks.get(guard.source))
        span = span or self._span(f"# {comment}")
        return Recompile(event.compile_id, guard.failed, code.strip(), span, guard.kind,
                         guard.source, guard.value, via)  # fmt: skip

    def origin(self, stack: list[dict[str, Any]] | None) -> tuple[Span | None, Span | None]:
        """Of a logged stack: the user's line, and the library line below it, if there is one."""
        known = [self.file_of(frame["filename"]) for frame in stack or ()]
        frames = [_span(file, int(frame["line"]), frame["name"], frame.get("loc"))
                  for file, frame in zip(known, stack or (), strict=True)]  # fmt: skip
        return _origin(known, frames)

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


def _span(file: str, line: int, function: str, code: str | None) -> Span:
    return Span(shown_file(file), line, function=function, code=code or "")


def _origin(files: list[str], frames: list[Span]) -> tuple[Span | None, Span | None]:
    users = [number for number, file in enumerate(files) if outside_torch(file)]
    if not users:
        return None, None
    inside = users[-1] != len(frames) - 1
    return frames[users[-1]], _library(frames[-1]) if inside else None


def _library(span: Span) -> Span:
    """A line of an installed package, such as `torch/nn/modules/linear.py`."""
    return replace(span, file=re.split(r"[/\\](?:site|dist)-packages[/\\]", span.file)[-1])


def _stacks_of_sizes(log: Iterable[Event]) -> dict[str, list[dict[str, Any]]]:
    """Tensor or number → the logged stack of the code that first used its symbolic size."""
    made = (e.metadata["create_symbol"] for e in log if "create_symbol" in e.metadata)
    found: dict[str, list[dict[str, Any]]] = {}
    for entry in made:
        source = str(entry.get("source", "")).partition(".size()")[0]
        found.setdefault(source, entry.get("user_stack") or [])
    return found


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
