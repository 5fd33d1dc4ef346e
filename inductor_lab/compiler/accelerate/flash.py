"""Replaces calls of `flex_attention` by kernels that store no score matrix.

`codegen/attention/triton_flash.py` and `cpp_flash.py` print the kernels.

    flex_attention(q, k, v, score_mod, block_mask)    →    one kernel, two for a backward

A call remains two matrix products and a softmax for 64-bit numbers, for gradients on a CPU, and for
gradients of tensors that the user functions read.

Inductor: `kernel/flex/flex_attention.py`.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor
from torch.fx import Node
from torch.fx.node import map_aggregate

from inductor_lab.compiler.accelerate import flash_inner
from inductor_lab.compiler.accelerate.flash_inner import Known
from inductor_lab.compiler.accelerate.flash_run import Flash, is_short
from inductor_lab.compiler.accelerate.flex_definitions import Functions
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
from inductor_lab.compiler.codegen.kernel import Kernel
from inductor_lab.compiler.codegen.triton.shared_rows import shared_memory
from inductor_lab.compiler.ir.higher_order import KERNELS_OF_OURS, PREFIX
from inductor_lab.compiler.ir.index import Size, is_int, mul_sizes
from inductor_lab.compiler.rewrite.decompose.decompositions import Decomposition
from inductor_lab.compiler.rewrite.insert_calls import flat, mode_of
from inductor_lab.compiler.torch_door import torch_api
from inductor_lab.compiler.torch_door.torch_api import expression_of, specialized

DTYPES = (torch.float16, torch.bfloat16, torch.float32)
WIDEST = 256
"""The maximum width of a query or a value, because a program holds complete rows."""
DEVICES = {"cpu": "cpp", "cuda": "triton"}
"""The devices with kernels, and the language of each."""
FORWARD = ("query", "key", "value", "score_mod", "block_mask", "scale", "options", "score_given",
           "mask_given")  # fmt: skip
BACKWARD = ("query", "key", "value", "result", "logs_rows", "grad", "grad_logs", "score_mod",
            "joint", "block_mask", "scale", "options", "score_given", "mask_given")  # fmt: skip
"""The arguments of the two operators."""
LISTS = ("shown_keys_counts", "shown_keys_indices", "whole_keys_counts", "whole_keys_indices",
         "shown_queries_counts", "shown_queries_indices", "whole_queries_counts",
         "whole_queries_indices")  # fmt: skip
"""The lists of a block mask.  `shown` blocks are partially masked, `whole` blocks are not."""
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
"""For each kernel, (maximum bytes of a row, tile): the best of eight tiles for rows of 128 and 256
bytes on an H100 (2026-11-25, torch 2.11; causal, 4 x 16 x 2048, and a window of 256 in 8192);
other rows were not measured.  "of all" is a forward that visits all keys (2026-11-26)."""


def flash(
    node: Node, items: Mapping[str, Any], table: Mapping[Any, Decomposition], known: Known,
    wanted: Sequence[str] = OF_FORWARD,
) -> bool:  # fmt: skip
    """Replace a call by our own kernels; return False if this is not possible.

    `items` has the arguments of the operator by name.  `wanted` has the names of the first results
    of a forward.  `table` decomposes the user functions.  `known` caches their programs for equal
    calls.
    """
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
    if not run.binds_all_symbols():
        return False
    if kernels[0].language == "cpp" or torch.cuda.is_available():
        run.begin()
    leaves = torch_api.pytree.tree_leaves((node.args, node.kwargs))
    places = [leaves.index(given) for given in inputs.values()]
    op = f"{PREFIX}flex_attention{'_backward' if call.backward else ''}"
    node.meta["lab_kernels"] = (run, places, op, KERNELS_OF_OURS)
    return True


def arguments_of(call: Node) -> dict[str, Any]:
    """Return the arguments of a call of one of the two operators, by name."""
    names = FORWARD if len(call.args) == len(FORWARD) else BACKWARD
    return dict(zip(names, call.args, strict=True))


def language_of(tensor: Tensor) -> str | None:
    """Return the language of kernels for the device of a tensor, or None."""
    return DEVICES.get(tensor.device.type)


class Call:
    """A call of one of the two operators, or an equivalent call.

    items    the arguments by name: nodes, numbers and None; `is_causal` is optional
    values   the same, with fake tensors and functions instead of nodes
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
        self.causal: bool = self.items.get("is_causal", False)

    @cached_property
    def sparse(self) -> tuple[int, int] | None:
        """The lengths of listed blocks, to which the graph is specialized; None if symbolic."""
        rows, columns = map(specialized, self.values["block_mask"][-3:-1])
        return None if rows is None or columns is None else (rows, columns)

    def operand(self, name: str) -> Operand:
        return _operand(self.values[name])

    @cached_property
    def made(self) -> dict[str, Operand]:
        """The outputs of the kernels."""
        names = OF_BACKWARD if self.backward else self.wanted
        results = map(_operand, flat(self.node.meta["val"]))
        made = dict(zip(names, results, strict=False))
        return made | ({"inner_rows": self.operand("logs_rows")} if self.backward else {})

    # ---- checks -------------------------------------------------------------------------------

    def fits(self) -> bool:
        """Are there kernels for these operands?"""
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
        short = all(is_short(t.shape, t.stride()) for t in tensors if _is_fixed(t))
        numbers = all(isinstance(self.values[f"in{n}"], Tensor) for n in range(len(self.given)))
        fits = narrow and short and numbers and not (self.backward and self._more_gradients())
        return fits and self.sparse is not None

    def _more_gradients(self) -> bool:
        """Are there gradients of tensors that user functions read, or of keys shared by batches?"""
        others = [user for user in self.node.users if user.args[1] == 3]
        shared = self.operand("query").shape[0] != self.operand("key").shape[0]
        return shared or self.values["grad"] is None or any(map(len, (u.users for u in others)))

    # ---- kernels ------------------------------------------------------------------------------

    def kernels(self) -> tuple[Kernel, ...] | None:
        """Return the kernels, or None.

        None means that the user functions are not a single pointwise nest, or that the lists do not
        cover all blocks.
        """
        keys = self.visits("keys", "rows")
        queries = self.visits("queries", "columns") if self.backward else keys
        if not keys or not queries:
            return None
        name = re.sub(r"_[0-9]+$", "", self.node.name)  # so that equal layers have equal texts
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
        assert self.sparse is not None, "`fits` checks this"
        all_in_one = all(n >= WHOLE_LENGTH for n in self.sparse)
        origins = frozenset([self.node.name])
        return Attention(query, key, value, given, self.sparse, exact or all_in_one, origins,
                         self.causal)  # fmt: skip

    def tile(self, kernel: str) -> Tile:
        """Return the tile from the table, reduced so that it divides the listed blocks."""
        width = max(self.values["query"].shape[3], self.values["value"].shape[3])
        nbytes = width * self.values["query"].dtype.itemsize
        tile = next(tile for most, tile in TILES[kernel] if nbytes <= most)
        rows, columns = (n & -n for n in self.attention.sparse)
        tile = replace(tile, rows=min(tile.rows, rows), columns=min(tile.columns, columns))
        matrices = 2 * nbytes * max(tile.rows, tile.columns)
        fitting = shared_memory(str(self.values["query"].device)) // matrices - 1
        return replace(tile, stages=max(min(tile.stages, fitting), 1))

    def visits(self, kind: str, along: str) -> tuple[Visit, ...]:
        """Return the visits of keys or queries: the listed blocks, or all if there are no lists.

        Returns () if the lists do not cover all rows.
        """
        if all(self.items[name] is None for name in LISTS):
            names = {cpp_flash.BEFORE: False, "all": True} if self.causal else {"all": False}
            visits = [(name, self.inner(masked)) for name, masked in names.items()]
            return tuple(Visit(name, inner) for name, inner in visits if inner)
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
        """Return the program of the user functions, with or without the mask; cache it."""
        query, read = self.values["query"], [*self.items["score_given"], *self.items["mask_given"]]
        compute, shapes = self._blocks()
        functions = (self.values["score_mod"], self.values["block_mask"][-1])
        key = (
            masked, compute, self.values["scale"], repr(map_aggregate(shapes, expression_of)),
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
                    compute, self.functions, masked, blocks, tensors, self.table
                )
        return self.known[key]

    def _blocks(self) -> tuple[flash_inner.BlockFunction, dict[str, Any]]:
        """Return the function that is applied to blocks, and the blocks' shapes and dtypes."""
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
        """Return the user functions, which read the tensors `given`."""
        waiting = iter(given)

        def filled(items: Any) -> tuple[Any, ...]:
            return tuple(next(waiting) if isinstance(item, Node) else item for item in items)

        score_given, mask_given = (filled(self.items[n]) for n in ("score_given", "mask_given"))
        return Functions(
            self.values["score_mod"], self.values["block_mask"][-1], self.values["scale"],
            score_given, mask_given, self.values.get("joint"),
        )  # fmt: skip


def _operand(fake: Tensor) -> Operand:
    shape, stride = (tuple(map(expression_of, of)) for of in (fake.shape, fake.stride()))
    return Operand(shape, stride, fake.dtype)


def _is_fixed(fake: Tensor) -> bool:
    return all(isinstance(n, int) for n in (*fake.shape, *fake.stride()))
