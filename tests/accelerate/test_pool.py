"""The pool reuses memory only when nothing refers to it."""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

import inductor_lab as lab
from inductor_lab.compiler.accelerate.pool import POOL, Pool
from inductor_lab.compiler.codegen.host.host_program import POOLED_FROM

N = 2 * POOLED_FROM // 4


@pytest.fixture(autouse=True)
def empty_pool() -> Iterator[None]:
    gc.collect()
    lab.release_memory()
    yield
    lab.release_memory()


def new(pool: Pool, n: int = N) -> torch.Tensor:
    return pool.empty_rounded((n,), (1,), torch.float32, 4 * n)


def test_a_block_is_reused_when_its_tensor_is_freed() -> None:
    pool = Pool()
    first = new(pool)
    address = first.data_ptr()
    del first
    assert new(pool).data_ptr() == address
    assert pool.held == 4 * N


HOLDERS: dict[str, Callable[[torch.Tensor], Any]] = {
    "tensor": lambda t: t,
    "view": lambda t: t[3:7],
    "transposed view": lambda t: t.view(2, -1).t(),
    "detached": lambda t: t.detach(),
    "NumPy array": lambda t: t.numpy()[::2],
    "DLPack capsule": lambda t: torch.utils.dlpack.to_dlpack(t),
    "tensor from DLPack": lambda t: torch.from_dlpack(t),
    "storage": lambda t: t.untyped_storage(),
    "memoryview": lambda t: memoryview(t.numpy()),
    "saved for backward": lambda t: torch.ones(N, requires_grad=True) * t,
    "parameter": lambda t: torch.nn.Parameter(t),
}


@pytest.mark.parametrize("how", HOLDERS)
def test_a_block_in_use_is_not_reused(how: str) -> None:
    pool = Pool()
    pool.allow(40 * N)
    tensor = new(pool)
    address = tensor.data_ptr()
    holder = HOLDERS[how](tensor)
    del tensor
    second = new(pool)
    assert second.data_ptr() != address
    del holder, second
    gc.collect()
    assert address in {new(pool).data_ptr() for _ in range(3)}


def test_values_in_use_do_not_change() -> None:
    fast = lab.compile(lambda x: x + 1)
    x = torch.zeros(N)
    kept = [fast(x + i) for i in range(6)]
    views = [fast(x - i)[5:9].numpy() for i in range(6)]
    for _ in range(6):
        fast(x + 100)
    assert [t[7].item() for t in kept] == [1, 2, 3, 4, 5, 6]
    assert [v[0] for v in views] == [1, 0, -1, -2, -3, -4]


def test_moved_memory_is_not_reused() -> None:
    pool = Pool()
    shared = new(pool)
    shared.share_memory_()
    moved = shared.data_ptr()
    del shared
    assert new(pool).data_ptr() != moved
    smaller = new(pool)
    smaller.untyped_storage().resize_(16)
    del smaller
    again = new(pool)
    assert again.untyped_storage().nbytes() == 4 * N
    again.fill_(1)


def test_the_pool_keeps_at_most_its_limit() -> None:
    pool = Pool()
    pool.allow(8 * N)
    tensors = [new(pool) for _ in range(5)]
    assert pool.held <= 8 * N
    addresses = [t.data_ptr() for t in tensors]
    assert len(set(addresses)) == 5
    del tensors
    assert {new(pool).data_ptr(), new(pool).data_ptr()} <= set(addresses)
    assert new(pool, 3 * N).numel() == 3 * N, "a larger block can still be allocated"
    assert pool.held == 12 * N


def test_new_sizes_find_blocks_in_few_classes() -> None:
    """A pool with one queue for each size would finally take 100 times as long."""
    pool = Pool()
    pool.allow(64 * N)
    for begin in range(N, 2 * N, 1000):
        addresses = {new(pool, n).data_ptr() for n in range(begin, begin + 1000)}
        assert len(addresses) <= 2, "hardly any size needs its own memory"
    assert len(pool._queues) <= 17, "sixteen classes between two powers of two"
    assert pool.held <= pool.limit
    sizes = {4 * n: new(pool, n) for n in range(N, 9 * N, 977)}
    for nbytes, tensor in sizes.items():
        assert nbytes <= tensor.untyped_storage().nbytes() <= nbytes * 17 / 16


def test_least_recently_used_classes_are_dropped_first() -> None:
    pool = Pool()
    pool.allow(4 * 10 * N)
    kept = [new(pool, n * N) for n in (4, 3, 2)]
    addresses = [t.data_ptr() for t in kept]
    del kept
    assert new(pool, 4 * N).data_ptr() == addresses[0], "most recently used"
    new(pool, 5 * N)
    assert pool.held == 4 * 9 * N
    assert new(pool, 4 * N).data_ptr() == addresses[0]


