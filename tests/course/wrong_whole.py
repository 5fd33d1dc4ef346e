"""Typical wrong answers of labs 10 to 12, with words of the explanation that each must get."""

from __future__ import annotations

import statistics
import struct

import torch

from inductor_lab.course.given.debugging import bugs, paged, scored, walked
from inductor_lab.course.given.measuring import LOOPS
from inductor_lab.course.given.timing import BENCHMARKS, TROUBLES

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
    ("10.1", in_epsilons, "steps apart; your answer"),
    ("10.1", bits_as_they_are, "steps apart; your answer"),
    ("10.2", one_by_one, "are enough"),
    ("10.2", never_none, "your answer is 0 after running"),
    ("10.3", halves_alone, "too"),
    ("10.3", first_node, "does not fail"),
    ("10.4", every_nan, "first NaN: "),
    ("10.4", first_nan, "first NaN: "),
    ("10.5", all_kernels, "what does lab.blame report"),
    ("10.5", last_lines, "the stage is right, but"),
    ("10.5", without_name, "it should return tuple"),
    ("10.6", as_it_should_be, "what does it compute with the bug?"),
    ("10.6", another_bug, "the faulty code computes"),
]

# ---- lab 11 ------------------------------------------------------------------------------------


def mean(samples):
    return sum(samples) / len(samples)


def unsorted_middle(samples):
    return samples[len(samples) // 2]


def sorts_in_place(samples):
    samples.sort()
    return samples[len(samples) // 2]


def one_call(call, clock):
    start = clock()
    call()
    return clock() - start


def cold_mean(call, clock):
    start = clock()
    for _ in range(100):
        call()
    return (clock() - start) / 100


def warm_mean(call, clock):
    call(), call(), call()
    return cold_mean(call, clock)


def ten_thousand(call, clock):
    call(), call(), call()
    start = clock()
    for _ in range(10_000):
        call()
    return (clock() - start) / 10_000


def one_after_the_other_timed(first, second, clock):
    return cold_mean(first, clock) / cold_mean(second, clock)


def two_minima(first, second, clock):
    return min(one_call(first, clock) for _ in range(800)) / min(
        one_call(second, clock) for _ in range(800)
    )


def sums_interleaved(first, second, clock):
    pairs = [(one_call(first, clock), one_call(second, clock)) for _ in range(100)]
    return sum(a for a, _ in pairs) / sum(b for _, b in pairs)


def from_least_to_most(ratios):
    return min(ratios), max(ratios)


def quartiles(ratios):
    return tuple(statistics.quantiles(ratios, n=4)[::2])


def around_the_mean(ratios):
    middle = statistics.fmean(ratios)
    error = statistics.stdev(ratios) / len(ratios) ** 0.5
    return middle - 1.96 * error, middle + 1.96 * error


def none_is_harmed():
    return {benchmark.__name__: [] for benchmark in BENCHMARKS}


def all_are_harmed():
    return {benchmark.__name__: list(TROUBLES) for benchmark in BENCHMARKS}


def the_first_alone():
    return {loop.name: [0] for loop in LOOPS}


def each_new_size():
    return {"equal": [0], "sizes": [0, 2, 3]}


def wrapped_again():
    return {"equal": [0], "sizes": [0, 2], "dtypes": [0, 1], "gradients": [0, 1],
            "again": [0, 1, 2]}  # fmt: skip


def when_even(compile, before, after):
    return -(-compile // (before - after)) if before > after else None


def always_pays(compile, before, after):
    return compile // abs(before - after or 1) + 1


LAB_11 = [
    ("11.1", mean, "is not a middle"),
    ("11.1", unsorted_middle, "is not a middle"),
    ("11.1", sorts_in_place, "it changed the list of samples"),
    ("11.2", one_call, "number of calls: 1"),
    ("11.2", cold_mean, "your answer: 0.03"),
    ("11.2", warm_mean, "number of calls: 103"),
    ("11.2", ten_thousand, "it took too long: 60 s of calls"),
    ("11.3", one_after_the_other_timed, "number of calls: 200"),
    ("11.3", two_minima, "number of calls: 1,600"),
    ("11.3", sums_interleaved, "number of calls: 200"),
    ("11.4", from_least_to_most, "times as wide as necessary"),
    ("11.4", quartiles, "1.4 times as wide as necessary"),
    ("11.4", around_the_mean, "of 400 experiments; 95 % are required"),
    ("11.5", none_is_harmed, "another disturbance affects it"),
    ("11.5", all_are_harmed, "does not affect it"),
    ("11.6", the_first_alone, "a call that compiles is not in your list"),
    ("11.6", each_new_size, "call 3 reuses existing code"),
    ("11.6", wrapped_again, "call 1 reuses existing code"),
    ("11.7", when_even, "your answer"),
    ("11.7", always_pays, "it is None; your answer"),
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


def one_for_each_statement():
    return "Ada", [5, 6, 7]


def numbers_alone():
    return [4, 2, 4]


def of_somebody_else():
    return "Bob", [4, 2, 4]


def without_a_name():
    return "", [4, 2, 4]


LAB_12 = [
    ("12.1", one_for_each_line, "wave: fewer than 3"),
    ("12.1", sums_in_one, "two_sums: more than 1"),
    ("12.2", before_fusion, "wave: fewer than"),
    ("12.2", without_sums, "two_sums: more than"),
    ("12.3", sizes_do_not_matter, "1 of 6 are right"),
    ("12.3", half_said, "True or False for other_dtype"),
    ("12.4", every_call, "sizes: fewer than 4"),
    ("12.4", breaks_forgotten, "broken: more than 1"),
    ("12.5", no_rule, "it does not save bytes"),
    ("12.5", any_mean, "it raised ValueError"),
    ("12.6", one_for_each_statement, "5 is not the number of kernels; before fusion there are 7"),
    ("12.6", numbers_alone, "it should return tuple"),
    ("12.6", of_somebody_else, "4 is not the number of kernels"),
    ("12.6", without_a_name, "write your name"),
]

LABS_10_TO_12 = [*LAB_10, *LAB_11, *LAB_12]
assert [bug.fault for bug in bugs("Ada")] == ["wrong_rule", "wrong_neg", "reused_too_early"]
