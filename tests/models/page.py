"""The outcomes of models as tables: counts first, then the models of each library."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby

from tests.models.sources import LIBRARIES
from tests.models.sweep import Outcome

HEAD = """# Models of libraries

This page shows which models of transformers, timm, torchvision and diffusers compute the same with
inductor_lab as in eager mode, with small sizes and random weights, on a CPU: outputs in evaluation
mode, and outputs and gradients of one step in training mode. Models of timm and torchvision are
compiled with symbolic sizes, and evaluated with two batch sizes and, where the model accepts them,
two image sizes; *recompiles* means that the second size was compiled separately. Rates of dropout
and stochastic depth are 0. A result *agrees* if it differs from eager mode's by a thousandth
of the largest value at most, or is at most four times as far from float64 as eager mode, which is
also tried with weights that differ by a rounding.

`python -m tests.models --library NAME --results tests/models/found.jsonl --page docs/models.md`
runs the models whose results are not in this file yet, and makes this page. A model is *not
reached* if a generic small configuration of it does not run in eager mode, if it is random, or if
eager mode has no correct digit where the results differ.
*torch differs* and *torch raises* mean that `torch.compile` has a fault with the backend `eager` or
`aot_eager` too, without our compiler.

"""
KINDS = ("agrees", "differs", "torch differs", "raises", "torch raises", "not reached")


def page(found: Sequence[Outcome]) -> str:
    return HEAD + "\n".join(table(found)) + "\n"


def table(found: Sequence[Outcome]) -> list[str]:
    rows = ["| | " + " | ".join(KINDS) + " |", "|---" + "|---:" * len(KINDS) + "|"]
    for library, dtype in dict.fromkeys((one.library, one.dtype) for one in in_order(found)):
        several = [one for one in found if (one.library, one.dtype) == (library, dtype)]
        for mode in ("evaluation", "training"):
            counts = Counter(getattr(one, mode) for one in several)
            numbers = " | ".join(str(counts[kind]) for kind in KINDS)
            rows.append(f"| {library}, {dtype}, {mode} | {numbers} |")
    for library, group in groupby(in_order(found), lambda one: one.library):
        rows += section(library, [*group])
    return rows


def section(library: str, found: Sequence[Outcome]) -> list[str]:
    head = ["", f"## {library}", "", *versions(library, found), ""]
    head += ["| model | dtype | evaluation | training | why |", "|---|---|---|---|---|"]
    rows = sorted(found, key=lambda one: one.model)
    return head + [
        f"| {one.model}{f' ({one.variant})' if one.variant else ''} | {one.dtype} "
        f"| {one.evaluation} | {one.training} | {one.why} |"
        for one in rows
    ]


def versions(library: str, found: Sequence[Outcome]) -> Iterator[str]:
    """One line for each pair of versions that rows come from."""
    counts = Counter((one.torch, one.version) for one in found)
    for (torch, version), number in sorted(counts.items()):
        both = f"torch {torch or 'unknown'}, {library} {version or 'unknown'}"
        yield f"{number} {'row is' if number == 1 else 'rows are'} from {both}."


def in_order(found: Sequence[Outcome]) -> list[Outcome]:
    """By library and dtype, in the order of the libraries."""
    libraries, dtypes = [*LIBRARIES], list(dict.fromkeys(one.dtype for one in found))
    return sorted(found, key=lambda one: (libraries.index(one.library), dtypes.index(one.dtype)))
