"""Writes to a part of a tensor: values, arguments, aliases, version counters; they move only the
bytes that they write."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
import torch

import inductor_lab as lab
from benchmarks.partial_writes import KINDS, MIDDLE, TINY, Given, Kind
from inductor_lab.compiler.ir.program import LoopProgram
from inductor_lab.compiler.ir.verify import verify
from inductor_lab.compiler.schedule.verify import verify_schedule
from tests.semantics.compare import assert_same, check_call, check_gradients, sharing, wave

BY_A_LIBRARY = {"set_mask_of_planes", *(n for n in KINDS if n.startswith("custom_operator"))}
"""Kinds whose bytes are known only to the operator."""


def copies(values: Any) -> list[Any]:
    return [v.clone() if isinstance(v, torch.Tensor) else v for v in values]


def arguments(kind: Kind, shape: tuple[int, int, int]) -> list[Any]:
    given = Given(shape)
    return [given.c, *kind.make(given)]


def in_order(program: LoopProgram, values: list[torch.Tensor]) -> list[torch.Tensor]:
    """Tensors in the order of a program's inputs, by their properties."""
    found = []
    for name in program.inputs:
        buffer = program.buffers[str(name)]
        like = (buffer.layout.size, buffer.dtype)
        value = next(v for v in values if (tuple(v.shape), v.dtype) == like)
        values = [v for v in values if v is not value]
        found.append(value)
    return found


@pytest.mark.parametrize("shape", [TINY, MIDDLE], ids=["small", "large"])
@pytest.mark.parametrize("name", KINDS)
def test_a_write_equals_eager_mode_and_is_in_place(name: str, shape: tuple[int, int, int]) -> None:
    kind = KINDS[name]
    ours = arguments(kind, shape)
    theirs, kept = copies(ours), copies(ours)
    expected = kind.function(*theirs)
    options = {"dynamic": True} if kind.dynamic else {}
    compilation = lab.inspect(kind.function, *ours, options=options)
    assert_same([compilation.result, *ours], [expected, *theirs])
    assert sharing(compilation.result, ours) == sharing(expected, theirs)
    part = compilation.graphs[0].forward
    verify(part.loops)
    verify_schedule(part.schedule)
    if shape == MIDDLE:
        writes = part.loops.partial_writes
        assert all(write.in_place for write in writes), part.schedule
        assert ".copy_(" not in str(part.host)
        if name not in BY_A_LIBRARY:
            assert part.schedule.after.bytes <= kind.part * ours[0].nbytes * 2, part.schedule
    if not kind.dynamic:  # the inputs of dynamic graphs differ
        given = in_order(part.loops, [v for v in kept if isinstance(v, torch.Tensor)])
        before = copies(given)
        by_loops, by_schedule = part.loops.run(*given), part.schedule.run(*given)
        assert_same(by_loops, by_schedule)
        assert_same(given, before)


@pytest.mark.parametrize("name", ["set_plane", "index_add", "custom_operator", "view_of_view"])
def test_version_counters(name: str) -> None:
    kind = KINDS[name]
    given = arguments(kind, MIDDLE)
    compiled, before = lab.compile(kind.function), given[0]._version
    compiled(*given)
    assert given[0]._version > before


@pytest.mark.parametrize("name", [n for n in KINDS if n not in BY_A_LIBRARY and n != "diagonal"])
def test_kernels_of_triton(name: str) -> None:
    """With Triton's interpreter."""
    kind = KINDS[name]
    ours = arguments(kind, MIDDLE)
    theirs = copies(ours)
    expected = kind.function(*theirs)
    found = lab.compile(kind.function, options={"language": "triton"})(*ours)
    assert_same([found, *ours], [expected, *theirs])


@pytest.mark.parametrize("name", ["set_plane", "add_to_index", "index_add", "diagonals", "scatter"])
def test_kernels_for_a_gpu(name: str) -> None:
    kind = KINDS[name]
    part = lab.inspect(kind.function, *arguments(kind, (16, 128, 256)),
                       options={"target": "cuda:90"}).graphs[0].forward  # fmt: skip
    assert all(write.in_place for write in part.loops.partial_writes)
    assert part.kernels
    for kernel in part.kernels:
        assert kernel.ladder("cuda:90")["ptx"]


# ---- writes that must not be in place ------------------------------------------------------------


def kept_argument(c, i, x):
    return c.index_copy(0, i, x)


def old_value_needed(c, i, x):
    old = c * 2
    c.index_copy_(0, i, x)
    return old.flip(0) + c.sum(0), old


def first_and_second(c, i, x):
    one = c.index_copy(0, i, x)
    two = c.index_copy(0, i, x + 1)
    c.copy_(two)
    return one


