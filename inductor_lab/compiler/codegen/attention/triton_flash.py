"""Attention as Triton kernels that visit keys block by block and store no score matrix.

The kernels apply the user functions to each block of scores (see `accelerate/flex_attention.py`).

    for step in range(0, count):                        blocks of keys that the mask can show
        scores = tl.dot(queries, keys)
        seen = ...                                      the user functions
        top = lab.maximum(largest, lab.row_max(seen))
        powers = tl.exp2(seen - top)
        shrink = tl.exp2(largest - top)                 rescale earlier sums to the new maximum
        total = total * shrink + lab.row_sum(powers)
        sums = sums * shrink + tl.dot(powers, values)
        largest = top

The backward recomputes the scores.  One kernel visits the keys of each block of queries, and
another kernel visits the queries of each block of keys.

Dao et al., FlashAttention (NeurIPS 2022); Dong et al., FlexAttention (MLSys 2025).
Inductor: `kernel/flex/templates/`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from inductor_lab.compiler.codegen.attention.attention_call import Attention, Operand, Visit
from inductor_lab.compiler.codegen.attention.triton_operands import Tile, Writer, padded
from inductor_lab.compiler.codegen.kernel import Kernel

LOG2_E = 1 / math.log(2)
NEVER = 'float("-inf")'


def forward(
    name: str, attention: Attention, tile: Tile, visits: tuple[Visit, ...],
    made: Mapping[str, Operand], device: str,
) -> Kernel:  # fmt: skip
    """Return the forward kernel.  Its results, in `made`, are:

    out         the result [B, Hq, M, Dv]
    logs_rows   optional: for each row, the base-2 logarithm of the sum of its powers
    tops_rows   optional: for each row, its largest score
    """
    write, call = Writer(attention, tile, visits), attention
    width = padded(call.value)
    write.points("rows")
    write.line("i = rows[:, None]")
    write.load("queries", "query", call.query, "h", "rows")
    write.line(
        f"largest = tl.full([{tile.rows}, 1], {NEVER}, tl.float32)",
        f"total = tl.full([{tile.rows}, 1], 0.0, tl.float32)",
        f"sums = tl.full([{tile.rows}, {width}], 0.0, tl.float32)",
    )
    for visit in visits:
        with write.visiting(visit, "columns"):
            write.line("j = columns[None, :]")
            what = ("key", call.key, write.shared, "columns")
            write.load("keys", *what, visited=True, transposed=True)
            write.line(f"scores = {write.dot('queries', 'keys')}")
            write.inner(visit, "columns")
            if write.open("columns", True):
                write.line(f"seen = tl.where({write.inside('j', 'columns')}, seen, {NEVER})")
            write.line(
                f"seen = seen * {LOG2_E}",
                "top = lab.maximum(largest, lab.row_max(seen))",
                f"shift = tl.where(top == {NEVER}, 0.0, top)",
                "powers = tl.exp2(seen - shift)",
                "shrink = tl.exp2(largest - shift)",
                "total = total * shrink + lab.row_sum(powers)",
            )
            write.load("values", "value", call.value, write.shared, "columns", visited=True)
            onto = write.dot(write.rounded("powers"), "values", "sums * shrink")
            write.line(f"sums = {onto}", "largest = top")
    write.line("result = sums / tl.where(total == 0.0, 1.0, total)")
    write.store("result", "out", made["out"], "h", "rows")
    if "logs_rows" in made:
        write.line(f"logs = tl.where(largest == {NEVER}, 0.0, largest) + tl.log2(total)")
        write.store_vector("logs_rows", made["logs_rows"], "logs")
        write.store_vector("tops_rows", made["tops_rows"], "largest")
    operands = [("query", call.query), ("key", call.key), ("value", call.value)]
    return write.kernel(name, device, "rows", operands, list(made.items()))


def of_queries(
    name: str, attention: Attention, tile: Tile, visits: tuple[Visit, ...],
    known: Sequence[tuple[str, Operand]], made: tuple[Operand, Operand], device: str,
) -> Kernel:  # fmt: skip
    """Return the kernel for the gradient of the queries.

    It also computes `inner[B, Hq, M]`: for each row, the sum of the result times its gradient.
    `known` has `result`, `grad`, `logs_rows`, and optionally `grad_logs`.
    """
    write, call, named = Writer(attention, tile, visits), attention, dict(known)
    of_query, inner = made
    write.points("rows")
    write.line("i = rows[:, None]")
    write.load("queries", "query", call.query, "h", "rows")
    write.load("grads", "grad", named["grad"], "h", "rows")
    write.load("results", "result", named["result"], "h", "rows")
    write.line("inner = lab.row_sum(results.to(tl.float32) * grads.to(tl.float32))")
    if "grad_logs" in named:
        write.line(f"inner -= {write.load_vector('grad_logs', named['grad_logs'])} * {LOG2_E}")
    write.store_vector("inner_rows", inner, "inner")
    write.line(f"logs = {write.load_vector('logs_rows', named['logs_rows'])}")
    write.line(f"of_query = tl.full([{tile.rows}, {padded(call.query)}], 0.0, tl.float32)")
    for visit in visits:
        with write.visiting(visit, "columns"):
            write.line("j = columns[None, :]")
            for pointer, tensor in (("key", call.key), ("value", call.value)):
                what = (pointer, tensor, write.shared, "columns")
                write.load(f"{pointer}s", *what, visited=True, transposed=True)
            write.line(f"scores = {write.dot('queries', 'keys')}")
            write.line(f"of_weights = {write.dot('grads', 'values')}")
            write.inner(visit, "columns")
            if write.open("columns", True):
                write.line(f"slopes = tl.where({write.inside('j', 'columns')}, slopes, 0.0)")
            onto = write.dot(write.rounded("slopes"), "tl.trans(keys)", "of_query")
            write.line(f"of_query = {onto}")
    write.store("of_query", "of_query_out", of_query, "h", "rows")
    return write.kernel(
        name, device, "rows",
        [("query", call.query), ("key", call.key), ("value", call.value), *known],
        [("of_query_out", of_query), ("inner_rows", inner)],
    )  # fmt: skip


def of_keys(
    name: str, attention: Attention, tile: Tile, visits: tuple[Visit, ...],
    known: Sequence[tuple[str, Operand]], made: tuple[Operand, Operand], device: str,
) -> Kernel:  # fmt: skip
    """Return the kernel for the gradients of keys and values.

    `known` has `grad`, `logs_rows` and `inner_rows`.
    """
    write, call, named = Writer(attention, tile, visits), attention, dict(known)
    of_key, of_value = made
    write.points("columns", "shared")
    write.line("j = columns[:, None]")
    write.load("keys", "key", call.key, "shared", "columns")
    write.load("values", "value", call.value, "shared", "columns")
    for kind, tensor in (("of_key", call.query), ("of_value", call.value)):
        write.line(f"{kind} = tl.full([{tile.columns}, {padded(tensor)}], 0.0, tl.float32)")
    first = write.times("shared", call.shared_by)
    with write.loop(f"for h in range({first}, {first} + {call.shared_by}):"):
        for visit in visits:
            with write.visiting(visit, "rows"):
                write.line("i = rows[None, :]")
                for block, pointer, tensor in (
                    ("queries", "query", call.query), ("grads", "grad", named["grad"])
                ):  # fmt: skip
                    write.load(block, pointer, tensor, "h", "rows", visited=True, transposed=True)
                write.line(f"logs = {write.load_vector('logs_rows', named['logs_rows'], True)}")
                write.line(f"inner = {write.load_vector('inner_rows', named['inner_rows'], True)}")
                write.line(f"scores = {write.dot('keys', 'queries')}")
                write.line(f"of_weights = {write.dot('values', 'grads')}")
                write.inner(visit, "rows")
                if write.open("rows", True):
                    inside = write.inside("i", "rows")
                    write.line(f"weights = tl.where({inside}, weights, 0.0)",
                               f"slopes = tl.where({inside}, slopes, 0.0)")  # fmt: skip
                onto = write.dot(write.rounded("weights"), "tl.trans(grads)", "of_value")
                write.line(f"of_value = {onto}")
                onto = write.dot(write.rounded("slopes"), "tl.trans(queries)", "of_key")
                write.line(f"of_key = {onto}")
    write.store("of_key", "of_key_out", of_key, "shared", "columns")
    write.store("of_value", "of_value_out", of_value, "shared", "columns")
    return write.kernel(
        name, device, "columns",
        [("query", call.query), ("key", call.key), ("value", call.value), *known],
        [("of_key_out", of_key), ("of_value_out", of_value)],
    )  # fmt: skip
