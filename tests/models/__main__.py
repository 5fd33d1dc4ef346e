"""Compile every model type of the transformers library: `python -m tests.models --jobs 8`.

Each model has small sizes and random weights.  A run that was stopped continues where it was.
`--page FILE` writes the table as Markdown.
"""

from __future__ import annotations

import argparse
import json
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
import transformers as hf
from transformers.models.auto.modeling_auto import MODEL_MAPPING_NAMES

from tests.models.sweep import Outcome, work
from tests.processes import Clock, Lost, in_parallel, messages, server

HEAD = """# Models of the transformers library

This page shows which model types of transformers {version} compute the same with inductor_lab as in
eager mode, with small sizes and random weights, on a CPU with torch {torch}: outputs in evaluation
mode, and outputs and gradients of one step in training mode. {count} model types were run.

`python -m tests.models --page docs/models.md` makes this page. A model type is *not reached*
if a generic small configuration of it does not run in eager mode, or if it is random. *torch
differs* means that `backend="aot_eager"` computes the same wrong values.

"""
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}
KINDS = ("agrees", "differs", "torch differs", "raises", "not reached")


def run_model(
    context: Any, task: tuple[str, torch.dtype], limit: float, clock: Clock
) -> tuple[Outcome, tuple[()]]:
    name, dtype = task
    short = str(dtype).removeprefix("torch.")
    found = Outcome(name, "not reached", "not reached", "stopped", short)
    for message in messages(context, work, task, limit, clock):
        match message:
            case Outcome():
                found = message
            case Lost(how, why):
                found = Outcome(name, "raises", "raises", f"{how}: {why}", short)
    return found, ()


def table(found: Sequence[Outcome]) -> str:
    dtypes = list(dict.fromkeys(one.dtype for one in found))
    rows = [f"| | {' | '.join(KINDS)} |", "|---" + "|---:" * len(KINDS) + "|"]
    for dtype in dtypes:
        for stage in ("evaluation", "training"):
            counts = Counter(getattr(one, stage) for one in found if one.dtype == dtype)
            rows.append(f"| {dtype}, {stage} | {' | '.join(str(counts[k]) for k in KINDS)} |")
    rows += ["", "| model | dtype | evaluation | training | why |", "|---|---|---|---|---|"]
    for one in sorted(found, key=lambda one: (one.model, dtypes.index(one.dtype))):
        rows.append(f"| {one.model} | {one.dtype} | {one.evaluation} | {one.training} "
                    f"| {one.why} |")  # fmt: skip
    return "\n".join(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", help="model types (all)")
    parser.add_argument("--dtypes", nargs="+", choices=DTYPES, default=[*DTYPES])
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--minutes", type=float, default=0.0, help="stop after so long")
    parser.add_argument("--limit", type=float, default=240.0, help="seconds for one model")
    parser.add_argument("--results", type=Path, default=Path("build/models.jsonl"))
    parser.add_argument("--page", type=Path)
    given = parser.parse_args()
    given.results.parent.mkdir(parents=True, exist_ok=True)
    lines = given.results.read_text(encoding="utf-8").splitlines() if given.results.exists() else []
    found = [Outcome(**json.loads(line)) for line in lines]
    known = {(one.model, one.dtype) for one in found}
    tasks = [(name, DTYPES[dtype]) for name in given.models or MODEL_MAPPING_NAMES
             for dtype in given.dtypes if (name, dtype) not in known]  # fmt: skip
    context, clock = server("tests.models.sweep"), Clock(given.minutes)
    with given.results.open("a", encoding="utf-8") as out:
        for one in in_parallel(
            lambda task: run_model(context, task, given.limit, clock), tasks, given.jobs, clock
        ):
            if one.why.startswith("stopped"):
                continue
            found.append(one)
            out.write(json.dumps(asdict(one)) + "\n")
            out.flush()
            print(f"{clock.passed / 60:5.1f} min  {one.model:28} {one.dtype:8} "
                  f"{one.evaluation:11} {one.training:11} {one.why}", flush=True)  # fmt: skip
    shown = table(found)
    print(shown)
    if given.page is not None:
        version = torch.__version__.partition("+")[0]
        head = HEAD.format(version=hf.__version__, torch=version,
                           count=len({one.model for one in found}))  # fmt: skip
        given.page.write_text(f"{head}{shown}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
