"""The cache directory: entries are complete or absent, and only private entries are trusted."""

from __future__ import annotations

import errno
import os
import re
import signal
import stat
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

import pytest
import torch

import inductor_lab as lab
from inductor_lab import cli
from inductor_lab.compiler.base.errors import CacheRefused, CompileFailed
from inductor_lab.compiler.codegen.kernel import Code, Line
from inductor_lab.compiler.runtime.cache.kernel_cache import (
    Cache,
    DamagedEntry,
    UnusableCache,
    open_cache,
    own_version,
    usable_cache,
)
from inductor_lab.compiler.runtime.cache.prune import (
    LIMIT_MB,
    MOST_MB,
    STAMP,
    clear,
    kinds,
    libraries,
    limit_in,
    mark_used,
    oldest_first,
    prune,
    prune_sometimes,
    size_of,
    triton_kernels,
)
from inductor_lab.compiler.runtime.toolchain.shared_library import build_library
from tests.scripts import script


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cache:
    """A new cache, with separate folders for the caches of torch and Triton."""
    monkeypatch.setenv("INDUCTOR_LAB_CACHE_DIR", str(tmp_path / "here"))
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "torch"))
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "triton"))
    return open_cache(os.environ)


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


def test_parts_of_a_key_are_kept_separate(cache: Cache) -> None:
    calls: list[str] = []
    assert cache.entry(("ab", "c"), writes("1", calls)) != cache.entry(
        ("a", "bc"), writes("2", calls)
    )


@pytest.mark.parametrize("damage", ["changed", "emptied", "removed", "no checksum", "more files"])
def test_a_damaged_entry_is_rebuilt_with_a_warning(cache: Cache, damage: str) -> None:
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
    with pytest.warns(DamagedEntry, match="is rebuilt"):
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


def test_only_one_of_many_builders_builds_an_entry(cache: Cache) -> None:
    calls: list[str] = []
    together = threading.Barrier(8)
    found: list[Path] = []

    def ask() -> None:
        together.wait(timeout=20)
        found.append(cache.entry(("k",), writes("same", calls)))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8 and len(set(found)) == 1 and len(calls) == 1
    assert not any((cache.root / "tmp").iterdir())


def test_control_c_during_a_compile(tmp_path: Path) -> None:
    """Ctrl-C while the compiler runs: it ends, the cache is clean, the next call works."""
    slow = script(
        tmp_path / "slow-g++",
        'if [ "$1" = --version ]; then echo "g++ 1, Free Software Foundation"; exit 0; fi\n'
        f'echo $$ > {tmp_path / "pid"}; sleep 60 & wait $!; exec g++ "$@"',
    )
    program = (
        "from inductor_lab.compiler.codegen.kernel import Code, Line\n"
        "from inductor_lab.compiler.runtime.toolchain.shared_library import build_library\n"
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
    os.killpg(child.pid, signal.SIGINT)  # as a terminal does for Ctrl-C
    _, said = child.communicate(timeout=60)
    assert child.returncode != 0 and "KeyboardInterrupt" in said
    cache = tmp_path / "cache" / "inductor_lab"
    assert [path for path in cache.rglob("*") if path.is_file()] == []
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "7"


def test_the_next_build_deletes_folders_of_killed_processes(cache: Cache) -> None:
    """This includes temporary files of the compiler.  Folders in use are not deleted."""
    program = (
        "import os, sys\n"
        "from pathlib import Path\n"
        "from inductor_lab.compiler.runtime.cache.kernel_cache import Cache\n"
        "with Cache(Path(sys.argv[1])).workspace() as folder:\n"
        "    (folder / 'cc1.s').write_text('half')\n"
        "    os.kill(os.getpid(), 9)\n"
    )
    subprocess.run([sys.executable, "-c", program, str(cache.root)], check=False)
    (left,) = (cache.root / "tmp").iterdir()
    assert (left / "cc1.s").exists()
    with cache.workspace() as working:
        assert not left.exists()
        cache.entry(("k",), writes("a", []))
        assert working.is_dir()
    assert not any((cache.root / "tmp").iterdir())


def test_the_compiler_keeps_its_temporary_files_in_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spy = script(
        tmp_path / "spy-g++",
        f'case "$*" in *--version*) ;; *) echo "$TMPDIR" >> {tmp_path}/places;; esac\n'
        'exec g++ "$@"',
    )
    monkeypatch.setenv("CXX", str(spy))
    monkeypatch.setenv("INDUCTOR_LAB_CACHE_DIR", str(tmp_path / "cache"))
    unit = Code.of([Line('extern "C" int f() { return 7; }')])
    for cached in (True, False):
        assert build_library(unit, "f", cache=cached).handle.f() == 7
    places = (tmp_path / "places").read_text().splitlines()
    assert len(places) == 2
    folder = tmp_path / "cache" / "inductor_lab" / "tmp"
    assert {Path(place).parent for place in places} == {folder} and not any(folder.iterdir())


def test_python_exits_without_waiting_for_the_compiler(tmp_path: Path) -> None:
    """The compiler and its child processes end too."""
    slow = script(
        tmp_path / "slow-g++",
        'case "$*" in *--version*) exec g++ --version;; esac\n'
        f"echo $$ > {tmp_path}/pid; sleep 300 & echo $! >> {tmp_path}/pid; wait",
    )
    program = (
        "import time, torch, inductor_lab as lab, threading\n"
        "from pathlib import Path\n"
        "from inductor_lab.compiler.codegen.kernel import Code, Line\n"
        "from inductor_lab.compiler.runtime.toolchain.background_compile import BackgroundValue\n"
        "from inductor_lab.compiler.runtime.toolchain.shared_library import library_builder\n"
        "unit = Code.of([Line('extern \"C\" int f() { return 7; }')])\n"
        "BackgroundValue(library_builder(unit, 'f'))\n"
        f"while len(Path({str(tmp_path / 'pid')!r}).read_text().split() if "
        f"Path({str(tmp_path / 'pid')!r}).exists() else '') < 2: time.sleep(0.05)\n"
        "print('the end')\n"
    )
    environment = {**os.environ, "CXX": str(slow), "INDUCTOR_LAB_CACHE_DIR": str(tmp_path / "c")}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True,
                          text=True, timeout=120, check=True)  # fmt: skip
    assert done.stdout.strip() == "the end" and done.stderr == ""
    for process in map(int, (tmp_path / "pid").read_text().split()):
        status = Path(f"/proc/{process}/stat")
        assert not status.exists() or status.read_text().rsplit(")", 1)[1].split()[0] == "Z"
    assert not any((tmp_path / "c" / "inductor_lab" / "tmp").iterdir())
    assert not (tmp_path / "c" / "inductor_lab" / "failed").exists()


