"""Save compilations as JSON data.  Loading runs only the constructors of our own types.

A value becomes a tree of rows `[tag, ...]`; equal rows are written once, in `table`, and referred
to as `["r", n]`.  So a shared subtree is stored in one row, and a deep expression is not deeply
nested.

```
(1, "a")               ["t", 1, "a"]
Axis("i0", 8)          ["o", "ir.index.Axis", "i0", 8]
float("nan")           ["x", "nan"]
```
"""

from __future__ import annotations

import base64
import importlib
import json
import os
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import sympy

from inductor_lab.compiler.base.errors import CannotWrite, UnreadableFile
from inductor_lab.compiler.base.garbage import no_collection
from inductor_lab.compiler.ir.effects import COLLECTIVES, LIBRARY
from inductor_lab.compiler.torch_door.torch_tables import SYMPY_FUNCTIONS
from inductor_lab.compiler.torch_door.torch_types import INSTALLED, torch
from inductor_lab.saved.checks import checks_of

T = TypeVar("T")

FORMAT = 1
"""Increased when older versions would misread new files."""

MAX_TENSOR_BYTES = 1 << 20
"""Constants are saved up to this total number of bytes; larger ones are loaded as None."""

MAX_NESTING = 40
"""A row is written inside the row that uses it, up to this nesting depth."""

MODULES = {
    "accelerate.libraries": "compiler.library_choice",
    "autograd.result": "compiler.autograd.graphs",
    "bench.machine": "bench.roofs",
    "bench.result": "bench.bench_result",
    "bench.roofline": "compiler.step_time",
    "bench.timing": "bench.timings",
    "capture.eager": "compiler.capture.eager_cost",
    "capture.graph": "compiler.capture.fx_graph",
    "capture.result": "compiler.capture.capture",
    "capture.source": "compiler.capture.source",
    "codegen.kernel": "compiler.codegen.kernel",
    "codegen.tree": "compiler.codegen.tree.loop_tree",
    "codegen.trees": "compiler.codegen.tree.tree_history",
    "compilation": "api.compilation",
    "ir.effects": "compiler.ir.effects",
    "ir.expr": "compiler.ir.expr",
    "ir.index": "compiler.ir.index",
    "ir.program": "compiler.ir.program",
    "observer": "compiler.base.observer",
    "options": "compiler.base.options",
    "records": "compiler.records",
    "rewrite.record": "compiler.rewrite.decompose.decomposition_record",
    "rewrite.result": "compiler.rewrite.rewrites",
    "schedule.parts": "compiler.schedule.row_parts",
    "schedule.result": "compiler.schedule.schedule",
    "stock.result": "stock.stock_compilation",
}
"""The modules whose dataclasses and enums a file may contain, by the names used in files.
These names do not change when a module moves, so that old documents still open."""


MOVED = {
    f"compilation.{name}": f"records.{name}"
    for name in ("CompiledPart", "CompiledGraph", "Coverage", "ExternUse")
} | {"runtime.matmul.Choice": "accelerate.libraries.Choice"}
"""Types that older files refer to by another module."""


ADDED: Mapping[str, Mapping[str, Callable[[dict[str, Any]], Any]]] = {
    "ir.program.ExternCall": {
        "effect": lambda call: COLLECTIVES.get(call["reason"], LIBRARY).effect,
    },
}
"""Fields that older files lack, computed from other fields."""


@cache
def known_classes() -> Mapping[str, type]:
    """The types that may be saved and loaded, by name (`"ir.program.Buffer"`)."""
    found: dict[str, type] = {}
    for name, path in MODULES.items():
        module = importlib.import_module(f"inductor_lab.{path}")
        for item in vars(module).values():
            own = isinstance(item, type) and item.__module__ == module.__name__
            if own and (is_dataclass(item) or issubclass(item, Enum)):
                found[f"{name}.{item.__name__}"] = item
    return found


def known_names() -> Mapping[str, Any]:
    """The names in the annotations of these types, including imports under `TYPE_CHECKING`."""
    found: dict[str, Any] = {"Executable": object}  # of a live field, which is in no file
    for path in MODULES.values():
        found |= vars(importlib.import_module(f"inductor_lab.{path}"))
    return {name: value for name, value in found.items() if not name.startswith("_")}


