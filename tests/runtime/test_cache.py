"""The cache directory: entries appear whole or not at all, and only ours are trusted."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

import pytest

from inductor_lab.errors import CacheRefused
from inductor_lab.runtime.cache import Cache, DamagedEntry, open_cache
from tests.scripts import script


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return open_cache({"INDUCTOR_LAB_CACHE_DIR": str(tmp_path / "here")})


def writes(text: str, calls: list[str]):
    def build(folder: Path) -> None:
        calls.append(text)
        (folder / "kernel.so").write_text(text)

    return build


def test_directory_is_private(cache: Cache) -> None:
    assert cache.root.stat().st_mode & 0o777 == 0o700


def test_loose_permissions_are_tightened(tmp_path: Path) -> None:
    (tmp_path / "inductor_lab").mkdir(mode=0o755)
    root = open_cache({"INDUCTOR_LAB_CACHE_DIR": str(tmp_path)}).root
    assert root.stat().st_mode & 0o777 == 0o700


def test_an_entry_is_built_once(cache: Cache) -> None:
    calls: list[str] = []
    first = cache.entry(("source", "flags"), writes("a", calls))
    second = cache.entry(("source", "flags"), writes("b", calls))
    assert first == second and (first / "kernel.so").read_text() == "a"
    assert cache.entry(("source", "other flags"), writes("c", calls)) != first
    assert calls == ["a", "c"]


def test_parts_of_a_key_do_not_run_together(cache: Cache) -> None:
    calls: list[str] = []
    assert cache.entry(("ab", "c"), writes("1", calls)) != cache.entry(
        ("a", "bc"), writes("2", calls)
    )


@pytest.mark.parametrize("damage", ["changed", "emptied", "removed", "no checksum", "more files"])
def test_a_damaged_entry_is_built_again_and_told(cache: Cache, damage: str) -> None:
    calls: list[str] = []
    entry = cache.entry(("k",), writes("good", calls))
    library = entry / "kernel.so"
    match damage:
        case "changed":
            library.write_text("goof")
        case "emptied":
            library.write_text("")
        case "removed":
            library.unlink()
        case "no checksum":
            (entry / "sha256").unlink()
        case "more files":
            (entry / "extra").write_text("x")
    with pytest.warns(DamagedEntry, match="built again"):
        again = cache.entry(("k",), writes("good", calls))
    assert (again / "kernel.so").read_text() == "good" and len(calls) == 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cache.entry(("k",), writes("unused", calls))


def test_a_failing_build_leaves_nothing(cache: Cache) -> None:
    def build(folder: Path) -> None:
        (folder / "kernel.so").write_text("half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cache.entry(("k",), build)
    assert [p for p in cache.root.rglob("*") if p.is_file()] == []
    calls: list[str] = []
    cache.entry(("k",), writes("whole", calls))
    assert calls == ["whole"]


def test_many_builders_of_one_entry(cache: Cache) -> None:
    calls: list[str] = []
    together = threading.Barrier(8)
    found: list[Path] = []

    def build(folder: Path) -> None:
        together.wait(timeout=20)  # all have seen that there is no entry, and now all build it
        writes("same", calls)(folder)

    threads = [
        threading.Thread(target=lambda: found.append(cache.entry(("k",), build))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8 and len(set(found)) == 1 and len(calls) == 8
    assert not any((cache.root / "tmp").iterdir())


def test_interrupted_in_the_middle_of_a_compile(tmp_path: Path) -> None:
    """Ctrl-C while the compiler runs: it ends, the cache is clean, the next call works."""
    slow = script(
        tmp_path / "slow-g++",
        'if [ "$1" = --version ]; then echo "g++ 1, Free Software Foundation"; exit 0; fi\n'
        f'echo $$ > {tmp_path / "pid"}; sleep 60 & wait $!; exec g++ "$@"',
    )
    program = (
        "from inductor_lab.codegen.kernel import Code, Line\n"
        "from inductor_lab.runtime.library import build_library\n"
        "unit = Code.of([Line('extern \"C\" int f() { return 7; }')])\n"
        "print(build_library(unit, 'f').handle.f())\n"
    )
    environment = {**os.environ, "INDUCTOR_LAB_CACHE_DIR": str(tmp_path / "cache")}
    command = [sys.executable, "-c", program]
    child = subprocess.Popen(
        command,
        env={**environment, "CXX": str(slow)},
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    deadline = time.monotonic() + 60
    while not (tmp_path / "pid").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    os.killpg(child.pid, signal.SIGINT)  # what a terminal does for Ctrl-C
    _, said = child.communicate(timeout=60)
    assert child.returncode != 0 and "KeyboardInterrupt" in said
    cache = tmp_path / "cache" / "inductor_lab"
    assert [path for path in cache.rglob("*") if path.is_file()] == []
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "7"


@pytest.mark.skipif(not hasattr(os, "chown") or os.geteuid() != 0, reason="only root can chown")
def test_a_directory_of_somebody_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "inductor_lab").mkdir()
    os.chown(tmp_path / "inductor_lab", 12345, 12345)
    with pytest.raises(CacheRefused, match=r"belongs to user 12345.*\n.*INDUCTOR_LAB_CACHE_DIR"):
        open_cache({"INDUCTOR_LAB_CACHE_DIR": str(tmp_path)})


def test_a_directory_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CacheRefused, match="no cache directory"):
        open_cache({"INDUCTOR_LAB_CACHE_DIR": str(tmp_path / "file")})
