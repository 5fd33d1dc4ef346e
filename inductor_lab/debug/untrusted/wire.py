"""Values as bytes, for two processes of which one is not trusted.

    dumps((1, torch.ones(2)), codec)  →  b'["t", 1, ["T", "float32", [2], false, 0]]' + 8 raw bytes

JSON with one tag for each kind of value, and the bytes of tensors behind it.  Reading builds only
what a tag names: numbers, texts, containers, tensors, and the classes that the reader lists.  It
imports nothing and calls nothing of the sender's.  A pickle is read only by the untrusted side,
which may believe what the trusted side sends.

Inductor: torch/_inductor/compile_worker/subproc_pool.py sends pickles both ways, to itself.
"""

from __future__ import annotations

import dataclasses
import enum
import json
import pickle
import struct
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any

from inductor_lab.compiler.torch_door.torch_types import torch

HEAD = struct.Struct("!IQ")
"""Bytes of the JSON, bytes behind it."""
MOST_JSON, MOST_BYTES = 64 << 20, 512 << 20
MOST_ITEMS = 1_000_000
"""Of what is computed item by item, such as a generator."""
EXACT = 1 << 53
"""Integers below this are the same in every reader of JSON."""

DTYPES: Mapping[str, torch.dtype] = {
    str(one).removeprefix("torch."): one
    for one in (
        torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64,
        torch.float16, torch.bfloat16, torch.float32, torch.float64,
        torch.complex64, torch.complex128,
    )
}  # fmt: skip


class Malformed(Exception):
    """Bytes that are no value."""


@dataclasses.dataclass(frozen=True)
class Opaque:
    """A value that stays in the process where it is.

    number   its handle there
    kind     the name of its class
    calls    whether it can be called
    sender   whether it is in the process that sends it; if not, the receiver has it
    """

    number: int
    kind: str
    calls: bool
    sender: bool = True


@dataclasses.dataclass(frozen=True)
class Codec:
    """What may be sent besides plain values.

    classes   frozen dataclasses and enumerations that are rebuilt from their fields, by name
    keep      writer: a handle for any other value, such as a function; None for no handle
    take      reader: what a handle becomes
    pickles   writer: send values without a handle as pickles; reader: believe them.  Only for
              bytes that go to the untrusted side.
    """

    classes: Mapping[str, type] = dataclasses.field(default_factory=dict)
    keep: Callable[[Any], Opaque | None] = lambda value: None
    take: Callable[[Opaque], Any] = lambda opaque: opaque
    pickles: bool = False


def dumps(value: Any, codec: Codec) -> bytes:
    """A value with its lengths in front.  Raises Malformed for one that is too large."""
    blobs: list[bytes] = []
    try:
        text = json.dumps(_Writer(codec, blobs).tree(value)).encode()
    except RecursionError:
        raise Malformed("a value within a value, thousands of times, or within itself") from None
    rest = b"".join(blobs)
    if len(text) > MOST_JSON or len(rest) > MOST_BYTES:
        raise Malformed(f"a value of {len(text) + len(rest):,} bytes is too large")
    return HEAD.pack(len(text), len(rest)) + text + rest


def loads(text: bytes, rest: bytes, codec: Codec) -> Any:
    """The value of a message without its lengths.  Raises Malformed."""
    try:
        tree = json.loads(text)
        return _Reader(codec, memoryview(rest)).value(tree)
    except Malformed:
        raise
    except (ValueError, TypeError, KeyError, IndexError, RecursionError, OverflowError) as error:
        raise Malformed(f"{type(error).__name__}: {error}") from None


class _Writer:
    def __init__(self, codec: Codec, blobs: list[bytes]) -> None:
        self.codec, self.blobs = codec, blobs
        self.names = {kind: name for name, kind in codec.classes.items()}

    def tree(self, value: Any) -> Any:
        kind = type(value)
        if value is None or kind in (bool, str):
            return value
        if kind is int:
            return value if abs(value) < EXACT else ["i", hex(value)]
        if kind is float:
            return ["f", value.hex()]
        if tag := _CONTAINERS.get(kind):
            return [tag, *map(self.tree, value)]
        if kind in self.names:
            return self._registered(value, self.names[kind])
        if isinstance(value, torch.Tensor):
            return self._tensor(value)
        if isinstance(value, torch.dtype):
            return ["D", str(value).removeprefix("torch.")]
        if kind is bytes:
            return ["b", self._blob(value)]
        if isinstance(value, dict) and _is_of_a_library(kind):
            return ["d", *([self.tree(k), self.tree(v)] for k, v in value.items())]
        if isinstance(value, _LAZY):
            return ["l", *map(self.tree, islice(value, MOST_ITEMS))]
        return self._other(value)

    def _other(self, value: Any) -> Any:
        if (kept := self.codec.keep(value)) is not None:
            return ["h", *dataclasses.astuple(kept)]
        if self.codec.pickles:
            return ["p", self._blob(pickle.dumps(value))]
        raise Malformed(f"a {type(value).__name__} cannot be sent")

    def _registered(self, value: Any, name: str) -> Any:
        if isinstance(value, enum.Enum):
            return ["e", name, value.name]
        fields = (getattr(value, each.name) for each in dataclasses.fields(value) if each.init)
        return ["v", name, *map(self.tree, fields)]

    def _tensor(self, value: torch.Tensor) -> Any:
        dtype = str(value.dtype).removeprefix("torch.")
        if dtype not in DTYPES or value.layout != torch.strided or value.device.type != "cpu":
            return self._other(value)
        plain = value.detach().resolve_conj().resolve_neg().contiguous()
        # a contiguous tensor with one element may have the stride 0, which `view` refuses
        flat = plain.as_strided((plain.numel(),), (1,))
        raw = flat.view(torch.uint8) if plain.numel() else plain
        blob = bytes(raw.numpy()) if plain.numel() else b""
        return ["T", dtype, list(value.shape), bool(value.requires_grad), self._blob(blob)]

    def _blob(self, blob: bytes) -> list[int]:
        start = sum(map(len, self.blobs))
        self.blobs.append(blob)
        return [start, len(blob)]