# ---- values to rows --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Ref:
    """The index of a row."""

    row: int


class _Encoder:
    """Converts values to rows, each distinct row once, without recursion."""

    def __init__(self, classes: Mapping[str, type]) -> None:
        self.names = {cls: name for name, cls in classes.items()}
        self.used_classes: dict[str, list[str]] = {}
        self.rows: list[list[Any]] = []
        self._numbers: dict[tuple[Any, ...], int] = {}
        self._done: dict[int, Any] = {}
        self._alive: list[Any] = []
        self._tensor_room = MAX_TENSOR_BYTES

    def encode(self, root: Any) -> Any:
        """A literal, or a `_Ref` to the row of `root`, after adding all rows below it."""
        open_parts: dict[int, tuple[list[Any], list[Any]]] = {}
        waiting = [] if _is_literal(root) else [(root, "")]
        while waiting:
            value, where = waiting[-1]
            if id(value) in self._done:
                waiting.pop()
                continue
            if id(value) not in open_parts:
                head, children = self._parts(value, where)
                self._alive.extend((value, children))
                open_parts[id(value)] = (head, children)
                below = f"{where}.{type(value).__name__}" if is_dataclass(value) else where
                waiting.extend((each, below) for each in children if not _is_literal(each))
                continue
            head, children = open_parts.pop(id(value))
            self._done[id(value)] = self._row([*head, *map(self._short, children)])
            waiting.pop()
        return self._short(root)

    def _short(self, value: Any) -> Any:
        return value if _is_literal(value) else self._done[id(value)]

    def _row(self, row: list[Any]) -> _Ref:
        key = tuple(x if isinstance(x, _Ref) else (type(x), repr(x)) for x in row)
        number = self._numbers.setdefault(key, len(self.rows))
        if number == len(self.rows):
            self.rows.append(row)
        return _Ref(number)

    def _parts(self, value: Any, where: str) -> tuple[list[Any], list[Any]]:
        """The literals at the start of a row, and the values that follow them."""
        cls: type = type(value)
        kind = self.names.get(cls)
        if kind is not None and isinstance(value, Enum):
            return ["e", kind, value.name], []
        if kind is not None:
            stored = _stored_fields(cls)
            self.used_classes[kind] = [f.name for f in stored]
            return ["o", kind], [getattr(value, f.name) for f in stored]
        if isinstance(value, Mapping):
            return ["d"], [part for pair in value.items() for part in pair]
        for plain, tag in _CONTAINERS.items():
            if isinstance(value, plain):
                return [tag], sorted(value, key=repr) if tag in "fS" else list(value)
        if isinstance(value, sympy.Basic):
            return _sympy_parts(value)
        if isinstance(value, torch.Tensor):
            return self._tensor(value), []
        if type(value) in _SCALARS:
            return _SCALARS[type(value)](value), []
        raise TypeError(f"cannot save a {type(value).__name__}{' in ' + where if where else ''}")

    def _tensor(self, tensor: torch.Tensor) -> list[Any]:
        nbytes = tensor.numel() * tensor.element_size()
        if nbytes > self._tensor_room or tensor.layout is not torch.strided:
            return ["T", str(tensor.dtype)]
        self._tensor_room -= nbytes
        raw = tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
        text = base64.b64encode(raw).decode()
        return ["T", str(tensor.dtype), text, *tensor.shape]


def _is_literal(value: Any) -> bool:
    if type(value) is str:
        return len(value) <= 24
    if type(value) is float:
        return value - value == 0
    return value is None or type(value) in (bool, int)


@cache
def _stored_fields(cls: type) -> list[Field[Any]]:
    return [f for f in fields(cls) if f.init and not f.metadata.get("live")]


_CONTAINERS: dict[type[Collection[Any]], str] = {tuple: "t", list: "l", frozenset: "f", set: "S"}

_SCALARS: dict[type, Callable[[Any], list[Any]]] = {
    str: lambda v: ["s", v],
    float: lambda v: ["x", repr(v)],
    complex: lambda v: ["c", repr(v)],
    bytes: lambda v: ["b", base64.b64encode(v).decode()],
    torch.dtype: lambda v: ["torch", str(v)],
    torch.layout: lambda v: ["torch", str(v)],
    torch.memory_format: lambda v: ["torch", str(v)],
    torch.device: lambda v: ["device", str(v)],
}


