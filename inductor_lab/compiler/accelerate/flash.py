"""Calls of `flex_attention` that need no matrix of scores: which they are, and what runs in their
place (`codegen/attention/triton_flash.py` and `cpp_flash.py` have the kernels).

    flex_attention(q, k, v, score_mod, block_mask)    →    one kernel, two for a backward

A call stays two products and a softmax where numbers have 64 bits, or gradients are asked for on a
CPU, or of what the user's functions read.

Inductor: `kernel/flex/flex_attention.py`.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any

import sympy
import torch
from torch import Tensor
from torch.fx import Node
from torch.fx.node import map_aggregate

from inductor_lab.compiler.accelerate import flash_inner
from inductor_lab.compiler.accelerate.flash_inner import Known
from inductor_lab.compiler.accelerate.flex_definitions import Functions
from inductor_lab.compiler.base.errors import DividedByZero, IndexOutOfRange
from inductor_lab.compiler.capture.span import code_line
from inductor_lab.compiler.codegen.attention import cpp_flash, triton_flash
from inductor_lab.compiler.codegen.attention.attention_call import (
    WHOLE_LENGTH,
    Attention,
    Inner,
    Operand,
    Visit,
)
from inductor_lab.compiler.codegen.attention.triton_operands import Tile
from inductor_lab.compiler.codegen.cpp.printer import translation_unit
from inductor_lab.compiler.codegen.kernel import Kernel
from inductor_lab.compiler.codegen.triton.blocks import INT32_REACH
from inductor_lab.compiler.codegen.triton.shared_rows import shared_memory
from inductor_lab.compiler.ir.higher_order import KERNELS_OF_OURS, PREFIX, Written
from inductor_lab.compiler.ir.index import Size, is_int, mul_sizes
from inductor_lab.compiler.ir.interpret import concrete
from inductor_lab.compiler.ir.program import Layout
from inductor_lab.compiler.rewrite.decompose.decompositions import Decomposition
from inductor_lab.compiler.rewrite.insert_calls import flat, mode_of
from inductor_lab.compiler.runtime.executable import cpp_function
from inductor_lab.compiler.runtime.toolchain.background_compile import Ahead
from inductor_lab.compiler.runtime.toolchain.shared_library import library_builder
from inductor_lab.compiler.torch_door import torch_api
from inductor_lab.compiler.torch_door.torch_api import expression_of, specialized

DTYPES = (torch.float16, torch.bfloat16, torch.float32)
WIDEST = 256
"""Numbers of a query or a value, of which a program has whole rows at hand."""
DEVICES = {"cpu": "cpp", "cuda": "triton"}
"""Where kernels run, and their languages."""
MOST_KERNELS = 256
"""Kept to be used again by equal layers."""
MOST_SIZES = 64
"""For which a call with symbolic ones keeps what they mean."""
FORWARD = ("query", "key", "value", "score_mod", "block_mask", "scale", "options", "score_given",
           "mask_given")  # fmt: skip
BACKWARD = ("query", "key", "value", "result", "logs_rows", "grad", "grad_logs", "score_mod",
            "joint", "block_mask", "scale", "options", "score_given", "mask_given")  # fmt: skip
"""The arguments of the two operators."""
LISTS = ("shown_keys_counts", "shown_keys_indices", "whole_keys_counts", "whole_keys_indices",
         "shown_queries_counts", "shown_queries_indices", "whole_queries_counts",
         "whole_queries_indices")  # fmt: skip
"""The lists of a block mask; of blocks that are not shown whole, the mask says what is shown."""
OF_FORWARD = ("out", "logs_rows", "tops_rows")
OF_BACKWARD = ("of_query_out", "of_key_out", "of_value_out")
TILES = {
    "forward": ((256, Tile(64, 64, 4, 3)), (1024, Tile(64, 32, 4, 2))),
    "of all": ((128, Tile(64, 64, 4, 3)), (256, Tile(128, 64, 4, 3)), (1024, Tile(64, 32, 4, 2))),
    "of_queries": (
        (128, Tile(64, 32, 4, 4)), (256, Tile(64, 64, 4, 2)), (1024, Tile(32, 32, 4, 1)),
    ),
    "of_keys": ((128, Tile(64, 64, 4, 3)), (256, Tile(32, 64, 4, 4)), (1024, Tile(32, 32, 4, 1))),
}  # fmt: skip
"""For each kernel, (up to so many bytes of a row, the tile): the best of eight for rows of 128 and
256 bytes on an H100 (2026-11-25, torch 2.11; causal, 4 x 16 x 2048, and a window of 256 in 8192);
others were not measured.  "of all" is a forward that visits all keys (2026-11-26)."""


def flash(
    node: Node, items: Mapping[str, Any], table: Mapping[Any, Decomposition], known: Known,
    wanted: Sequence[str] = OF_FORWARD,
) -> bool:  # fmt: skip
    """Let kernels of ours run in the place of a call; False if the call stays.

    `items` are the operator's arguments by name, and `wanted` are the first results of a forward.
    The user's functions are decomposed by `table`; what is `known` of them stays so for equal
    calls."""
    call = Call(node, items, table, known, wanted)
    kernels = call.kernels() if call.fits() else None
    if kernels is None:
        return False
    needed = dict.fromkeys(p.name for k in kernels for p in k.parameters if p.role == "in")
    inputs = {name: call.items[name] for name in needed if name in call.items}
    results = tuple(name for name in call.made if name != "inner_rows")
    shapes = {name: call.operand(name) for name in inputs}
    absent = len(node.meta["val"]) - len(results)
    place = code_line(node.stack_trace or "")
    run = Flash(kernels, shapes, call.made, results, absent, call.reached, place)
    if not run.knows_all():
        return False
    if kernels[0].language == "cpp" or torch.cuda.is_available():
        run.begin()
    leaves = torch_api.pytree.tree_leaves((node.args, node.kwargs))
    places = [leaves.index(given) for given in inputs.values()]
    op = f"{PREFIX}flex_attention{'_backward' if call.backward else ''}"
    node.meta["lab_kernels"] = (run, places, op, KERNELS_OF_OURS)
    return True


def arguments_of(call: Node) -> dict[str, Any]:
    """What a call of one of the two operators is given, by name."""
    names = FORWARD if len(call.args) == len(FORWARD) else BACKWARD
    return dict(zip(names, call.args, strict=True))


def language_of(tensor: Tensor) -> str | None:
    """That of kernels where the tensor is; None without any."""
    return DEVICES.get(tensor.device.type)


@dataclass(frozen=True, eq=False)
class Flash(Written):
    """The kernels of a call, one after the other.

    `given` is what it is given, by name and in order; `made` is what kernels make, of which
    `results` are returned, and then so many that are `absent`.  Each pair of `reached` is a number
    of rows, and how many rows the lists of blocks are for at least.  `place` is the user's line."""

    kernels: tuple[Kernel, ...]
    given: Mapping[str, Operand]
    made: Mapping[str, Operand]
    results: tuple[str, ...]
    absent: int
    reached: tuple[tuple[Size, Size], ...]
    place: str

    def __str__(self) -> str:
        return "\n\n".join(str(kernel) for kernel in self.kernels)

    def begin(self) -> None:
        """Have the kernels compiled, in threads."""
        _ = self.launches

    @cached_property
    def launches(self) -> tuple[Callable[..., None], ...]:
        return tuple(map(_loaded, map(_ByText.of, self.kernels)))

    def ready(self) -> None:
        for launch in self.launches:
            if isinstance(launch, _Cpp):
                launch.function.wait()

    @cached_property
    def told_by(self) -> Mapping[sympy.Symbol, tuple[int, int]]:
        """Symbols, and which size of which tensor tells each."""
        shapes = (operand.shape for operand in self.given.values())
        return {size: (n, dim) for n, shape in enumerate(shapes) for dim, size in enumerate(shape)
                if isinstance(size, sympy.Symbol)}  # fmt: skip

    def knows_all(self) -> bool:
        """Do the tensors tell all sizes?"""
        asked: list[Size] = [p.symbol for k in self.kernels for p in k.parameters if p.symbol]
        asked += [n for operand in self.made.values() for n in (*operand.shape, *operand.stride)]
        asked += [n for pair in self.reached for n in pair]
        return all(n.free_symbols <= self.told_by.keys() for n in asked if not isinstance(n, int))

    def __call__(self, *given: Tensor) -> tuple[Any, ...]:
        tensors = dict(zip(self.given, given, strict=True))
        sizes, numbers = self.sizes(*(given[n].shape[dim] for n, dim in self.told_by.values()))
        if self.told_by and not all(_is_short(t.shape[2:], t.stride()[2:]) for t in given):
            raise IndexOutOfRange("a head of this attention has 2**31 elements or more", self.place)
        for name, (size, stride) in sizes.items():
            dtype, device = self.made[name].dtype, given[0].device
            tensors[name] = torch.empty_strided(size, stride, dtype=dtype, device=device)
        for kernel, more, launch in zip(self.kernels, numbers, self.launches, strict=True):
            try:
                launch(*(tensors[p.name] for p in kernel.parameters if p.symbol is None), *more)
            except (DividedByZero, IndexOutOfRange) as found:
                raise type(found)(found.what, self.place) from None
        return (*(tensors[name] for name in self.results), *[None] * self.absent)

    @cached_property
    def sizes(self) -> Callable[..., tuple[dict[str, Any], list[list[int]]]]:
        """From what the symbols are, the sizes and strides of what is made, and for each kernel the
        numbers that it is given."""
        return lru_cache(MOST_SIZES)(self._sizes)

    def _sizes(self, *values: int) -> tuple[dict[str, Any], list[list[int]]]:
        symbols = dict(zip(self.told_by, values, strict=True))

        def known(numbers: Iterable[Size]) -> list[int]:
            return [concrete(n, symbols) for n in numbers]

        for rows, listed in map(known, self.reached):
            if rows > listed:
                said = f"a block mask for {listed} rows does not reach all {rows}"
                raise IndexOutOfRange(said, self.place)
        made = {name: (known(m.shape), known(m.stride)) for name, m in self.made.items()}
        asked = ((p.symbol for p in k.parameters if p.symbol is not None) for k in self.kernels)
        return made, list(map(known, asked))


