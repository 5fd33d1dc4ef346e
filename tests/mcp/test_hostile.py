"""Requests and user code that must not get out of the folder, the limits or the protocol."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from tests.mcp.client import CallToolResult, LabClient, connected

CODE = """
import os, sys
import torch

def f(x):
    return x + 1

def endless(x):
    while True:
        pass

def memory(x):
    held = []
    torch._dynamo.graph_break()
    for _ in range(64):
        held.append(torch.ones(1 << 26))
        print(len(held))
    return x

def prints(x):
    os.write(1, b'{"jsonrpc": "2.0", "id": 1, "result": {}}\\n')
    sys.__stdout__.write("not JSON\\n")
    for fd in range(3, 40):
        try:
            os.write(fd, b"garbage\\n")
        except OSError:
            pass
    print("printed")
    return x + 1

def crashes(x):
    os.abort()

def leaves(x):
    os._exit(0)

def example_inputs():
    return torch.ones(4)
"""
LONG_NAMES = "import torch\n\ndef f(x):\n" + "".join(
    f"    x = (x + {n}).sin()\n    torch._dynamo.graph_break()\n" for n in range(5)
) + "    return x\n\ndef example_inputs():\n    return torch.ones(3)\n"  # fmt: skip


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a secret next to it."""
    made = tmp_path_factory.mktemp("hostile")
    folder = made / "project"
    folder.mkdir()
    (folder / "code.py").write_text(CODE)
    (folder / "long.py").write_text(LONG_NAMES)
    (made / "secret.py").write_text(CODE)
    (folder / "link.py").symlink_to(made / "secret.py")
    (folder / "out").symlink_to(made)
    (folder / "circle.py").symlink_to(folder / "circle.py")
    return folder


@pytest.fixture(scope="module")
def client(place: Path) -> Iterator[LabClient]:
    with connected(place, "--memory", "2") as found:
        yield found


@pytest.fixture
def impatient(place: Path) -> Iterator[LabClient]:
    """A server with a short limit."""
    with connected(place, "--limit", "5") as found:
        yield found


def is_well(client: LabClient) -> None:
    """The server answers as if nothing had happened."""
    found = client.document("memory", function="code.py:f")
    assert found["kind"] == "memory"


def test_paths_outside_of_the_folder_are_refused(client: LabClient, place: Path) -> None:
    secret = place.parent / "secret.py"
    for name in (
        "../secret.py:f", f"{secret}:f", "link.py:f", "out/secret.py:f", "circle.py:f",
        "./x/../../secret.py:f", "nothing.py:f", "\0.py:f", ":f", "code.py", "/etc/passwd.json",
    ):  # fmt: skip
        found = client.refused("explain", function=name)
        assert found["error"] in ("OutsideFolder", "BadArguments"), name
        assert client.refused("memory", function=name)["exit_code"] == 2
    found = client.refused("diff", before="code.py:f", after="out/secret.py:f")
    assert found["error"] == "OutsideFolder" and "outside of the folder" in found["message"]
    assert client.refused("read_trace", log="out")["error"] == "OutsideFolder"


def test_arguments_that_do_not_follow_the_schema_are_refused(client: LabClient) -> None:
    for tool, given in (
        ("explain", {}),
        ("explain", {"function": 3}),
        ("explain", {"function": "code.py:f", "save": "x.json"}),
        ("explain", {"function": "code.py:f", "max_bytes": 10}),
        ("explain", {"function": "code.py:f", "max_bytes": 10**12}),
        ("explain", {"function": "code.py:f", "measure": -1}),
        ("why_not_fused", {"function": "code.py:f", "buffers": ["--report=x", "b"]}),
        ("what_if", {"function": "code.py:f", "fusion_off": ["--traceback"]}),
        ("try_kernel", {"function": "code.py:f", "kernel": "-k", "text": ""}),
        ("try_kernel", {"function": "code.py:f", "kernel": "k", "text": "x" * 1_000_001}),
        ("recompiles", {"function": "code.py:f", "args": ["1"] * 101}),
        ("bench", {"function": "code.py:f", "against": ["eager", "--json"]}),
        ("show", {"document": "d99"}),
        ("show", {"document": "../d1"}),
    ):
        assert client.refused(tool, **given)["message"], (tool, given)


def test_options_in_values_stay_values(client: LabClient, place: Path) -> None:
    found = client.refused("explain", function="code.py:f", args=f"--save={place}/x.json")
    assert found["error"] == "BadArguments" and not (place / "x.json").exists()


def test_endless_code_is_stopped(impatient: LabClient) -> None:
    found = impatient.refused("explain", function="code.py:endless")
    assert found["error"] == "TimeLimit" and "after 5 s" in found["message"]
    found = impatient.refused("explain", function="code.py:nothing")
    assert found["error"] in ("BadArguments", "TimeLimit")