def _sympy_parts(value: sympy.Basic) -> tuple[list[Any], list[Any]]:
    if isinstance(value, sympy.Symbol):
        facts = sorted((name, fact) for name, fact in value.assumptions0.items())
        return ["y", value.name], [part for pair in facts for part in pair]
    if isinstance(value, sympy.Integer):
        return ["n", int(value)], []
    if isinstance(value, sympy.Rational):
        return ["q", value.p, value.q], []
    if isinstance(value, sympy.Float):
        return ["w", str(value)], []
    for name, function in SYMPY_FUNCTIONS.items():
        if type(value) is function:
            return ["z", name], list(value.args)
    raise TypeError(f"cannot save the sympy expression {value} ({type(value).__name__})")


# ---- rows to JSON ----------------------------------------------------------------------------


@no_collection()
def to_json(value: Any, classes: Mapping[str, type] | None = None) -> dict[str, Any]:
    """JSON data for a value of our frozen types with plain Python, torch and sympy values.

    Fields marked `metadata={"live": True}` are omitted.  Raises TypeError for other types.
    """
    encoder = _Encoder(classes or known_classes())
    root = encoder.encode(value)
    table, json_root = _written(encoder.rows, root)
    return {"classes": encoder.used_classes, "table": table, "root": json_root}


def _written(rows: list[list[Any]], root: Any) -> tuple[list[Any], Any]:
    """Move rows that are used once into the row that uses them; the rest become the table."""
    uses = [0] * len(rows)
    for row in rows:
        for item in row:
            if isinstance(item, _Ref):
                uses[item.row] += 1
    table: list[Any] = []
    written: list[Any] = []
    depth: list[int] = []

    def place(item: Any) -> Any:
        return written[item.row] if isinstance(item, _Ref) else item

    for number, row in enumerate(rows):
        nesting = 1 + max((depth[i.row] for i in row if isinstance(i, _Ref)), default=0)
        out = [place(item) for item in row]
        if uses[number] > 1 or nesting > MAX_NESTING:
            table.append(out)
            out, nesting = ["r", len(table) - 1], 0
        written.append(out)
        depth.append(nesting)
    return table, place(root)


# ---- JSON to values --------------------------------------------------------------------------


def from_json(data: Mapping[str, Any], classes: Mapping[str, type] | None = None) -> Any:
    """The value that was passed to `to_json`, with None in live fields.

    Raises ValueError, KeyError, TypeError or IndexError if the data is invalid.
    """
    decoder = _Decoder(classes or known_classes(), data["classes"])
    for row in data["table"]:
        decoder.table.append(decoder.decode(row))
    return decoder.decode(data["root"])


class _Decoder:
    def __init__(self, classes: Mapping[str, type], stored: Mapping[str, list[str]]) -> None:
        self.classes, self.stored = classes, stored
        self.table: list[Any] = []

    def decode(self, data: Any) -> Any:
        if not isinstance(data, list):
            return data
        tag, *rest = data
        if tag == "r":
            return self.table[rest[0]]
        return _READERS[tag](self, [self.decode(item) for item in rest])

    def build(self, rest: list[Any]) -> Any:
        """An instance of one of our types; missing fields get their defaults."""
        name, *values = rest
        cls = self.classes[MOVED.get(name, name)]
        given = dict(zip(self.stored[name], values, strict=True))
        for lacking, made in ADDED.get(name, {}).items():
            given.setdefault(lacking, made(given))
        known = {f.name for f in _stored_fields(cls)}
        if given.keys() - known:
            raise ValueError(f"{name} has no fields {', '.join(sorted(given.keys() - known))}")
        checks = checks_of(cls, known_names)
        for field_name, value in given.items():
            if not checks[field_name](value):
                raise ValueError(f"{name}.{field_name} cannot be a {type(value).__name__}")
        for f in fields(cls):
            missing = f.init and f.default is MISSING and f.default_factory is MISSING
            if missing and f.metadata.get("live"):
                given[f.name] = None
        return cls(**given)


def _read_torch(decoder: _Decoder, rest: list[Any]) -> Any:
    value = getattr(torch, rest[0].removeprefix("torch."))
    if not isinstance(value, torch.dtype | torch.layout | torch.memory_format):
        raise ValueError(f"{rest[0]} is not a dtype, layout or memory format")
    return value


