"""Start a JupyterHub with the limits of a class in its own folder, without system users.

The configuration is `jupyterhub_config.py`; only authentication and users differ.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

CONFIG = Path(__file__).parent / "jupyterhub_config.py"
PATIENCE = 120.0
OWN = """
load_subconfig({config!r})
c = get_config()
c.JupyterHub.authenticator_class = "null"
c.JupyterHub.spawner_class = "simple"
c.SimpleLocalProcessSpawner.home_dir_template = {homes!r}
c.Spawner.environment["TORCHINDUCTOR_CACHE_DIR"] = lambda spawner: spawner.home_dir + "/graphs"
c.Spawner.args.append("--allow-root")
c.JupyterHub.bind_url = "http://127.0.0.1:{port}"
c.JupyterHub.hub_port = {hub_port}
c.ConfigurableHTTPProxy.api_url = "http://127.0.0.1:{proxy_port}"
c.ConfigurableHTTPProxy.auth_token = {token!r}
c.JupyterHub.db_url = "sqlite:///hub.sqlite"
c.JupyterHub.services = [dict(name="load", api_token={token!r})]
c.JupyterHub.load_roles = [dict(name="load", services=["load"], scopes=[
    "admin:users", "admin:servers", "access:servers"])]
"""


@dataclass(frozen=True)
class Hub:
    """A hub at `address`; `token` allows starting and using servers."""

    address: str
    token: str
    process: subprocess.Popen[bytes]
    log: Path


@contextlib.contextmanager
def running(folder: Path, shared: Path) -> Iterator[Hub]:
    """Run a hub with its files in `folder`, whose users share the class cache `shared`.

    Raises RuntimeError with the end of its log if it does not start.
    """
    port, hub_port, proxy_port = free_ports(3)
    token = secrets.token_hex(32)
    own = OWN.format(config=str(CONFIG), homes=str(folder / "{username}"), port=port,
                     hub_port=hub_port, proxy_port=proxy_port, token=token)  # fmt: skip
    (folder / "config.py").write_text(own)
    log = folder / "hub.log"
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    env = os.environ | {"PATH": path, "INDUCTOR_LAB_SHARED_CACHE": str(shared)}
    command = [sys.executable, "-m", "jupyterhub", "-f", "config.py"]
    with log.open("wb") as file:
        process = subprocess.Popen(command, cwd=folder, env=env, stdout=file, stderr=file)
    hub = Hub(f"http://127.0.0.1:{port}", token, process, log)
    try:
        _wait_for(hub)
        yield hub
    finally:
        process.terminate()
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()


def _wait_for(hub: Hub) -> None:
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until and hub.process.poll() is None:
        with contextlib.suppress(urllib.error.URLError, ConnectionError):
            urllib.request.urlopen(f"{hub.address}/hub/health", timeout=10).close()
            return
        time.sleep(0.2)
    raise RuntimeError(f"JupyterHub did not start:\n{hub.log.read_text()[-4000:]}")


def free_ports(count: int) -> list[int]:
    """Different ports that are free now."""
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