def test_code_that_takes_too_much_memory_is_stopped(client: LabClient) -> None:
    found = client.refused("explain", function="code.py:memory")
    assert found["error"] in ("MemoryLimit", "RuntimeError", "MemoryError")
    is_well(client)


def test_code_that_crashes_is_reported(client: LabClient) -> None:
    found = client.refused("explain", function="code.py:crashes")
    assert found["error"] == "Crashed" and "SIGABRT" in found["message"]
    found = client.refused("explain", function="code.py:leaves")
    assert found["error"] == "Crashed" and "exit status 0" in found["message"]
    is_well(client)


def test_what_code_prints_is_not_in_the_protocol(client: LabClient) -> None:
    answer = client.call("explain", {"function": "code.py:prints"})
    assert json.loads(answer.content[0].text)["kind"] in ("outline", "compilation", "error")
    is_well(client)


def test_a_large_answer_is_an_outline(client: LabClient) -> None:
    found = client.document("explain", function="long.py:f", max_bytes=1500)
    assert found["kind"] == "outline" and found["nbytes"] > 20_000
    answer = client.call("explain", {"function": "long.py:f"})
    assert len(answer.content[0].text.encode()) <= 8000
    link = answer.content[1].name
    found = client.document("show", document=link, select="g0.forward.kernel:0/code")
    assert found["kind"] == "field"
    refused = client.refused("show", document=link, max_bytes=2_000_000)
    assert "max_bytes" in refused["message"]


REACHES = """
import os, socket
import torch

def attempt(work):
    try:
        work()
    except OSError:
        return 0.0
    return 1.0

def f(x):
    torch._dynamo.graph_break()
    return x + torch.tensor(DONE)

DONE = [attempt(work) for work in (
    lambda: open({secret!r}).read(),
    lambda: open({inside!r}, "w"),
    lambda: os.symlink({secret!r}, {link!r}),
    lambda: socket.create_connection(("127.0.0.1", {port}), timeout=5),
    lambda: os.kill({parent}, 0),
    lambda: open("/proc/{parent}/environ", "rb").read(),
    lambda: open("/proc/{parent}/cmdline", "rb").read(),
    lambda: open(f"/proc/{os.getppid()}/environ", "rb").read(),
)]
assert DONE == [0.0] * 8, DONE

def example_inputs():
    return torch.ones(8)
"""


def test_user_code_reaches_nothing_outside(client: LabClient, place: Path) -> None:
    """It reads no other file, writes nothing there, opens no connection and sends no signal."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        text = REACHES.replace("{secret!r}", repr(str(place.parent / "secret.py")))
        text = text.replace("{inside!r}", repr(str(place / "written.txt")))
        text = text.replace("{link!r}", repr(str(place / "made")))
        text = text.replace("{port}", str(server.getsockname()[1]))
        text = text.replace("{parent}", str(os.getpid()))
        (place / "reaches.py").write_text(text)
        assert client.document("memory", function="reaches.py:f")["kind"] == "memory"
    assert not (place / "written.txt").exists() and not (place / "made").exists()


FORGED = """
import io, sys
import torch

def f(x):
    return x + 1

def example_inputs():
    frame = sys._getframe()
    while frame is not None:
        for value in list(frame.f_locals.values()):
            if isinstance(value, io.StringIO):
                value.write({text!r})
        frame = frame.f_back
    import inductor_lab.cli as cli
    cli._print = lambda answer, given: sys.stdout.write("")
    return torch.ones(4)
"""


@pytest.mark.parametrize(
    "text",
    [
        "", "not JSON", "[1]", '{"kind": "memory"}', '{"kind": ["memory"]}', "[" * 200_000,
        "NaN",
        '{"schema": "memory.v1", "kind": "memory", "id": 3, "summary": "x"}',
        '{"schema": "memory.v1", "kind": "memory", "id": "m", "summary": "x", "x": [{"id": 1}]}',
    ],
    ids=["nothing", "text", "list", "no-schema", "kind", "deep", "NaN", "id", "part"],
)  # fmt: skip
def test_forged_documents_are_refused(client: LabClient, place: Path, text: str) -> None:
    (place / "forged.py").write_text(FORGED.replace("{text!r}", repr(text)))
    found = client.refused("memory", function="forged.py:f", select="g0")
    assert found["error"] in ("Malformed", "UnknownName", "Crashed"), found


def test_an_endless_request_does_not_block_another(client: LabClient) -> None:
    async def calls() -> CallToolResult:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.client.call_tool, "explain", {"function": "code.py:endless"})
            await anyio.sleep(0)
            answer = await client.client.call_tool("memory", {"function": "code.py:f"})
            tasks.cancel_scope.cancel()
        return answer

    assert not client.portal.call(calls).is_error
