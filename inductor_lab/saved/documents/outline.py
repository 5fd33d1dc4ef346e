"""Documents of limited size: select a part by its id, and list parts instead of including them.

    select(document, "g0.forward.kernel:3")   the document of one kernel
    within(document, 4000)                    the document if it is that small, else its outline
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from inductor_lab.compiler.base.errors import BadArguments, UnknownName, unknown_name
from inductor_lab.saved.documents.command_types import Field, Outline, OutlineItem
from inductor_lab.saved.documents.kinds import document

LEAST_BYTES = 1000
"""The smallest limit: the summary and the ids of some parts."""

Data = Mapping[str, Any]


def written(data: Data) -> str:
    """A document as one line of JSON."""
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def size(value: Any) -> int:
    """The size of a value as JSON, in bytes."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return len(text.encode("utf-8", "backslashreplace"))


def select(found: Data, wanted: str) -> dict[str, Any]:
    """The part with an id, or one field of it (`ID/FIELD`); raises UnknownName."""
    items = {item["id"]: item for item in (found, *_below(found))}
    name, _, field = (wanted, "", "") if wanted in items else wanted.rpartition("/")
    name, field = (name, field) if name else (wanted, "")
    if name not in items:
        what, todo = unknown_name("id", name, list(items))
        raise UnknownName(what, todo=todo)
    item = {key: value for key, value in items[name].items() if key != "schema"}
    if not field:
        return document(item)
    if field not in item:
        what, todo = unknown_name("field", field, list(item))
        raise UnknownName(what, todo=todo)
    summary = f"{field} of {item['summary']}"
    return document(Field(id=wanted, summary=summary, kind="field", value=item[field]))


def within(found: Data, max_bytes: int, skip: int = 0) -> dict[str, Any]:
    """The document, or an outline of it with at most this many bytes; raises BadArguments.

    `skip` leaves out the first parts of an outline, or the first elements of a field.
    """
    if max_bytes < LEAST_BYTES:
        raise BadArguments(f"{max_bytes} bytes are too few for an outline",
                           todo=f"give --max-bytes at least {LEAST_BYTES}")  # fmt: skip
    if size(found) <= max_bytes and not skip:
        return dict(found)
    if found["kind"] == "field":
        return _field_from(found, max_bytes, skip)
    return _outline(found, max_bytes, skip)


def _outline(found: Data, max_bytes: int, skip: int) -> dict[str, Any]:
    items = [
        OutlineItem(id=item["id"], kind=item["kind"], summary=_short(item["summary"], max_bytes),
                    nbytes=size(item))
        for item in _below(found)
    ]  # fmt: skip
    own = {key: value for key, value in found.items()
           if key not in ("schema", "id", "kind", "summary") and not any(_directly_in(value))}
    sizes = {key: size(value) for key, value in own.items()}
    made = Outline(
        id=found["id"], summary=_short(found["summary"], max_bytes), kind="outline",
        of=found["kind"], nbytes=size(found), fields={}, large_fields=sizes, items=[],
        next=len(items),
    )  # fmt: skip
    for key, value in own.items():
        room = max_bytes // 2 - size(document(made))
        if not skip and sizes[key] < room:
            made["fields"][key] = value
            del made["large_fields"][key]
    room = max_bytes - size(document(made))
    shown = _that_fit(items[skip:], room)
    made["items"] = shown
    made["next"] = skip + len(shown) if skip + len(shown) < len(items) else None
    return document(made)


def _field_from(found: Data, max_bytes: int, skip: int) -> dict[str, Any]:
    """The elements of a field from `skip` on; other values than lists and texts are texts."""
    value = found["value"]
    whole = value if isinstance(value, list | str) else written({"value": value})
    empty = Field(id=found["id"], summary=_short(found["summary"], max_bytes), kind="field",
                  value="", next=len(whole))  # fmt: skip
    room = max_bytes - size(document(empty))
    if isinstance(whole, list):
        part: Any = _that_fit(whole[skip:], room)
        if not part and skip < len(whole):
            raise BadArguments(f"element {skip} of {found['id']} is larger than the limit",
                               todo="give a larger --max-bytes")  # fmt: skip
    else:
        part = "".join(_that_fit(list(whole[skip:]), room))
    end = skip + len(part)
    return document({**empty, "value": part, "next": end if end < len(whole) else None})


def _that_fit(values: list[Any], room: int) -> list[Any]:
    """The first values that fit into so many bytes, with their commas."""
    taken = []
    for value in values:
        room -= size(value) + 1
        if room < 0:
            break
        taken.append(value)
    return taken


def _short(text: str, max_bytes: int) -> str:
    """A summary takes at most a fifth of the limit."""
    most = max_bytes // 10  # characters; one has up to two bytes in nearly all texts
    return text if len(text) <= most else f"{text[: most - 3]}..."


def _below(found: Data) -> Iterator[Data]:
    """The parts with ids: first those directly in it, then those in these, and so on."""
    level = [found]
    while level:
        level = [item for above in level for item in _directly_in(list(_inside(above)))]
        yield from level


def _inside(item: Data) -> Iterator[Any]:
    return (value for key, value in item.items() if key != "id")


def _directly_in(value: Any) -> Iterator[Data]:
    """The parts with ids in a value, without the parts in these parts."""
    if isinstance(value, dict):
        if "id" in value:
            yield value
            return
        value = list(value.values())
    if isinstance(value, list):
        for element in value:
            yield from _directly_in(element)
