"""Typical wrong answers of lab 13, with words of the explanation that each must get."""

from __future__ import annotations


def always_own(rank, step, ranks):
    return rank


def own_again_and_again(rank, step, ranks):
    return rank if step < ranks - 1 else (rank + ranks - step) % ranks


def no_way_back(rank, step, ranks):
    return (rank - step) % ranks if step < ranks - 1 else rank


def everything_to_everybody(kind, nbytes, ranks):
    return (ranks - 1) * nbytes


def one_way(kind, nbytes, ranks):
    return (ranks - 1) * nbytes / ranks


def columns_of_both(w1, w2, rank, ranks):
    return w1.chunk(ranks, 1)[rank], w2.chunk(ranks, 1)[rank]


def whole_second(w1, w2, rank, ranks):
    return w1.chunk(ranks, 1)[rank], w2


def always_the_first(w1, w2, rank, ranks):
    return w1.chunk(ranks, 1)[0], w2.chunk(ranks, 0)[0]


def as_written(steps):
    return list(steps)


def sends_first(steps):
    return sorted(steps, key=lambda name: steps[name][0])


def one_each(sizes, limit):
    return [[at] for at in range(len(sizes))]


def all_in_one(sizes, limit):
    return [list(range(len(sizes)))] if sizes else []


def first_two_alone(begun):
    pairs = enumerate(zip(*begun, strict=False))
    return next((at for at, here in pairs if here[0] != here[1]), None)


def never(begun):
    return None


def counted_from_one(begun):
    longest = max(map(len, begun))
    for at in range(longest):
        if len({tuple(b[at : at + 1]) for b in begun}) > 1:
            return at + 1
    return None


LAB_13 = [
    ("13.1", always_own, "lacks the value of rank"),
    ("13.1", own_again_and_again, "twice"),
    ("13.1", no_way_back, "lacks the value of rank"),
    ("13.2", everything_to_everybody, "fewer than"),
    ("13.2", one_way, "more than"),
    ("13.3", columns_of_both, "does not fit x"),
    ("13.3", whole_second, "its share is"),
    ("13.3", always_the_first, "the sum over all ranks"),
    ("13.4", as_written, "the earliest possible end"),
    ("13.4", sends_first, "which it needs"),
    ("13.5", one_each, "you use"),
    ("13.5", all_in_one, "the limit is"),
    ("13.6", never, "the first difference is at position"),
    ("13.6", first_two_alone, "the first difference is at position"),
    ("13.6", counted_from_one, "the first difference is at position"),
]
