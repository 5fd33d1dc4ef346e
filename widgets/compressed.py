"""Documents in pages and outputs: JSON, compressed by gzip, in base64.

Compression also writes the equal layers of a model once.  `javascript/unzip.js` decompresses.
"""

from __future__ import annotations

import base64
import gzip
import json
import zlib
from collections.abc import Mapping
from typing import Any

LARGEST = 256 << 20
"""Bytes of a document that may come from a stranger."""


def zipped(document: Mapping[str, Any]) -> str:
    """A document, compressed."""
    text = json.dumps(document, separators=(",", ":"))
    return base64.b64encode(gzip.compress(text.encode("ascii"), mtime=0)).decode("ascii")


def unzipped(text: str) -> dict[str, Any]:
    """The document; raises ValueError for other text, and for more than `LARGEST` bytes.

    >>> unzipped(zipped({"panes": {}}))
    {'panes': {}}
    """
    opened = zlib.decompressobj(wbits=zlib.MAX_WBITS + 16)  # of gzip
    try:
        content = opened.decompress(base64.b64decode(text, validate=True), LARGEST)
    except zlib.error as error:
        raise ValueError(f"no compressed document: {error}") from error
    if opened.unconsumed_tail:
        raise ValueError("the compressed document is too large")
    document = json.loads(content)
    if not isinstance(document, dict) or "panes" not in document:
        raise ValueError("this is not the document of an explorer")
    return document
