"""docs/mcp.md: the calls of its example have the answers that it shows; configurations are JSON."""

from __future__ import annotations

import json
import re
from pathlib import Path

from inductor_lab.debug.mcp.tools import TOOLS
from tests.mcp.client import connected
from tests.saved.test_json_page import contains

PAGE = Path(__file__).parents[2] / "docs" / "mcp.md"
TEXT = PAGE.read_text(encoding="utf-8")
BLOCKS = [json.loads(text) for text in re.findall(r"^```json\n(.*?)^```$", TEXT, re.M | re.S)]


def test_the_example(tmp_path: Path) -> None:
    program = re.search(r"```python\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
    assert program is not None
    (tmp_path / "model.py").write_text(program[1])
    examples = BLOCKS[3:]
    calls, answers = examples[::2], examples[1::2]
    assert len(calls) == len(answers) == 5
    with connected(tmp_path) as client:
        for call, excerpt in zip(calls, answers, strict=True):
            answer = client.call(call["name"], call["arguments"])
            found = json.loads(answer.content[0].text)
            assert contains(found, excerpt), (call, found)
            assert answer.is_error == (found["kind"] == "error")


def test_configurations_start_the_command() -> None:
    vscode, jupyter, other = BLOCKS[:3]
    servers = (vscode["servers"]["inductor-lab"], jupyter["mcp_servers"][0],
               other["mcpServers"]["inductor-lab"])  # fmt: skip
    for server in servers:
        assert server["command"] == "inductor-lab" and server["args"][0] == "mcp"


def test_every_tool_is_in_the_table() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (?:`([\w-]+)`)?", TEXT, re.MULTILINE)
    assert {(tool.name, tool.command) for tool in TOOLS} <= {*rows}
