"""Entries of torch's structured trace → the graphs and code of each compile id, as text.

One compile id (`"0/0"`) is one capture of TorchDynamo and its compilation by stock: a captured
graph, a joint graph, and a part for each direction.  When TorchDynamo restarts a frame (`attempt`),
the graphs of the earlier attempt are dropped.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from inductor_lab.compiler.capture.events import Event

_CACHE = "fx_graph_cache_"
_AOT_CACHE = "aotautograd_cache_"


@dataclass
class PartTexts:
    """The texts of one direction, in the order of the entries."""

    before: str = ""
    after: str = ""
    code: str = ""
    provenance: dict[str, list[str]] = field(default_factory=dict)
    stacks: dict[str, list[str]] = field(default_factory=dict)
    to_captured: dict[str, tuple[str, ...]] = field(default_factory=dict)
    cache: str = ""
    ir_before: str = ""
    ir_after: str = ""
    fusion: list[str] = field(default_factory=list)
    cuda_graphs: list[str] = field(default_factory=list)


@dataclass
class TraceTexts:
    """The texts of one compile id."""

    compile_id: str
    attempt: int = 0
    captured: str = ""
    joint: str = ""
    directions: dict[str, str] = field(default_factory=dict)
    parts: list[PartTexts] = field(default_factory=list)
    runnable: str = ""
    aot_cache: str = ""
    metrics: Mapping[str, Any] = field(default_factory=dict)
    restarts: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def add(self, event: Event) -> None:
        """Add one entry; entries of other kinds are ignored."""
        attempt = event.metadata.get("attempt") or 0
        if attempt > self.attempt:
            self.attempt = attempt
            self.captured = self.joint = ""
            self.directions.clear()
            self.parts.clear()
        kind = kind_of(event.metadata)
        if kind.startswith(_CACHE):
            self.part().cache = kind.removeprefix(_CACHE)
        elif kind.startswith(_AOT_CACHE):
            self.aot_cache = kind.removeprefix(_AOT_CACHE)
        elif kind in _TEXTS:
            _TEXTS[kind](self, _text(event.payload))
        elif kind == "compilation_metrics":
            self.metrics = event.metadata[kind]
            self.restarts += map(str, self.metrics.get("restart_reasons") or ())
        elif kind == "inductor_provenance_tracking_node_mappings":
            self._provenance(event)
        elif kind == "inductor_provenance_tracking_kernel_stack_traces":
            self.part().stacks = _lists(_json(event.payload))

    def part(self) -> PartTexts:
        """The part that entries currently belong to."""
        if not self.parts:
            self.parts.append(PartTexts())
        return self.parts[-1]

    def next_part(self) -> PartTexts:
        """The part that a graph or code belongs to: a new one if the last one has code."""
        if not self.parts or self.parts[-1].code:
            self.parts.append(PartTexts())
        return self.parts[-1]

    def _provenance(self, event: Event) -> None:
        data = _json(event.payload)
        part = self.part()
        part.to_captured = {k: tuple(v) for k, v in _lists(data.get("postToPre")).items()}
        part.provenance = _lists(data.get("cppCodeToPost"))


def by_compile_id(log: Iterable[Event]) -> dict[str, TraceTexts]:
    """The texts of each compile id, in the order of their first entries."""
    texts: dict[str, TraceTexts] = {}
    for event in log:
        if event.compile_id:
            texts.setdefault(event.compile_id, TraceTexts(event.compile_id)).add(event)
    return texts


def size_hints(log: Iterable[Event]) -> dict[str, int]:
    """The values that symbolic sizes had when they were made."""
    created = (event.metadata.get("create_symbol") or {} for event in log)
    return {
        str(entry["symbol"]): int(entry["val"])
        for entry in created
        if str(entry.get("val", "")).isdigit()
    }


def kind_of(metadata: Mapping[str, Any]) -> str:
    """The kind of an entry: the name of its artifact, or its first key."""
    artifact = metadata.get("artifact")
    if isinstance(artifact, Mapping):
        return str(artifact.get("name", ""))
    return str(next(iter(metadata), ""))


def _captured(texts: TraceTexts, text: str) -> None:
    texts.captured = text


def _joint(texts: TraceTexts, text: str) -> None:
    texts.joint = text


def _direction(name: str) -> Callable[[TraceTexts, str], None]:
    def keep(texts: TraceTexts, text: str) -> None:
        texts.directions[name] = text

    return keep


def _before(texts: TraceTexts, text: str) -> None:
    texts.next_part().before = text


def _after(texts: TraceTexts, text: str) -> None:
    texts.next_part().after = text


def _code(texts: TraceTexts, text: str) -> None:
    texts.next_part().code = text


def _ir_before(texts: TraceTexts, text: str) -> None:
    texts.next_part().ir_before = text


def _ir_after(texts: TraceTexts, text: str) -> None:
    texts.next_part().ir_after = text


def _fusion(texts: TraceTexts, text: str) -> None:
    texts.next_part().fusion.append(text)


def _cuda_graphs(texts: TraceTexts, text: str) -> None:
    texts.part().cuda_graphs.append(text)


def _runnable(texts: TraceTexts, text: str) -> None:
    texts.runnable = texts.runnable or text


_TEXTS: dict[str, Callable[[TraceTexts, str], None]] = {
    "dynamo_output_graph": _captured,
    "aot_joint_graph": _joint,
    "aot_forward_graph": _direction("forward"),
    "aot_backward_graph": _direction("backward"),
    "aot_inference_graph": _direction("inference"),
    "before_post_grad_graph": _before,
    "inductor_post_grad_graph": _after,
    "inductor_output_code": _code,
    "fx_graph_runnable": _runnable,
    "ir_pre_fusion": _ir_before,
    "ir_post_fusion": _ir_after,
    "fusion": _fusion,
    "cudagraphs": _cuda_graphs,
}
"""The last four come from loggers, not from the structured trace; `live.py` records them."""


def _text(payload: Any) -> str:
    return payload if isinstance(payload, str) else json.dumps(payload)


def _json(payload: Any) -> dict[str, Any]:
    """A JSON object; empty if it is missing or damaged."""
    if isinstance(payload, str):
        try:
            payload = json.loads(payload)
        except (ValueError, RecursionError):
            return {}
    return payload if isinstance(payload, dict) else {}


def _lists(data: Any) -> dict[str, list[str]]:
    if not isinstance(data, dict):
        return {}
    return {str(k): [str(x) for x in v] for k, v in data.items() if isinstance(v, list)}
