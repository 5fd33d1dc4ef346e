"""Recorded calls, with a replacement for CUDA graphs: launches are functions on a tape."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
import torch

import inductor_lab as lab
from inductor_lab.compiler.base.errors import NothingToChange, NotReplayed
from inductor_lab.compiler.base.options import Options
from inductor_lab.compiler.ir.program import LoopProgram
from inductor_lab.compiler.runtime.cuda_graph_reasons import MODES
from inductor_lab.compiler.runtime.cuda_graphs import MOST_ADDRESSES, why_not, with_cuda_graphs


class Tape:
    """A CUDA graph: functions that are launched during the recording run at each replay."""

    recording: Tape | None = None

    def __init__(self) -> None:
        self.launches: list[Callable[[], None]] = []
        self.replays = 0

    def replay(self) -> None:
        self.replays += 1
        for run in self.launches:
            run()


def launch(run: Callable[[], None]) -> None:
    if Tape.recording is None:
        run()
    else:
        Tape.recording.launches.append(run)


@contextmanager
def recording(tape: Tape, **how: Any) -> Iterator[None]:
    Tape.recording = tape
    try:
        yield
    finally:
        Tape.recording = None


@pytest.fixture(autouse=True)
def tapes(monkeypatch: pytest.MonkeyPatch) -> list[Tape]:
    made: list[Tape] = []

    def new() -> Tape:
        made.append(Tape())
        return made[-1]

    stream = SimpleNamespace(cuda_stream=7)
    for name, value in {"CUDAGraph": new, "graph": recording, "set_stream": lambda stream: None,
                        "current_stream": lambda: stream,
                        "is_current_stream_capturing": lambda: False}.items():  # fmt: skip
        monkeypatch.setattr(torch.cuda, name, value)
    return made


def on_gpu(fn: Callable[..., Any], *args: Any) -> LoopProgram:
    """Return the program of a function, with all buffers marked as on a GPU."""
    loops = lab.inspect(fn, *args).graphs[0].forward.loops
    for buffer in loops.buffers.values():
        object.__setattr__(buffer, "device", "cuda:0")
    return loops


def product(args: list[Any]) -> tuple[Any, ...]:
    """Return x * w, and w and its transpose, as a forward returns tensors for its backward."""
    x, w = args
    args.clear()
    out = torch.empty_like(x)
    launch(lambda: out.copy_(x * w))
    return out, w, w.t(), 3


def made(call: Any = product, fn: Any = torch.mul, **options: Any) -> Any:
    x = torch.randn(4, 4)
    chosen = Options(mode="reduce-overhead", **options)
    return with_cuda_graphs(call, on_gpu(fn, x, x), chosen)


def test_a_call_is_recorded_and_replayed(tapes: list[Tape]) -> None:
    run, x, w = made(), torch.randn(4, 4), torch.randn(4, 4)
    for _ in range(5):
        x.normal_()
        out, same, turned, number = run([x, w])
        torch.testing.assert_close(out, x * w)
        assert same is w and number == 3
        assert turned.data_ptr() == w.data_ptr() and turned.stride() == (1, 4)
        del out
    assert [tape.replays for tape in tapes] == [4]


def test_live_results_are_not_overwritten(tapes: list[Tape]) -> None:
    run, x, w = made(), torch.randn(4, 4), torch.randn(4, 4)
    held = []
    for _ in range(8):
        x.normal_()
        held.append((run([x, w])[0], x * w))
    for out, expected in held:
        torch.testing.assert_close(out, expected)
    assert [tape.replays for tape in tapes] == [1, 1, 1]


def test_a_live_view_of_a_result_prevents_a_replay(tapes: list[Tape]) -> None:
    run, x, w = made(), torch.randn(4, 4), torch.randn(4, 4)
    run([x, w])
    row = run([x, w])[0][0]
    before = row.clone()
    x.normal_()
    run([x, w])
    torch.testing.assert_close(row, before)
    assert len(tapes) == 2


def test_an_input_with_changing_addresses_is_copied(tapes: list[Tape]) -> None:
    run, w = made(), torch.randn(4, 4)
    inputs = [torch.randn(4, 4) for _ in range(12)]
    for x in inputs:
        torch.testing.assert_close(run([x, w])[0], x * w)
    *first, last = tapes
    assert len(first) == MOST_ADDRESSES - 1 and last.replays > 5


def test_written_inputs_are_updated_in_place_or_not_recorded(tapes: list[Tape]) -> None:
    def step(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return x.add_(w)

    def added(args: list[Any]) -> tuple[Any, ...]:
        x, w = args
        args.clear()
        launch(lambda: x.add_(w))
        return (x,)

    run, w = made(added, step), torch.ones(4, 4)
    still = torch.zeros(4, 4)
    for _ in range(4):
        assert run([still, w])[0] is still
    assert still[0, 0] == 4 and tapes[0].replays == 3
    with pytest.warns(NothingToChange, match="an input that it writes to changes"):
        for n in range(6):
            x = torch.full((4, 4), float(n))
            inputs = [x, w]
            assert run(inputs)[0][0, 0] == n + 1
            still = [still, x]  # so that no address is reused


def test_each_size_and_stream_has_its_own_recordings(tapes: list[Tape]) -> None:
    def counted(args: list[Any]) -> tuple[Any, ...]:
        n, x = args
        args.clear()
        out = torch.empty(n)
        launch(lambda: out.copy_(x[:n]))
        return (out,)

    x = torch.randn(9)
    run = with_cuda_graphs(counted, on_gpu(torch.neg, x), Options(mode="reduce-overhead"))
    for n in (3, 5, 3, 5, 3, 5):
        torch.testing.assert_close(run([n, x])[0], x[:n])
    assert [tape.replays for tape in tapes] == [2, 2]


def test_a_program_that_cannot_be_recorded_warns_once(tapes: list[Tape]) -> None:
    def fails(args: list[Any]) -> tuple[Any, ...]:
        if Tape.recording is not None:
            raise RuntimeError("operation not permitted when stream is capturing\nlong text")
        return (args[0] + 1,)

    run, x = made(fails), torch.randn(4, 4)
    run([x, x])
    with pytest.warns(NothingToChange, match="not permitted when stream is capturing$"):
        torch.testing.assert_close(run([x, x])[0], x + 1)
    torch.testing.assert_close(run([x, x])[0], x + 1)
    assert len(tapes) == 1


def test_reasons_against_a_recording() -> None:
    x = torch.randn(4)
    assert why_not(on_gpu(torch.sin, x)) is None
    mixed = lab.inspect(torch.sin, x).graphs[0].forward.loops
    first, *_ = mixed.buffers.values()
    object.__setattr__(first, "device", "cuda:0")
    assert why_not(mixed) == "it uses several devices, cpu, cuda:0"


def test_other_modes_and_cpu_programs_are_not_recorded() -> None:
    x = torch.randn(4, 4)
    assert with_cuda_graphs(product, on_gpu(torch.mul, x, x), Options()) is product
    cpu = lab.inspect(torch.mul, x, x).graphs[0].forward.loops
    assert with_cuda_graphs(product, cpu, Options(mode="reduce-overhead")) is product
    assert MODES == ("reduce-overhead", "max-autotune")


def test_a_required_cuda_graph_is_an_error_if_it_is_missing(tapes: list[Tape]) -> None:
    required = {"mode": "reduce-overhead", "require_cuda_graphs": True}
    x = torch.randn(4, 4)
    with pytest.raises(NotReplayed, match="no tensor is on a CUDA GPU"):
        lab.inspect(torch.sin, x, options=required)
    with pytest.raises(NotReplayed, match='mode is "default"'):
        lab.inspect(torch.sin, x, options={"require_cuda_graphs": True})
    assert lab.inspect(torch.sin, x, options={**required, "target": "cuda:90"}).cuda_graphs()
    for compiler in ("inductor_lab", "stock"):
        with pytest.raises(NotReplayed):
            lab.inspect(lambda x: x.sin() + 3, x, options=required, compiler=compiler)


def test_a_graph_in_eager_mode_has_no_cuda_graph() -> None:
    required = {"mode": "reduce-overhead", "require_cuda_graphs": True, "target": "cuda:90"}
    with pytest.raises(NotReplayed, match="runs in eager mode"):
        x = torch.ones(12)[1:]
        lab.inspect(lambda x: x.as_strided((2,), (1,), 5) * 2, x, options=required)


def test_a_required_replay_that_is_impossible_at_a_call(tapes: list[Tape]) -> None:
    run, x, w = made(require_cuda_graphs=True), torch.randn(4, 4), torch.randn(4, 4)
    held = [run([x, w]) for _ in range(4)]
    with pytest.raises(NotReplayed, match="the results of all 3 recordings are still in use"):
        run([x, w])
    assert len(held) == 4
