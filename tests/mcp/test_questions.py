"""Questions about programs: a client of the MCP server answers all of them from JSON alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from tests.mcp.client import LabClient, connected
from tests.mcp.programs import PROGRAMS, source
from tests.mcp.questions import QUESTIONS, Asked, Known


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("programs")
    for name in PROGRAMS:
        (made / f"{name}.py").write_text(source(name), encoding="utf-8")
    return made


@pytest.fixture(scope="module")
def client(folder: Path) -> Iterator[LabClient]:
    with connected(folder) as found:
        yield found


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Schedules depend on the number of threads; the server has one."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.mark.parametrize("name", PROGRAMS)
def test_answers_from_json(name: str, client: LabClient, folder: Path) -> None:
    asked, known = Asked(client, name), Known(name, folder)
    mine = [question for question in QUESTIONS if question.program == name]
    assert len(mine) == 3
    if name == "wrong_neg":  # the file breaks our compiler, so it is not loaded into this process
        answers = {q.text: q.answer(asked) for q in mine}
        assert answers == {q.text: q.expected(known) for q in mine}
        return
    expected = {question.text: question.expected(known) for question in mine}
    assert {question.text: question.answer(asked) for question in mine} == expected