class Call:
    """A call of one of the two operators, or of what is one in other words.

    items    what it is given, by name: nodes, numbers and None
    values   the same, with fake tensors and functions in the place of nodes
    """

    def __init__(
        self, node: Node, items: Mapping[str, Any], table: Mapping[Any, Decomposition],
        known: Known, wanted: Sequence[str],
    ) -> None:  # fmt: skip
        self.node, self.table, self.known, self.wanted = node, table, known, wanted
        self.items: dict[str, Any] = dict(items)
        self.items.update(zip(LISTS, self.items["block_mask"][2:10], strict=True))
        read = (*self.items["score_given"], *self.items["mask_given"])
        self.given = [item for item in read if isinstance(item, Node)]
        self.items.update((f"in{n}", item) for n, item in enumerate(self.given))
        module: Any = node.graph.owning_module

        def value(item: Any) -> Any:
            if not isinstance(item, Node):
                return item
            known = item.meta.get("val")
            return operator.attrgetter(str(item.target))(module) if known is None else known

        self.values: dict[str, Any] = {k: map_aggregate(v, value) for k, v in self.items.items()}
        self.backward = "joint" in self.items
        self.language = language_of(self.values["query"])
        self.reached: tuple[tuple[Size, Size], ...] = ()

    @cached_property
    def sparse(self) -> tuple[int, int] | None:
        """The lengths of blocks in lists, which a graph is compiled for; None if only a call tells
        them."""
        rows, columns = map(specialized, self.values["block_mask"][-3:-1])
        return None if rows is None or columns is None else (rows, columns)

    def operand(self, name: str) -> Operand:
        return _operand(self.values[name])

    @cached_property
    def made(self) -> dict[str, Operand]:
        """What kernels make."""
        names = OF_BACKWARD if self.backward else self.wanted
        results = map(_operand, flat(self.node.meta["val"]))
        made = dict(zip(names, results, strict=False))
        return made | ({"inner_rows": self.operand("logs_rows")} if self.backward else {})

    # ---- which --------------------------------------------------------------------------------

    def fits(self) -> bool:
        """Are there kernels for such operands?"""
        query, key, value = (self.values[name] for name in FORWARD[:3])
        tensors = list(flat(self.values.values()))
        alike = query.dtype == key.dtype == value.dtype and query.dtype in DTYPES
        if not (alike and all(t.device == query.device for t in tensors)):
            return False
        if self.language is None or (self.language == "cpp" and self.backward):
            return False
        counted = [n for t in (query, key, value) for n in (t.shape[1], t.shape[3])]
        if not all(isinstance(n, int) for n in counted):
            return False
        sizes = map(expression_of, (*counted, query.shape[2], key.shape[2]))
        empty = any(is_int(size, 0) for size in sizes)
        narrow = max(query.shape[3], value.shape[3]) <= WIDEST and not empty
        short = all(_is_short(t.shape, t.stride()) for t in tensors if _is_fixed(t))
        numbers = all(isinstance(self.values[f"in{n}"], Tensor) for n in range(len(self.given)))
        fits = narrow and short and numbers and not (self.backward and self._asks_more())
        return fits and self.sparse is not None

    def _asks_more(self) -> bool:
        """Are gradients needed of what the user's functions read, or of keys that batches share?"""
        others = [user for user in self.node.users if user.args[1] == 3]
        shared = self.operand("query").shape[0] != self.operand("key").shape[0]
        return shared or self.values["grad"] is None or any(map(len, (u.users for u in others)))

    # ---- what runs ----------------------------------------------------------------------------

    def kernels(self) -> tuple[Kernel, ...] | None:
        """The kernels, or None if the user's functions are more than one pointwise nest, or lists
        do not reach all blocks."""
        keys = self.visits("keys", "rows")
        queries = self.visits("queries", "columns") if self.backward else keys
        if not keys or not queries:
            return None
        name = re.sub(r"_[0-9]+$", "", self.node.name)  # equal layers have equal texts
        name = f"{self.language}_{name}"
        made = self.made
        device = str(self.values["query"].device)
        if not self.backward:
            if self.language == "cpp":
                return (cpp_flash.forward(name, self.attention, keys, made, device),)
            tile = self.tile("forward" if keys[0].lists else "of all")
            return (triton_flash.forward(name, self.attention, tile, keys, made, device),)
        known = [(n, self.operand(n)) for n in ("grad", "logs_rows")]
        more = [n for n in ("result", "grad_logs") if self.values[n] is not None]
        of_query = triton_flash.of_queries(
            f"{name}_of_queries", self.attention, self.tile("of_queries"), keys,
            [*known, *((n, self.operand(n)) for n in more)],
            (made["of_query_out"], made["inner_rows"]), device,
        )  # fmt: skip
        of_keys = triton_flash.of_keys(
            f"{name}_of_keys", self.attention, self.tile("of_keys"), queries,
            [*known, ("inner_rows", made["inner_rows"])],
            (made["of_key_out"], made["of_value_out"]), device,
        )  # fmt: skip
        return of_query, of_keys

    @cached_property
    def attention(self) -> Attention:
        query, key, value = (self.operand(name) for name in FORWARD[:3])
        given = tuple(self.operand(f"in{n}") for n in range(len(self.given)))
        lengths = (query.shape[2], key.shape[2])
        exact = tuple(map(expression_of, self.values["block_mask"][:2])) == lengths
        assert self.sparse is not None, "the call fits"
        all_in_one = all(n >= WHOLE_LENGTH for n in self.sparse)
        origins = frozenset([self.node.name])
        return Attention(query, key, value, given, self.sparse, exact or all_in_one, origins)

    def tile(self, kernel: str) -> Tile:
        """The sizes of the table, no larger than the blocks of lists, which they divide."""
        width = max(self.values["query"].shape[3], self.values["value"].shape[3])
        nbytes = width * self.values["query"].dtype.itemsize
        tile = next(tile for most, tile in TILES[kernel] if nbytes <= most)
        rows, columns = (n & -n for n in self.attention.sparse)
        tile = replace(tile, rows=min(tile.rows, rows), columns=min(tile.columns, columns))
        matrices = 2 * nbytes * max(tile.rows, tile.columns)
        fitting = shared_memory(str(self.values["query"].device)) // matrices - 1
        return replace(tile, stages=max(min(tile.stages, fitting), 1))

    def visits(self, kind: str, along: str) -> tuple[Visit, ...]:
        """The lists of blocks of keys or queries, or a visit of all where there are no lists; none
        if they do not reach all of the others."""
        if all(self.items[name] is None for name in LISTS):
            inner = self.inner(False)
            return (Visit("all", inner),) if inner else ()
        found = []
        length, listed = self.attention.length(along), self.attention.listed(along)
        for part, masked in (("shown", True), ("whole", False)):
            name = f"{part}_{kind}"
            counts, indices = (self.values[f"{name}_{what}"] for what in ("counts", "indices"))
            if counts is None:
                continue
            inner, how_many = self.inner(masked), _operand(counts)
            rows = mul_sizes(how_many.shape[2], listed)
            short = isinstance(rows, int) and isinstance(length, int) and rows < length
            if inner is None or short:
                return ()
            found.append(Visit(name, inner, (how_many, _operand(indices))))
            self.reached += ((length, rows),)
        even = self.language == "cpp" or all(n % 16 == 0 for n in self.attention.sparse)
        return tuple(found) if even else ()

    def inner(self, masked: bool) -> Inner | None:
        """What the user's functions make of scores, with or without the mask; equal calls share it.
        """
        query, read = self.values["query"], [*self.items["score_given"], *self.items["mask_given"]]
        making, shapes = self._blocks()
        functions = (self.values["score_mod"], self.values["block_mask"][-1])
        key = (
            masked, making, self.values["scale"], repr(map_aggregate(shapes, expression_of)),
            *map(flash_inner.text_of, (*functions, self.values.get("joint"))),
            *(None if isinstance(item, Node) else item for item in read),
            *(self.operand(f"in{n}") for n in range(len(self.given))),
        )  # fmt: skip
        if key not in self.known:
            with mode_of([query]):
                blocks = {name: query.new_empty(shape, dtype=dtype)
                          for name, (shape, dtype) in shapes.items()}  # fmt: skip
                tensors = [self.values[f"in{n}"] for n in range(len(self.given))]
                self.known[key] = flash_inner.inner_of(
                    making, self.functions, masked, blocks, tensors, self.table
                )
        return self.known[key]

    def _blocks(self) -> tuple[flash_inner.Making, dict[str, Any]]:
        """What is made of the blocks that a kernel has, and their shapes and types by name."""
        query, key = self.values["query"], self.values["key"]
        if self.language == "cpp":
            rows, columns = cpp_flash.block_of(self.attention)
            scores, places = (1, 1, columns, rows), (cpp_flash.PLACES,)
            blocks = {"scores": (scores, torch.float32), "places": (places, torch.int64)}
            return flash_inner.seen_at, blocks
        ends = query.shape[:3]
        square, row = ((*ends, key.shape[2]), torch.float32), (ends, torch.float32)
        if not self.backward:
            return flash_inner.seen, {"scores": square}
        blocks = {"scores": square, "of_weights": square, "logs": row, "inner": row}
        return flash_inner.slopes, blocks

    def functions(self, given: tuple[Tensor, ...]) -> Functions:
        """The user's functions, which read these tensors."""
        waiting = iter(given)

        def filled(items: Any) -> tuple[Any, ...]:
            return tuple(next(waiting) if isinstance(item, Node) else item for item in items)

        score_given, mask_given = (filled(self.items[n]) for n in ("score_given", "mask_given"))
        return Functions(
            self.values["score_mod"], self.values["block_mask"][-1], self.values["scale"],
            score_given, mask_given, self.values.get("joint"),
        )  # fmt: skip


