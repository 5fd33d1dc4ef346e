"""Writes to part of a large tensor: `benchmarks.writes` measures them, and the tests check them.

Each kind is a function of a three-dimensional tensor `c`, which it writes to, and of additional
arguments.  The cost of a write should depend on the bytes it writes, not on the size of `c`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

LARGE = (64, 512, 512)
"""64 MB of float32."""
TINY = (16, 10, 12)
MIDDLE = (16, 24, 32)
"""For tests: 8 kB and 49 kB; places below are inside of both."""


@dataclass(frozen=True)
class Given:
    """Creates arguments for a tensor of `shape`, with values from 0 to 1."""

    shape: tuple[int, int, int]
    device: str = "cpu"
    dtype: torch.dtype = torch.float32

    @property
    def c(self) -> torch.Tensor:
        return self.of(*self.shape)

    def of(self, *size: int) -> torch.Tensor:
        """A tensor of this size."""
        generator = torch.Generator().manual_seed(sum(size))
        made = torch.rand(size, generator=generator)
        return made.to(self.device, self.dtype)

    def places(self, *numbers: int) -> torch.Tensor:
        """Random indices into a tensor."""
        return torch.tensor(numbers, device=self.device)

    def one_of_each_row(self, count: int) -> torch.Tensor:
        """Indices along the first dimension: `count` different ones for each column."""
        first = (self.of(*self.shape[1:]).float() * self.shape[0]).long()
        steps = torch.arange(count, device=self.device).view(-1, *[1] * first.ndim)
        return (first + steps) % self.shape[0]

    def mask(self, *size: int) -> torch.Tensor:
        """A mask that selects one of four elements."""
        return self.of(*size).float() < 0.25

    @property
    def plane(self) -> torch.Tensor:
        """A tensor with the shape of `c[3]`."""
        return self.of(*self.shape[1:])

    @property
    def planes(self) -> torch.Tensor:
        """A tensor with the shape of three planes."""
        return self.of(3, *self.shape[1:])


Make = Callable[[Given], Sequence[Any]]


@dataclass(frozen=True)
class Kind:
    """One kind of write: a function of `c` and of the values that `make` creates.

    `dynamic` numbers vary from call to call.  `part` is the maximum memory traffic (reads and
    writes), as a fraction of `c`.
    """

    name: str
    function: Callable[..., Any]
    make: Make
    dynamic: bool = False
    part: float = 0.5


KINDS: dict[str, Kind] = {}


def kind(make: Make = lambda g: (), **more: Any) -> Callable[[Callable[..., Any]], Any]:
    """Register a function as a kind of write."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        name = function.__name__
        if name in KINDS:
            raise ValueError(f"two kinds are called {name}")
        KINDS[name] = Kind(name, function, make, **more)
        return function

    return add


# ---- assignments ---------------------------------------------------------------------------------


@kind(lambda g: (g.plane,))
def set_plane(c: Tensor, x: Tensor) -> None:
    c[3] = x * 2


@kind(lambda g: (g.of(g.shape[2]),))
def set_row(c: Tensor, x: Tensor) -> None:
    c[3, 5] = x


@kind(lambda g: (g.planes,))
def set_slice(c: Tensor, x: Tensor) -> None:
    c[2:5] = x


@kind(lambda g: (g.planes,))
def set_strided_slice(c: Tensor, x: Tensor) -> None:
    c[1:9:3] = x + 1


@kind(lambda g: (g.of(g.shape[0], 2, g.shape[2]),))
def set_inner_slice(c: Tensor, x: Tensor) -> None:
    c[:, 3:5] = x


@kind()
def set_column(c: Tensor) -> None:
    c[:, :, 7] = 1


@kind(lambda g: (g.places(5, 3), g.of(2, *g.shape[1:])))
def set_index(c: Tensor, i: Tensor, x: Tensor) -> None:
    c[i] = x


@kind(lambda g: (g.places(5, 3), g.places(1, 8), g.of(2, g.shape[2])))
def set_two_indices(c: Tensor, i: Tensor, j: Tensor, x: Tensor) -> None:
    c[i, j] = x


@kind(lambda g: (g.places(5, 3), g.of(g.shape[0], 2, g.shape[2])))
def set_inner_index(c: Tensor, i: Tensor, x: Tensor) -> None:
    c[:, i] = x


@kind(lambda g: (g.places(*[0, 0, 1, *[0] * (g.shape[0] - 3)]) > 0,))
def set_mask_of_planes(c: Tensor, m: Tensor) -> None:
    c[m] = 1


