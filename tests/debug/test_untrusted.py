"""Untrusted code: only values come back, limits hold, and nothing of it stays."""

from __future__ import annotations

import ctypes
import json
import math
import os
import pickle
import signal
import threading
import time
from collections import OrderedDict, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from inductor_lab.debug.untrusted.confine import Limits, confinable
from inductor_lab.debug.untrusted.fresh import Fresh
from inductor_lab.debug.untrusted.processes import descendants
from inductor_lab.debug.untrusted.remote import (
    Raised,
    RemoteFunction,
    RemoteObject,
    Stopped,
    copy_of_this_process,
)
from inductor_lab.debug.untrusted.serve import FRAMES, write_place
from inductor_lab.debug.untrusted.wire import DTYPES, HEAD, Codec, Malformed, dumps, loads

SHORT = Limits(20.0)


def there_and_back(value: Any, codec: Codec | None = None) -> Any:
    codec = codec or Codec()
    message = dumps(value, codec)
    text, rest = HEAD.unpack(message[: HEAD.size])
    body = message[HEAD.size :]
    assert len(body) == text + rest
    return loads(body[:text], body[text:], codec)


@pytest.mark.parametrize("value", [
    None, True, 0, -7, 10**40, "text", "\ud800", "", b"bytes", 1.5, -0.0, math.inf, 5e-324,
    [1, [2, ()]], (1, "a", (None,)), {1, 2}, frozenset({"a"}), {"a": {1: (2,)}}, {(1, 2): []},
    torch.float32, [],
])  # fmt: skip
def test_a_plain_value_comes_back(value: object) -> None:
    found = there_and_back(value)
    assert type(found) is type(value) and found == value


def test_nan_comes_back_and_dictionaries_of_a_library_become_plain() -> None:
    assert math.isnan(there_and_back(math.nan))
    for made in (OrderedDict(a=1), defaultdict(int, a=1)):
        assert there_and_back(made) == {"a": 1} and type(there_and_back(made)) is dict
    assert there_and_back(iter((1, 2))) == [1, 2] and there_and_back(range(3)) == [0, 1, 2]


@pytest.mark.parametrize("dtype", DTYPES.values(), ids=str)
def test_a_tensor_comes_back_bit_by_bit(dtype: torch.dtype) -> None:
    for tensor in (torch.arange(-3, 9).to(dtype).reshape(3, 4).t(), torch.empty(0, 3).to(dtype),
                   torch.tensor(1).to(dtype)):  # fmt: skip
        found = there_and_back(tensor)
        assert found.dtype == dtype and found.shape == tensor.shape and found.equal(tensor)
    assert there_and_back(torch.ones(2, requires_grad=True)).requires_grad
    nan = torch.tensor([float("nan"), -0.0])
    assert there_and_back(nan).view(torch.int32).equal(nan.view(torch.int32))


@pytest.mark.parametrize("text", [
    b"", b"{", b"{}", b"1.5", b'["x", 1]', b'["T", "float32", [2], false, [0, 4]]',
    b'["T", "float32", [-1], false, [0, 0]]', b'["T", "object", [1], false, [0, 0]]',
    b'["T", "float32", [99999999999999], false, [0, 0]]', b'["b", [0, 9]]', b'["b", [-1, 1]]',
    b'["v", "os", 1]', b'["e", "os", "x"]', b'["i", "no"]', b'["f", "no"]', b'["S", ["l"]]',
    b'["d", [1]]', b'["h", "1", "k", true, true]', b'["D", "nothing"]', b"[" * 100_000,
    b'["l", ' * 5000 + b"1" + b"]" * 5000, b"9" * 10_000,
    json.dumps(["p", [0, 4]]).encode(),
])  # fmt: skip
def test_bytes_that_are_no_value_are_refused(text: bytes) -> None:
    with pytest.raises(Malformed):
        loads(text, b"", Codec())


