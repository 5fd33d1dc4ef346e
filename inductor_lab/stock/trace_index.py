"""Entries of torch's structured trace → what each compile id told, sorted by what it is about.

One compile id (`"0/0"`) is one capture of TorchDynamo and what stock made of it: a captured graph,
a joint graph, and a part for each direction.  When TorchDynamo starts a frame again (`attempt`),
what the earlier attempt told of graphs is dropped.
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
class PartTold:
    """Texts about one direction, as they came."""

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


@dataclass
class Told:
    """Texts about one compile id."""

    compile_id: str
    attempt: int = 0
    captured: str = ""
    joint: str = ""
    directions: dict[str, str] = field(default_factory=dict)
    parts: list[PartTold] = field(default_factory=list)
    runnable: str = ""
    aot_cache: str = ""
    metrics: Mapping[str, Any] = field(default_factory=dict)
    restarts: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def hear(self, event: Event) -> None:
        """Take in one entry; what is of no use here is ignored."""
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

    def part(self) -> PartTold:
        """The part that is being told of."""
        if not self.parts:
            self.parts.append(PartTold())
        return self.parts[-1]

    def next_part(self) -> PartTold:
        """The part that a graph or code belongs to: a new one once the last one has its code."""
        if not self.parts or self.parts[-1].code:
            self.parts.append(PartTold())
        return self.parts[-1]

    def _provenance(self, event: Event) -> None:
        data = _json(event.payload)
        part = self.part()
        part.to_captured = {k: tuple(v) for k, v in _lists(data.get("postToPre")).items()}
        part.provenance = _lists(data.get("cppCodeToPost"))


def by_compile_id(log: Iterable[Event]) -> dict[str, Told]:
    """What each compile id told, in the order in which they began."""
    told: dict[str, Told] = {}
    for event in log:
        if event.compile_id:
            told.setdefault(event.compile_id, Told(event.compile_id)).hear(event)
    return told


def size_hints(log: Iterable[Event]) -> dict[str, int]:
    """The values that symbolic sizes had when they were made."""
    created = (event.metadata.get("create_symbol") or {} for event in log)
    return {
        str(entry["symbol"]): int(entry["val"])
        for entry in created
        if str(entry.get("val", "")).isdigit()
    }


def kind_of(metadata: Mapping[str, Any]) -> str:
    """What an entry is: the name of its artifact, or its own kind."""
    artifact = metadata.get("artifact")
    if isinstance(artifact, Mapping):
        return str(artifact.get("name", ""))
    return str(next(iter(metadata), ""))


def _captured(told: Told, text: str) -> None:
    told.captured = text


def _joint(told: Told, text: str) -> None:
    told.joint = text


def _direction(name: str) -> Callable[[Told, str], None]:
    def keep(told: Told, text: str) -> None:
        told.directions[name] = text

    return keep


def _before(told: Told, text: str) -> None:
    told.next_part().before = text


def _after(told: Told, text: str) -> None:
    told.next_part().after = text


def _code(told: Told, text: str) -> None:
    told.next_part().code = text


def _ir_before(told: Told, text: str) -> None:
    told.next_part().ir_before = text


def _ir_after(told: Told, text: str) -> None:
    told.next_part().ir_after = text


def _fusion(told: Told, text: str) -> None:
    told.next_part().fusion.append(text)


def _runnable(told: Told, text: str) -> None:
    told.runnable = told.runnable or text


_TEXTS: dict[str, Callable[[Told, str], None]] = {
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
}
"""The last three are told by loggers, not by the structured trace; `live.py` hears them."""


def _text(payload: Any) -> str:
    return payload if isinstance(payload, str) else json.dumps(payload)


def _json(payload: Any) -> dict[str, Any]:
    """A JSON object; an empty one where there is none, or where it is damaged."""
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
