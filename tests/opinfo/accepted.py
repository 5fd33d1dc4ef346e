"""Write the dtypes that eager accepts to `accepted.toml`, next to `eager_dtype_checks.py`.

    python -m tests.opinfo.accepted                # all operators; ten minutes
    python -m tests.opinfo.accepted aten.bmm.default     # prints the rows of some

The calls are those that torch's own samples make, with tensors cast.  Elementwise operators are not
in the table: the compiler asks eager while it compiles (`capture/one_element.py`).
"""

from __future__ import annotations

import itertools
import sys
import warnings
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from inductor_lab.compiler.capture.operands import by_name
from inductor_lab.compiler.lower.graph import lowered
from inductor_lab.compiler.overrides import definitions
from inductor_lab.compiler.rewrite.decompose.eager_dtype_checks import (
    CODES,
    TABLE_FILE,
    is_elementwise,
)
from tests.opinfo import database

SAMPLES = 6
"""Samples of each entry of the database, in each dtype."""
CALLS = 4
"""Calls of each operator that eager is asked about; it refuses what it refuses in all of them."""
MASKS = (torch.bool, torch.uint8)
"""Dtypes that make masks of lists of indices: tensors of other shapes."""
HEADING = """\
# What eager refuses on a CPU: an operator's arguments by dtype.  Written by a command:
#     python -m tests.opinfo.accepted
#
# "aten.op.overload" = [first, pairs]
#     first    codes of the dtypes that its first floating-point argument must not have
#     pairs    another argument, and for each dtype of the first one those that it must not have
#              with it: "f:dhb" means no d, h and b where the first has f
"""


class Call(NamedTuple):
    """A call as its arguments by name."""

    operator: Any
    given: Mapping[str, Any]

    def named(self) -> list[str]:
        """The arguments that are tensors."""
        return [name for name, value in self.given.items() if _tensors(value)]

    def cast(self, dtypes: Mapping[str, torch.dtype]) -> bool:
        """Does eager take it with some of its arguments in other dtypes?"""
        given = {n: _cast(v, dtypes[n]) if n in dtypes else v for n, v in self.given.items()}
        schema = self.operator._schema.arguments
        args = [given[a.name] for a in schema if not a.kwarg_only]
        try:
            self.operator(*args, **{a.name: given[a.name] for a in schema if a.kwarg_only})
        except Exception:
            return False
        return True


class _Recorder(TorchDispatchMode):
    """Keeps calls of operators that the table is about."""

    def __init__(self, wanted: Iterable[Any]) -> None:
        super().__init__()
        self.wanted = frozenset(wanted)
        self.found: dict[Any, list[Call]] = defaultdict(list)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if func in self.wanted:
            call = Call(func, {n: _plain(v) for n, v in by_name(func, args, kwargs or {}).items()})
            tensors = [t for v in (*call.given.values(), result) for t in _tensors(v)]
            alike = [c for c in self.found[func] if c.named() == call.named()]
            few = len(alike) < CALLS and call.named() and all(map(torch.Tensor.numel, tensors))
            if few and call.cast({}):
                self.found[func].append(call)
        return result


def _tensors(given: Any) -> list[torch.Tensor]:
    return list(database.tensors_of(given))


def _plain(given: Any) -> Any:
    """Floats become 1: converted to integers, some might be no probabilities or sizes."""
    if isinstance(given, list | tuple):
        return [_plain(item) for item in given]
    if isinstance(given, torch.Tensor):
        given = given.detach()
        return torch.ones_like(given) if given.is_floating_point() else given
    return given


def _cast(given: Any, dtype: torch.dtype) -> Any:
    if isinstance(given, list):
        return [_cast(item, dtype) for item in given]
    return given.to(dtype) if isinstance(given, torch.Tensor) else given