def test_a_pickle_is_never_read_of_the_untrusted_side() -> None:
    message = pickle.dumps(os.getcwd)
    with pytest.raises(Malformed, match="a pickle is not read here"):
        loads(json.dumps(["p", [0, len(message)]]).encode(), message, Codec())


def test_a_value_within_itself_is_refused() -> None:
    circle: list[Any] = []
    circle.append(circle)
    with pytest.raises(Malformed):
        dumps(circle, Codec())


def asked(function: Any, *args: Any, limits: Limits = SHORT) -> Any:
    with copy_of_this_process(function, limits, {}) as process:
        process.begin()
        return process.root(*args)


def test_a_function_is_called_there() -> None:
    here = os.getpid()
    assert asked(lambda x: (x * 2, os.getpid() != here), torch.ones(2))[1]
    assert asked(lambda f: f(3) + f(4), lambda n: n * 10) == 70


def test_a_value_is_offered_as_it_is() -> None:
    with copy_of_this_process({"a": 1}, SHORT, {}) as process:
        assert process.begin() == {"a": 1}


class Pool:
    def __init__(self) -> None:
        self.held: list[int] = []

    def take(self, size: int) -> int:
        self.held.append(size)
        return sum(self.held)


def test_an_object_stays_there_and_its_methods_are_called() -> None:
    with copy_of_this_process(Pool, SHORT, {}) as process:
        process.begin()
        assert isinstance(process.root, RemoteFunction)
        pool, other = process.root(), process.root()
        assert isinstance(pool, RemoteObject) and pool.kind == "Pool"
        assert (pool.take(4), pool.take(5), other.take(1)) == (4, 9, 1)


def test_what_becomes_of_the_arguments_can_be_asked() -> None:
    with copy_of_this_process(lambda x: x.add_(1).sum(), SHORT, {}) as process:
        process.begin()
        own = torch.zeros(3)
        value, (after,) = process.root.with_arguments(own)
        assert value == 3 and after.equal(torch.ones(3)) and own.equal(torch.zeros(3))


def failing(n: int) -> None:
    raise KeyError(n)


def test_an_exception_is_reported_with_its_line() -> None:
    with pytest.raises(Raised) as raised:
        asked(failing, 3)
    assert raised.value.kind == "KeyError" and "LookupError" in raised.value.mro
    assert raised.value.frames[-1][2] == "raise KeyError(n)"


def swallows(function: Callable[[], Any]) -> str:
    try:
        function()
    except Exception:
        return "nothing happened"
    return "nothing happened at all"


def test_what_fails_here_is_raised_here_whatever_the_code_makes_of_it() -> None:
    def fails() -> None:
        raise LookupError("of the judge")

    with copy_of_this_process(swallows, SHORT, {}) as process:
        process.begin()
        with pytest.raises(LookupError, match="of the judge"):
            process.root(fails)
        assert process.root(lambda: 1) == "nothing happened at all", "it can be asked again"


def endless() -> None:
    while True:
        time.time()


def test_it_ends_after_its_seconds_and_says_where_it_was() -> None:
    with pytest.raises(Stopped) as stopped:
        asked(endless, limits=Limits(1.5))
    assert stopped.value.how == "hung"
    assert any("time.time()" in text or "while True" in text for *_, text in stopped.value.frames)


@pytest.mark.parametrize("function, kind", [
    (lambda: ctypes.string_at(0), "SIGSEGV"), (lambda: os._exit(0), "exit status 0"),
    (lambda: os._exit(3), "exit status 3"), (lambda: os.abort(), "SIGABRT"),
])  # fmt: skip
def test_a_crash_is_reported(function: Callable[[], Any], kind: str) -> None:
    with pytest.raises(Stopped) as stopped:
        asked(function)
    assert (stopped.value.how, stopped.value.kind) == ("crashed", kind)