def test_least_recently_used_entries_are_pruned(cache: Cache, tmp_path: Path) -> None:
    entries = [cache.entry((str(n),), writes("x" * 100_000, [])) for n in range(6)]
    old = cache.root / "0.0.1" / "ab" / "abcd"
    theirs = tmp_path / "torch" / "aotautograd" / "somebody"
    graph = theirs.with_name("inductor_lab_key0")
    for folder in (old, theirs, graph):
        folder.mkdir(parents=True)
        (folder / "data").write_text("y" * 100_000)
    for age, path in enumerate([*entries, graph, old]):
        os.utime(path, (time.time() - 9_000 - age,) * 2)
    cache.entry(("4",), writes("not built", []))  # marks it as used
    prune(cache.root, 350_000)
    kept = {path.name for path in (*entries, graph, old) if path.exists()}
    assert kept == {entries[4].name, entries[0].name, entries[1].name}
    assert theirs.exists()
    assert (cache.entry(("4",), writes("not built", [])) / "kernel.so").stat().st_size == 100_000
    assert {k.name: len(k.paths) for k in kinds(cache.root, own_version()) if k.paths} == {
        "libraries and measurements": 3
    }


def test_our_kernels_in_the_cache_of_triton_are_pruned(
    cache: Cache, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Uses real kernels, compiled by Triton.  Kernels of other programs are not deleted."""
    pytest.importorskip("triton")
    folder = tmp_path / "triton"
    (folder / "THEIRS").mkdir(parents=True)
    (folder / "THEIRS" / "kernel.cubin").write_text("z" * 10_000)
    for n in range(3):
        c = lab.inspect(lambda x, n=n: x.sin() * n + n, torch.randn(9))
        (kernel,) = c.graphs[0].forward.kernels
        assert kernel.ladder("cuda:90")["cubin"]
    entries = oldest_first(triton_kernels())
    assert len(entries) == 3
    for age, entry in enumerate(entries):
        os.utime(entry, (time.time() - 90_000 - age,) * 2)
    mark_used(entries[2])  # marks it as used
    assert cli.main(["cache"]) == 0
    assert re.search(r"kernels for GPUs +3 +\d", capsys.readouterr().out)
    prune(cache.root, sum(map(size_of, libraries(cache.root))) + size_of(entries[2]) + 20)
    assert set(triton_kernels()) <= {entries[2]}
    assert cli.main(["cache", "--clear"]) == 0
    assert not triton_kernels() and (folder / "THEIRS" / "kernel.cubin").exists()


def test_builds_prune_the_cache(
    cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INDUCTOR_LAB_CACHE_MB", "0.5")
    monkeypatch.setattr("inductor_lab.compiler.runtime.cache.prune.BUILDS_BETWEEN", 10)
    for n in range(40):
        cache.entry((str(n),), writes("x" * 50_000, []))
    assert cache.nbytes() <= 2**20
    for n in range(60):
        cache.keep_failed("f", str(n))
    assert len(list((cache.root / "failed").iterdir())) == 50


def test_times_in_the_future_do_not_stop_pruning(
    cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = cache.entry(("a",), writes("x", []))
    monkeypatch.setenv("INDUCTOR_LAB_CACHE_MB", "0")
    later = time.time() + 1e7
    for path in (entry, cache.root / STAMP):
        os.utime(path, (later, later))
    mark_used(entry)
    assert entry.stat().st_mtime < later
    prune_sometimes(cache.root)
    assert not entry.exists()


@pytest.mark.parametrize("said, megabytes", [
    ("3", 3), ("0.5", 0.5), ("-1", LIMIT_MB), ("nan", LIMIT_MB), ("much", LIMIT_MB),
    ("inf", MOST_MB),
])  # fmt: skip
def test_a_limit_is_a_number(said: str, megabytes: float) -> None:
    assert limit_in({"INDUCTOR_LAB_CACHE_MB": said}) == megabytes * 2**20


def test_unfinished_entries_are_not_cleared(cache: Cache) -> None:
    with cache.workspace() as working:
        clear(cache.root, own_version())
        assert working.is_dir()
    clear(cache.root, own_version())
    assert not working.exists()


def test_an_unknown_home_directory_is_refused() -> None:
    with pytest.raises(CacheRefused, match="no cache directory"):
        open_cache({"INDUCTOR_LAB_CACHE_DIR": "~nobody-of-this-name/cache"})


def test_a_cache_that_is_cleared_during_a_build(
    cache: Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is cleared between the build of an entry and its use: the entry is built again."""
    unit = Code.of([Line('extern "C" int f() { return 7; }')])
    monkeypatch.setattr(Cache, "entry", lambda *_: tmp_path / "gone")
    assert build_library(unit, "f").handle.f() == 7


def test_a_full_disk_is_refused(
    cache: Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_folder(*_: object, **__: object) -> str:
        raise OSError(errno.ENOSPC, "No space left on device", str(tmp_path))

    monkeypatch.setattr("tempfile.mkdtemp", no_folder)
    with pytest.raises(CacheRefused, match="No space left"):
        build_library(Code.of([Line('extern "C" int f() { return 7; }')]), "f")


def test_an_undefined_function_is_not_reported_as_a_cache_problem(cache: Cache) -> None:
    line = Line('extern "C" int nobody(); extern "C" int f() { return nobody(); }')
    for cached in (True, False):
        with pytest.raises(CompileFailed, match="nobody"):
            build_library(Code.of([line]), "f", cache=cached)


def test_the_command_shows_and_clears(cache: Cache, capsys: pytest.CaptureFixture[str]) -> None:
    cache.entry(("a",), writes("x" * 1000, []))
    cache.keep_failed("f", "int")
    assert cli.main(["cache"]) == 0
    said = capsys.readouterr().out
    assert re.search(r"libraries and measurements +1 +1\.1 kB", said)
    assert re.search(r"sources that did not compile +1 ", said)
    assert cli.main(["cache", "--clear"]) == 0
    assert cli.main(["cache"]) == 0
    assert not re.search(r" [1-9]\d* +[\d.]+ k?B", capsys.readouterr().out)


@pytest.mark.skipif(not hasattr(os, "chown") or os.geteuid() != 0, reason="only root can chown")
def test_a_directory_of_another_user_is_refused(tmp_path: Path) -> None:
    (tmp_path / "inductor_lab").mkdir()
    os.chown(tmp_path / "inductor_lab", 12345, 12345)
    with pytest.raises(CacheRefused, match=r"belongs to user 12345.*\n.*INDUCTOR_LAB_CACHE_DIR"):
        open_cache({"INDUCTOR_LAB_CACHE_DIR": str(tmp_path)})


def test_a_directory_that_cannot_be_created_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CacheRefused, match="no cache directory"):
        open_cache({"INDUCTOR_LAB_CACHE_DIR": str(tmp_path / "file")})


def test_a_temporary_folder_replaces_an_unusable_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("INDUCTOR_LAB_CACHE_DIR", str(tmp_path / "file"))
    unit = Code.of([Line('extern "C" int f() { return 7; }')])
    with pytest.warns(UnusableCache, match=r"until this process ends.*\n.*INDUCTOR_LAB_CACHE_DIR"):
        assert build_library(unit, "f").handle.f() == 7
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert build_library(unit, "f").handle.f() == 7, "one warning is enough"
    root = usable_cache().root
    assert any(root.rglob("kernel.so")) and stat.S_IMODE(root.stat().st_mode) == 0o700


def test_a_failed_source_that_cannot_be_saved(cache: Cache) -> None:
    (cache.root / "failed").write_text("a file")
    with pytest.raises(CacheRefused, match=r"did not compile, and .*failed.* cannot be written"):
        cache.keep_failed("kernel", "int f() {")