@kind(lambda g: (g.places(-2), g.of(1, *g.shape[1:])))
def set_negative_index(c: Tensor, i: Tensor, x: Tensor) -> None:
    c[i] = x


@kind(lambda g: (g.places(5), g.of(g.shape[0], 1, g.shape[2])))
def set_at_tensor(c: Tensor, place: Tensor, x: Tensor) -> None:
    c[:, place] = x


@kind(lambda g: (4, g.plane), dynamic=True)
def set_at_number(c: Tensor, n: int, x: Tensor) -> None:
    c[n] = x


@kind(lambda g: (4, g.of(2, *g.shape[1:])), dynamic=True)
def set_slice_at_number(c: Tensor, n: int, x: Tensor) -> None:
    c[n : n + 2] = x


# ---- in-place operators --------------------------------------------------------------------------


@kind(lambda g: (g.places(5), g.of(1, *g.shape[1:])))
def add_to_index(c: Tensor, i: Tensor, x: Tensor) -> None:
    c[i] += x


@kind(lambda g: (g.places(5, 2, 7), g.planes), part=0.6)
def add_to_indices(c: Tensor, i: Tensor, x: Tensor) -> None:
    c[i] += x


@kind(lambda g: (g.plane,))
def add_to_plane(c: Tensor, x: Tensor) -> None:
    c[3] += x


@kind()
def multiply_slice(c: Tensor) -> None:
    c[2:5] *= 0.5


@kind(lambda g: (g.plane,))
def lerp_plane(c: Tensor, x: Tensor) -> None:
    c[3].lerp_(x, 0.5)


@kind(lambda g: (g.plane,))
def copy_to_plane(c: Tensor, x: Tensor) -> None:
    c[3].copy_(x)


@kind()
def fill_plane(c: Tensor) -> None:
    c[3].fill_(2.5)


@kind()
def zero_slice(c: Tensor) -> None:
    c[2:5].zero_()


@kind(lambda g: (g.mask(*g.shape[1:]),))
def masked_fill_plane(c: Tensor, m: Tensor) -> None:
    c[3].masked_fill_(m, 0.5)


@kind(lambda g: (g.mask(*g.shape[1:]), g.plane))
def where_plane(c: Tensor, m: Tensor, x: Tensor) -> None:
    c[3] = torch.where(m, x, c[3])


@kind(lambda g: (g.places(5, 3), g.of(2, *g.shape[1:])))
def index_put(c: Tensor, i: Tensor, x: Tensor) -> None:
    c.index_put_((i,), x)


@kind(lambda g: (g.places(5, 3, 5), g.planes))
def index_put_accumulate(c: Tensor, i: Tensor, x: Tensor) -> None:
    c.index_put_((i,), x, accumulate=True)


@kind(lambda g: (g.places(5, 3, 5), g.planes))
def index_add(c: Tensor, i: Tensor, x: Tensor) -> None:
    c.index_add_(0, i, x)


@kind(lambda g: (g.places(5, 3), g.of(g.shape[0], 2, g.shape[2])))
def index_add_inner(c: Tensor, i: Tensor, x: Tensor) -> None:
    c.index_add_(1, i, x, alpha=2)


@kind(lambda g: (g.places(5, 3), g.of(2, *g.shape[1:])))
def index_copy(c: Tensor, i: Tensor, x: Tensor) -> None:
    c.index_copy_(0, i, x)


@kind(lambda g: (g.places(5, 3),))
def index_fill(c: Tensor, i: Tensor) -> None:
    c.index_fill_(0, i, 0.25)


@kind(lambda g: (g.one_of_each_row(2), g.of(2, *g.shape[1:])), part=0.6)
def scatter(c: Tensor, i: Tensor, x: Tensor) -> None:
    c.scatter_(0, i, x)


@kind(lambda g: ((g.of(2, *g.shape[1:]) * g.shape[0]).long(), g.of(2, *g.shape[1:])), part=0.9)
def scatter_add(c: Tensor, i: Tensor, x: Tensor) -> None:
    c.scatter_add_(0, i, x)


@kind(lambda g: ((g.of(2, *g.shape[1:]) * g.shape[0]).long(), g.of(2, *g.shape[1:])), part=0.9)
def scatter_reduce(c: Tensor, i: Tensor, x: Tensor) -> None:
    c.scatter_reduce_(0, i, x, "amax")