@pytest.mark.parametrize("bytes_", [b"x" * 100, HEAD.pack(1 << 31, 0), HEAD.pack(2, 0) + b"[]"])
def test_bytes_of_its_own_are_no_answer(bytes_: bytes) -> None:
    def writes() -> None:
        for end in range(3, 64):
            try:
                os.write(end, bytes_)
            except OSError:
                continue
        time.sleep(30)

    with pytest.raises(Stopped) as stopped:
        asked(writes)
    assert stopped.value.how in ("malformed", "crashed")


needs_proc = pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="no /proc here")


@needs_proc
def test_memory_has_a_limit() -> None:
    with pytest.raises(Raised) as raised:
        asked(lambda: len(bytearray(3 << 30)), limits=Limits(20.0, memory=1 << 30))
    assert raised.value.kind == "MemoryError"


@needs_proc
def test_memory_of_many_processes_has_a_limit() -> None:
    def many() -> None:
        for _ in range(8):
            if os.fork() == 0:
                kept = bytearray(256 << 20)
                time.sleep(30)
                os._exit(len(kept) % 2)
        time.sleep(30)

    with pytest.raises(Stopped) as stopped:
        asked(many, limits=Limits(25.0, memory=1 << 30))
    assert stopped.value.how == "memory"


@needs_proc
@pytest.mark.parametrize("leaves", [
    lambda: None, lambda: os.setsid(), lambda: (os.setsid(), os.fork() and os._exit(0)),
], ids=["child", "session", "daemon"])  # fmt: skip
def test_children_delay_nothing_and_are_ended(leaves: Callable[[], Any]) -> None:
    def starts() -> int:
        if os.fork() == 0:
            leaves()
            time.sleep(60)
            os._exit(0)
        return os.getpid()

    began = time.monotonic()
    assert asked(starts) > 0
    assert time.monotonic() - began < 15
    assert descendants(os.getpid()) == []


def test_threads_that_are_left_end_nothing() -> None:
    def starts() -> str:
        threading.Thread(target=endless, daemon=True).start()
        return "done"

    assert asked(starts) == "done"


def test_it_has_no_file_of_this_process(tmp_path: Path) -> None:
    with (tmp_path / "open").open("w") as held:
        number = held.fileno()

        def writes() -> str:
            try:
                os.write(number, b"forged")
            except OSError as error:
                return type(error).__name__
            return "written"

        asked(writes)
    assert (tmp_path / "open").read_text() == ""



def offers(argument: dict[str, Any]) -> Callable[..., Any]:
    """In a process of its own."""

    def attempts(path: str, written: str, pid: int) -> dict[str, Any]:
        def tried(work: Callable[[], Any]) -> str:
            try:
                return str(work())
            except BaseException as error:
                return type(error).__name__

        return {
            "reads": tried(lambda: Path(path).read_text()),
            "writes": tried(lambda: Path(written).write_text("x")),
            "writes at home": tried(lambda: Path("own").write_text("x")),
            "memory": tried(lambda: open(f"/proc/{pid}/mem", "rb").read(1)),
            "environment": tried(lambda: open(f"/proc/{pid}/environ", "rb").read(1)),
            "signals": tried(lambda: os.kill(pid, 0)),
            "variable": str("UNTRUSTED_SECRET" in os.environ),
            "argument": argument["said"],
            "imports": tried(lambda: __import__("this_is_hidden")),
        }

    return attempts


CLASSES: dict[str, type] = {}


