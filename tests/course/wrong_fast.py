"""Typical wrong answers of labs 6 to 9, with words of the explanation that each must get."""

from __future__ import annotations

from dataclasses import replace

import triton.language as tl

from inductor_lab.course.given.cpp import ASKED, PROGRAMS, exchanged
from inductor_lab.course.given.dynamic import RUNS
from inductor_lab.course.given.gpu import MASKED
from inductor_lab.course.given.memory import BYTES
from inductor_lab.course.labs.dynamic import TESTS
from inductor_lab.course.labs.memory import lives_of

# ---- lab 6 -------------------------------------------------------------------------------------


def first_in_first_out(addresses, lines, line):
    held, fetched = [], 0
    for address in addresses:
        if address // line not in held:
            fetched += 1
            held = [*held, address // line][-lines:]
    return fetched


def never_full(addresses, lines, line):
    return len({address // line for address in addresses})


def past_the_edge(rows, columns, tile):
    return [
        (i + a, j + b)
        for i in range(0, rows, tile[0])
        for j in range(0, columns, tile[1])
        for a in range(tile[0])
        for b in range(tile[1])
    ]


def row_by_row(rows, columns, tile):
    return [(i, j) for i in range(rows) for j in range(columns)]


def without_tail(values, width):
    return [sum(values[lane::width]) for lane in range(width)], 0


def in_chunks(values, width):
    part = len(values) // width
    lanes = [sum(values[k * part : (k + 1) * part]) for k in range(width)]
    return lanes, sum(values[part * width :])


def equal_shares(count, threads, line):
    ends = [count * (thread + 1) // threads for thread in range(threads)]
    return list(zip([0, *ends], ends, strict=False))


def rest_to_the_last(count, threads, line):
    size = count // threads // line * line
    starts = [size * thread for thread in range(threads)]
    return list(zip(starts, [*starts[1:], count], strict=True))


def whole_rows(rows, columns, lines, line):
    return 1, columns


def whole_matrix(rows, columns, lines, line):
    return rows, columns


def always_exchanged(tree):
    return exchanged(tree)


def bodies_lost(tree):
    (outer,) = tree
    return (replace(outer, body=outer.body[0].body),)


EVERYTHING = {name: list(ASKED) for name in PROGRAMS}

def by_a_line(rows, columns, lines, line):
    return line, line


LAB_6 = [
    ("6.1", first_in_first_out, "cache misses: "),
    ("6.1", never_full, "cache misses: "),
    ("6.2", past_the_edge, "outside of the matrix"),
    ("6.2", row_by_row, "returns to a tile"),
    ("6.3", without_tail, "the tail"),
    ("6.3", in_chunks, "the lanes should have"),
    ("6.4", equal_shares, "false sharing"),
    ("6.4", rest_to_the_last, "the other threads wait"),
    ("6.5", whole_rows, "because other tiles have fewer"),
    ("6.5", whole_matrix, "because other tiles have fewer"),
    ("6.5", by_a_line, "because other tiles have fewer"),
    ("6.6", always_exchanged, "elements apart"),
    ("6.6", bodies_lost, "no legal tree"),
    ("6.7", {}, "no guess for"),
    ("6.7", EVERYTHING, "does nothing here"),
]

# ---- lab 7 -------------------------------------------------------------------------------------


def rounded_down(count, block):
    return [
        ([p * block + lane for lane in range(block)], [True] * block) for p in range(count // block)
    ]


def never_masked(count, block):
    return [
        ([p * block + lane for lane in range(block)], [True] * block)
        for p in range(-(-count // block))
    ]


def one_for_each(addresses):
    return len(addresses)


def by_span(addresses):
    return (max(addresses) - min(addresses)) // 32 + 1


def unmasked_load(x, out, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at) * 2 + 1, at < count)


def first_block_alone(x, out, count, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, at < count) * 2 + 1, at < count)


def zero_for_masked(x, out, columns, BLOCK: tl.constexpr):
    row, lane = tl.program_id(0), tl.arange(0, BLOCK)
    values = tl.load(x + row * columns + lane, lane < columns, 0.0)
    tl.store(out + row, tl.max(values, 0))


def rows_of_a_block(x, out, columns, BLOCK: tl.constexpr):
    row, lane = tl.program_id(0), tl.arange(0, BLOCK)
    values = tl.load(x + row * BLOCK + lane, lane < columns, float("-inf"))
    tl.store(out + row, tl.max(values, 0))


def sum_of_everything(scores, out, columns, BLOCK: tl.constexpr):
    row, lane = tl.program_id(0), tl.arange(0, BLOCK)
    values = tl.load(scores + row * columns + lane, lane < columns, 0.0)
    values = tl.exp(values - tl.max(values, 0))
    tl.store(out + row * columns + lane, values / tl.sum(values, 0), lane < columns)


def stored_without_mask(scores, out, columns, BLOCK: tl.constexpr):
    row, lane = tl.program_id(0), tl.arange(0, BLOCK)
    values = tl.load(scores + row * columns + lane, lane < columns, float("-inf"))
    values = tl.exp(values - tl.max(values, 0))
    tl.store(out + row * columns + lane, values / tl.sum(values, 0))


LAB_7 = [
    ("7.1", rounded_down, "programs are needed"),
    ("7.1", never_masked, "which does not exist"),
    ("7.2", one_for_each, "segments loaded: "),
    ("7.2", by_span, "segments loaded: "),
    ("7.3", unmasked_load, "a mask is missing"),
    ("7.3", first_block_alone, "never stored"),
    ("7.4", zero_for_masked, "your kernel stores 0"),
    ("7.4", rows_of_a_block, "the address is wrong"),
    ("7.5", sum_of_everything, "should be"),
    ("7.5", stored_without_mask, "a mask is missing"),
    ("7.6", {}, "no guess for"),
    ("7.6", dict.fromkeys(MASKED, True), "there is no mask"),
]

# ---- lab 8 -------------------------------------------------------------------------------------


def forgets_outputs(steps, outputs):
    return lives_of(tuple(steps), ())


def to_the_next_step(steps, outputs):
    return {name: (at, at + 1) for at, (name, _) in enumerate(steps)}


def everything(lives, nbytes):
    return sum(nbytes.values())


def before_the_last_read(lives, nbytes):
    return max(
        sum(nbytes[n] for n, (first, last) in lives.items() if first <= at < last)
        for at in range(12)
    )


def a_slot_each(lives):
    return {name: name for name in lives}


def one_slot(lives):
    return dict.fromkeys(lives, 0)


def reused_too_early(lives):
    found, free = {}, {}
    for name, (first, last) in lives.items():
        slot = next((s for s, until in free.items() if until <= first), len(free))
        found[name], free[slot] = slot, last
    return found


def bytes_over_page(ranges, page):
    return sum(-(-nbytes // page) for _, nbytes in ranges)


def page_of_the_start(ranges, page):
    return len({start // page for start, _ in ranges})


class AlwaysFresh:
    count = 0

    def take(self, size):
        self.count += 1
        return self.count, size

    def give(self, block):
        pass


class FirstFree:
    def __init__(self):
        self.free, self.sizes = [], {}

    def take(self, size):
        for block in self.free:
            if self.sizes[block] >= size:
                self.free.remove(block)
                return block, self.sizes[block]
        self.sizes[len(self.sizes)] = size
        return len(self.sizes) - 1, size

    def give(self, block):
        self.free.append(block)


def one_after_the_other(flops, nbytes, flop_rate, rate):
    return nbytes / rate + flops / flop_rate, "memory"


def always_memory(flops, nbytes, flop_rate, rate):
    return max(nbytes / rate, flops / flop_rate), "memory"


LAB_8 = [
    ("8.1", forgets_outputs, "is alive from step"),
    ("8.1", to_the_next_step, "is alive from step"),
    ("8.2", everything, "the peak is"),
    ("8.2", before_the_last_read, "the peak is"),
    ("8.3", a_slot_each, "slots are enough"),
    ("8.3", one_slot, "share a slot"),
    ("8.3", reused_too_early, "share a slot"),
    ("8.4", bytes_over_page, "page faults: "),
    ("8.4", page_of_the_start, "page faults: "),
    ("8.5", AlwaysFresh, "new page faults"),
    ("8.5", FirstFree, "more than half is unused"),
    ("8.6", one_after_the_other, "both run at the same time"),
    ("8.6", always_memory, "is not the limit"),
    ("8.7", {}, "no guess for"),
    ("8.7", dict.fromkeys(BYTES, 24_000_000), "it moves fewer than"),
]

# ---- lab 9 -------------------------------------------------------------------------------------


def a_symbol_each(shapes):
    names = iter(range(99))
    return [tuple(n if n < 2 else f"s{next(names)}" for n in shape) for shape in shapes]


def ones_are_symbols(shapes):
    known = list(dict.fromkeys(n for shape in shapes for n in shape))
    return [tuple(f"s{known.index(n)}" for n in shape) for shape in shapes]


def no_limits(tests, hint):
    return 2, None


def off_by_one(tests, hint):
    low, high = 2, None
    for op, number in tests:
        if (op[0] == "<") == TESTS[op](hint, number):
            high = number if high is None else min(high, number)
        else:
            low = max(low, number)
    return low, high


def once_for_each_size(calls):
    return len(set(calls))


def twice_at_most(calls):
    return min(2, len(set(calls)))


def by_number_of_rows(x):
    return sum(row * x[row] for row in range(x.shape[0]))


def without_numbers(x):
    return x.sum(0)


LAB_9 = [
    ("9.1", a_symbol_each, "it should be"),
    ("9.1", ones_are_symbols, "it should be"),
    ("9.2", no_limits, "take the same path"),
    ("9.2", off_by_one, "take the same path"),
    ("9.3", once_for_each_size, "your answer"),
    ("9.3", twice_at_most, "your answer: 2"),
    ("9.4", by_number_of_rows, "what makes the number of rows a constant"),
    ("9.4", without_numbers, "by_rows computes"),
    ("9.5", {}, "no guess for"),
    ("9.5", dict.fromkeys(RUNS, 5), "fewer than 5 times"),
]

LABS_6_TO_9 = [*LAB_6, *LAB_7, *LAB_8, *LAB_9]
