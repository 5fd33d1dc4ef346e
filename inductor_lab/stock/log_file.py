"""Read one file of a `TORCH_TRACE` folder as a stream: the positions of entries, and damage.

```
V1123 03:24:27.247000 10156 torch/_dynamo/utils.py:2350] {"dynamo_start": {...}, "frame_id": 0}
→ payload, each line after a tab; the entry has its checksum
```

Only positions and short metadata of an entry are kept; its payload is read when it is needed.
Nothing in a file is executed, and no file that it names is opened.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from inductor_lab.compiler.base.errors import UnreadableFile
from inductor_lab.compiler.capture.events import Event
from inductor_lab.stock.trace_index import kind_of

LONGEST_LINE = 64 << 20
"""Longer lines count as damaged."""
MOST_DAMAGE = 50
"""Maximum number of damaged places that are listed for a file."""

_HEAD = re.compile(rb"(?:\[rank(\d+)\]:)?[A-Z]\d{4} [\d:.]+ \d+ [^\]]*\] (?=\{)")
_UNREAD = frozenset({"describe_storage", "link"})
_TENSOR = ("id", "describer_id", "dtype", "size")
_METRICS = (
    "co_name", "co_filename", "co_firstlineno", "entire_frame_compile_time_s", "fail_type",
    "fail_reason", "fail_user_frame_filename", "fail_user_frame_lineno", "restart_reasons",
    "num_graph_breaks", "cache_size", "recompile_reason",
)  # fmt: skip

Progress = Callable[[int, int], None]
"""Called with the number of bytes read and the total."""


@dataclass(frozen=True, slots=True)
class Place:
    """An entry: its metadata, and the position of its payload (`size` 0: no payload)."""

    metadata: Mapping[str, Any]
    start: int = 0
    size: int = 0


@dataclass
class LogFile:
    """The entries of a file in order, by compile id (`""`: no compile id).

    `strings` maps the numbers in the log to file names.
    """

    path: Path
    places: dict[str, list[Place]] = field(default_factory=dict)
    strings: dict[int, str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    rank: str = ""
    damaged: int = 0

    @staticmethod
    def read(path: Path, progress: Progress | None = None) -> LogFile:
        """Read the file once; raises UnreadableFile if it cannot be opened."""
        log = LogFile(path)
        try:
            size = path.stat().st_size
            with path.open("rb") as stream:
                _Scan(log, stream, size, progress or (lambda done, of: None)).run()
        except OSError as error:
            raise UnreadableFile(
                f"cannot read {path}: {error.strerror or error}", todo="check the path"
            ) from error
        return log

    def file_of(self, number: int) -> str:
        """The file name of a number; "" if the log does not define it."""
        return self.strings.get(number, "")

    def events(self, compile_id: str, kinds: Container[str] | None = None) -> Iterator[Event]:
        """The entries of a compile id with their payloads; with `kinds`, only these kinds."""
        with self.path.open("rb") as stream:
            for place in self.places.get(compile_id, ()):
                if kinds is None or kind_of(place.metadata) in kinds:
                    yield Event(place.metadata, _payload(stream, place))

    def add_problem(self, problem: str) -> None:
        """Record damage; after `MOST_DAMAGE` places it is only counted."""
        self.damaged += 1
        if self.damaged <= MOST_DAMAGE:
            self.problems.append(f"{self.path.name}: {problem}")


def _payload(stream: BinaryIO, place: Place) -> str | None:
    if not place.size:
        return None
    stream.seek(place.start)
    raw = stream.read(place.size).decode("utf-8", "replace")
    return "\n".join(line.removeprefix("\t") for line in raw.split("\n")).removesuffix("\n")


class _Scan:
    """One pass through a file, line by line."""

    def __init__(self, log: LogFile, stream: BinaryIO, size: int, progress: Progress) -> None:
        self.log, self.stream, self.size, self.progress = log, stream, size, progress
        self.line_number = 0
        self.offset = 0
        self.open: tuple[dict[str, Any], int, int] | None = None
        self.checksum = hashlib.md5(usedforsecurity=False)
        self.waiting = b""
        self.shared: dict[str, dict[str, Any]] = {}

    def run(self) -> None:
        while line := self.stream.readline(LONGEST_LINE):
            self.line_number += 1
            if line.startswith(b"\t"):
                self._more(line)
            else:
                self._close()
                self._head(line)
            self.offset += len(line)
            if self.line_number % 4096 == 0:
                self.progress(self.offset, self.size)
        self._close()
        self.progress(self.size, self.size)

    def _more(self, line: bytes) -> None:
        """Add a line to a payload; its final line feed counts if another line follows."""
        self.checksum.update(self.waiting)
        self.checksum.update(line[1:].rstrip(b"\n"))
        self.waiting = b"\n"

    def _head(self, line: bytes) -> None:
        found = _HEAD.match(line)
        if found is None:
            if line.strip():
                self.log.add_problem(f"line {self.line_number} is not a trace entry: skipped")
            return
        try:
            metadata = json.loads(line[found.end() :])
        except (ValueError, RecursionError):
            self.log.add_problem(f"line {self.line_number} is damaged: skipped")
            return
        if found[1]:
            self.log.rank = found[1].decode()
        self.open = (metadata, self.offset + len(line), self.line_number)
        self.checksum = hashlib.md5(usedforsecurity=False)
        self.waiting = b""

    def _close(self) -> None:
        """Finish the entry before this position."""
        if self.open is None:
            return
        (metadata, start, number), self.open = self.open, None
        kind = next(iter(metadata), "")
        if kind == "str":
            self._string(metadata["str"], number)
        elif kind not in _UNREAD:
            expected = metadata.get("has_payload")
            if expected and expected != self.checksum.hexdigest():
                self.log.add_problem(f"the payload of line {number} ({kind}) is damaged: skipped")
                return
            size = self.offset - start if expected else 0
            kept = self._short(kind, metadata)
            compile_id = Event(kept, None).compile_id
            self.log.places.setdefault(compile_id, []).append(Place(kept, start, size))

    def _string(self, entry: Any, number: int) -> None:
        match entry:
            case [str(text), int(index)]:
                self.log.strings[index] = text
            case _:
                self.log.add_problem(f"line {number} is damaged: skipped")

    def _short(self, kind: str, metadata: dict[str, Any]) -> dict[str, Any]:
        """Metadata without large values that are not read, such as all settings of torch."""
        metadata.pop("has_payload", None)
        if kind == "describe_tensor" and isinstance(metadata[kind], dict):
            metadata[kind] = {name: metadata[kind].get(name) for name in _TENSOR}
        if kind in ("chromium_event", "describe_tensor", "describe_source"):
            return self.shared.setdefault(json.dumps(metadata), metadata)
        if kind != "compilation_metrics" or not isinstance(metadata[kind], dict):
            return metadata
        return {**metadata, kind: {name: metadata[kind].get(name) for name in _METRICS}}
