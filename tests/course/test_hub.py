"""A small class on the real JupyterHub: two students run tutorial 1, then leave."""

from __future__ import annotations

import importlib.util
import json
import sys
import time
import urllib.request
from pathlib import Path

import pytest

DEPLOY = Path(__file__).parents[2] / "deploy" / "jupyterhub"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        any(importlib.util.find_spec(n) is None for n in ("jupyterhub", "configurable_http_proxy")),
        reason="no JupyterHub: pip install 'inductor-lab[classroom]'",
    ),
    pytest.mark.skipif(sys.platform != "linux", reason="proportional set sizes are Linux's"),
]


def test_two_students_run_the_first_tutorial(tmp_path: Path) -> None:
    from deploy.jupyterhub.load import TUTORIAL, filled, load

    shared = filled(tmp_path / "class", TUTORIAL)
    found = load(2, TUTORIAL, over=0.0, shared=shared)
    assert found.errors == []
    assert all(0 < v.started < v.picture < v.finished for v in found.visits)
    assert len(found.bytes_of) == 2 and min(found.bytes_of.values()) > 50 * 2**20
    assert sum(found.bytes_of.values()) < found.most < 8 * 2**30
    told = str(found)
    assert "2 of 2" in told and "first picture" in told and "MiB" in told


def test_a_cell_that_raises_is_counted(tmp_path: Path) -> None:
    from deploy.jupyterhub.load import Load
    from deploy.jupyterhub.student import Visit

    visit = Visit("ada", 1.0, None, 2.0, 0.5, ["ZeroDivisionError: division by zero"])
    told = str(Load((visit,), 2.0, {"ada": 2**20}, 2**30))
    assert "ada: ZeroDivisionError" in told and "first picture" in told and " 1.0 GiB" in told


def test_who_does_nothing_has_no_kernel_and_no_server_any_more(tmp_path, monkeypatch) -> None:
    from deploy.jupyterhub.hub import running

    monkeypatch.setenv("CLASS_IDLE_MINUTES", "0.25")
    (tmp_path / "ada" / "course").mkdir(parents=True)
    with running(tmp_path, tmp_path / "class") as hub:

        def asked(path: str, how: str = "GET") -> object:
            headers = {"Authorization": f"token {hub.token}"}
            request = urllib.request.Request(f"{hub.address}{path}", headers=headers, method=how)
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.loads(answer.read() or b"null")

        def wait_for(what) -> None:
            until = time.monotonic() + 200
            while not what():
                assert time.monotonic() < until, hub.log.read_text()[-3000:]
                time.sleep(0.5)

        def servers() -> dict[str, dict[str, bool]]:
            return asked("/hub/api/users/ada")["servers"]  # type: ignore[index]

        asked("/hub/api/users/ada", "POST")
        asked("/hub/api/users/ada/server", "POST")
        wait_for(lambda: servers().get("", {}).get("ready"))
        asked("/user/ada/api/kernels", "POST")
        wait_for(lambda: not servers())
    assert "ada server stopped, with exit code: 0" in hub.log.read_text()


def test_the_container_installs_what_the_class_needs() -> None:
    text = (DEPLOY / "Containerfile").read_text()
    start = (DEPLOY / "start.sh").read_text()
    assert ".[classroom,notebook]" in text and "deploy/jupyterhub/start.sh" in text
    assert "deploy/jupyterhub/jupyterhub_config.py" in start and "--into /srv/class" in start
