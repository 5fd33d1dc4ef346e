"""Check that the tests detect a wrong line in the compiler.

    python -m tests.mutations --count 60 --seconds 60

Each mutation changes one comparison, operator, bound, number or dtype in a compiler function.
For each, a process forked from one that has collected the tests runs the nearest and quickest tests
first, and stops at the first failure.  It starts with the tests of `make test`; if none fails, it
continues with those that only `make check` runs.  A mutation that no test detects is either
equivalent to the original or shows that a test is missing.

Results are appended to a file, and mutations that are in it are not run again.  The seeded faults
of `lab.faults` are checked by `tests/debug/test_faults.py`.
"""

from __future__ import annotations

import argparse
import ast
import copy
import json
import os
import random
import select
import signal
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from types import CodeType
from typing import Any

import pytest
import torch
from _pytest.runner import runtestprotocol

from tests.runner.changes import imported_files
from tests.runner.parts import ROOT, left_out
from tests.runner.record import Record

SOURCES = {
    "tests/ir": "inductor_lab/compiler/ir",
    "tests/lower": "inductor_lab/compiler/lower",
    "tests/schedule": "inductor_lab/compiler/schedule",
    "tests/codegen": "inductor_lab/compiler/codegen",
    "tests/runtime": "inductor_lab/compiler/runtime",
}
"""Folders of tests, and the sources that are mutated for each."""

TESTS = (*SOURCES, "tests/accelerate", "tests/rewrite", "tests/autograd", "tests/end_to_end",
         "tests/semantics")  # fmt: skip
"""The tests that may notice, the nearest first; those of the mutated source go before all."""

PATIENCE = 20
"""A process that has not ended after so many times the CPU seconds that it may use hangs."""

SWAPS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.FloorDiv: ast.Mult,
    ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip
DTYPES = {"float32": "float64", "float64": "float32", "int64": "int32", "int32": "int64",
          "bool": "uint8", "uint8": "int8"}  # fmt: skip
CALLS = {"min": "max", "max": "min", "any": "all", "all": "any"}


@dataclass(frozen=True)
class Mutation:
    """`function` (a name in a module, or Class.name) with one node, by its number, changed."""

    tests: str
    module: str
    function: str
    node: int
    line: int
    what: str

    @property
    def name(self) -> str:
        return f"{self.module}:{self.line} {self.function}: {self.what}"


def changed(node: ast.AST) -> tuple[ast.AST, str] | None:
    """The node with a fault, and a description of the change; None if no kind of fault applies."""
    new = copy.copy(node)  # a deep copy reaches foreign trees: Python shares `ast.Load()`
    match new:
        case ast.Compare(ops=[op]) if type(op) in SWAPS:
            new.ops = [SWAPS[type(op)]()]  # type: ignore[list-item]
        case ast.BinOp(op=op) if type(op) in SWAPS:
            new.op = SWAPS[type(op)]()  # type: ignore[assignment]
        case ast.BoolOp(op=op):
            new.op = SWAPS[type(op)]()  # type: ignore[assignment]
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            new = operand
        case ast.Constant(value=bool(value)):
            new.value = not value
        case ast.Constant(value=int(value)):
            new.value = value + 1
        case ast.Attribute(value=ast.Name(id="torch"), attr=attr) if attr in DTYPES:
            new.attr = DTYPES[attr]
        case ast.Call(func=ast.Name(id=name)) if name in CALLS:
            new.func = ast.Name(CALLS[name], ast.Load())
        case _:
            return None
    return ast.copy_location(new, node), f"{ast.unparse(node)} → {ast.unparse(new)}"


def mutations(tests: str) -> Iterator[Mutation]:
    for path in sorted((ROOT / SOURCES[tests]).rglob("*.py")):
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for name, function in functions(tree):
            for number, node in enumerate(ast.walk(function)):
                found = changed(node) if in_body(function, node) else None
                if found:
                    line = getattr(node, "lineno", 0)
                    yield Mutation(tests, module, name, number, line, found[1])


def functions(tree: ast.Module) -> Iterator[tuple[str, ast.FunctionDef]]:
    """Functions and methods without decorators: their code can be replaced in place."""
    for node in tree.body:
        inner = node.body if isinstance(node, ast.ClassDef) else [node]
        prefix = f"{node.name}." if isinstance(node, ast.ClassDef) else ""
        for found in inner:
            if isinstance(found, ast.FunctionDef):
                yield prefix + found.name, found


def in_body(function: ast.FunctionDef, node: ast.AST) -> bool:
    """Defaults and annotations are evaluated once, when the module is imported."""
    return getattr(node, "lineno", 0) >= function.body[0].lineno