@dataclass(frozen=True)
class _ByText:
    """A kernel; equal ones have the same text, types and launch."""

    text: str
    about: tuple[Any, ...]
    kernel: Kernel = field(compare=False)

    @staticmethod
    def of(kernel: Kernel) -> _ByText:
        types = tuple((p.name, p.dtype, p.symbol) for p in kernel.parameters)
        return _ByText(str(kernel), (types, kernel.device, repr(kernel.launch)), kernel)


@lru_cache(MOST_KERNELS)
def _loaded(of: _ByText) -> Callable[..., None]:
    if of.kernel.language == "cpp":
        return _loaded_cpp(of.kernel)
    from inductor_lab.compiler.runtime.triton.launch import load_kernel

    return load_kernel(of.kernel)


@dataclass(frozen=True)
class _Cpp:
    """A kernel of C++, called with tensors and numbers."""

    function: Ahead[Callable[..., None]]

    def __call__(self, *given: Tensor | int) -> None:
        self.function.wait()(*(n if isinstance(n, int) else n.data_ptr() for n in given))


def _loaded_cpp(kernel: Kernel) -> _Cpp:
    build = library_builder(translation_unit([kernel]), kernel.name)
    return _Cpp(Ahead(lambda: cpp_function(build(), [kernel], {})))


def _operand(fake: Tensor) -> Operand:
    shape, stride = (tuple(map(expression_of, of)) for of in (fake.shape, fake.stride()))
    return Operand(shape, stride, fake.dtype)


def _is_fixed(fake: Tensor) -> bool:
    return all(isinstance(n, int) for n in (*fake.shape, *fake.stride()))


def _is_short(shape: Sequence[int], stride: Sequence[int]) -> bool:
    """Have places of elements 32 bits?"""
    reach = Layout(tuple(shape), tuple(stride)).storage_size
    return isinstance(reach, int) and reach < INT32_REACH
