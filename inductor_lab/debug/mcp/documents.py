"""The documents of earlier answers: agents read them in pieces, without another compile."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

from inductor_lab.compiler.base.errors import BadArguments, LabError, UnknownName, unknown_name
from inductor_lab.saved.documents import outline
from inductor_lab.saved.documents.command_types import Error
from inductor_lab.saved.documents.kinds import KINDS, document, schema_name

DEFAULT_BYTES, MOST_BYTES = 8_000, 1_000_000
"""The size of an answer, unless the client asks for another one; and the largest."""
MOST_DOCUMENTS, MOST_KEPT = 64, 256 << 20
"""So many documents are kept, with so many bytes together; older ones are forgotten."""


class Malformed(LabError):
    """A process sent bytes that are not a document."""


class Documents:
    """Documents by id: `d1` is the first answer of the server."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, dict[str, Any]] = OrderedDict()
        self._sizes: dict[str, int] = {}
        self._made = 0

    def keep(self, found: dict[str, Any]) -> str:
        """Keep a document; returns its id."""
        self._made += 1
        name = f"d{self._made}"
        self._known[name] = found
        self._sizes[name] = outline.size(found)
        while len(self._known) > 1 and (
            len(self._known) > MOST_DOCUMENTS or sum(self._sizes.values()) > MOST_KEPT
        ):
            oldest, _ = self._known.popitem(last=False)
            del self._sizes[oldest]
        return name

    def __iter__(self) -> Iterator[tuple[str, dict[str, Any]]]:
        yield from self._known.items()

    def __getitem__(self, name: str) -> dict[str, Any]:
        """Raises UnknownName."""
        if name not in self._known:
            what, todo = unknown_name("document", name, list(self._known))
            raise UnknownName(what, todo=todo)
        return self._known[name]


def shown(
    found: dict[str, Any], select: str = "", max_bytes: int = DEFAULT_BYTES, skip: int = 0
) -> str:
    """A document, or a part of it, as JSON with at most so many bytes; raises LabError."""
    if max_bytes > MOST_BYTES:
        raise BadArguments(f"{max_bytes} bytes are too many for one answer",
                           todo=f"max_bytes is at most {MOST_BYTES}; select a part")  # fmt: skip
    try:
        part = outline.select(found, select) if select else found
        return outline.written(outline.within(part, max_bytes, skip))
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise Malformed("the document does not follow its schema") from error


def read(text: str) -> dict[str, Any]:
    """The document that a process printed; raises Malformed."""
    try:
        found = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise Malformed(f"the process printed no document: {error}") from None
    named = isinstance(found, dict) and isinstance(found.get("kind"), str)
    if not named or found["kind"] not in KINDS:
        raise Malformed("the process printed no document")
    texts = (found.get("id"), found.get("summary"))
    if found.get("schema") != schema_name(found["kind"]) or [*map(type, texts)] != [str, str]:
        raise Malformed(f"the process printed no valid {found['kind']}")
    return dict(found)


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


def error_document(name: str, message: str) -> dict[str, Any]:
    """A refused or failed request as a document."""
    return document(Error(id="error", summary=message.partition("\n")[0], kind="error", error=name,
                          message=message, exit_code=2))  # fmt: skip
