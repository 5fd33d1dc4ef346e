"""Typical wrong answers of labs 6 to 9, with words of the sentence that each must get."""

from __future__ import annotations

from dataclasses import replace

from inductor_lab.course.labs.cpp import ASKED, PROGRAMS, exchanged

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

LAB_6 = [
    ("6.1", first_in_first_out, "lines are fetched, you say"),
    ("6.1", never_full, "lines are fetched, you say"),
    ("6.2", past_the_edge, "outside of the matrix"),
    ("6.2", row_by_row, "comes back to a tile"),
    ("6.3", without_tail, "the tail"),
    ("6.3", in_chunks, "the lanes hold"),
    ("6.4", equal_shares, "false sharing"),
    ("6.4", rest_to_the_last, "the others wait"),
    ("6.5", whole_rows, "lines; there are"),
    ("6.5", whole_matrix, "lines; there are"),
    ("6.6", always_exchanged, "elements apart still"),
    ("6.6", bodies_lost, "no legal tree"),
    ("6.7", {}, "no guess for"),
    ("6.7", EVERYTHING, "does nothing here"),
]

LABS_6_TO_9 = [*LAB_6]