def recorded(wanted: Iterable[Any]) -> Mapping[Any, list[Call]]:
    """The calls that torch's samples make of some operators."""
    recorder = _Recorder(wanted)
    for name in database.names():
        entry = database.find(name)
        for dtype in (torch.float32, torch.int64, torch.bool):
            gradients = dtype is torch.float32 and database.supports(entry, dtype, True)
            if name.startswith("jiterator") or not database.supports(entry, dtype, gradients):
                continue
            torch.manual_seed(0)
            given = entry.sample_inputs("cpu", dtype, requires_grad=gradients)
            whole = (s for s in given if all(map(torch.Tensor.numel, _tensors(s.input))))
            for sample in itertools.islice(whole, SAMPLES):
                with recorder:
                    _call(entry.get_op(), sample)
    return recorder.found


def _call(op: Any, sample: Any) -> None:
    try:
        results = _tensors(op(sample.input, *sample.args, **sample.kwargs))
        results = [r for r in results if r.requires_grad]
        if results:
            torch.autograd.backward(results, [torch.ones_like(r) for r in results])
    except Exception:
        return  # of an operator that some sample cannot be called with, others tell


def row(calls: list[Call]) -> list[Any] | None:
    """What eager refuses in all of the calls; None if that is nothing."""
    calls = [call for call in calls if _floats(call)] or calls
    given = max((call.named() for call in calls), key=len)
    calls = [call for call in calls if call.named() == given]
    floats = [n for n in given if _tensors(calls[0].given[n])[0].is_floating_point()]
    if not floats and len(given) > 2:  # which integers are values, and which are positions?
        return None
    first = (floats or given)[0]

    def refused(dtypes: Mapping[str, torch.dtype]) -> bool:
        return not any(call.cast(dtypes) for call in calls)

    every = floats or [first]
    alone = {c: refused(dict.fromkeys(every, d)) for c, d in CODES.items()}
    pairs: dict[str, str] = {}
    for other in (n for n in given if n != first):
        lists: dict[str, str] = defaultdict(str)
        # the weights of a norm, and what it has kept, may be wider than its input if all are
        rest = [n for n in floats if n != first] if other in floats else [other]
        later = rest[rest.index(other) :]
        taken = {**CODES}
        if any(isinstance(call.given[other], list) for call in calls if other not in floats):
            taken = {c: d for c, d in CODES.items() if d not in MASKS}
        for (c, mine), (d, its) in itertools.product(CODES.items(), taken.items()):
            base = dict.fromkeys(every, mine)
            variants = (base | dict.fromkeys(names, its) for names in ([other], rest, later))
            if not alone[c] and all(map(refused, variants)):
                lists[c] += d
        if lists:
            pairs[other] = _compact(lists)
    if not pairs and not any(alone.values()):
        return None
    return [first, "".join(c for c, no in alone.items() if no), pairs]


def _floats(call: Call) -> bool:
    return any(t.is_floating_point() for v in call.given.values() for t in _tensors(v))


def _compact(lists: Mapping[str, str]) -> str:
    """Dtypes with the same refusals together: `fd:hb i:fd`."""
    groups: dict[str, str] = defaultdict(str)
    for code, refused in lists.items():
        groups[refused] += code
    return " ".join(f"{codes}:{refused}" for refused, codes in groups.items())


def rows(names: Iterable[str] = ()) -> dict[str, list[Any]]:
    """The table, or the rows of some operators."""
    known = {op for op in {*lowered(), *definitions()} if op.namespace == "aten"}
    wanted = [op for op in known if not is_elementwise(op) and (not names or str(op) in names)]
    found = {str(op): row(calls) for op, calls in recorded(wanted).items() if calls}
    return {name: found[name] for name in sorted(found) if found[name]}


def text(table: Mapping[str, list[Any]]) -> str:
    """The file."""
    lines = [HEADING]
    for name, (first, refused, pairs) in table.items():
        inner = ", ".join(f'{n} = "{codes}"' for n, codes in pairs.items())
        lines.append(f'"{name}" = ["{first}", "{refused}", {{{inner}}}]')
    return "\n".join(lines) + "\n"


def main() -> None:
    warnings.simplefilter("ignore")
    found = text(rows(sys.argv[1:]))
    if sys.argv[1:]:
        print(found)
    else:
        Path(TABLE_FILE).write_text(found, encoding="utf-8")


if __name__ == "__main__":
    main()