def _read_tensor(decoder: _Decoder, rest: list[Any]) -> torch.Tensor | None:
    dtype = _read_torch(decoder, rest)
    if len(rest) == 1 or not INSTALLED:
        return None
    raw = bytearray(base64.b64decode(rest[1]))
    flat = torch.frombuffer(raw, dtype=dtype) if raw else torch.empty(0, dtype=dtype)
    return flat.reshape(rest[2:])


def _read_enum(decoder: _Decoder, rest: list[Any]) -> Enum:
    cls = decoder.classes[rest[0]]
    assert issubclass(cls, Enum)
    return cls[rest[1]]


def _pairs(flat: list[Any]) -> Iterator[tuple[Any, Any]]:
    return zip(flat[::2], flat[1::2], strict=True)


_READERS: dict[str, Callable[[_Decoder, list[Any]], Any]] = {
    "o": _Decoder.build,
    "e": _read_enum,
    "d": lambda _, rest: dict(_pairs(rest)),
    "t": lambda _, rest: tuple(rest),
    "l": lambda _, rest: rest,
    "f": lambda _, rest: frozenset(rest),
    "S": lambda _, rest: set(rest),
    "s": lambda _, rest: rest[0],
    "x": lambda _, rest: float(rest[0]),
    "c": lambda _, rest: complex(*rest),
    "b": lambda _, rest: base64.b64decode(rest[0]),
    "torch": _read_torch,
    "device": lambda _, rest: torch.device(rest[0]),
    "T": _read_tensor,
    "y": lambda _, rest: sympy.Symbol(rest[0], **dict(_pairs(rest[1:]))),
    "n": lambda _, rest: sympy.Integer(rest[0]),
    "q": lambda _, rest: sympy.Rational(*rest),
    "w": lambda _, rest: sympy.Float(rest[0]),
    "z": lambda _, rest: SYMPY_FUNCTIONS[rest[0]](*rest[1:]),
}


# ---- files -----------------------------------------------------------------------------------


def save(path: Path, value: Any) -> Path:
    """Write a value; the file is written completely or not at all.  Raises CannotWrite."""
    header = {"inductor_lab": FORMAT, "kind": type(value).__name__}
    text = json.dumps({**header, **to_json(value)}, separators=(",", ":"), ensure_ascii=False)
    temporary = ""
    try:
        handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
        os.replace(temporary, path)
    except OSError as error:
        if temporary:
            Path(temporary).unlink(missing_ok=True)
        raise CannotWrite(
            f"cannot write {path}: {error.strerror or error}",
            todo="give a path in a folder that exists and that you may write to",
        ) from error
    return path


def load(path: Path, *kinds: type[T]) -> T:
    """Read a saved value of one of these types; raises UnreadableFile."""
    try:
        text = path.read_bytes()
    except OSError as error:
        why = f"cannot read {path}: {error.strerror or error}"
        raise UnreadableFile(why, todo="check the path") from error
    return read(text, str(path), *kinds)


@no_collection()
def read(text: bytes, name: str, *kinds: type[T]) -> T:
    """The same for the text of a file, which errors call `name`."""
    try:
        data = json.loads(text.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise _not_ours(name) from error
    if not isinstance(data, dict) or not isinstance(data.get("inductor_lab"), int):
        raise _not_ours(name)
    if data["inductor_lab"] > FORMAT:
        raise UnreadableFile(
            f"{name} was written by a newer version of inductor_lab",
            todo=f"upgrade inductor_lab (it has format {data['inductor_lab']}, we read {FORMAT})",
        )
    try:
        value = from_json(data)
    except Exception as error:
        raise UnreadableFile(
            f"{name} is damaged: {error}", todo="save the compilation again"
        ) from error
    if not isinstance(value, kinds):
        wanted = " or ".join(kind.__name__ for kind in kinds)
        raise UnreadableFile(
            f"{name} contains a {data.get('kind')}, not a {wanted}",
            todo="load it with the function for its type",
        )
    return value


def _not_ours(name: str) -> UnreadableFile:
    return UnreadableFile(
        f"{name} is not a saved compilation of inductor_lab, or is incomplete",
        todo="lab.load reads files that c.save(path) wrote",
    )
