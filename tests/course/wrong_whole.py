"""Typical wrong answers of labs 10 to 12, with words of the sentence that each must get."""

from __future__ import annotations

import struct

import torch

from inductor_lab.course.labs.debugging import bugs, paged, scored, walked

# ---- lab 10 ------------------------------------------------------------------------------------


def in_epsilons(a, b):
    return round(abs(a - b) / 2**-23)


def bits_as_they_are(a, b):
    first, second = (struct.unpack("<i", struct.pack("<f", number))[0] for number in (a, b))
    return abs(first - second)


def one_by_one(count, wrong):
    return next((stage for stage in range(count) if wrong(stage)), None)


def never_none(count, wrong):
    low, high = 0, count - 1
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if wrong(middle) else (middle + 1, high)
    return low


def halves_alone(nodes, fails):
    while len(nodes) > 1:
        middle = len(nodes) // 2
        half = next((h for h in (nodes[:middle], nodes[middle:]) if fails(h)), None)
        if half is None:
            break
        nodes = half
    return nodes


def first_node(nodes, fails):
    return nodes[:1]


def every_nan(reads, values):
    return [name for name in reads if values[name] != values[name]]


def first_nan(reads, values):
    return [name for name in reads if values[name] != values[name]][:1]


def all_kernels():
    return "Ada", [("kernel", "return")] * 3


def last_lines():
    rewrite = "rewrite: identities"
    return "Ada", [(rewrite, "return a + d"), ("kernel", "page"), ("host program", "return")]


def without_name():
    return [("kernel", "a")] * 3


def as_it_should_be():
    return "Ada", [scored, paged, walked]


def another_bug():
    def model(x, y):
        return torch.tanh(x) + x * torch.nn.functional.silu(y) ** 3

    return "Ada", [model, paged, walked]


LAB_10 = [
    ("10.1", in_epsilons, "steps apart, you count"),
    ("10.1", bits_as_they_are, "steps apart, you count"),
    ("10.2", one_by_one, "are enough"),
    ("10.2", never_none, "you answer 0 after asking"),
    ("10.3", halves_alone, "too"),
    ("10.3", first_node, "does not fail"),
    ("10.4", every_nan, "born: "),
    ("10.4", first_nan, "born: "),
    ("10.5", all_kernels, "what does lab.blame say"),
    ("10.5", last_lines, "the stage is right, but"),
    ("10.5", without_name, "it should return tuple"),
    ("10.6", as_it_should_be, "what does it compute with the bug?"),
    ("10.6", another_bug, "the faulty code gives"),
]

# ---- lab 12 ------------------------------------------------------------------------------------


def one_for_each_line():
    return {"wave": 3, "attend": 2, "two_sums": 2, "perceptron": 3, "waiting": 2}


def sums_in_one():
    return {"wave": 1, "attend": 2, "two_sums": 1, "perceptron": 3, "waiting": 1}


def before_fusion():
    return {"wave": 6 * 16384, "two_sums": 33280, "waiting": 32768}


def without_sums():
    return {"wave": 32768, "two_sums": 32768, "waiting": 32768}


def sizes_do_not_matter():
    names = ("other_data", "other_dtype", "other_size", "other_flag", "other_layout")
    return dict.fromkeys((*names, "needs_gradient"), True)


def half_said():
    return {"other_data": True}


def every_call():
    return {"sizes": 4, "flags": 4, "broken": 4, "numbers": 4}


def breaks_forgotten():
    return {"sizes": 2, "flags": 2, "broken": 1, "numbers": 2}


def no_rule(node, edit):
    return None


def any_mean(node, edit):
    aten = torch.ops.aten
    x, w = node.args[0].args
    row = edit.add(aten.mm.default, edit.add(aten.mean.dim, x, [0], True), w)
    return edit.add(aten.squeeze.dim, row, 0)


LAB_12 = [
    ("12.1", one_for_each_line, "wave: fewer than 3"),
    ("12.1", sums_in_one, "two_sums: more than 1"),
    ("12.2", before_fusion, "wave: fewer than"),
    ("12.2", without_sums, "two_sums: more than"),
    ("12.3", sizes_do_not_matter, "1 of 6 are right"),
    ("12.3", half_said, "True or False for other_dtype"),
    ("12.4", every_call, "sizes: fewer than 4"),
    ("12.4", breaks_forgotten, "broken: more than 1"),
    ("12.5", no_rule, "it does not pay"),
    ("12.5", any_mean, "it raised ValueError"),
]

LABS_10_TO_12 = [*LAB_10, *LAB_12]
assert [bug.fault for bug in bugs("Ada")] == ["wrong_rule", "wrong_neg", "reused_too_early"]
