"""What the components of a duel promise: legal inputs, and what is wrong with a result.

An input comes from a student as a literal.  It is checked first, so that every legal input is
small.  A result is judged by its property, not by comparing it with one right answer, where several
answers are right.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from inductor_lab.course.exercise import expected
from inductor_lab.course.language import say
from inductor_lab.course.league import Disqualified, Sized, placed

OPS = ("rand", "matmul", "sin", "mul")
NEVER_AGAIN = ("rand", "matmul")
"""Values that a backward must not compute a second time."""
Value = tuple[str, str, list[str]]


@dataclass(frozen=True)
class Component:
    """A component of a duel.

    legal      is this a legal input?
    wrong      a sentence about the result for an input; None if it is right
    arguments  so many parts of the input are arguments; the others are for `wrong` only
    """

    legal: Callable[[Any], bool]
    wrong: Callable[[Any, Any], str | None]
    arguments: int = 3

    def exposed(self, function: Callable[..., Any], given: Any) -> str | None:
        """A sentence about what a function gets wrong on a legal input; None if it is right."""
        try:
            found = function(*copy.deepcopy(given[: self.arguments]))
        except Exception as error:
            return say("it raised {e}{w}", e=f"{type(error).__name__}: {error}", w="")
        return self.wrong(given, found)


# ---- legal inputs --------------------------------------------------------------------------------


def _number(value: Any, low: int, high: int) -> bool:
    return type(value) is int and low <= value <= high


def _numbers(value: Any, low: int, high: int, count: int) -> bool:
    is_short = type(value) in (tuple, list) and len(value) <= count
    return is_short and all(_number(each, low, high) for each in value)


def _names(value: Any) -> bool:
    is_short = type(value) in (tuple, list) and len(value) <= 8
    return is_short and all(type(each) is str and len(each) <= 16 for each in value)


def _parts(given: Any, *kinds: type) -> bool:
    """A tuple of values of these types."""
    return type(given) is tuple and tuple(map(type, given)) == kinds


def _legal_lives(given: Any) -> bool:
    if not _parts(given, dict, dict):
        return False
    lives, nbytes = given
    return (lives.keys() == nbytes.keys() and _names(list(lives)) and 0 < len(lives)
            and all(_numbers(life, 0, 20, 2) and len(life) == 2 and life[0] <= life[1]
                    for life in lives.values())
            and all(_number(size, 1, 1000) for size in nbytes.values()))  # fmt: skip


def _legal_accesses(given: Any) -> bool:
    if not _parts(given, tuple, tuple, tuple) or not _numbers(given[0], 0, 8, 3):
        return False
    return all(
        _parts(each, int, tuple) and _number(each[0], -99, 99)
        and _numbers(each[1], -99, 99, 3) and len(each[1]) == len(given[0])
        for each in given[1:]
    )  # fmt: skip


def _in_order(rows: Sequence[tuple[str, Sequence[str]]]) -> bool:
    """Rows (name, what it reads): names are new, and no row reads a later name."""
    names = [name for name, _ in rows]
    if len(set(names)) != len(names) or not _names(names):
        return False
    return all(_names(reads) and not set(reads).intersection(names[number:])
               for number, (_, reads) in enumerate(rows))  # fmt: skip


def _legal_steps(given: Any) -> bool:
    if not _parts(given, list) or not 0 < len(given[0]) <= 8:
        return False
    if not all(_parts(step, str, int, list) and 1 <= step[1] <= 8 for step in given[0]):
        return False
    return _in_order([(name, reads) for name, _, reads in given[0]])


def _legal_values(given: Any) -> bool:
    if not _parts(given, list, list) or not 0 < len(given[0]) <= 8 or not _names(given[1]):
        return False
    if not all(_parts(value, str, str, list) and value[1] in OPS for value in given[0]):
        return False
    names = [name for name, _, _ in given[0]]
    return set(given[1]) <= set(names) and _in_order([(n, reads) for n, _, reads in given[0]])


def _legal_row(given: Any) -> bool:
    if not _parts(given, list, int) or not 1 <= given[1] <= 16 or not 1 <= len(given[0]) <= 32:
        return False
    return all(type(x) in (int, float) and abs(x) <= 10_000 for x in given[0])


def _legal_expression(given: Any) -> bool:
    if type(given) is not tuple or len(given) != 2 or type(given[1]) is not dict:
        return False
    e, values = given
    if not _names(list(values)):
        return False
    if not all(_number(value, 0, 999) for value in values.values()):
        return False
    return _operations(e, values) <= 12


def _operations(e: Any, values: Mapping[str, int]) -> float:
    """Operations of an expression; infinite if it is not a legal one."""
    if type(e) is str:
        return 0 if e in values else math.inf
    if type(e) is not tuple:
        return 0 if _number(e, 0, 99) else math.inf
    if len(e) != 3 or e[0] not in ("+", "*", "//", "%"):
        return math.inf
    if e[0] in ("//", "%") and not _number(e[2], 1, 99):
        return math.inf
    return 1 + _operations(e[1], values) + _operations(e[2], values)


# ---- what is wrong -------------------------------------------------------------------------------


def _wrong_places(given: Any, found: Any) -> str | None:
    try:
        placed(lambda *_: found, Sized(*given))
    except Disqualified as reason:
        return str(reason)
    return None


def _wrong_verdict(given: Any, found: Any) -> str | None:
    sizes, store, load = given

    def element(at: Any, point: tuple[int, ...]) -> int:
        return int(at[0] + sum(c * k for c, k in zip(at[1], point, strict=True)))

    points = product(*map(range, sizes))
    differ = next((p for p in points if element(store, p) != element(load, p)), None)
    if found is (differ is None):
        return None
    if differ is None:
        return say("it refuses, and every point loads the element that it stores")
    return say("it says {f}; at {p}, element {a} is stored and element {b} is loaded", f=found,
               p=differ, a=element(store, differ), b=element(load, differ))  # fmt: skip


def _wrong_kernels(given: Any, found: Any) -> str | None:
    steps = {name: (size, reads) for name, size, reads in given[0]}
    if expected(list, found) or not all(type(kernel) is list for kernel in found):
        return say("it is not a list of lists of names")
    names = [name for kernel in found for name in kernel]
    if sorted(map(str, names)) != sorted(steps):
        return say("the kernels have the steps {a}, not {b}", a=names, b=list(steps))
    for number, kernel in enumerate(found):
        if len({steps[name][0] for name in kernel}) > 1:
            return say("kernel {n} has steps of several sizes: {k}", n=number, k=kernel)
    written = set[str]()
    for name in names:
        late = [each for each in steps[name][1] if each in steps and each not in written]
        if late:
            return say("{n} reads {e} before it is written", n=name, e=late[0])
        written.add(name)
    return None


def _wrong_saved(given: Any, found: Any) -> str | None:
    values: list[Value]
    values, needed = given
    names = {name for name, _, _ in values}
    if expected((set, frozenset), found) or not found <= names:
        return say("it is not a set of names of values")
    have = set(found)
    for name, op, reads in values:
        if op not in NEVER_AGAIN and all(each in have or each not in names for each in reads):
            have.add(name)
    lost = [name for name in needed if name not in have]
    return say("the backward cannot get {n} from {s}", n=lost[0], s=sorted(found)) if lost else None


def _wrong_row(given: Any, found: Any) -> str | None:
    row, _ = given
    top = max(row)
    total = math.fsum(math.exp(x - top) for x in row)
    wanted = [math.exp(x - top) / total for x in row]
    if expected(list, found) or len(found) != len(wanted):
        return say("it is not a list of {n} numbers", n=len(wanted))
    for number, (mine, right) in enumerate(zip(found, wanted, strict=True)):
        if not math.isclose(mine, right, rel_tol=1e-6, abs_tol=1e-12):
            return say("element {n} is {a:.6g} instead of {b:.6g}", n=number, a=mine, b=right)
    return None


def _wrong_expression(given: Any, found: Any) -> str | None:
    e, values = given

    def value(e: Any) -> int:
        if not isinstance(e, tuple):
            return int(values.get(e, e))
        op, a, b = e[0], value(e[1]), value(e[2])
        return {"+": a + b, "*": a * b}[op] if op in "+*" else a // b if op == "//" else a % b

    if value(found) == value(e):
        return None
    return say("its result {e} is {a}, the value is {b}", e=found, a=value(found), b=value(e))


COMPONENTS: Mapping[str, Component] = {
    "memory": Component(_legal_lives, _wrong_places),
    "fusion": Component(_legal_accesses, _wrong_verdict),
    "scheduler": Component(_legal_steps, _wrong_kernels),
    "partitioner": Component(_legal_values, _wrong_saved),
    "kernel": Component(_legal_row, _wrong_row),
    "simplify": Component(_legal_expression, _wrong_expression, arguments=1),
}
