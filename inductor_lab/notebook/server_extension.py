"""The extension of the Jupyter server that opens saved compilations for JupyterLab.

    POST inductor-lab/explorer?language=zh    body: the text of a `.lab.json` file
    {"format", "version", "gzip"}             the explorer as data (`widgets/mime.py`), or
                                              {"error": "..."}

The browser sends the text that the server's contents manager gave to it, so the request names no
file and opens none.  A process of its own converts the text (`open_saved.py`), with limits on time
and memory.  The server itself therefore never imports torch.  `language` is JupyterLab's; with "zh"
the explorer is Chinese, otherwise the server's environment decides (`notebook/language.py`).
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from typing import Any

from jupyter_server.auth.decorator import authorized
from jupyter_server.base.handlers import APIHandler
from jupyter_server.utils import url_path_join
from tornado import web

from inductor_lab.notebook.language import VARIABLE

CONVERT = [sys.executable, "-P", "-m", "inductor_lab.notebook.open_saved"]
"""-P: a user's `torch.py` in the server's folder is not imported."""
LARGEST = 64 << 20
SECONDS = 120.0
PROCESSES = asyncio.Semaphore(2)


def converted(text: bytes, language: str = "") -> bytes:
    """The answer for the text of a file, as JSON."""
    if len(text) > LARGEST:
        size, most = len(text) >> 20, LARGEST >> 20
        said = f"This file is too large for the explorer: {size} MB; the limit is {most} MB."
        return _error(said)
    try:
        env = {**os.environ, VARIABLE: language} if language == "zh" else None
        done = subprocess.run(CONVERT, input=text, capture_output=True, timeout=SECONDS, env=env)
    except subprocess.TimeoutExpired:
        return _error(f"This file could not be opened within {SECONDS:.0f} seconds.")
    if done.returncode:
        last = (done.stderr.decode(errors="replace").strip().splitlines() or ["no message"])[-1]
        return _error(f"This file could not be opened. The process that converts it ended: {last}")
    return done.stdout


def _error(text: str) -> bytes:
    return json.dumps({"error": text}).encode()


class OpenSaved(APIHandler):
    @web.authenticated
    @authorized(action="read", resource="contents")  # type: ignore[untyped-decorator]
    async def post(self) -> None:
        async with PROCESSES:
            language = self.get_query_argument("language", "")
            answer = await asyncio.to_thread(converted, self.request.body, language)
        self.set_header("Content-Type", "application/json")
        await self.finish(answer)


def _jupyter_server_extension_points() -> list[dict[str, str]]:
    return [{"module": __name__}]


def _load_jupyter_server_extension(server: Any) -> None:
    url = url_path_join(server.web_app.settings["base_url"], "inductor-lab", "explorer")
    server.web_app.add_handlers(".*$", [(url, OpenSaved)])
