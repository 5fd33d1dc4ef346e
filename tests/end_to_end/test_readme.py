"""The five lines of code in README run, and everything in its table exists."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| [\w ]+ \| (`c\.[^|]*|`\.[^|]*) \| ([^|]*) \|$", re.MULTILINE)
QUOTED = re.compile(r"`([^`]*)`")


@pytest.fixture
def ran(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Run the first block of code in its own folder, and return its module."""
    monkeypatch.chdir(tmp_path)
    block = re.search(r"^```python\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
    assert block is not None
    (tmp_path / "five_lines.py").write_text(block[1], encoding="utf-8")
    spec = importlib.util.spec_from_file_location("five_lines", tmp_path / "five_lines.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_five_lines_run(ran: Any, capsys: pytest.CaptureFixture[str]) -> None:
    report = Path("trig.html").read_text(encoding="utf-8")
    assert "cpp_fused_add_cos_mul_sin_0" in report and str(ran.c.graphs[0].forward.kernels[0])


def test_everything_in_the_table_exists(ran: Any) -> None:
    """A call with arguments is executed (`explain`); other names are only looked up."""
    rows = ROW.findall(README)
    assert len(rows) == 8
    for objects, has in rows:
        texts = QUOTED.findall(objects)
        roots = [t if t.startswith("c.") else f"c.graphs[0]{t}" for t in texts]
        held = [eval(root, {"c": ran.c}) for root in roots]
        for said in (text for text in QUOTED.findall(has) if text.startswith(".")):
            asked = said if said.startswith(".decisions") else said.partition("(")[0]
            names = asked.removeprefix(".").partition(".")[0]
            (owner,) = [value for value in held if hasattr(value, names)]
            assert eval(f"owner{asked}", {"owner": owner}) is not None, said