_LAZY = (range, map, zip, filter, deque, Iterator)
"""Sent as lists."""
_CONTAINERS: Mapping[type, str] = {list: "l", tuple: "t", set: "S", frozenset: "F"}


def _is_of_a_library(kind: type) -> bool:
    """A dictionary, or one of `collections`; a class of the sender's own is no plain value."""
    return kind is dict or kind.__module__ == "collections"


class _Reader:
    def __init__(self, codec: Codec, rest: memoryview) -> None:
        self.codec, self.rest = codec, rest

    def value(self, tree: Any) -> Any:
        if tree is None or isinstance(tree, bool | int | str):
            return tree
        if not isinstance(tree, list) or not tree or not isinstance(tree[0], str):
            raise Malformed("no tagged value")
        tag, *parts = tree
        if tag not in _READ:
            raise Malformed(f"no kind of value is called {tag!r}")
        return _READ[tag](self, parts)

    def items(self, parts: list[Any]) -> list[Any]:
        return [self.value(part) for part in parts]

    def blob(self, place: Any) -> bytes:
        start, length = place
        if not 0 <= start <= start + length <= len(self.rest):
            raise Malformed("bytes that were not sent")
        return bytes(self.rest[start : start + length])

    def integer(self, parts: list[Any]) -> int:
        return int(parts[0], 16)

    def dictionary(self, parts: list[Any]) -> dict[Any, Any]:
        return {self.value(key): self.value(value) for key, value in parts}

    def tensor(self, parts: list[Any]) -> torch.Tensor:
        name, shape, grad, place = parts
        dtype, blob = DTYPES[name], bytearray(self.blob(place))
        count = 1
        for length in shape:
            if not isinstance(length, int) or length < 0:
                raise Malformed("a size that is no size")
            count *= length
        if count * dtype.itemsize != len(blob):
            raise Malformed("sizes and bytes of a tensor do not agree")
        found = torch.frombuffer(blob, dtype=dtype) if blob else torch.empty(0, dtype=dtype)
        found = found.reshape(shape)
        return found.requires_grad_() if grad is True and dtype.is_floating_point else found

    def registered(self, parts: list[Any]) -> Any:
        kind = self.codec.classes[parts[0]]
        fields = [each for each in dataclasses.fields(kind) if each.init]
        if len(fields) != len(parts) - 1:
            raise Malformed(f"{parts[0]} has {len(fields)} fields")
        try:
            return kind(**{f.name: v for f, v in zip(fields, self.items(parts[1:]), strict=True)})
        except (AssertionError, AttributeError) as error:
            raise Malformed(f"{parts[0]}: {error}") from None

    def member(self, parts: list[Any]) -> Any:
        kind = self.codec.classes[parts[0]]
        if not issubclass(kind, enum.Enum):
            raise Malformed(f"{parts[0]} is no enumeration")
        return kind[parts[1]]

    def opaque(self, parts: list[Any]) -> Any:
        if [*map(type, parts)] != [int, str, bool, bool]:
            raise Malformed("no handle")
        number, kind, calls, sender = parts
        return self.codec.take(Opaque(number, kind[:80], calls, sender))

    def pickled(self, parts: list[Any]) -> Any:
        if not self.codec.pickles:
            raise Malformed("a pickle is not read here")
        return pickle.loads(self.blob(parts[0]))


_READ: Mapping[str, Callable[[_Reader, list[Any]], Any]] = {
    "i": _Reader.integer,
    "f": lambda reader, parts: float.fromhex(parts[0]),
    "l": _Reader.items,
    "t": lambda reader, parts: tuple(reader.items(parts)),
    "S": lambda reader, parts: set(reader.items(parts)),
    "F": lambda reader, parts: frozenset(reader.items(parts)),
    "d": _Reader.dictionary,
    "b": lambda reader, parts: reader.blob(parts[0]),
    "T": _Reader.tensor,
    "D": lambda reader, parts: DTYPES[parts[0]],
    "e": _Reader.member,
    "v": _Reader.registered,
    "h": _Reader.opaque,
    "p": _Reader.pickled,
}
