"""What a client can read without running anything, by URI.

    inductor-lab://document/d1                      the document of an earlier answer
    inductor-lab://document/d1?select=g0&max_bytes=4000
    inductor-lab://schema/kernel                    the JSON Schema of a kind of document
    inductor-lab://docs/json                        a page of the documentation
    inductor-lab://glossary                         the terms of inductor_lab
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import inductor_lab
from inductor_lab.compiler.base.errors import BadArguments, UnknownName, unknown_name
from inductor_lab.debug.mcp.documents import MOST_BYTES, Documents, shown
from inductor_lab.saved.documents.kinds import KINDS, schema

SCHEME = "inductor-lab"
TEMPLATE = f"{SCHEME}://document/{{document}}{{?select,max_bytes,skip}}"
_PACKAGE = Path(inductor_lab.__file__).parent
DOCS = next(path for path in (_PACKAGE / "docs", _PACKAGE.parent / "docs") if path.is_dir())
"""The documentation: in the package, or next to it in a checkout."""
JSON, MARKDOWN = "application/json", "text/markdown"


@dataclass(frozen=True)
class Listed:
    """A resource in a list."""

    uri: str
    name: str
    what: str
    mime: str


def listed(documents: Documents) -> Iterator[Listed]:
    """Every resource: the newest documents first."""
    for name, found in reversed([*documents]):
        yield Listed(f"{SCHEME}://document/{name}", name, found["summary"][:200], JSON)
    yield Listed(f"{SCHEME}://glossary", "glossary", "The terms of inductor_lab.", MARKDOWN)
    for page in pages():
        title = _page(page).partition("\n")[0].lstrip("# ")
        yield Listed(f"{SCHEME}://docs/{page}", page, title, MARKDOWN)
    for kind in KINDS:
        what = f"The JSON Schema of a {kind.replace('_', ' ')}."
        yield Listed(f"{SCHEME}://schema/{kind}", f"{kind} schema", what, JSON)


def read_resource(uri: str, documents: Documents) -> tuple[str, str]:
    """The text and the MIME type of a resource; raises UnknownName and other LabErrors."""
    parts = urlsplit(uri)
    kind, name = parts.netloc, parts.path.strip("/")
    if parts.scheme == SCHEME and kind == "document":
        return _document(documents, name, parts.query), JSON
    if parts.scheme == SCHEME and kind == "schema":
        return json.dumps(schema(name), indent=1), JSON
    if parts.scheme == SCHEME and kind == "docs":
        if name not in pages():
            what, todo = unknown_name("page", name, [*pages()])
            raise UnknownName(what, todo=todo)
        return _page(name), MARKDOWN
    if parts.scheme == SCHEME and kind == "glossary" and not name:
        return _page("glossary"), MARKDOWN
    raise UnknownName(f"there is no resource {uri[:200]!r}", todo="resources/list has all of them")


def _document(documents: Documents, name: str, query: str) -> str:
    given = {key: values[-1] for key, values in parse_qs(query).items()}
    try:
        numbers = [int(given.get(key, default)) for key, default in
                   (("max_bytes", MOST_BYTES), ("skip", 0))]  # fmt: skip
    except ValueError:
        todo = "give an integer for max_bytes and for skip"
        raise BadArguments(f"{query[:200]!r} has no number", todo=todo) from None
    return shown(documents[name], given.get("select", ""), *numbers)


@cache
def pages() -> tuple[str, ...]:
    """The names of the pages of the documentation."""
    return tuple(sorted(path.stem for path in DOCS.glob("*.md")))


@cache
def _page(name: str) -> str:
    return (DOCS / f"{name}.md").read_text(encoding="utf-8")
