"""The protocol, with the SDK's own client: handshakes, tools, resources, progress, cancellation."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from jsonschema import Draft202012Validator

from inductor_lab.saved.documents.kinds import KINDS, schema
from tests.mcp.client import LabClient, connected
from tests.mcp.programs import source

from mcp.client.client import Client  # isort: skip
from mcp.client.stdio import StdioServerParameters  # isort: skip
from mcp.shared.exceptions import MCPError  # isort: skip

NAMED = {"explain", "why_not_fused", "what_if", "blame", "minify", "try_kernel", "judge",
         "recompiles", "diff", "memory", "read_trace", "bench"}  # fmt: skip
"""The tools that run a command."""
ENDLESS = "import torch\n\ndef f(x):\n    while True:\n        pass\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("protocol")
    (made / "softmax.py").write_text(source("softmax"))
    (made / "endless.py").write_text(f"{ENDLESS}\ndef example_inputs():\n    return 1\n")
    return made


@pytest.fixture(scope="module")
def client(folder: Path) -> Iterator[LabClient]:
    with connected(folder) as found:
        yield found


def test_tools_have_schemas(client: LabClient) -> None:
    tools = {tool.name: tool for tool in client.ask("list_tools").tools}
    assert {*tools} == NAMED | {"show"}
    for tool in tools.values():
        Draft202012Validator.check_schema(tool.input_schema)
        assert tool.description and tool.annotations.read_only_hint
        for name, parameter in tool.input_schema["properties"].items():
            assert parameter["description"], (tool.name, name)


def test_an_answer_is_the_document_of_the_command(client: LabClient, folder: Path) -> None:
    answer = client.document("memory", function="softmax.py:f")
    printed = subprocess.run(
        [sys.executable, "-m", "inductor_lab", "memory", "softmax.py:f", "--json"],
        cwd=folder, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert answer == json.loads(printed.stdout)


def test_trace_logs_are_compared(client: LabClient, folder: Path) -> None:
    for name, factor in (("before", 2), ("after", 3)):
        called = f"lambda x: x.sin() * {factor}, backend='eager'"
        program = f"import torch; torch.compile({called})(torch.ones(3))"
        env = os.environ | {"TORCH_TRACE": str(folder / name)}
        subprocess.run([sys.executable, "-c", program], env=env, check=True)
    found = client.document("diff", before="before", after="after")
    assert [each["stage"] for each in found["changes"]] == ["captured graph"]
    assert not client.document("diff", before="before", after="before")["differs"]


def test_resources(client: LabClient) -> None:
    found = client.document("memory", function="softmax.py:f")
    known = {str(each.uri): each for each in client.ask("list_resources").resources}
    newest = next(uri for uri in known if "://document/" in uri)
    (content,) = client.ask("read_resource", newest).contents
    assert json.loads(content.text) == found
    (content,) = client.ask("read_resource", f"{newest}?select=g0.forward.memory").contents
    assert json.loads(content.text)["kind"] == "memory_plan"
    (content,) = client.ask("read_resource", "inductor-lab://schema/kernel").contents
    assert json.loads(content.text) == schema("kernel")
    (content,) = client.ask("read_resource", "inductor-lab://glossary").contents
    assert "| term | meaning | where |" in content.text
    for kind in ("schema/" + name for name in KINDS):
        assert f"inductor-lab://{kind}" in known
    for page in ("json", "mcp", "rules"):
        (content,) = client.ask("read_resource", f"inductor-lab://docs/{page}").contents
        assert content.text.startswith("# ")
    (template,) = client.ask("list_resource_templates").resource_templates
    assert template.uri_template.startswith("inductor-lab://document/{document}")


def test_resources_that_do_not_exist(client: LabClient) -> None:
    for uri in ("inductor-lab://schema/nothing", "inductor-lab://docs/../README", "file:///etc/passwd",
                "inductor-lab://docs/%2e%2e/README", "inductor-lab://document/d99",
                "inductor-lab://nothing", "inductor-lab://glossary/x"):  # fmt: skip
        with pytest.raises(MCPError):
            client.ask("read_resource", uri)


def test_an_unknown_tool_is_an_error_of_the_protocol(client: LabClient) -> None:
    with pytest.raises(MCPError, match="no tool 'nothing'"):
        client.call("nothing", {})


def test_progress_goes_up(client: LabClient) -> None:
    told: list[tuple[float, str]] = []

    async def progress(done: float, total: float | None, message: str | None) -> None:
        assert total is not None and done < total
        told.append((done, message or ""))

    async def call() -> Any:
        return await client.client.call_tool(
            "blame", {"function": "softmax.py:f"}, progress_callback=progress
        )

    assert not client.portal.call(call).is_error
    assert told and [done for done, _ in told] == sorted({done for done, _ in told})
    assert any(message for _, message in told)


def test_a_cancelled_call_ends_its_process(client: LabClient) -> None:
    async def call() -> bool:
        with anyio.move_on_after(3) as scope:
            await client.client.call_tool("explain", {"function": "endless.py:f"})
        return scope.cancelled_caught

    assert client.portal.call(call)
    until = time.monotonic() + 20
    while (left := endless_processes()) and time.monotonic() < until:
        time.sleep(0.05)
    assert not left
    assert client.document("memory", function="softmax.py:f")["kind"] == "memory"


def endless_processes() -> list[str]:
    """Processes below this one that spend processor time in an endless loop: their state is R."""
    children: dict[int, list[int]] = {}
    running: set[int] = set()
    for each in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = each.read_text().rpartition(")")[2].split()[:2]
        except OSError:
            continue
        pid = int(each.parent.name)
        children.setdefault(int(parent), []).append(pid)
        if state == "R":
            running.add(pid)
    waiting, below = [os.getpid()], []
    while waiting:
        found = children.get(waiting.pop(), [])
        waiting += found
        below += found
    return [str(pid) for pid in below if pid in running]


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_old_and_new_handshakes(folder: Path, mode: str) -> None:
    async def versions() -> tuple[str, int]:
        server = StdioServerParameters(
            command=sys.executable, args=["-m", "inductor_lab", "mcp", str(folder)]
        )
        async with Client(server, mode=mode) as client:
            return client.protocol_version, len((await client.list_tools()).tools)

    version, tools = anyio.run(versions)
    assert version >= "2025" and tools == len(NAMED) + 1


def test_a_trace_log_is_read(client: LabClient, folder: Path) -> None:
    program = "import torch; torch.compile(lambda x: x.sin() + 1)(torch.ones(5))"
    subprocess.run([sys.executable, "-c", program], check=True,
                   env={**os.environ, "TORCH_TRACE": str(folder / "logs")})  # fmt: skip
    found = client.document("read_trace", log="logs")
    assert [entry["status"] for entry in found["compiled"]] == ["compiled"]
    (log,) = (folder / "logs").glob("*.log")
    assert client.document("read_trace", log=f"logs/{log.name}")["compiled"] == found["compiled"]


def test_stock_is_checked(client: LabClient) -> None:
    """Stock compiles in a confined process, where it writes to folders of that process."""
    assert client.document("blame", function="softmax.py:f", stock=True)["right"]


def test_a_function_may_name_our_backend(client: LabClient, folder: Path) -> None:
    """The confined process finds it by the installed package's entry points."""
    text = "import torch\n\ndef f(x):\n    return (x * 2).sum()\n"
    text += "example_inputs = lambda: torch.ones(3)\nBACKENDS = torch.compiler.list_backends()\n"
    check = "assert {'inductor_lab', 'inductor_lab_mini'} <= {*BACKENDS}, BACKENDS\n"
    (folder / "named.py").write_text(text + check)
    assert client.document("explain", function="named.py:f")["kind"] == "compilation"


def test_a_folder_that_cannot_be_served_is_refused(tmp_path: Path) -> None:
    for folder, words in ((tmp_path / "nothing", "is not a folder"), (Path("/"), "whole system")):
        run = subprocess.run([sys.executable, "-m", "inductor_lab", "mcp", str(folder)],
                             capture_output=True, text=True, stdin=subprocess.DEVNULL)  # fmt: skip
        assert run.returncode == 2 and words in run.stderr and run.stdout == ""


def test_without_the_package_the_command_names_it(tmp_path: Path) -> None:
    program = ("import sys; sys.modules['mcp'] = None; from inductor_lab.cli import main;"
               " sys.exit(main())")  # fmt: skip
    run = subprocess.run([sys.executable, "-c", program, "mcp", str(tmp_path)],
                         capture_output=True, text=True, stdin=subprocess.DEVNULL)  # fmt: skip
    assert run.returncode == 2 and run.stdout == ""
    assert "mcp is missing" in run.stderr and "pip install 'inductor-lab[mcp]'" in run.stderr
