"""The pytest plugin of compile contracts: snapshots, and pages of contracts that broke.

`pytest --compile-snapshot` records the facts of each contract without conditions in
`test_x.compiles.json`, next to `test_x.py`.  Nothing of torch is imported before a contract runs.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

MODULE = "inductor_lab.contracts.contract"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("inductor_lab")
    group.addoption(
        "--compile-snapshot", action="store_true",
        help="record what is compiled in tests under @inductor_lab.compiles() without conditions",
    )  # fmt: skip
    group.addoption(
        "--compile-pages", metavar="DIR", default=None,
        help="where to write an explorer page for each contract that breaks"
             " (default: .pytest_cache/compiles)",
    )  # fmt: skip


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Tell the contracts of a test its name and its files."""
    contract: Any = sys.modules.get(MODULE)
    if contract is None:
        return (yield)
    config, before = item.config, contract.place
    folder = config.getoption("--compile-pages") or config.rootpath / ".pytest_cache" / "compiles"
    contract.place = contract.Place(
        name=item.nodeid.rpartition("/")[2].partition("::")[2],
        snapshot=Path(item.path).with_suffix(".compiles.json"),
        record=config.getoption("--compile-snapshot"),
        folder=Path(folder),
    )
    try:
        return (yield)
    finally:
        contract.place = before
