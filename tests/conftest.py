"""What all tests share: `--update-golden`, the `golden` fixture, and that each compile is one."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.fresh import compile_always

compile_always()

GOLDEN = Path(__file__).parent / "golden"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="write tests/golden/ anew instead of comparing"
    )


def difference(name: str, expected: str, actual: str) -> str:
    """The unified diff of two texts, and how to accept the new one; "" if they are equal."""
    if expected == actual:
        return ""
    diff = difflib.unified_diff(
        expected.splitlines(), actual.splitlines(), f"golden/{name}", "now", lineterm=""
    )
    accept = "if the new text is right: pytest --update-golden (and read the diff that git shows)"
    return "\n".join([f"{name} is not what it was", *diff, accept])


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, object], None]:
    """`golden("softmax.txt", text)` compares with `tests/golden/softmax.txt`."""
    update = request.config.getoption("--update-golden")

    def check(name: str, value: object) -> None:
        text = str(value).rstrip("\n") + "\n"
        path = GOLDEN / name
        if update:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            return
        if not path.exists():
            pytest.fail(f"there is no tests/golden/{name} yet: run pytest --update-golden")
        message = difference(name, path.read_text(encoding="utf-8"), text)
        if message:
            pytest.fail(message, pytrace=False)

    return check
