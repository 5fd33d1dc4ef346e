"""A small class on the real JupyterHub: two students run tutorial 1, then leave."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

DEPLOY = Path(__file__).parents[2] / "deploy" / "jupyterhub"
pytestmark = [
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
    printed = str(found)
    assert "2 of 2" in printed and "first picture" in printed and "MiB" in printed


def test_a_cell_that_raises_is_counted(tmp_path: Path) -> None:
    from deploy.jupyterhub.load import Load
    from deploy.jupyterhub.student import Visit

    visit = Visit("ada", 1.0, None, 2.0, 0.5, ["ZeroDivisionError: division by zero"])
    printed = str(Load((visit,), 2.0, {"ada": 2**20}, 2**30))
    assert "ada: ZeroDivisionError" in printed and "first picture" in printed
    assert " 1.0 GiB" in printed


def test_idle_students_have_no_kernel_and_no_server(tmp_path, monkeypatch) -> None:
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


def test_a_home_folder_is_private_to_its_owner(tmp_path: Path) -> None:
    homes, programs, log = tmp_path / "home", tmp_path / "bin", tmp_path / "log"
    for folder in (homes / "ada", programs):
        folder.mkdir(parents=True)
    (tmp_path / "students.txt").write_bytes(b"bob:b\\n\r\nada:a\r\neve:e:teacher")
    text = (DEPLOY / "start.sh").read_text()
    text = text.replace("/srv/", f"{tmp_path}/").replace("/home/", f"{homes}/")
    (tmp_path / "start.sh").write_text(text.replace("cd /srv\n", ""))
    makes = f'[ "$1" != --create-home ] || mkdir -m 755 "{homes}/$4"'
    known = f'grep -q "useradd .* $1$" {log}'
    bodies = {"useradd": makes, "id": known, "chpasswd": f"cat >> {log}"}
    for name in ("groupadd", "useradd", "usermod", "id", "chpasswd", "inductor-lab", "jupyterhub"):
        body = bodies.get(name, "")
        (programs / name).write_text(f'#!/bin/sh\necho "{name} $*" >> {log}\n{body}\n')
        (programs / name).chmod(0o755)
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    subprocess.run(["sh", tmp_path / "start.sh"], env=os.environ | {"PATH": path}, check=True)
    done = log.read_text().splitlines()
    (back, *_), owner = (line for line in done if "useradd" in line), homes.stat().st_uid
    assert back == f"useradd --uid {owner} --shell /bin/bash ada", "before bob, who stands above"
    assert "usermod -aG teachers eve" in done and "usermod -aG students ada" in done
    assert "ada:a" in done and "bob:b\\n" in done, "passwords are as they are written"
    assert all((homes / name).stat().st_mode & 0o777 == 0o700 for name in ("ada", "bob", "eve"))
    assert done[-1].startswith("jupyterhub ")
