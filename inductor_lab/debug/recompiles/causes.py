"""What varied between the calls that were compiled, and why a dynamic size became constant.

TorchDynamo's trace entries say which tensors and numbers a compilation saw.  They are the same in
this process and in a log of `TORCH_TRACE`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from inductor_lab.compiler.capture.capture import Guard, Recompile, readable_source
from inductor_lab.compiler.capture.events import Event, Reader
from inductor_lab.compiler.capture.fx_graph import Span
from inductor_lab.saved.documents import compile_types
from inductor_lab.saved.documents.sources import place

_CONSTANT = re.compile(r"(?P<source>[LG]\[.*\S) == (?P<value>\S.*)")


@dataclass(frozen=True)
class Varied:
    """An object whose guards failed, and its values in the calls that were compiled.

    seen  `(compile id, value)`; a tensor is written `float32[4, 3]`
    """

    frame: str
    source: str
    seen: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        values = ", ".join(f"{value} ({compile_id})" for compile_id, value in self.seen)
        return f"{readable_source(self.source)}: {values}"


@dataclass(frozen=True)
class Specialized:
    """A dynamic size that became the constant `value` in a compilation.

    chain  the conditions on sizes that led to it, each with its line; the last one is decisive
    span   the user's line of the last condition
    via    the line of library code that requires it; None if it is the user's line
    """

    compile_id: str
    source: str
    value: str
    chain: tuple[str, ...]
    span: Span | None
    via: Span | None

    def __str__(self) -> str:
        called = f" (through {self.via})" if self.via else ""
        where = f"    {self.span}  {self.span.code}{called}" if self.span else ""
        head = f"{readable_source(self.source)} was dynamic and became {self.value}{where}"
        return "\n".join([head, *(f"  because {condition}" for condition in self.chain)])


def varied(
    recompiles: Sequence[Recompile], facts: Mapping[str, Mapping[str, str]]
) -> tuple[Varied, ...]:
    """The objects of failed guards that had several values; `facts` by compile id (`seen_values`).
    """
    seen: dict[tuple[str, str], dict[str, str]] = {}
    sources = dict.fromkeys((_frame(r.compile_id), r.source) for r in recompiles if r.source)
    for frame, source in sources:
        values = seen.setdefault((frame, source), {})
        for compile_id, known in facts.items():
            if _frame(compile_id) == frame and source in known:
                values[compile_id] = known[source]
    for each in recompiles:
        if each.source and each.value:
            seen[_frame(each.compile_id), each.source].setdefault(each.compile_id, each.value)
    return tuple(
        Varied(frame, source, tuple(sorted(values.items(), key=lambda item: _order(item[0]))))
        for (frame, source), values in seen.items()
        if len(set(values.values())) > 1
    )


def seen_values(heard: Iterable[Event]) -> dict[str, str]:
    """Tensors and numbers that one compilation saw, by source."""
    tensors: dict[object, str] = {}
    found: dict[str, str] = {}
    for event in heard:
        tensor = event.metadata.get("describe_tensor")
        named = event.metadata.get("describe_source")
        symbol = event.metadata.get("create_symbol")
        if tensor:
            dtype = str(tensor.get("dtype")).removeprefix("torch.")
            at = tensor.get("describer_id"), tensor.get("id")
            tensors[at] = f"{dtype}{list(tensor.get('size') or ())}"
        elif named and (at := (named.get("describer_id"), named.get("id"))) in tensors:
            found[str(named.get("source"))] = tensors[at]
        elif symbol and ".size()" not in str(symbol.get("source")):
            found.setdefault(str(symbol.get("source")), str(symbol.get("val")))
        elif "dynamo_cpp_guards_str" in event.metadata:
            found.update((source, value) for source, value in _constants(event)
                         if source not in found)  # fmt: skip
    return found


def _constants(event: Event) -> Iterator[tuple[str, str]]:
    """Objects that are guarded to be equal to a constant."""
    for guard in Reader(set(), lambda _: "").guards([event]):
        constant = _CONSTANT.fullmatch(guard.code)
        if guard.kind in ("EQUALS_MATCH", "TRUE_MATCH", "FALSE_MATCH") and constant:
            yield constant["source"], constant["value"].strip()


def specializations(heard: Sequence[Event], reader: Reader) -> Iterator[Specialized]:
    """The dynamic sizes that became constant in one compilation, each once."""
    done: set[str] = set()
    for number, event in enumerate(heard):
        entry = event.metadata.get("symbolic_shape_specialization")
        sources = [str(source) for source in (entry or {}).get("sources") or ()]
        if entry is None or not sources or sources[0] in done:
            continue
        done.add(sources[0])
        stack, related, chain = entry.get("user_stack"), {sources[0]}, []
        for guard, guard_stack in _conditions(heard[:number], reader):
            about = set(guard.source.split(", "))
            if about & related:
                related |= about if guard.code.startswith("Eq(") else set()
                at = f"    {guard.span}  {guard.span.code}" if guard.span else ""
                chain.append(f"{readable_source(guard.code)}{at}")
                stack = guard_stack
        span, via = reader.origin(stack)
        yield Specialized(event.compile_id, sources[0], str(entry.get("value")),
                          tuple(dict.fromkeys(chain)), span, via)  # fmt: skip


def _conditions(heard: Sequence[Event], reader: Reader) -> Iterator[tuple[Guard, Any]]:
    """The conditions on sizes so far, each with the logged stack of the code that requires it."""
    kind = "guard_added_fast"
    stacks = [e.metadata[kind].get("user_stack") for e in heard if kind in e.metadata]
    kept = [e for e in heard if kind in e.metadata or "create_symbol" in e.metadata]
    yield from zip(reader.guards(kept), stacks, strict=True)


def restarts_and_limit(heard: Iterable[Event]) -> tuple[tuple[str, ...], str]:
    """Why the analysis of a frame began again, and the limit that it reached ("" if none)."""
    restarts: dict[str, None] = {}
    limit = ""
    for event in heard:
        metrics = event.metadata.get("compilation_metrics") or {}
        restarts |= dict.fromkeys(_first_line(r) for r in metrics.get("restart_reasons") or ())
        failure = str(metrics.get("fail_reason") or "")
        if "limit" in failure.partition("\n")[0]:
            limit = _first_line(failure)
    return tuple(restarts), limit


def varied_data(known: Varied) -> compile_types.Varied:
    """As data (docs/json.md)."""
    return compile_types.Varied(
        source=readable_source(known.source),
        compile_ids=[compile_id for compile_id, _ in known.seen],
        values=[value for _, value in known.seen],
    )


def specialized_data(known: Specialized) -> compile_types.Specialized:
    """As data (docs/json.md)."""
    return compile_types.Specialized(
        compile_id=known.compile_id, source=readable_source(known.source), value=known.value,
        chain=list(known.chain), place=place(known.span), via=place(known.via),
    )  # fmt: skip


def _first_line(text: object) -> str:
    return str(text).strip().partition("\n")[0]


def _frame(compile_id: str) -> str:
    return compile_id.rpartition("/")[0]


def _order(compile_id: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", compile_id))
