"""Samples of torch's database in dtypes that eager refuses: does the compiled call refuse them?

    python -m tests.opinfo.refusals [operator ...]     # all of them take three minutes
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator

import torch

from inductor_lab.compiler.base.options import Options
from tests.opinfo import database, roads
from tests.opinfo.database import Leaves, Sample

WRONG = (torch.int64, torch.bool, torch.float16, torch.complex64, torch.uint8)
PLACES = {"all": slice(None), "first": slice(1), "rest": slice(1, None)}
"""Which of the tensors of floating point numbers get a wrong dtype."""
SAMPLES = 2


def answered(name: str) -> Iterator[str]:
    """Calls that eager refuses and we answer: `"rest int64: expected scalar type Float ..."`."""
    entry = database.find(name)
    if name.startswith("jiterator") or not database.supports(entry, torch.float32, False):
        return
    found = database.samples(entry, torch.float32)
    found = [sample for sample in found if all(map(torch.Tensor.numel, sample.tensors))]
    for sample in found[:: max(1, len(found) // SAMPLES)][:SAMPLES]:
        for label, tensors in _wrong(sample.tensors):
            wrong = Sample(sample.op, tensors, sample.rebuild, sample.finish)
            if (said := _refusal(wrong)) and _answers(wrong):
                yield f"{label}: {said}"


def _wrong(tensors: Leaves) -> Iterator[tuple[str, Leaves]]:
    floats = [n for n, t in enumerate(tensors) if t.is_floating_point()]
    for place, which in PLACES.items() if len(floats) > 1 else [("all", slice(None))]:
        for dtype in WRONG:
            chosen = floats[which]
            cast = tuple(t.to(dtype) if n in chosen else t for n, t in enumerate(tensors))
            yield f"{place} {dtype}".replace("torch.", ""), cast


def _refusal(sample: Sample) -> str:
    try:
        torch.manual_seed(0)
        sample.call(*sample.fresh())
    except Exception as refused:
        return " ".join(str(refused).split())[:100]
    return ""


def _answers(sample: Sample) -> bool:
    """Without a C++ compiler: the loop nests are interpreted."""
    call = roads.short(sample, roads.Seen(), "loops", Options(cache=False))
    try:
        torch.manual_seed(0)
        call(*sample.fresh())
    except Exception:
        return False
    return True


def main() -> None:
    warnings.simplefilter("ignore")
    for name in sys.argv[1:] or database.names():
        for line in dict.fromkeys(answered(name)):
            print(f"{name:45} {line}", flush=True)


if __name__ == "__main__":
    main()
