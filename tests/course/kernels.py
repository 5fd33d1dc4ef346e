"""Triton kernels with and without races.  In a racy one, a comment marks a line that races."""

from __future__ import annotations

import pytest

tl = pytest.importorskip("triton.language")
HEAD = "x, out, scratch, n, programs, BLOCK: tl.constexpr"


# ---- two programs write one element ------------------------------------------------------------


def racy_one_result(x, out, scratch, n, programs, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out, tl.max(tl.load(x + at, at < n, 0.0), 0))  # race


def racy_overlapping_blocks(x, out, scratch, n, programs, BLOCK: tl.constexpr):
    at = tl.program_id(0) * (BLOCK - 1) + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, at < n, 0.0), at < n)  # race


def racy_whole_tensor(x, out, scratch, n, programs, BLOCK: tl.constexpr):
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        tl.store(out + at, tl.load(x + at, at < n, 0.0), at < n)  # race


def racy_wrapped_around(x, out, scratch, n, programs, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at % BLOCK, tl.load(x + at, at < n, 0.0), at < n)  # race


def racy_flag(x, out, scratch, n, programs, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if tl.sum(tl.load(x + at, at < n, 0.0), 0) > 0:
        tl.store(scratch, 1)  # race


def racy_two_programs_share_a_block(x, out, scratch, n, programs, BLOCK: tl.constexpr):
    at = tl.program_id(0) // 2 * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, at < n, 0.0) * 2, at < n)  # race


# ---- one program reads what another one writes -------------------------------------------------


def racy_sum(x, out, scratch, n, programs, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    part = tl.sum(tl.load(x + at, at < n, 0.0), 0)
    tl.store(out, tl.load(out) + part)  # race


def racy_histogram(x, out, scratch, n, programs, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    place = tl.load(x + at, at < n, 0.0).to(tl.int32) % 4
    tl.store(scratch + place, tl.load(scratch + place) + 1, at < n)  # race


def racy_shift_in_place(x, out, scratch, n, programs, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    moved = tl.load(x + at + 1, at + 1 < n, 0.0)  # race
    tl.store(x + at, moved, at < n)


def racy_reverse_in_place(x, out, scratch, n, programs, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + n - 1 - at, at < n, 0.0)  # race
    tl.store(x + at, value, at < n)


def racy_neighbours(x, out, scratch, n, programs, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, at < n, 0.0), at < n)
    left = tl.load(out + at - 1, (at > 0) & (at < n), 0.0)  # race
    tl.store(x + at, left, at < n)


def racy_mean_of_all(x, out, scratch, n, programs, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + tl.program_id(0), tl.sum(tl.load(x + at, at < n, 0.0), 0))
    total = tl.load(out) + tl.load(out + programs - 1)  # race
    tl.store(x + at, tl.load(x + at, at < n, 0.0) / (1 + total), at < n)


def racy_chain(x, out, scratch, n, programs, BLOCK: tl.constexpr):
    before = tl.load(out + tl.program_id(0) - 1, tl.program_id(0) > 0, 0.0)  # race
    tl.store(out + tl.program_id(0), before + 1)


def racy_last_writes_first(x, out, scratch, n, programs, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    first = tl.load(x)  # race
    tl.store(x + at, tl.load(x + at, at < n, 0.0) - first, at < n)


# ---- atomic operations that do not order enough ------------------------------------------------


def racy_plain_read_of_a_counter(x, out, scratch, n, programs, BLOCK: tl.constexpr):
    tl.store(out + tl.program_id(0), tl.load(scratch).to(tl.float32))  # race
    tl.atomic_add(scratch, 1)


def racy_plain_write_of_a_counter(x, out, scratch, n, programs, BLOCK: tl.constexpr):
    tl.atomic_add(scratch, 1)
    tl.store(scratch, 0)  # race


def racy_relaxed_counter(x, out, scratch, n, programs, BLOCK: tl.constexpr):
    tl.store(out + tl.program_id(0), tl.load(x + tl.program_id(0)))
    if tl.atomic_add(scratch, 1, sem="relaxed") == programs - 1:
        tl.store(x, tl.load(out) + tl.load(out + programs - 1))  # race


def racy_counter_before_the_store(x, out, scratch, n, programs, BLOCK: tl.constexpr):
    last = tl.atomic_add(scratch, 1) == programs - 1
    tl.store(out + tl.program_id(0), tl.load(x + tl.program_id(0)))
    if last:
        tl.store(x, tl.load(out) + tl.load(out + programs - 1))  # race


def racy_two_counters(x, out, scratch, n, programs, BLOCK: tl.constexpr):
    tl.store(out + tl.program_id(0), tl.load(x + tl.program_id(0)))
    tl.atomic_add(scratch + tl.program_id(0) % 2, 1)
    if tl.program_id(0) == programs - 1:
        tl.store(x, tl.load(out) + tl.load(out + programs - 2))  # race


def racy_sum_next_to_an_atomic_one(x, out, scratch, n, programs, BLOCK: tl.constexpr):
    tl.atomic_add(scratch + tl.program_id(0), 1)
    tl.store(out, tl.load(out) + 1.0)  # race


def racy_lock_for_some(x, out, scratch, n, programs, BLOCK: tl.constexpr):
    if tl.program_id(0) > 0:
        tl.atomic_cas(scratch, 0, 1)
    tl.store(out, tl.load(out) + 1.0)  # race
    if tl.program_id(0) > 0:
        tl.atomic_xchg(scratch, 0)


# ---- right -------------------------------------------------------------------------------------


def right_copy(x, out, scratch, n, programs, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, at < n, 0.0), at < n)


def right_in_place(x, out, scratch, n, programs, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + at, tl.load(x + at, at < n, 0.0) * 2, at < n)


def right_reverse(x, out, scratch, n, programs, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + n - 1 - at, tl.load(x + at, at < n, 0.0), at < n)


def right_all_read_one(x, out, scratch, n, programs, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, at < n, 0.0) - tl.load(x), at < n)


def right_strided(x, out, scratch, n, programs, BLOCK: tl.constexpr):
    at = tl.program_id(0) + programs * tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, at < n, 0.0), at < n)