def new_value_too(c, i, x):
    new = c.index_copy(0, i, x)
    c.copy_(new)
    return new


def swapped(c, d, i, x):
    old = c.clone()
    c.copy_(d)
    d.copy_(old)
    c.index_copy_(0, i, x)
    d.index_add_(0, i, x)


REFUSED: dict[str, tuple[Callable[..., Any], int, str]] = {
    # function, number of tensors before the positions, a word of the reason
    "kept_argument": (kept_argument, 1, "must keep its value"),
    "first_and_second": (first_and_second, 1, "must keep its value|later"),
    "new_value_too": (new_value_too, 1, "is a result"),
}


@pytest.mark.parametrize("name", [*REFUSED, "old_value_needed", "swapped"])
def test_a_needed_old_value_is_kept(name: str) -> None:
    function, count, reason = REFUSED.get(name, (globals()[name], 1 + (name == "swapped"), ""))
    make = Given(MIDDLE)

    def given() -> list[Any]:
        tensors = [make.c + n for n in range(count)]
        return [*tensors, make.places(5, 3), make.of(2, *MIDDLE[1:])]

    check_call(function, given)
    part = lab.inspect(function, *given()).graphs[0].forward
    verify_schedule(part.schedule)
    decisions = [d for d in part.schedule.decisions if d.relation == "in place"]
    found = [v.reason for d in decisions for v in d.verdicts if v.reason]
    assert not reason or any(w in r for r in found for w in reason.split("|")), found
    if reason:
        refused = next(d for d in decisions if not d.fused)
        text = part.schedule.decisions.explain(refused.producer, refused.consumer)
        assert "not in place" in text


def test_a_write_can_be_forbidden() -> None:
    kind = KINDS["index_copy"]
    c, *more = arguments(kind, MIDDLE)
    part = lab.inspect(kind.function, c, *more).graphs[0].forward
    (write,) = part.loops.partial_writes
    pair = (write.base, write.buffer)
    options = {"fusion": {"forbid": [pair]}}
    apart = lab.inspect(kind.function, c, *more, options=options).graphs[0].forward
    (decision,) = [d for d in apart.schedule.decisions if d.relation == "in place"]
    assert (decision.fused, decision.choice) == (False, "forbidden")
    assert apart.schedule.after.bytes > part.schedule.after.bytes


def test_elements_that_share_memory_are_not_written_in_place() -> None:
    """A write to one element would change others."""
    base = torch.rand(600)

    def windows() -> torch.Tensor:
        return base.clone().as_strided((500, 50), (1, 1))

    def write(c, i, x):
        return c.index_copy(0, i, x)

    i, x = torch.tensor([3]), torch.rand(1, 50)
    assert_same(lab.compile(write)(windows(), i, x), write(windows(), i, x))


def test_arguments_that_share_storage() -> None:
    def halves(c, d, x):
        c[3] = x
        d[3] = x + 1
        return c.sum() + d.sum()

    def given(step: int) -> list[torch.Tensor]:
        whole = wave(40, 512)
        return [whole[:20], whole[step:], wave(512)]

    for step in (20, 10, 0):
        ours, theirs = given(step), given(step)
        torch.compiler.reset()
        assert_same(lab.compile(halves)(*ours), halves(*theirs))
        assert_same(ours, theirs)


# ---- more ----------------------------------------------------------------------------------------


class Cache(torch.nn.Module):
    keys: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("keys", torch.zeros(1, 4, 64, 32))

    def forward(self, x: torch.Tensor, place: torch.Tensor) -> torch.Tensor:
        self.keys.index_copy_(2, place, x)
        return (self.keys * self.keys).sum(2)


def test_a_buffer_of_a_module() -> None:
    ours, theirs = Cache(), Cache()
    compiled = lab.compile(ours)
    for n in range(4):
        x, place = torch.randn(1, 4, 1, 32), torch.tensor([n])
        with torch.no_grad():
            assert_same(compiled(x, place), theirs(x, place))
    assert_same(ours.keys, theirs.keys)
    part = lab.inspect(Cache(), x, place).graphs[0].forward
    assert all(write.in_place for write in part.loops.partial_writes), part.schedule


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.int32, torch.bool])
def test_other_dtypes(dtype: torch.dtype) -> None:
    def write(c, i, x):
        c[3] = x[0]
        c.index_copy_(0, i, x)
        if c.dtype is not torch.bool:
            c.index_add_(0, i, x)

    def given() -> list[torch.Tensor]:
        return [(wave(*MIDDLE) * 3).to(dtype), torch.tensor([1, 4]),
                (wave(2, *MIDDLE[1:]) * 2).to(dtype)]  # fmt: skip

    ours, theirs = given(), given()
    lab.compile(write)(*ours)
    write(*theirs)
    assert_same(ours[0].double(), theirs[0].double(), rtol=1e-2, atol=1e-2)


