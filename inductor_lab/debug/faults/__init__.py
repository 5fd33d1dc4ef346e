"""Seeded faults, for lessons and for tests of the tools that find faults.

    with lab.faults.wrong_neg():
        print(lab.blame(f, x))

`print(lab.faults.table())` lists them.
"""

from inductor_lab.debug.faults.catalogue import (
    dropped_write,
    endless_loop,
    forgotten_producer,
    half_sum,
    int_overflow,
    lost_mask,
    lost_tail,
    nan_is_lost,
    neg_without_text,
    off_by_one,
    order_of_arrival,
    race,
    reused_too_early,
    short_series,
    sign_of_zero,
    stale_guard,
    truncating_division,
    unaligned_load,
    wrong_definition,
    wrong_gradient,
    wrong_neg,
    wrong_recompute,
    wrong_rule,
    wrong_stride,
)
from inductor_lab.debug.faults.examples import Example
from inductor_lab.debug.faults.seeding import CATALOGUE, Seeded
from inductor_lab.notebook.columns import last_column

__all__ = [
    "CATALOGUE",
    "Example",
    "Seeded",
    "dropped_write",
    "endless_loop",
    "forgotten_producer",
    "half_sum",
    "int_overflow",
    "lost_mask",
    "lost_tail",
    "nan_is_lost",
    "neg_without_text",
    "off_by_one",
    "order_of_arrival",
    "race",
    "reused_too_early",
    "short_series",
    "sign_of_zero",
    "stale_guard",
    "table",
    "truncating_division",
    "unaligned_load",
    "wrong_definition",
    "wrong_gradient",
    "wrong_neg",
    "wrong_recompute",
    "wrong_rule",
    "wrong_stride",
]


def table() -> str:
    """Every fault with its stage and its effect on a call, as text."""
    return "\n".join(
        f"{fault.name:20} {fault.stage:22} {fault.shows}\n{last_column('    ', fault.what)}"
        for fault in CATALOGUE.values()
    )