def right_partial_sums(x, out, scratch, n, programs, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + tl.program_id(0), tl.sum(tl.load(x + at, at < n, 0.0), 0))


def right_total(x, out, scratch, n, programs, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(out, tl.sum(tl.load(x + at, at < n, 0.0), 0))


def right_relaxed_total(x, out, scratch, n, programs, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(out, tl.sum(tl.load(x + at, at < n, 0.0), 0), sem="relaxed")


def right_maximum(x, out, scratch, n, programs, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_max(scratch, tl.max(tl.load(x + at, at < n, 0.0), 0).to(tl.int32))


def right_histogram(x, out, scratch, n, programs, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(scratch + tl.load(x + at, at < n, 0.0).to(tl.int32) % 8, 1, at < n)


def right_last_one_sums(x, out, scratch, n, programs, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + tl.program_id(0), tl.sum(tl.load(x + at, at < n, 0.0), 0))
    if tl.atomic_add(scratch, 1) == programs - 1:
        total = 0.0
        for program in range(0, programs):
            total += tl.load(out + program)
        tl.store(out, total)


def right_tickets(x, out, scratch, n, programs, BLOCK: tl.constexpr):
    ticket = tl.atomic_add(scratch, 1)
    at = ticket * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, at < n, 0.0), at < n)


def right_lock(x, out, scratch, n, programs, BLOCK: tl.constexpr):
    while tl.atomic_cas(scratch, 0, 1) == 1:
        pass
    tl.store(out, tl.load(out) + 1.0)
    tl.atomic_xchg(scratch, 0)


def right_release_and_acquire(x, out, scratch, n, programs, BLOCK: tl.constexpr):
    tl.store(out + tl.program_id(0), tl.load(x + tl.program_id(0)))
    before = tl.atomic_add(scratch, 1, sem="release")
    if before == programs - 1:
        tl.atomic_add(scratch, 0, sem="acquire")
        tl.store(out, tl.load(out) + tl.load(out + programs - 1))


def right_one_program_writes(x, out, scratch, n, programs, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.sum(tl.load(x + at, at < n, 0.0), 0)
    tl.store(out, value, tl.program_id(0) == 0)


def right_columns(x, out, scratch, n, programs, BLOCK: tl.constexpr):
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        mine = (at < n) & (at % programs == tl.program_id(0))
        tl.store(out + at, tl.load(x + at, mine, 0.0), mine)


def right_reads_twice(x, out, scratch, n, programs, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, at < n, 0.0) + tl.load(x + n - 1 - at, at < n, 0.0), at < n)