@pytest.mark.skipif(not confinable(), reason="no Landlock on this machine")
def test_a_fresh_process_is_confined(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    (hidden / "secret").write_text("secret")
    (hidden / "this_is_hidden.py").write_text("")
    monkeypatch.setenv("UNTRUSTED_SECRET", "secret")
    root = Path(__file__).parents[2]
    monkeypatch.setenv("PYTHONPATH", f"{root}{os.pathsep}{hidden}")
    with Fresh() as fresh, fresh.start(
        "tests.debug.test_untrusted:offers", {"said": "hello"}, Limits(20.0, start=60.0),
        "tests.debug.test_untrusted:CLASSES", [hidden],
    ) as process:  # fmt: skip
        process.begin()
        found = process.root(str(hidden / "secret"), str(tmp_path / "new"), os.getpid())
    assert found == {
        "reads": "PermissionError", "writes": "PermissionError", "writes at home": "1",
        "memory": "PermissionError", "environment": "PermissionError",
        "signals": "PermissionError", "variable": "False", "argument": "hello",
        "imports": found["imports"],
    }  # fmt: skip
    assert found["imports"] in ("ModuleNotFoundError", "PermissionError")
    assert not (tmp_path / "new").exists() and not fresh.scratch.exists()


@pytest.mark.skipif(not confinable(), reason="no Landlock on this machine")
def test_a_server_that_is_busy_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A grading that is complete must not fail because its server ends slowly."""
    (tmp_path / "starts_slowly.py").write_text("import time\ntime.sleep(60)")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr("inductor_lab.debug.untrusted.fresh.CLOSES", 0.2)
    with Fresh(preload=("starts_slowly",)) as fresh:
        pass
    assert fresh.server.returncode == -signal.SIGKILL and not fresh.scratch.exists()


def test_without_landlock_a_process_starts_where_that_is_allowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "no_landlock.py").write_text(
        "from inductor_lab.debug.untrusted import fresh\n"
        "def refuse(*args):\n    raise fresh.CannotConfine('no Landlock')\n"
        "fresh.confinable, fresh.confine = lambda: 0, refuse\n"
    )
    root = Path(__file__).parents[2]
    monkeypatch.setenv("PYTHONPATH", f"{root}{os.pathsep}{tmp_path}")
    with Fresh(preload=("no_landlock",), required=False) as fresh, fresh.start(
        "tests.debug.test_untrusted:offers", {"said": "hello"}, Limits(20.0, start=60.0),
        "tests.debug.test_untrusted:CLASSES", [],
    ) as process:  # fmt: skip
        process.begin()
        found = process.root(str(tmp_path / "no_landlock.py"), str(tmp_path / "new"), os.getpid())
    assert found["argument"] == "hello" and found["writes"] == "1"


def test_the_place_of_code_without_line_numbers_is_its_first_line(tmp_path: Path) -> None:
    """Instructions that Python adds have no line; they must not end the process."""
    done = threading.Event()
    loop = compile("while not done.is_set(): pass", "no_lines.py", "exec")
    without = loop.replace(co_linetable=b"")
    thread = threading.Thread(target=exec, args=(without, {"done": done}))
    thread.start()
    with (tmp_path / "trace").open("wb") as file:
        write_place(thread.ident or 0, file.fileno())
    done.set()
    thread.join()
    assert 'File "no_lines.py", line 1 in it' in (tmp_path / "trace").read_text()


def deep(levels: int, end: Callable[[], Any]) -> Any:
    return end() if levels == 0 else deep(levels - 1, end)


def test_the_outermost_line_of_deep_code_is_known(tmp_path: Path) -> None:
    """A scheduler of a student's calls the compiler, which is hundreds of frames deep."""
    done, begun = threading.Event(), threading.Event()

    def work() -> None:
        deep(300, lambda: (begun.set(), done.wait()))

    thread = threading.Thread(target=work)
    thread.start()
    begun.wait()
    with (tmp_path / "trace").open("wb") as file:
        write_place(thread.ident or 0, file.fileno())
    done.set()
    thread.join()
    lines = (tmp_path / "trace").read_text().splitlines()
    assert "deep(300, lambda" in "\n".join(lines) and len(lines) <= FRAMES + 1


def raises_deep_inside() -> Any:
    return deep(300, lambda: 1 / 0)


def test_the_outermost_line_of_a_deep_exception_is_known() -> None:
    with copy_of_this_process(raises_deep_inside, Limits(20.0), CLASSES) as process:
        function = process.begin()
        with pytest.raises(Raised) as caught:
            function()
    texts = [text for _, _, text in caught.value.frames]
    assert "return deep(300, lambda: 1 / 0)" in texts and len(texts) <= FRAMES
