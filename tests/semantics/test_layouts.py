"""Storage and layout: views, aliases, overlaps, gaps, dtype views; the results are those of eager
mode."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch

from tests.semantics.compare import check_call, check_gradients, wave

Make = Callable[[], Sequence[Any]]
CASES: dict[str, tuple[Callable[..., Any], Make]] = {}


def case(make: Make) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        CASES[function.__name__] = (function, make)
        return function

    return add


@case(lambda: [wave(20)])
def as_strided_in_out(x):
    return x.as_strided((3, 4), (4, 1), 2) * 2, x.as_strided((2, 2), (5, 1))


@case(lambda: [wave(20)])
def as_strided_write(x):
    x.as_strided((3, 3), (4, 1), 1).mul_(2)
    return x + 0


@case(lambda: [wave(4, 6)])
def view_of_view_write(x):
    x.t()[1:4].select(1, 2).add_(5)
    return x * 1


@case(lambda: [wave(4, 6)])
def alias_out(x):
    y = x + 1
    return y, y.view(-1), y[1], y.t()


@case(lambda: [wave(0, 3), wave(0, 3)])
def zero(x, y):
    x.add_(1)
    return (x + y).sum(0), x.t(), torch.cat([x, y])


@case(lambda: [torch.tensor(2.0), torch.tensor(3.0)])
def zero_dim(x, y):
    x.mul_(y)
    return x + y, x.view(1), x.expand(3)


@case(lambda: [wave(3, 1)])
def expanded_clone_write(x):
    y = x.expand(3, 4).clone()
    y[0].zero_()
    return y


@case(lambda: [wave(4, 8)[:, ::2]])
def nondense(x):
    x.mul_(2)
    return x + 1, x.contiguous(), torch.empty_like(x).stride()


@case(lambda: [wave(4, 4)])
def detach_write(x):
    d = x.detach()
    d.add_(1)
    return x * 2, d


@case(lambda: [wave(4, 4)])
def data_write(x):
    x.data.add_(1)
    x.data[0] = 3
    return x * 2


@case(lambda: [wave(1, 2, 3, 4, 5).contiguous(memory_format=torch.channels_last_3d)])
def cl3d(x):
    return (
        x + 1,
        x.sum(1),
        torch.relu(x).permute(0, 2, 3, 4, 1),
        torch.nn.functional.max_pool3d(x, 2),
    )


@case(lambda: [torch.complex(wave(4), wave(4) + 1)])
def cplx(x):
    r = torch.view_as_real(x)
    r.mul_(2)
    return x.conj().imag, x.real + 1, r


@case(lambda: [wave(4), torch.empty(4), torch.empty(0)])
def outs(x, o, e):
    torch.sin(x, out=o)
    torch.cos(x, out=e)
    return o + e


@case(lambda: [wave(4, 4), torch.zeros(8)])
def out_view(x, o):
    torch.sum(x, 1, out=o[2:6])
    torch.max(x, 1, out=(o[:4], torch.empty(4, dtype=torch.long)))
    return o * 2


@case(lambda: [wave(4, 4), torch.zeros(4, 4).t()])
def out_t(x, o):
    torch.mul(x, 2, out=o)
    return o.stride(), o + 1


@case(lambda: [wave(6)])
def swap(x):
    a = x[:3].clone()
    x[:3] = x[3:]
    x[3:] = a
    return x + 0


@case(lambda: [wave(6)])
def overlap_copy(x):
    x[1:] = x[:-1].clone()
    return x * 1


@case(lambda: [(lambda b: (b[:4], b[4:]))(torch.arange(8.0))])
def disjoint(p):
    a, b = p
    a.add_(b)
    b.mul_(a)
    return a * 1


@case(lambda: [(lambda b: (b.view(2, 4), b.view(4, 2)))(torch.arange(8.0))])
def twoviews(p):
    a, b = p
    a[0].add_(1)
    b[:, 1].mul_(2)
    return a + b.view(2, 4)


@case(lambda: [torch.arange(8, dtype=torch.int32)])
def viewdtype(x):
    f = x.view(torch.float32)
    y = x.view(torch.int16)
    x.add_(1)
    return f.view(torch.int32) + 1, y * 1


@case(lambda: [wave(4, 4)])
def bits(x):
    x.view(torch.int32).bitwise_and_(0x7FFFFFFF)
    return x + 0


@case(lambda: [wave(4, 4)])
def unsq(x):
    x.unsqueeze_(0)
    x.transpose_(0, 1)
    return x * 2


@case(lambda: [wave(4, 4)])
def swapd(x):
    y = x * 2
    y.swapaxes_(0, 1)
    y.add_(1)
    return y


@case(lambda: [wave(2, 3, 4)])
def unfoldw(x):
    w = x.unfold(2, 2, 2)
    w.mul_(2)
    return x + 1, w.sum(-1)


@case(lambda: [wave(5, 5)])
def diagw(x):
    x.diagonal(1).copy_(x.diagonal(-1))
    return x * 1


@case(lambda: [wave(4, 4)])
def resz(x):
    y = x.clone()
    y.resize_(2, 2)
    return y


@case(lambda: [wave(4)])
def strides0(x):
    e = x.expand(3, 4)
    return e, e + 1, e.contiguous(), e.stride()


@case(lambda: [wave(4, 4)])
def split_write(x):
    a, b = x.split(2, 1)
    a.add_(1)
    b.mul_(a)
    return x * 1, a


@case(lambda: [wave(4, 4)])
def index_alias(x):
    y = x[None, ..., None]
    y.zero_()
    return x + 1


@case(lambda: [wave(4, 4)])
def chunk_out(x):
    return tuple(t for t in x.unbind(0))


@case(lambda: [wave(4, 4)])
def fillv(x):
    x.fill_diagonal_(1)
    x[x > 0.5] = -1
    x.masked_fill_(x < 0, 0)
    x.index_fill_(0, torch.tensor([1]), 9.0)
    return x


@case(lambda: [wave(4, 4)])
def scat(x):
    y = x.clone()
    y.scatter_(0, torch.tensor([[0, 1, 2, 3]]), 0.0)
    y.index_put_((torch.tensor([1, 1]),), x[:2], accumulate=True)
    return y


@case(lambda: [wave(3, 4), wave(3, 4)])
def addr(x, y):
    torch.add(x, y, out=x)
    torch._foreach_add_([x, y], 1.0)
    return x - y


@case(lambda: [wave(3, 4)])
def narrow0(x):
    n = x.narrow(0, 3, 0)
    n.add_(1)
    return n.sum(), x + 1


@case(lambda: [wave(3, 40)])
def gaps(x):
    made = torch.empty_strided((3, 40), (100, 2))
    made.copy_(x.sin())
    rows = x.new_empty_strided((40, 3), (3 + x.shape[0], 1))
    part = x.new_empty_strided((3, 40), (1, 4)).copy_(x)
    return made, made.t(), rows.copy_(x.t()), part[1:], part, part[2]


@case(lambda: [wave(200, 300)])
def gaps_that_are_written_to(x):
    made = x.new_empty_strided((300, 200), (1, 307))
    made.copy_(x.t())
    made[3], made[:, 2:5] = 7, x[2:5].t() + 1
    return made, made.softmax(0), torch.sin(x, out=torch.empty_strided((200, 300), (900, 3)))


@pytest.mark.parametrize("name", CASES)
def test_results_equal_eager_mode(name: str) -> None:
    check_call(*CASES[name])


PLACES: dict[str, Callable[[torch.Tensor, int], Any]] = {
    "of an input": lambda x, n: x.as_strided((2,), (1,), abs(n) % 3),
    "of a result": lambda x, n: (y := x + 1, y.as_strided((2,), (1,), abs(n) % 3)),
    "of nothing else": lambda x, n: (x + 1).as_strided((2,), (1,), abs(n) % 3),
    "beside a slice": lambda x, n: (y := x * 2, y[abs(n) % 3 :], y.as_strided((2,), (1,), n % 2)),
    "of what is written to": lambda x, n: x.mul_(2).as_strided((2,), (1,), abs(n) % 3),
}


@pytest.mark.parametrize("name", PLACES)
def test_views_at_an_offset_from_a_tensor(name: str) -> None:
    function = PLACES[name]
    torch.compiler.reset()
    compiled = torch.compile(function, backend="inductor_lab")
    for n in (2, 4, -1, 0, -3, 1):
        found, expected = (f(torch.arange(10.0), n) for f in (compiled, function))
        torch.testing.assert_close(found, expected, rtol=0, atol=0)
        tensors = (found, expected) if isinstance(found, tuple) else ((found,), (expected,))
        places = [[(x.stride(), x.storage_offset()) for x in given] for given in tensors]
        assert places[0] == places[1]


AROUND_VIEWS: dict[str, Callable[[torch.Tensor], Any]] = {
    "a slice of all rows": lambda x: (x * 2).contiguous().view(-1)[3:].as_strided((2,), (1,), 1),
    "every other": lambda x: (x * 2).contiguous().view(-1)[1::2].as_strided((5,), (2,), 1),
    "no place given": lambda x: (x * 2).contiguous().view(-1)[5:].as_strided((5,), (2,)),
    "odd rows of an input": lambda x: x.view(-1)[3:].view(3, -1)[1:].as_strided((5,), (2,), 2) + 1,
    "a part of several": lambda x: (x * 2).split(2, 1)[1].as_strided((3, 2), (1, 2), 2),
    "other elements": lambda x: (x * 2).view(torch.int32).view(-1)[3:].as_strided((4,), (3,), 1),
}  # fmt: skip


@pytest.mark.parametrize("name", AROUND_VIEWS)
@pytest.mark.parametrize("gaps", [False, True])
def test_as_strided_depends_on_the_storage(name: str, gaps: bool) -> None:
    function = AROUND_VIEWS[name]
    x = torch.arange(288.0).view(2, 8, 3, 6)
    if gaps and "input" not in name:
        x = x[..., ::2]
    torch.compiler.reset()
    found = torch.compile(function, backend="inductor_lab")(x)
    torch.testing.assert_close(found, function(x), rtol=0, atol=0)
    assert found.stride() == function(x).stride()


FROM_A_READ_PLACE: dict[str, Callable[[torch.Tensor, int], torch.Tensor]] = {
    "row": lambda x, n: x[n],
    "rows": lambda x, n: x.narrow(0, n, 2)[1:],
    "turned rows": lambda x, n: x.narrow(0, n, 2).t(),
    "expanded row": lambda x, n: x[n].expand(3, 20),
    "elements": lambda x, n: x.view(-1)[n : n + 3],
    "strided": lambda x, n: x.as_strided((2, 2), (1, 1), n),
    "strided twice": lambda x, n: x.as_strided((2, 2), (1, 1)).as_strided((2,), (1,), abs(n - 2)),
    "row of strided": lambda x, n: x.as_strided((2, 2), (1, 1), n)[1],
    "view of strided": lambda x, n: x.as_strided((2, 2), (2, 1), n).view(4),
    "piece of strided": lambda x, n: x.as_strided((4,), (2,), n).chunk(2)[1],
    "strided from a read row": lambda x, n: x.narrow(0, n, 3).as_strided((2,), (1,)),
    "strided and written": lambda x, n: x.as_strided((4,), (2,), n).add_(1)[1:],
    "computed": lambda x, n: (x + 1).view(-1).as_strided((3,), (2,), n)[1:],
    "bits": lambda x, n: x.as_strided((3,), (2,), n).view(torch.int32),
    "complex": lambda x, n: torch.view_as_complex(x.narrow(0, n, 2).view(2, 10, 2)),
}


@pytest.mark.parametrize("name", FROM_A_READ_PLACE)
def test_a_result_that_is_a_view_at_an_unbacked_offset(name: str) -> None:
    def function(x: torch.Tensor, n: torch.Tensor) -> torch.Tensor:
        return FROM_A_READ_PLACE[name](x, n.item())

    torch.compiler.reset()
    with torch._dynamo.config.patch(capture_scalar_outputs=True):
        compiled = torch.compile(function, backend="inductor_lab")
        for n in (3, 0, 1, 7):
            given, same = (torch.arange(600.0).view(30, 20) for _ in range(2))
            found, wanted = compiled(given, torch.tensor(n)), function(same, torch.tensor(n))
            torch.testing.assert_close(found, wanted, rtol=0, atol=0)
            torch.testing.assert_close(given, same, rtol=0, atol=0)
            assert found.storage_offset() == wanted.storage_offset()
            places = [x.untyped_storage().data_ptr() for x in (found, given, wanted, same)]
            assert (places[0] == places[1]) == (places[2] == places[3])


def _every_other(x: torch.Tensor, n: int) -> torch.Tensor:
    x[(n // 2) :: 2] = 3
    return x


OF_WRITTEN: dict[str, Callable[[torch.Tensor, int], Any]] = {
    "rest": lambda x, n: _every_other(x, n)[abs(n) % 3 :],
    "strided": lambda x, n: _every_other(x, n).as_strided((2,), (1,), abs(n) % 3),
    "part of strided": lambda x, n: _every_other(x, n).as_strided((2,), (1,), abs(n) % 3)[1:],
    "strided rest": lambda x, n: _every_other(x, n)[1:].as_strided((2,), (1,)),
    "two": lambda x, n: (x.mul_(n)[1:].as_strided((2,), (1,)), x[abs(n) % 2 :]),
}


@pytest.mark.parametrize("name", OF_WRITTEN)
def test_a_view_of_a_written_input_with_a_storage_offset(name: str) -> None:
    torch.compiler.reset()
    compiled = torch.compile(OF_WRITTEN[name], backend="inductor_lab", dynamic=True)
    for n in (2, 5, 7, -3, 0, 1):
        given, same = (torch.arange(6)[1:] for _ in range(2))
        found, wanted = compiled(given, n), OF_WRITTEN[name](same, n)
        torch.testing.assert_close((found, given), (wanted, same), rtol=0, atol=0)


OVERLAPPING: dict[str, Callable[[torch.Tensor], Any]] = {
    "windows": lambda x: (x * 2).unfold(0, 2, 1),
    "windows of windows": lambda x: (x * 2).unfold(0, 2, 1).unfold(0, 3, 2),
    "rows": lambda x: x.sin().as_strided((3, 3), (1, 1)),
    "among others": lambda x: (x.sin().unfold(0, 3, 2), x.cos().view(3, 4).t()),
}


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("name", OVERLAPPING)
def test_elements_that_share_memory_have_separate_gradients(name: str, dynamic: bool) -> None:
    """AOTAutograd copies a gradient to the strides of its result, in which such elements are the
    same."""
    torch.compiler.reset()
    check_gradients(OVERLAPPING[name], wave(12), dynamic=dynamic)


OF_STORAGE: dict[str, Callable[[torch.Tensor], Any]] = {
    "read": lambda x: x.as_strided((2, 3), (3, 1), 5) * 2,
    "of a part": lambda x: x[1:].as_strided((2, x.shape[0] // 4), (3, 1), 6) * 2,
    "written": lambda x: x.as_strided((2, 3), (3, 1), 5).mul_(2).sum(),
    "after a write": lambda x: (x.mul_(2), x.as_strided((2, 3), (3, 1), 5) + 1)[1],
    "after a write to a part": lambda x: (x[1].mul_(2), x.as_strided((3,), (1,), 5) + 1)[1],
    "returned": lambda x: torch.as_strided(x, (3,), (1,), storage_offset=5),
}


@pytest.mark.parametrize("starts", [(0, 2, 4, 0), (4, 0, 2, 3)])
@pytest.mark.parametrize("dynamic", [None, False, True])
@pytest.mark.parametrize("name", OF_STORAGE)
def test_absolute_positions_in_storages_of_inputs_with_offsets(
    name: str, dynamic: bool | None, starts: tuple[int, ...]
) -> None:
    """TorchDynamo does not guard on storage offsets, and AOTAutograd loses them in writes."""
    torch.compiler.reset()
    compiled = torch.compile(OF_STORAGE[name], backend="inductor_lab", dynamic=dynamic)
    for start in starts:
        given, same = wave(40), wave(40)
        found = compiled(given[start : start + 20])
        expected = OF_STORAGE[name](same[start : start + 20])
        torch.testing.assert_close((found, given), (expected, same))
