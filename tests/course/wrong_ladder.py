"""Typical wrong answers of lab 14, and a part of what the check says."""

from __future__ import annotations

import triton.language as tl


def whole_copy(x, out, count, BLOCK: tl.constexpr):
    for start in range(0, count, BLOCK):
        at = start + tl.arange(0, BLOCK)
        tl.store(out + at, tl.load(x + at, at < count), at < count)


def copy_without_mask(x, out, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at))


def bias_for_each_row(x, bias, out, rows, columns, BLOCK: tl.constexpr):
    col = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    for row in range(tl.program_id(0) * BLOCK, min(tl.program_id(0) * BLOCK + BLOCK, rows)):
        mask, at = col < columns, row * columns + col
        tl.store(out + at, tl.load(x + at, mask) + tl.load(bias + col, mask), mask)


def bias_of_the_row(x, bias, out, rows, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    col = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    at = row[:, None] * columns + col[None, :]
    mask = (row < rows)[:, None] & (col < columns)[None, :]
    added = tl.load(bias + row, row < columns, 0.0)
    tl.store(out + at, tl.load(x + at, mask) + added[:, None], mask)


def not_transposed(x, out, rows, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    col = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    at, mask = row[:, None] * columns + col[None, :], (row < rows)[:, None] & (col < columns)
    tl.store(out + at, tl.load(x + at, mask), mask)


def transposed_addresses_of_a_square(x, out, rows, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    col = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = (row < rows)[:, None] & (col < columns)[None, :]
    tile = tl.load(x + row[:, None] * columns + col[None, :], mask)
    tl.store(out + col[None, :] * columns + row[:, None], tile, mask)


def first_block_of_the_row(x, out, columns, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    tl.store(out + row, tl.sum(tl.load(x + row * columns + at, at < columns, 0.0), 0))


def one_result_for_two_rows(x, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros((1,), tl.float32)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        total += tl.sum(tl.load(x + row * columns + at, at < columns, 0.0), 0)
    tl.store(out + row // 2 + tl.arange(0, 1), total)


def softmax_in_three_loops(x, out, columns, BLOCK: tl.constexpr):
    first = tl.program_id(0) * columns
    top = tl.full((1,), float("-inf"), tl.float32)
    total = tl.zeros((1,), tl.float32)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        values = tl.load(x + first + at, at < columns, float("-inf"))
        top = tl.maximum(top, tl.max(values, 0))
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        values = tl.load(x + first + at, at < columns, float("-inf"))
        total += tl.sum(tl.exp(values - top), 0)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        values = tl.load(x + first + at, at < columns, float("-inf"))
        tl.store(out + first + at, tl.exp(values - top) / total, at < columns)


def softmax_of_each_block(x, out, columns, BLOCK: tl.constexpr):
    first = tl.program_id(0) * columns
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        values = tl.load(x + first + at, at < columns, float("-inf"))
        values = tl.exp(values - tl.max(values, 0))
        tl.store(out + first + at, values / tl.sum(values, 0), at < columns)


def plain_histogram(x, out, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(x + at, at < count, -1)
    for number in range(0, 8):
        here = (values == number).to(tl.float32)
        tl.store(out + number, tl.load(out + number) + tl.sum(here, 0))


def counts_masked_lanes(x, out, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(out + tl.load(x + at, at < count, 0), 1.0)


def first_tiles_only(a, b, out, rows, columns, inner, BLOCK: tl.constexpr):
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    col = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    k = tl.arange(0, BLOCK)
    live_row, live_col = (row < rows)[:, None], (col < columns)[None, :]
    left = tl.load(a + row[:, None] * inner + k[None, :], live_row & (k < inner)[None, :], 0.0)
    right = tl.load(b + k[:, None] * columns + col[None, :], (k < inner)[:, None] & live_col, 0.0)
    sums = tl.dot(left, right, input_precision="ieee")
    tl.store(out + row[:, None] * columns + col[None, :], sums, live_row & live_col)


def tiles_without_masks(a, b, out, rows, columns, inner, BLOCK: tl.constexpr):
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    col = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    sums = tl.zeros((BLOCK, BLOCK), tl.float32)
    for start in range(0, inner, BLOCK):
        k = start + tl.arange(0, BLOCK)
        left = tl.load(a + row[:, None] * inner + k[None, :])
        sums += tl.dot(left, tl.load(b + k[:, None] * columns + col[None, :]))
    tl.store(out + row[:, None] * columns + col[None, :], sums)


def attention_of_missing_keys(
    q, k, v, out, length, inner, scale, BLOCK: tl.constexpr, WIDTH: tl.constexpr
):
    row, col = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), tl.arange(0, WIDTH)
    mine = (row < length)[:, None] & (col < inner)[None, :]
    queries = tl.load(q + row[:, None] * inner + col[None, :], mine, 0.0)
    total = tl.zeros((BLOCK,), tl.float32)
    values = tl.zeros((BLOCK, WIDTH), tl.float32)
    for start in range(0, length, BLOCK):
        key = start + tl.arange(0, BLOCK)
        at, mask = key[:, None] * inner + col[None, :], (key < length)[:, None] & (col < inner)
        scores = tl.dot(queries, tl.trans(tl.load(k + at, mask, 0.0)), input_precision="ieee")
        weights = tl.exp(scores * scale)
        total += tl.sum(weights, 1)
        values += tl.dot(weights, tl.load(v + at, mask, 0.0), input_precision="ieee")
    tl.store(out + row[:, None] * inner + col[None, :], values / total[:, None], mine)


def attention_key_by_key(
    q, k, v, out, length, inner, scale, BLOCK: tl.constexpr, WIDTH: tl.constexpr
):
    col = tl.arange(0, WIDTH)
    live = col < inner
    for row in range(tl.program_id(0) * BLOCK, min(tl.program_id(0) * BLOCK + BLOCK, length)):
        query = tl.load(q + row * inner + col, live, 0.0)
        total = tl.zeros((1,), tl.float32)
        value = tl.zeros((WIDTH,), tl.float32)
        for key in range(0, length):
            score = tl.sum(query * tl.load(k + key * inner + col, live, 0.0), 0) * scale
            total += tl.exp(score)
            value += tl.exp(score) * tl.load(v + key * inner + col, live, 0.0)
        tl.store(out + row * inner + col, value / total, live)


LAB_14 = [
    ("14.1", whole_copy, "a race: programs 0 and 1 access element 0 of argument 1"),
    ("14.1", copy_without_mask, "a mask is missing"),
    ("14.2", bias_for_each_row, "argument 1 is loaded"),
    ("14.2", bias_of_the_row, "should be"),
    ("14.3", not_transposed, "should be"),
    ("14.3", transposed_addresses_of_a_square, "argument 1"),
    ("14.4", first_block_of_the_row, "should be"),
    ("14.4", one_result_for_two_rows, "a race"),
    ("14.5", softmax_in_three_loops, "argument 0 is loaded 3.0 times per element; 2 is enough"),
    ("14.5", softmax_of_each_block, "should be"),
    ("14.6", plain_histogram, "a race"),
    ("14.6", counts_masked_lanes, "should be"),
    ("14.7", first_tiles_only, "should be"),
    ("14.7", tiles_without_masks, "a mask is missing"),
    ("14.8", attention_of_missing_keys, "should be"),
    ("14.8", attention_key_by_key, "is loaded"),
]