# ---- views ---------------------------------------------------------------------------------------


@kind(lambda g: (g.of(min(g.shape[1:])),))
def diagonal(c: Tensor, x: Tensor) -> None:
    c[3].diagonal()[: x.shape[0]].add_(x)


@kind()
def diagonals(c: Tensor) -> None:
    c.diagonal(0, 1, 2).fill_(1.5)


@kind()
def narrow(c: Tensor) -> None:
    c.narrow(0, 2, 3).add_(1)


@kind()
def select_inner(c: Tensor) -> None:
    c.select(1, 5).mul_(0.5)


@kind(lambda g: (g.of(4, g.shape[2]),))
def view_of_view(c: Tensor, x: Tensor) -> None:
    c[1:9][2][3:7].add_(x)


@kind(lambda g: (g.of(g.shape[0], g.shape[2]),))
def transposed(c: Tensor, x: Tensor) -> None:
    c.transpose(0, 1)[5].copy_(x)


@kind(lambda g: (g.of(12, g.shape[2]),))
def reshaped(c: Tensor, x: Tensor) -> None:
    c.view(-1, c.shape[2])[7:19] = x


@kind()
def flattened(c: Tensor) -> None:
    c.view(-1)[100:200].add_(1)


@kind(lambda g: (g.of(3, 5),))
def as_strided(c: Tensor, x: Tensor) -> None:
    c.as_strided((3, 5), (40, 2), 7).copy_(x)


# ---- several writes ------------------------------------------------------------------------------


@kind(lambda g: (g.plane, g.plane))
def two_parts(c: Tensor, x: Tensor, y: Tensor) -> None:
    c[3] = x
    c[5] = y + 1


@kind(lambda g: (g.plane, g.plane))
def one_part_twice(c: Tensor, x: Tensor, y: Tensor) -> None:
    c[3] = x
    c[3] += y


@kind(lambda g: (g.plane,))
def write_and_read(c: Tensor, x: Tensor) -> Tensor:
    c[3] = x
    return c[3] * 2 + c[4]


@kind(lambda g: (g.plane,))
def read_and_write(c: Tensor, x: Tensor) -> Tensor:
    old = c[3] * 2
    c[3] = x
    return old


@kind(lambda g: (g.planes,))
def move_planes(c: Tensor, x: Tensor) -> None:
    c[0:3] = c[4:7] + x


@kind(lambda g: (g.c, g.plane))
def two_tensors(c: Tensor, d: Tensor, x: Tensor) -> None:
    c[3] = x
    d[5] = x * 2


@kind(lambda g: (g.plane, g.plane))
def foreach(c: Tensor, x: Tensor, y: Tensor) -> None:
    torch._foreach_add_([c[1], c[4]], [x, y])


@kind(lambda g: (g.planes,))
def part_of_argument(c: Tensor, x: Tensor) -> Tensor:
    view = c[2:8]
    view[1:4] = x
    return view[0] + 1


# ---- user-defined operators ----------------------------------------------------------------------


@torch.library.custom_op("partial_writes::put", mutates_args={"cache"})
def put(cache: torch.Tensor, x: torch.Tensor, place: int) -> None:
    """Write a plane."""
    cache[place].copy_(x)


@put.register_fake
def _(cache: torch.Tensor, x: torch.Tensor, place: int) -> None:
    return None


@torch.library.custom_op("partial_writes::put_and_sum", mutates_args={"cache"})
def put_and_sum(cache: torch.Tensor, x: torch.Tensor, place: int) -> torch.Tensor:
    """Write a plane, and return its sum."""
    cache[place].copy_(x)
    return cache[place].sum()


@put_and_sum.register_fake
def _(cache: torch.Tensor, x: torch.Tensor, place: int) -> torch.Tensor:
    return cache.new_empty(())


@kind(lambda g: (g.plane,))
def custom_operator(c: Tensor, x: Tensor) -> None:
    put(c, x, 3)


@kind(lambda g: (g.plane,))
def custom_operator_with_result(c: Tensor, x: Tensor) -> Tensor:
    return put_and_sum(c, x, 3) + 1


@kind(lambda g: (g.plane,))
def custom_operator_on_view(c: Tensor, x: Tensor) -> None:
    put(c[2:9], x, 3)


@kind(lambda g: (g.plane,))
def custom_operator_twice(c: Tensor, x: Tensor) -> Tensor:
    put(c, x, 3)
    put(c, x * 2, 4)
    return c[3].sum()
