"""What a library call does besides computing its results, and why a library is called.

Memory, order and overlap are decided from `Effect`; the text of a `Reason` is only shown.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Effect(Enum):
    """What the planner of memory and order must know about a call.

    FRESH       no effect: its results are in new memory
    MAY_ALIAS   a result may be a view of an argument
    KEPT        it runs even if its results are not used: it draws random numbers, prints or checks
    COLLECTIVE  all ranks take part; it reads its arguments until its results are waited for
    WAIT        it waits for a collective
    """

    FRESH = "fresh"
    MAY_ALIAS = "may alias"
    KEPT = "kept"
    COLLECTIVE = "collective"
    WAIT = "wait"


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a library is called, as `c.coverage` shows it, and the effect of the call."""

    text: str
    effect: Effect = Effect.MAY_ALIAS

    @staticmethod
    def of(reason: Reason | str) -> Reason:
        return reason if isinstance(reason, Reason) else Reason(reason)


LIBRARY = Reason("library", Effect.FRESH)
COLLECTIVES = {
    "collective": Reason("collective", Effect.COLLECTIVE), "wait": Reason("wait", Effect.WAIT),
}  # fmt: skip
"""By the kind of a collective (`ir/collective.py`)."""
OF_NOTHING = Reason("empty tensor", Effect.KEPT)
"""ATen raises where there are no elements."""
EAGERS_RANDOM = Reason("eager's random numbers", Effect.KEPT)
"""Under `fallback_random` each call moves the generator."""
RANDOM_SEED = Reason("random seed", Effect.KEPT)
BEYOND = Reason("number out of range of the dtype", Effect.KEPT)
REFUSED = Reason("dtype that eager mode rejects", Effect.KEPT)
EFFECT = Reason("effect", Effect.KEPT)
"""An operator that does something besides computing, such as printing."""
