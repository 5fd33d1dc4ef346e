"""The MCP server over stdio: its handlers, progress, cancellation.

Needs the package `mcp` (`pip install 'inductor-lab[mcp]'`).
"""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import anyio
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
    Resource,
    ResourceLink,
    ResourceTemplate,
    TextContent,
    TextResourceContents,
    Tool,
    ToolAnnotations,
)

from inductor_lab import __version__
from inductor_lab.compiler.base.errors import LabError
from inductor_lab.debug.mcp.documents import DEFAULT_BYTES, Documents, error_document, shown
from inductor_lab.debug.mcp.folder import Folder
from inductor_lab.debug.mcp.job import Job
from inductor_lab.debug.mcp.resources import JSON, SCHEME, TEMPLATE, listed, read_resource
from inductor_lab.debug.mcp.tools import BY_NAME, TOOLS
from inductor_lab.debug.untrusted.confine import Limits
from inductor_lab.debug.untrusted.fresh import Fresh

BEAT = 1.0
"""Seconds from one progress message to the next."""
AT_ONCE = 2
"""Commands that run at the same time; others wait."""
PRELOADED = ("inductor_lab.debug.mcp.worker", "inductor_lab.api.backend", "inductor_lab.cli")
INSTRUCTIONS = """\
inductor_lab is a compiler for PyTorch that can be inspected. Each tool answers with one JSON \
document. A large document is answered with an outline: read its parts with the tool `show` and \
the ids in the outline. Start with `explain`: its kernels name the source lines, the bytes and the \
generated code; its decisions name the fusion rules."""


class LabServer:
    """The state of one server: its folder, its processes, its documents."""

    def __init__(self, folder: Folder, limits: Limits) -> None:
        self.folder, self.limits = folder, limits
        self.documents = Documents()
        self.slots = anyio.CapacityLimiter(AT_ONCE)
        self._fresh: Fresh | None = None
        self._lock = threading.Lock()

    def fresh(self) -> Fresh:
        """What starts processes; it loads torch when it is first needed."""
        with self._lock:
            if self._fresh is None:
                self._fresh = Fresh(PRELOADED)
            return self._fresh

    def close(self) -> None:
        with self._lock:
            if self._fresh is not None:
                self._fresh.close()

    def server(self) -> Any:
        """The handlers of the protocol."""
        return Server(
            "inductor-lab", version=__version__, title="inductor_lab", instructions=INSTRUCTIONS,
            on_list_tools=self.list_tools, on_call_tool=self.call_tool,
            on_list_resources=self.list_resources, on_read_resource=self.read_resource,
            on_list_resource_templates=self.list_templates,
        )  # fmt: skip

    async def list_tools(self, _: Any, __: PaginatedRequestParams | None) -> ListToolsResult:
        hints = ToolAnnotations(read_only_hint=True, open_world_hint=False)
        return ListToolsResult(tools=[
            Tool(name=tool.name, description=tool.what, input_schema=tool.input_schema(),
                 annotations=hints)
            for tool in TOOLS
        ])  # fmt: skip

    async def call_tool(self, context: Any, params: CallToolRequestParams) -> CallToolResult:
        """Answer with a document; a request that is refused is answered with an `error`."""
        if params.name not in BY_NAME:
            raise MCPError(INVALID_PARAMS, f"there is no tool {params.name[:100]!r}")
        given = params.arguments or {}
        try:
            return await self._answer(context, params.name, given)
        except LabError as error:
            text = shown(error_document(type(error).__name__, str(error)))
            return CallToolResult(content=[TextContent(text=text)], is_error=True)

    async def _answer(self, context: Any, name: str, given: dict[str, Any]) -> CallToolResult:
        tool = BY_NAME[name]
        tool.check(given)
        if tool.command:
            request = tool.request(given, self.folder)
            job = Job(self.fresh, self.folder, self.limits, request)
            found = await self._run(context, job)
            if found["kind"] == "error":
                text = shown(found, max_bytes=DEFAULT_BYTES)
                return CallToolResult(content=[TextContent(text=text)], is_error=True)
            document = self.documents.keep(found)
        else:
            document = given["document"]
        text = shown(
            self.documents[document], given.get("select", ""),
            given.get("max_bytes", DEFAULT_BYTES), given.get("skip", 0),
        )  # fmt: skip
        what = "All of this document: read it, or parts of it with the tool `show`."
        link = ResourceLink(uri=f"{SCHEME}://document/{document}", name=document, description=what,
                            mime_type=JSON)  # fmt: skip
        return CallToolResult(content=[TextContent(text=text), link])

    async def _run(self, context: Any, job: Job) -> dict[str, Any]:
        """Run a job in a thread, with progress; stop it if the request is cancelled."""
        async with self.slots:
            try:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(self._report, context, job)
                    found = await anyio.to_thread.run_sync(job.run, abandon_on_cancel=True)
                    tasks.cancel_scope.cancel()
            finally:
                job.stop()
        return found

    async def _report(self, context: Any, job: Job) -> None:
        """Progress: the elapsed seconds, the limit, and what the command does."""
        started = time.monotonic()
        while True:
            elapsed = time.monotonic() - started
            await context.session.report_progress(elapsed, self.limits.whole, job.doing)
            await anyio.sleep(BEAT)

    async def list_resources(
        self, _: Any, __: PaginatedRequestParams | None
    ) -> ListResourcesResult:
        return ListResourcesResult(resources=[
            Resource(uri=each.uri, name=each.name, description=each.what, mime_type=each.mime)
            for each in listed(self.documents)
        ])  # fmt: skip

    async def list_templates(
        self, _: Any, __: PaginatedRequestParams | None
    ) -> ListResourceTemplatesResult:
        what = "The document of an earlier answer, or a part of it."
        template = ResourceTemplate(uri_template=TEMPLATE, name="document", description=what,
                                    mime_type=JSON)  # fmt: skip
        return ListResourceTemplatesResult(resource_templates=[template])

    async def read_resource(
        self, _: Any, params: ReadResourceRequestParams
    ) -> ReadResourceResult:
        try:
            text, mime = read_resource(str(params.uri), self.documents)
        except LabError as error:
            raise MCPError(INVALID_PARAMS, str(error)) from None
        found = TextResourceContents(uri=params.uri, text=text, mime_type=mime)
        return ReadResourceResult(contents=[found])


def serve(folder: Path, limits: Limits) -> None:
    """Serve one client over stdin and stdout, until it closes them; raises OutsideFolder."""
    lab = LabServer(Folder.of(folder), limits)

    async def run() -> None:
        server = lab.server()
        async with stdio_server() as (reading, writing):
            await server.run(reading, writing, server.create_initialization_options())

    try:
        anyio.run(run)
    finally:
        lab.close()
