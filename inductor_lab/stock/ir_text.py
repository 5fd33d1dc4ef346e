"""Parse the log of stock's scheduler: its IR before and after fusion, and its fusion log.

The text comes from the loggers of `TORCH_LOGS="ir_pre_fusion,ir_post_fusion,fusion"`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from inductor_lab.stock.stock_compilation import FusionStep, IrNode

_HEAD = re.compile(r"^(\w+): (\w+)\(([^)]*)\)")
_CANDIDATE = re.compile(r"SchedulerNode\(name=\\?'(\w+)\\?'\)")
_ORIGINS = re.compile(r"origins=OrderedSet\(\[([^\]]*)\]\)")
_DEPENDENCY = re.compile(r"Dep\((?:name=)?'(\w+)'")
_FUSED = re.compile(r"^fusing (\w+) with (\w+)")
_REFUSED = re.compile(r"^cannot fuse (\w+) with (\w+): (.*)", re.S)


def origins_by_node(log: Iterable[str]) -> dict[str, frozenset[str]]:
    """`op0` → FX nodes, from the lists of candidates in the fusion log."""
    found: dict[str, frozenset[str]] = {}
    for line in log:
        name, origins = _CANDIDATE.search(line), _ORIGINS.search(line)
        if name and origins and line.strip().startswith("SchedulerNode"):
            found.setdefault(name[1], frozenset(filter(None, origins[1].split(", "))))
    return found


def fusion_steps(log: Iterable[str]) -> Iterator[FusionStep]:
    """Fused and refused pairs in order; each refusal once, although stock repeats it each round."""
    seen: set[FusionStep] = set()
    for line in log:
        fused, refused = _FUSED.match(line), _REFUSED.match(line)
        step = None
        if fused:
            step = FusionStep(fused[1], fused[2], True)
        elif refused:
            step = FusionStep(refused[1], refused[2], False, " ".join(refused[3].split()))
        if step is not None and step not in seen:
            seen.add(step)
            yield step


def ir_nodes(text: str, origins: Mapping[str, frozenset[str]]) -> Iterator[IrNode]:
    """The blocks of an IR dump; a fused node has the origins of its members."""
    for block in re.split(r"\n\n\n+", text):
        lines = block.strip("\n").split("\n")
        start = next((i for i, line in enumerate(lines) if _HEAD.match(line)), None)
        if start is None:
            continue
        name, kind, inner = _HEAD.match(lines[start]).groups()  # type: ignore[union-attr]
        members = tuple(name.split("_")) if name not in origins else (name,)
        shown = "\n".join(lines[start:])
        yield IrNode(
            name=name,
            kind=_kind(kind, inner),
            origins=frozenset().union(*(origins.get(member, frozenset()) for member in members)),
            text=shown,
            reads=_named_in(shown, name, "unmet_dependencies", "met_dependencies"),
            writes=_named_in(shown, name, "writes"),
            members=members,
        )


def _named_in(text: str, node: str, *sections: str) -> tuple[str, ...]:
    """Buffers in `op0.writes = [MemoryDep('buf0', ...)]`; the list may span several lines."""
    found: dict[str, None] = {}
    for section in sections:
        match = re.search(rf"^{node}\.{section} =(.*?)(?=^{node}\.)", text, re.M | re.S)
        found |= dict.fromkeys(_DEPENDENCY.findall(match[1])) if match else {}
    return tuple(found)


def _kind(kind: str, inner: str) -> str:
    """`SchedulerNode(ComputedBuffer)` → `ComputedBuffer`; a fused node keeps its own name."""
    return inner if kind in ("SchedulerNode", "ExternKernelSchedulerNode") and inner else kind