def write_to_a_result(x, y):
    c = x * 2
    c[3] = y
    c[5].mul_(x[1])
    return c.sin()


def write_many_times(x, y):
    c = x.clone()
    for n in range(12):
        c[n] = y * n
    return c * c


@pytest.mark.parametrize("function", [write_to_a_result, write_many_times])
def test_gradients(function: Callable[..., Any]) -> None:
    check_gradients(function, wave(*MIDDLE), wave(*MIDDLE[1:]))


def test_a_cache_in_training() -> None:
    """The cache has no gradient, but the values that are written to it have one."""

    def function(c, x):
        with torch.no_grad():
            c[3] = x * 2
        return (c[3] * x).sum() + (c.detach() * 2).sum()

    def run(compiled: Callable[..., Any]) -> list[Any]:
        c, x = wave(*MIDDLE), wave(*MIDDLE[1:]).requires_grad_()
        result = compiled(c, x)
        result.backward()
        return [result, c, x.grad]

    assert_same(run(lab.compile(function)), run(function))


def test_different_positions() -> None:
    kind = KINDS["set_slice_at_number"]
    compiled = lab.compile(kind.function, options={"dynamic": True})
    ours = arguments(kind, MIDDLE)
    theirs = copies(ours)
    for n in (0, 4, 9, 13, -3):
        compiled(ours[0], n, ours[2] + n)
        kind.function(theirs[0], n, theirs[2] + n)
    assert_same(ours[0], theirs[0])


# ---- programs ------------------------------------------------------------------------------------

VIEWS: list[Callable[[torch.Tensor, int], torch.Tensor]] = [
    lambda c, n: c[n % 5],
    lambda c, n: c[n % 4 : n % 4 + 7],
    lambda c, n: c[1:9][n % 3],
    lambda c, n: c[:, n % 6],
    lambda c, n: c[:, :, n % 8 :: 3],
    lambda c, n: c.transpose(0, 1)[n % 7],
    lambda c, n: c.view(-1, c.shape[2])[n % 9 : n % 9 + 20],
    lambda c, n: c.view(-1)[n % 50 : n % 50 + 300],
    lambda c, n: c.diagonal(0, 0, 1),
    lambda c, n: c.narrow(1, n % 4, 5)[2:6],
    lambda c, n: c,
]
WRITES: list[Callable[[torch.Tensor, torch.Tensor], Any]] = [
    lambda v, x: v.copy_(x.flatten()[: v.numel()].view(v.shape)),
    lambda v, x: v.mul_(0.5),
    lambda v, x: v.add_(x.mean()),
    lambda v, x: v.fill_(1.5),
    lambda v, x: v.index_add_(0, torch.tensor([1, 0, 1]), v[:1].expand(3, *v.shape[1:]).clone()),
    lambda v, x: v.index_copy_(0, torch.tensor([1]), v[:1] + 1),
    lambda v, x: v.__setitem__(torch.tensor([2, 0]), v[1] * 2),
    lambda v, x: v.masked_fill_(v > 0.5, 0.25),
    lambda v, x: v.lerp_(v.flip(0), 0.25),
    lambda v, x: v.clamp_(max=0.75),
]
READS: list[Callable[[torch.Tensor], torch.Tensor]] = [
    lambda v: v.sum(), lambda v: v.clone(), lambda v: v * 2, lambda v: v.flip(0).sin(),
    lambda v: v.max() + v,
]  # fmt: skip


def program(seed: int) -> Callable[..., Any]:
    """A few writes and reads through random views of two tensors."""
    choose = random.Random(seed)
    kinds = (VIEWS, range(100), WRITES, READS)
    plan = [(choose.random() < 0.6, choose.randrange(2), *map(choose.choice, kinds))
            for _ in range(6)]  # fmt: skip

    def run(c: torch.Tensor, d: torch.Tensor) -> list[torch.Tensor]:
        found = []
        for writes, which, view, n, write, read in plan:
            one, other = (c, d) if which else (d, c)
            if writes:
                write(view(one, n), other)
            else:
                found.append(read(view(one, n)))
        return found

    return run


@pytest.mark.parametrize("seed", range(24))
def test_programs(seed: int) -> None:
    function = program(seed)
    shape = MIDDLE if seed % 3 else TINY
    ours = [Given(shape).c, Given(shape).c + 0.25]
    theirs = copies(ours)
    expected = function(*theirs)
    compilation = lab.inspect(function, *ours)
    assert_same(compilation.result, expected)
    assert_same(ours, theirs)
    for graph in compilation.graphs:
        verify(graph.forward.loops)
        verify_schedule(graph.forward.schedule)
