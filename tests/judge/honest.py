"""Honest candidates, which the judge must accept: a table of all with their verdicts.

    python -m tests.judge.honest                 all; goes on where it was stopped
    python -m tests.judge.honest softmax std     those whose names contain one of the words
    python -m tests.judge.honest --again         all, from the beginning

Operators: torch's own references in Python (`python_ref_db`) are other implementations of the
operators, so each is a candidate for the operator that eager mode runs.  Kernels: those that our
compiler generates for functions, each as an edited kernel without a change.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from torch.testing._internal.common_methods_invocations import python_ref_db

import inductor_lab as lab
from inductor_lab.bench.machine import Ceilings, machine
from inductor_lab.compiler.base.errors import BadArguments, NotRunnable
from inductor_lab.debug.judge.cases import CaseArguments
from inductor_lab.debug.judge.judge import Judge
from inductor_lab.debug.judge.remote_call import same_bits
from inductor_lab.debug.judge.verdict import JudgeVerdict
from tests.codegen.cpp_cases import POINTWISE, REDUCTIONS
from tests.end_to_end.functions import CASES

TABLE = Path("build/honest.json")
ROOF = Ceilings(machine(), ((1 << 20, 1e12),), {"float32": 1e13})
"""So fast that no candidate is rejected for its time; measuring takes seconds."""
VARIANTS = 2
"""So many samples of each operator, with other arguments, are candidates."""
WRONG_REFERENCES = {
    "bucketize": "without boundaries the result has the dtype of the input",
    "diagonal_scatter": "an expanded input is written to, so a row is in all rows",
    "native_group_norm": "with an expanded weight the result is wrong",
    "nn.functional.channel_shuffle": "one channel in each group: a view is returned, not a copy",
    "nn.functional.group_norm": "with an expanded weight the result is wrong",
    "nn.functional.pixel_unshuffle": "eager mode returns the sizes of an empty input",
    "ravel": "a view with a stride is returned, where eager mode copies",
}
"""Operators that the judge rejects with reason: how torch's reference and eager mode differ."""


class NotACandidate(Exception):
    """There is nothing to judge: no second sample, random numbers, or no generated kernel."""


@dataclass(frozen=True)
class Honest:
    """A candidate; `judge` gives its verdict, or raises NotACandidate."""

    name: str
    judge: Callable[[Judge], JudgeVerdict]


def candidates() -> Iterator[Honest]:
    """All honest candidates."""
    entries = [entry for entry in python_ref_db if torch.float32 in entry.dtypes
               and getattr(entry, "torch_opinfo", None) is not None]  # fmt: skip
    for number in range(VARIANTS):
        yield from (operator(entry, number) for entry in entries)
    for name, (fn, args) in {**POINTWISE, **REDUCTIONS}.items():
        yield kernel(f"kernel of {name}", fn, lambda args=args: args)
    for name, (fn, make) in CASES.items():
        yield kernel(f"kernel of {name}", fn, make)


def is_random(function: Callable[..., Any], sample: Any) -> bool:
    """Do two calls give two results?"""
    with torch.random.fork_rng():
        first, second = (function(sample.input, *sample.args, **sample.kwargs) for _ in range(2))
    return isinstance(first, torch.Tensor) and not same_bits(first, second)


def operator(entry: Any, number: int) -> Honest:
    """A sample of an operator: torch's reference in Python is the candidate."""
    more = f" ({entry.variant_test_name})" if entry.variant_test_name else ""

    def judge(judge: Judge) -> JudgeVerdict:
        sample = next(islice(entry.sample_inputs("cpu", torch.float32), number, None), None)
        module, function = getattr(entry.op, "__module__", ""), entry.op.__name__
        named = module.startswith("torch._refs") and function.isidentifier()
        if sample is None or not named or "empty" in function or is_random(entry.op, sample):
            raise NotACandidate
        text = f"from {module} import {function} as candidate\n"
        case = CaseArguments((sample.input, *sample.args), sample.kwargs)
        try:
            return judge.judge(entry.torch_opinfo.op, text, [case], seconds=None)
        except BadArguments as error:  # random numbers
            raise NotACandidate from error

    return Honest(f"{entry.name.removeprefix('_refs.')}{more} {number}", judge)


def kernel(name: str, fn: Callable[..., Any], make: Callable[[], Sequence[Any]]) -> Honest:
    """The first kernel that our compiler generates for a function."""

    def judge(judge: Judge) -> JudgeVerdict:
        with torch.no_grad():
            c = lab.inspect(fn, *make())
        found = c.graphs[0].forward.kernels if c.graphs else ()
        if not found:
            raise NotACandidate
        try:
            return lab.judge_kernel(c, found[0].name, str(found[0].code), seconds=None)
        except (BadArguments, NotRunnable) as error:
            raise NotACandidate from error

    return Honest(name, judge)


def row(honest: Honest, judge: Judge) -> dict[str, Any]:
    """The verdict about one candidate as a row of the table."""
    start = time.perf_counter()
    try:
        verdict = honest.judge(judge)
    except NotACandidate:
        return {"name": honest.name, "verdict": "not a candidate"}
    except Exception as error:  # a defect of the judge: the table goes on
        return {"name": honest.name, "verdict": "rejected",
                "reasons": [f"the judge raised {type(error).__name__}: {error}"]}  # fmt: skip
    known = honest.name.rpartition(" ")[0] in WRONG_REFERENCES
    how = "accepted" if verdict.accepted else "wrong reference" if known else "rejected"
    right = sum(each.result == "right" for each in verdict.checked)
    took = round(time.perf_counter() - start, 1)
    return {"name": honest.name, "verdict": how, "right": right, "cases": len(verdict.checked),
            "seconds": took, "reasons": list(verdict.reasons)}  # fmt: skip


def main() -> int:
    """Judge all candidates and print the table; 1 if one is rejected."""
    parser = argparse.ArgumentParser(description="judge honest candidates")
    parser.add_argument("words", nargs="*")
    parser.add_argument("--again", action="store_true")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    TABLE.parent.mkdir(exist_ok=True)
    done = {} if given.again or not TABLE.exists() else json.loads(TABLE.read_text())
    chosen = [one for one in candidates()
              if not given.words or any(word in one.name for word in given.words)]  # fmt: skip
    with Judge(roof=ROOF) as judge:
        for one in chosen:
            if given.words or done.get(one.name, {"verdict": "rejected"})["verdict"] == "rejected":
                done[one.name] = row(one, judge)
                TABLE.write_text(json.dumps(done, indent=1))
            print(_text(done[one.name]), flush=True)
    rows = [done[one.name] for one in chosen]
    verdicts = ("accepted", "rejected", "wrong reference", "not a candidate")
    counts = {how: sum(each["verdict"] == how for each in rows) for how in verdicts}
    print(", ".join(f"{count} {how}" for how, count in counts.items()))
    return int(counts["rejected"] > 0)


def _text(found: dict[str, Any]) -> str:
    text = f"{found['verdict']:16} {found['name']:44}"
    if "cases" in found:
        text += f" right in {found['right']} of {found['cases']} cases"
    return "\n    ".join([text.rstrip(), *found.get("reasons", ())])


if __name__ == "__main__":
    sys.exit(main())