def test_release_returns_free_blocks() -> None:
    pool = Pool()
    pool.allow(40 * N)
    kept, dropped = new(pool), new(pool)
    kept.fill_(7)
    del dropped
    assert pool.release() == 4 * N
    assert pool.held == 0
    new(pool).fill_(0)
    assert kept.eq(7).all()


def test_the_option_limits_the_pool_or_switches_it_off() -> None:
    x = torch.randn(N)
    pooled = lab.inspect(lambda x: x * 2, x)
    assert "POOL.empty" in str(pooled.graphs[0].forward.host)
    plain = lab.inspect(lambda x: x * 2, x, options={"memory_pool": 0})
    assert "POOL" not in str(plain.graphs[0].forward.host)
    small = lab.inspect(lambda x: x * 2, x[:100])
    assert "POOL.empty" not in str(small.graphs[0].forward.host)
    with pytest.raises(lab.LabError, match="memory_pool"):
        lab.Options(memory_pool=-1)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.int8])
def test_results_have_no_excess_storage(dtype: torch.dtype) -> None:
    """Tests temporaries, one of which a result overwrites, a product and two more results."""

    def f(x: torch.Tensor, y: torch.Tensor) -> list[torch.Tensor]:
        first, order = (x + 1).sort()
        return [first * 2, (first + y).cumsum(0), order, x > y, y.t().contiguous()]

    for rows, columns in ((1, N), (3, 33_333), (257, 129), (1_001, 1_003), (4_096, 513)):
        x = torch.ones(rows, columns, dtype=dtype)
        torch.compiler.reset()
        results = lab.compile(f, dynamic=False)(x, x)
        for out in results:
            assert out.untyped_storage().nbytes() == out.numel() * out.element_size()
            with pytest.raises(RuntimeError, match="out of bounds"):
                out.as_strided((out.numel() + 1,), (1,))


def test_dynamic_sizes_use_blocks_of_their_own_size() -> None:
    fast = lab.compile(lambda x: x.sin() + 1, dynamic=True)
    for n in (0, 1, 7, 1000, N, 2 * N, N + 1):
        x = torch.randn(n)
        torch.testing.assert_close(fast(x), x.sin() + 1)


def test_training_and_threads() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.GELU(), torch.nn.Linear(256, 64))
    fast = lab.compile(model)
    inputs = [torch.randn(2048, 64) for _ in range(4)]
    fast(inputs[0])
    failures: list[str] = []

    def work(x: torch.Tensor) -> None:
        with torch.no_grad():
            expected = model(x)
        for _ in range(20):
            with torch.no_grad():
                if not torch.allclose(fast(x), expected, atol=1e-5):
                    failures.append("wrong")

    with torch.no_grad():
        fast(inputs[0])
    threads = [threading.Thread(target=work, args=(x,)) for x in inputs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    first, second = fast(inputs[0]), fast(inputs[1])
    (first.sum() + second.square().sum()).backward()
    got = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    (model(inputs[0]).sum() + model(inputs[1]).square().sum()).backward()
    for one, parameter in zip(got, model.parameters(), strict=True):
        torch.testing.assert_close(one, parameter.grad, rtol=1e-4, atol=1e-4)


def test_the_process_has_one_pool() -> None:
    x = torch.randn(N)
    lab.compile(lambda x: x.exp())(x)
    address = lab.compile(lambda x: x.cos())(x).data_ptr()
    assert lab.compile(lambda x: x.sin())(x).data_ptr() == address
    assert POOL.held == 4 * N


@pytest.mark.parametrize("what", ["new", "release"])
def test_a_finalizer_during_a_call_can_use_the_pool(what: str) -> None:
    """It runs in the same thread at any time; here, at each event of Python's profiler."""
    pool = Pool()
    pool.allow(40 * N)
    made: list[tuple[torch.Tensor, torch.Tensor]] = []

    def at_event(number: int) -> bool:
        inner: list[torch.Tensor] = []
        events = 0

        def profile(_frame: Any, _event: str, _argument: Any) -> None:
            nonlocal events
            events += 1
            if events == number:
                inner.append(new(pool) if what == "new" else torch.empty(pool.release()))

        sys.setprofile(profile)
        try:
            outer = new(pool)
        finally:
            sys.setprofile(None)
        made.extend((outer, one) for one in inner)
        assert all(outer.data_ptr() != one.data_ptr() for one in inner)
        if number % 3 == 0:
            made.clear()
        return bool(inner)

    def at_each_event() -> None:
        assert any(map(at_event, range(2, 60)))
        made.append((new(pool), new(pool)))

    runs = threading.Thread(target=at_each_event, daemon=True)
    runs.start()
    runs.join(60)
    assert not runs.is_alive(), "deadlock"
    places = [tensor.data_ptr() for pair in made for tensor in pair if tensor.numel() == N]
    assert len(set(places)) == len(places) > 1
