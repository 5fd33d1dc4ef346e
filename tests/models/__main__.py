"""Compile small models of a library: `python -m tests.models --library timm --jobs 8`.

Models have small sizes and random weights.  A run that was stopped continues where it was: each
outcome is a line of a file of results.  `--page FILE` writes the outcomes of all files as Markdown.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch

from tests.models.page import page, table
from tests.models.sources import LIBRARIES, module_of
from tests.models.sweep import Outcome, work
from tests.processes import Clock, Lost, in_parallel, messages, server

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}
Task = tuple[str, torch.dtype, str]


def run_model(
    context: Any, task: Task, limit: float, clock: Clock
) -> tuple[Outcome, tuple[()]]:
    """The last outcome that the process sent; `limit` is in seconds for one phase."""
    name, dtype, library = task
    short = str(dtype).removeprefix("torch.")
    found = Outcome(name, "raises", "raises", "", short, library)
    for message in messages(context, work, task, limit, clock):
        match message:
            case Outcome():
                found = message
            case Lost(how, why):
                found = replace(found, why=f"{how}: {why}")
    return found, ()


def read(files: Sequence[Path]) -> list[Outcome]:
    """The last outcome of each model and dtype; later files count more."""
    lines = [line for file in files if file.exists()
             for line in file.read_text(encoding="utf-8").splitlines()]  # fmt: skip
    found = [Outcome(**json.loads(line)) for line in lines]
    return list({(one.library, one.model, one.dtype): one for one in found}.values())


def main() -> None:
    given = _parser().parse_args()
    found = read(given.results)
    if not given.no_run:
        try:
            names = module_of(given.library).names()
        except ImportError as error:
            raise SystemExit(f"{given.library} cannot be imported: {error}") from error
        found += run(given, given.models or names, found)
    print("\n".join(table(found)))
    if given.page is not None:
        given.page.write_text(page(found), encoding="utf-8")


def run(
    given: argparse.Namespace, names: Sequence[str], before: Sequence[Outcome]
) -> list[Outcome]:
    """The outcomes of models that have none yet; they are appended to the last file."""
    library, file = given.library, given.results[-1]
    versions = {name: module.__version__.partition("+")[0] for name, module in
                (("torch", torch), ("version", importlib.import_module(library)))}  # fmt: skip
    known = {(one.model, one.dtype) for one in before if one.library == library}
    tasks = [(name, DTYPES[dtype], library) for name in names for dtype in given.dtypes
             if (name, dtype) not in known]  # fmt: skip
    context = server("tests.models.sweep", LIBRARIES[library])
    clock, found = Clock(given.minutes), []
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a", encoding="utf-8") as out:
        for one in in_parallel(
            lambda task: run_model(context, task, given.limit, clock), tasks, given.jobs, clock
        ):
            if one.why.startswith("stopped"):
                continue
            one = replace(one, **versions)
            found.append(one)
            out.write(json.dumps(asdict(one)) + "\n")
            out.flush()
            print(f"{clock.passed / 60:5.1f} min  {one.model:28} {one.dtype:8} "
                  f"{one.evaluation:13} {one.training:13} {one.why}", flush=True)  # fmt: skip
    return found


def results_file(name: str) -> Path:
    """A name of JSON lines; another one is a model, given after the files by mistake."""
    if not name.endswith(".jsonl"):
        raise argparse.ArgumentTypeError(f"{name} does not end in .jsonl; models come first")
    return Path(name)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="tests.models", description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("models", nargs="*", help="model types or families of the library (all)")
    add("--library", choices=LIBRARIES, default="transformers")
    add("--dtypes", nargs="+", choices=DTYPES, default=[*DTYPES])
    add("--jobs", type=int, default=os.cpu_count(), help="processes at a time")
    add("--minutes", type=float, default=0.0, help="stop after so long")
    add("--limit", type=float, default=240.0, help="seconds for one phase of a model")
    add("--results", type=results_file, nargs="+", default=[Path("build/models.jsonl")],
        help="files of results; new ones are appended to the last file")  # fmt: skip
    add("--no-run", action="store_true", help="run nothing: print the results, and make the page")
    add("--page", type=Path, help="write the results of all libraries there, as Markdown")
    return parser


if __name__ == "__main__":
    main()