def mutated_code(mutation: Mutation) -> CodeType:
    path = ROOT.joinpath(*mutation.module.split(".")).with_suffix(".py")
    tree = ast.parse(path.read_text(encoding="utf-8"))
    function = dict(functions(tree))[mutation.function]
    target = list(ast.walk(function))[mutation.node]
    found = changed(target)
    assert found is not None

    class Exchange(ast.NodeTransformer):
        def visit(self, node: ast.AST) -> ast.AST:
            return found[0] if node is target else self.generic_visit(node)

    Exchange().visit(function)
    module = compile(ast.fix_missing_locations(tree), str(path), "exec", dont_inherit=True)
    code = module
    for part in mutation.function.split("."):
        code = next(c for c in code.co_consts if isinstance(c, CodeType) and c.co_name == part)
    return code


def apply(mutation: Mutation) -> bool:
    """Replace the code of the loaded function; False if that is impossible."""
    found: Any = import_module(mutation.module)
    for part in mutation.function.split("."):
        found = vars(found).get(part)
    found = getattr(found, "__wrapped__", getattr(found, "func", found))
    found = getattr(found, "fget", getattr(found, "__func__", found))
    code = mutated_code(mutation)
    if not hasattr(found, "__code__") or found.__code__.co_freevars != code.co_freevars:
        return False
    found.__code__ = code
    return True


@dataclass(frozen=True)
class Verdict:
    """`by`: the tests that failed, "test" or "check"; "" if none did, and whether `all_ran`."""

    mutation: str
    by: str
    failed: str
    all_ran: bool
    cpu: float


class Trial:
    """A plugin for pytest: instead of running all tests once, it runs some for each mutation.

    A test that also fails without a mutation (in a forked process with one thread, like the others
    here) is skipped from then on.
    """

    def __init__(self, given: argparse.Namespace, chosen: Sequence[Mutation]) -> None:
        self.given, self.chosen = given, chosen
        self.unfit: set[str] = set()

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """The tests are collected once, for all processes."""
        imported_files()
        workers = []
        for number in range(self.given.jobs):
            workers.append(os.fork())
            if not workers[-1]:
                try:
                    self.run(session, self.chosen[number :: self.given.jobs])
                finally:
                    os._exit(0)
        for worker in workers:
            os.waitpid(worker, 0)
        return True

    def run(self, session: pytest.Session, chosen: Sequence[Mutation]) -> None:
        quick, _ = left_out().split(item.nodeid for item in session.items)
        seconds = known_seconds(self.given.records)
        for mutation in chosen:
            items = sorted(session.items, key=lambda item: nearness(mutation, item, seconds))
            groups = {
                "test": [item for item in items if item.nodeid in quick],
                "check": [item for item in items if item.nodeid not in quick],
            }
            verdict = self.verdict(mutation, groups)
            with self.given.results.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"tests": mutation.tests, **asdict(verdict)}) + "\n")
            print(f"{verdict.by or 'nobody':7} {verdict.cpu:6.1f} s  {mutation.name}", flush=True)

    def verdict(self, mutation: Mutation, groups: Mapping[str, list[pytest.Item]]) -> Verdict:
        begin, limit = cpu_of_children(), self.given.seconds
        complete = True
        for by, items in groups.items():
            failed, said = self.first_failure(mutation, items, limit)
            if said == "not applied":
                return Verdict(mutation.name, said, "", False, 0.0)
            if failed:
                return Verdict(mutation.name, by, f"{failed} {said}", True, cpu_since(begin))
            complete = complete and said == "all"
        return Verdict(mutation.name, "", "", complete, cpu_since(begin))

    def first_failure(
        self, mutation: Mutation, items: list[pytest.Item], limit: float
    ) -> tuple[str, str]:
        while True:
            fit = [item for item in items if item.nodeid not in self.unfit]
            failed, said = in_a_fork(mutation, fit, limit)
            if not failed:
                return "", said
            alone = [item for item in fit if item.nodeid == failed]
            if not in_a_fork(None, alone, limit)[0]:
                return failed, said
            self.unfit.add(failed)


def known_seconds(records: Iterable[Path]) -> dict[str, float]:
    return {name: s for path in records for name, s in Record.load(path).seconds.items()}


def nearness(
    mutation: Mutation, item: pytest.Item, seconds: dict[str, float]
) -> tuple[int, float]:
    """Files that import the mutated one or share a word with it come first, then its own folder."""
    file = item.nodeid.partition("::")[0]
    imports = f"{mutation.module.replace('.', '/')}.py" in imported_files()[file]
    if imports or words(mutation.module) & words(Path(file).stem):
        rank = -2
    elif file.startswith(f"{mutation.tests}/"):
        rank = -1
    else:
        rank = next(n for n, path in enumerate(TESTS) if file.startswith(f"{path}/")) // 4
    return rank, seconds.get(item.nodeid, 1.0)


