"""What all tests share: `--update-golden`, `--check-bounds`, the `golden` fixture, and that each
compile is one."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path

import pytest

from tests.fresh import check_bounds_always, compile_always, own_caches
from tests.runner.parts import left_out
from tests.runner.record import Recorder

own_caches()
compile_always()

GOLDEN = Path(__file__).parent / "golden"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="write tests/golden/ anew instead of comparing"
    )
    parser.addoption(
        "--check-bounds", action="store_true", help="compile with options={'check_bounds': True}"
    )
    parser.addoption(
        "--take",
        choices=("all", "quick", "rest"),
        default="all",
        help="quick: what `make test` runs; rest: what it leaves to `make check`",
    )
    parser.addoption("--record", type=Path, help="write counts and seconds of the tests to a file")
    parser.addoption(
        "--passes-off",
        action="store_true",
        help="C++ kernels of simple loops, with no pass over their trees that may be left out",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Recorder(config.getoption("--record")))
    if config.getoption("--check-bounds"):
        check_bounds_always()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    take = config.getoption("--take")
    if take == "all":
        return
    quick, rest = left_out().split(item.nodeid for item in items)
    chosen = quick if take == "quick" else rest
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in chosen])
    items[:] = [item for item in items if item.nodeid in chosen]


@pytest.fixture(autouse=True, scope="session")
def simple_loops(request: pytest.FixtureRequest) -> Iterator[None]:
    """`--passes-off`: every compilation as `options={"passes_off": "all"}` makes it."""
    with pytest.MonkeyPatch.context() as patch:
        if request.config.getoption("--passes-off"):
            from inductor_lab.compiler.base.passes import optional
            from inductor_lab.compiler.codegen import generate

            patch.setattr(generate, "switched_off", lambda table, names: optional(table))
        yield


def difference(name: str, expected: str, actual: str) -> str:
    """The unified diff of two texts, and how to accept the new one; "" if they are equal."""
    if expected == actual:
        return ""
    diff = difflib.unified_diff(
        expected.splitlines(), actual.splitlines(), f"golden/{name}", "now", lineterm=""
    )
    accept = "if the new text is right: pytest --update-golden (and read the diff that git shows)"
    return "\n".join([f"{name} is not what it was", *diff, accept])


@pytest.fixture(scope="module")
def known_limits(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Limits of this machine that nothing here exceeds: a machine that runs tests is too busy to be
    measured."""
    from inductor_lab.bench.machine import Ceilings, keep, machine

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("INDUCTOR_LAB_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        today = f"{datetime.now():%Y-%m-%d}"
        keep(Ceilings(machine("cpu"), ((1, 1e15),), {"float32": 1e18}, today))
        yield


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, object], None]:
    """`golden("softmax.txt", text)` compares with `tests/golden/softmax.txt`."""
    update = request.config.getoption("--update-golden")
    if request.config.getoption("--check-bounds"):
        pytest.skip("kernels that check bounds have another text")

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
