"""A student who starts a server and runs a notebook, cell by cell, through the hub's proxy."""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import aiohttp

from deploy.jupyterhub.hub import Hub

PICTURE = "image/svg+xml"
POLL = 0.5


@dataclass
class Visit:
    """The measurements of a student; times are seconds since the student connected."""

    name: str
    started: float | None = None
    picture: float | None = None
    finished: float | None = None
    slowest_cell: float | None = None
    errors: list[str] = field(default_factory=list)


async def visit(hub: Hub, name: str, cells: Sequence[str], after: float) -> Visit:
    """Connect after `after` seconds, start a server, run the cells; the kernel keeps running."""
    await asyncio.sleep(after)
    seen, came = Visit(name), time.monotonic()
    headers = {"Authorization": f"token {hub.token}"}
    limit = aiohttp.ClientTimeout(total=None, sock_connect=60)
    async with aiohttp.ClientSession(headers=headers, timeout=limit) as web:
        try:
            await _start_server(web, hub, name)
            seen.started = time.monotonic() - came
            await _run(web, f"{hub.address}/user/{name}", cells, seen, came)
            seen.finished = time.monotonic() - came
        except (aiohttp.ClientError, OSError, RuntimeError) as problem:
            seen.errors.append(f"{type(problem).__name__}: {problem}")
    return seen


async def _start_server(web: aiohttp.ClientSession, hub: Hub, name: str) -> None:
    user = f"{hub.address}/hub/api/users/{name}"
    await _asked(web, "POST", user)
    await _asked(web, "POST", f"{user}/server")
    while True:
        server = (await _asked(web, "GET", user))["servers"].get("")
        if server is None:
            raise RuntimeError(f"the server of {name} did not start")
        if server["ready"]:
            return
        await asyncio.sleep(POLL)


async def _run(
    web: aiohttp.ClientSession, server: str, cells: Sequence[str], seen: Visit, came: float
) -> None:
    kernel = await _asked(web, "POST", f"{server}/api/kernels", {"name": "python3"})
    channels = f"{server}/api/kernels/{kernel['id']}/channels"
    async with web.ws_connect(channels, max_msg_size=0, heartbeat=None) as socket:
        for cell in cells:
            begun = time.monotonic()
            await _run_cell(socket, cell, seen, came)
            seen.slowest_cell = max(seen.slowest_cell or 0.0, time.monotonic() - begun)


async def _run_cell(socket: Any, cell: str, seen: Visit, came: float) -> None:
    """Send a cell and read its messages until the kernel is idle."""
    identity = uuid.uuid4().hex
    header = {"msg_id": identity, "msg_type": "execute_request", "username": seen.name,
              "session": seen.name, "version": "5.3"}  # fmt: skip
    content = {"code": cell, "silent": False, "store_history": True, "allow_stdin": False,
               "user_expressions": {}, "stop_on_error": False}  # fmt: skip
    await socket.send_json({"header": header, "parent_header": {}, "metadata": {},
                            "content": content, "channel": "shell"})  # fmt: skip
    async for message in socket:
        if message.type is not aiohttp.WSMsgType.TEXT:
            continue
        reply = json.loads(message.data)
        if reply["parent_header"].get("msg_id") != identity:
            continue
        kind, what = reply["msg_type"], reply["content"]
        if kind == "error":
            seen.errors.append(f"{what['ename']}: {what['evalue']}")
        elif seen.picture is None and PICTURE in what.get("data", {}):
            seen.picture = time.monotonic() - came
        elif kind == "status" and what["execution_state"] == "idle":
            return
    raise RuntimeError(f"the kernel of {seen.name} died")


async def _asked(
    web: aiohttp.ClientSession, how: str, address: str, body: dict[str, Any] | None = None
) -> Any:
    """The response as JSON; raises RuntimeError for an error status."""
    async with web.request(how, address, json=body) as answer:
        text = await answer.text()
        if answer.status >= 400:
            raise RuntimeError(f"{how} {address}: {answer.status} {text[:200]}")
        return json.loads(text) if text else None