def words(name: str) -> set[str]:
    """Words in the name of a module or file, in the singular: `test_scatters` has "scatter"."""
    return {word.removesuffix("s") for word in name.replace("_", ".").split(".")}


def in_a_fork(
    mutation: Mutation | None, items: Sequence[pytest.Item], limit: float
) -> tuple[str, str]:
    """The result of tests in a separate process, which may crash or hang.

    The test that failed ("" if none did), and how: "fails", "crashes" or "hangs".  Without a
    failure, whether "all" tests ran, or only "some" within the time limit.
    """
    answer, pipe = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.close(answer)
            os.setpgid(0, 0)
            run_until_one_fails(mutation, items, limit, pipe)
        finally:
            os._exit(0)
    os.close(pipe)
    running, end = "", time.monotonic() + PATIENCE * limit
    with os.fdopen(answer, "rb", buffering=0) as file:
        while select.select([file], [], [], max(end - time.monotonic(), 0))[0]:
            line = file.readline().decode()
            if not line:
                said = "crashes"
                break
            word, _, name = line.rstrip("\n").partition(" ")
            if word != "runs":
                running, said = name, word
                break
            running = name
        else:
            said = "hangs"
    end_group(child)
    os.waitpid(child, 0)
    return running, said.replace("not-applied", "not applied")


def end_group(leader: int) -> None:
    try:
        os.killpg(leader, signal.SIGKILL)
    except ProcessLookupError:
        pass


def run_until_one_fails(
    mutation: Mutation | None, items: Sequence[pytest.Item], limit: float, pipe: int
) -> None:
    """In the child, which has one thread: OpenMP's threads do not survive a fork."""
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)
    torch.set_num_threads(1)
    if mutation and not apply(mutation):
        return say(pipe, "not-applied")
    used = sum(os.times()[:4])
    for item, following in zip(items, [*items[1:], None], strict=True):
        say(pipe, "runs", item.nodeid)
        if any(report.failed for report in runtestprotocol(item, log=False, nextitem=following)):
            return say(pipe, "fails", item.nodeid)
        if sum(os.times()[:4]) - used > limit:
            return say(pipe, "some")
    say(pipe, "all")


def say(pipe: int, word: str, name: str = "") -> None:
    os.write(pipe, f"{word} {name}\n".encode())


def cpu_of_children() -> float:
    times = os.times()
    return times.children_user + times.children_system


def cpu_since(begin: float) -> float:
    return cpu_of_children() - begin


def choose(count: int, seed: int, done: set[str]) -> list[Mutation]:
    """Choose the same number from each folder."""
    chance = random.Random(seed)
    chosen = []
    for tests in SOURCES:
        chosen += chance.sample(list(mutations(tests)), -(-count // len(SOURCES)))
    return [mutation for mutation in chosen if mutation.name not in done]


def verdicts(path: Path) -> list[dict[str, Any]]:
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [json.loads(line) for line in lines]


def table(found: Sequence[dict[str, Any]]) -> str:
    columns = ("test", "check", "", "not applied")
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for one in found:
        counts[one["tests"]][one["by"]] += 1
    heads = ("mutations", "make test", "make check only", "nobody")
    lines = [f"{'':16}" + "".join(f"{head:>17}" for head in heads)]
    for folder in (*counts, "together"):
        row = counts[folder] if folder in counts else sum(counts.values(), Counter())
        numbers = (sum(row.values()) - row["not applied"], *(row[name] for name in columns[:3]))
        lines.append(f"{folder:16}" + "".join(f"{number:17}" for number in numbers))
    survived = [one["mutation"] for one in found if not one["by"]]
    return "\n".join([*lines, *(f"nobody noticed {name}" for name in survived)])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=60, help="of the CPU for each mutation")
    parser.add_argument("--jobs", type=int, default=2, help="mutations at a time (2)")
    parser.add_argument("--records", type=Path, nargs="*", default=[], help="of `pytest --record`")
    parser.add_argument("--results", type=Path, default=ROOT / "build" / "mutations.jsonl")
    given = parser.parse_args()
    given.results.parent.mkdir(parents=True, exist_ok=True)
    done = {one["mutation"] for one in verdicts(given.results)}
    chosen = choose(given.count, given.seed, done)
    pytest.main(["-q", "-p", "no:cacheprovider", *TESTS], plugins=[Trial(given, chosen)])
    print(table(verdicts(given.results)))


if __name__ == "__main__":
    sys.exit(main())
