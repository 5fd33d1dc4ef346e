"""A client of `inductor-lab mcp` for tests: the SDK's own, over stdio, called without `await`."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp", reason="pip install 'inductor-lab[mcp]'")

from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters
from mcp_types import CallToolResult

WHOLE = 1_000_000
"""A limit that no document of these tests reaches."""


class LabClient:
    """A connected client; every method waits for its answer."""

    def __init__(self, client: Client, portal: BlockingPortal) -> None:
        self.client, self.portal = client, portal

    def ask(self, method: str, *arguments: Any) -> Any:
        """Call a method of the SDK's client."""
        return self.portal.call(getattr(self.client, method), *arguments)

    def call(self, tool: str, arguments: dict[str, Any]) -> CallToolResult:
        return self.ask("call_tool", tool, arguments)

    def document(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The document of an answer, which is complete unless the arguments limit it."""
        answer = self.call(tool, {"max_bytes": WHOLE, **arguments})
        found = json.loads(answer.content[0].text)
        assert not answer.is_error, found
        return found

    def refused(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The document of a refused or failed request."""
        answer = self.call(tool, arguments)
        found = json.loads(answer.content[0].text)
        assert answer.is_error and found["kind"] == "error", found
        return found


@contextmanager
def connected(folder: Path, *options: str) -> Iterator[LabClient]:
    """Start a server for a folder and connect to it; compiled programs use one thread."""
    command = [sys.executable, ["-m", "inductor_lab", "mcp", str(folder), *options]]
    passed = {name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ}
    server = StdioServerParameters(
        command=command[0], args=command[1], env={**passed, "OMP_NUM_THREADS": "1"}
    )
    with start_blocking_portal() as portal:
        with portal.wrap_async_context_manager(Client(server)) as client:
            yield LabClient(client, portal)
