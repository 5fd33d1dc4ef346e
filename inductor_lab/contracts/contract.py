"""The decorator of a compile contract, and the message when a contract is broken."""

from __future__ import annotations

import copy
import functools
import inspect as python_inspect
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from inductor_lab.api.backend import inspect
from inductor_lab.compiler.base.errors import BadArguments, BadOption
from inductor_lab.compiler.torch_door.torch_api import fresh_compile, pytree
from inductor_lab.contracts.conditions import Condition, read_all, shown
from inductor_lab.contracts.facts import NAMES, Facts, facts_of
from inductor_lab.debug.recompiles.watch_recompiles import Recompiles, recompiles

COMPILERS = ("inductor_lab", "stock")


class ContractBroken(AssertionError):
    """A call is compiled otherwise than its contract says."""


@dataclass
class Place:
    """Where contracts read and write while a test runs; the pytest plugin sets it.

    name       of the test
    snapshot   the file with recorded facts, next to the test's file
    record     write the facts there instead of checking them
    folder     for the facts of the last passing run, and for pages of failing ones
    """

    name: str = ""
    snapshot: Path | None = None
    record: bool = False
    folder: Path | None = None


place = Place()


@dataclass(frozen=True)
class Contract:
    """Conditions on the facts of some calls, for one compiler."""

    conditions: tuple[Condition, ...]
    agrees: str
    compiler: str
    options: dict[str, Any]

    def check(self, calls: list[tuple[Any, ...]]) -> Facts:
        """Compile the calls and check every condition; raises ContractBroken."""
        if not calls:
            raise BadArguments("the contract has no call", todo="yield (f, x), or return it")
        function, *args = calls[0]
        expected = _eager(function, args) if self.agrees else None
        compiled = inspect(function, *args, options=self.options, compiler=self.compiler)
        facts = facts_of(compiled)
        if len(calls) > 1:
            facts = _with_recompiles(facts, compiled, _watched(compiled, calls))
        problems = [] if expected is None else _differences(expected, (compiled.result, args))
        problems += _broken(self.conditions or _recorded(facts), facts)
        if problems:
            raise ContractBroken(_message(problems, facts, compiled))
        _keep(facts)
        return facts


def compiles(
    *, agrees: str = "", compiler: str = "inductor_lab", options: Mapping[str, Any] | None = None,
    **conditions: Any,
) -> Callable[[Callable[..., Any]], Callable[..., None]]:
    """Check what the compiler makes of the calls that a test yields or returns.

        @lab.compiles(graphs=1, breaks=0, recompiles=1, kernels="<= 2", agrees="eager")
        def test_block():
            for n in (8, 16, 32):
                yield block, torch.randn(n, 64)

    `graphs`, `breaks`, `recompiles`, `kernels`, `library_calls` are counts; `bytes` and `peak` are
    limits (`"80 MB"`), `generated` and `cudagraphs` are shares (`"90 %"`, `"all"`).  Without any of
    them the facts that `pytest --compile-snapshot` recorded must be the same.  `agrees="eager"`
    compares the result and the arguments of the first call with eager mode.  `compiler="stock"`
    checks stock torch.compile.

    Raises ContractBroken, an AssertionError, which names the lines that differ from the last run
    that passed; BadOption for an unknown condition.
    """
    if agrees not in ("", "eager"):
        raise BadOption("agrees", agrees, '"eager"')
    if compiler not in COMPILERS:
        raise BadOption("compiler", compiler, " or ".join(COMPILERS))
    contract = Contract(read_all(conditions), agrees, compiler, dict(options or {}))

    def decorate(test: Callable[..., Any]) -> Callable[..., None]:
        @functools.wraps(test)
        def checked(*args: Any, **kwargs: Any) -> None:
            made: Any = test(*args, **kwargs)
            several = python_inspect.isgeneratorfunction(test)
            contract.check(list(made) if several else [made])

        return checked

    return decorate


def _watched(compiled: Any, calls: list[tuple[Any, ...]]) -> Recompiles:
    """The calls after the first, made by the function that is compiled already."""
    if any(function is not calls[0][0] for function, *_ in calls):
        raise BadArguments("the calls of one contract are calls of one function",
                           todo="write a test for each function")  # fmt: skip
    with fresh_compile(compiled.sizes), recompiles() as seen:
        for _, *args in calls[1:]:
            compiled.compiled(*args)
    return seen


def _with_recompiles(facts: Facts, compiled: Any, seen: Recompiles) -> Facts:
    frames = {name.rpartition("/")[0] for name in compiled.capture.compile_ids}
    lines: Counter[str] = Counter(facts.lines)
    count = 0
    for each in seen.compiled:
        frame = each.compile_id.rpartition("/")[0]
        if frame in frames:
            count += 1
            reason = str(each.reasons[0]).partition(": ")[2] if each.reasons else "?"
            lines[f"recompile: {reason.partition(' (of ')[0]}"] += 1
        frames.add(frame)
    return replace(facts, counts={**facts.counts, "recompiles": count}, lines=lines)


def _eager(function: Any, args: list[Any]) -> tuple[Any, list[Any]]:
    """Result and arguments after a call in eager mode, on copies of everything."""
    copied = copy.deepcopy(args)
    called = copy.deepcopy(function) if isinstance(function, torch.nn.Module) else function
    return called(*copied), copied


def _differences(expected: Any, got: Any) -> list[str]:
    leaves = [pytree.tree_leaves(each) for each in (expected, got)]
    for number, (wanted, found) in enumerate(zip(*leaves, strict=True)):
        try:
            torch.testing.assert_close(found, wanted, equal_nan=True)
        except AssertionError as error:
            return [f"agrees with eager: value {number} differs: {str(error).splitlines()[0]}"]
        except TypeError:  # no numbers
            if found != wanted:
                return [f"agrees with eager: value {number} is {found!r}, eager has {wanted!r}"]
    return []


def _broken(conditions: tuple[Condition, ...], facts: Facts) -> list[str]:
    found = []
    for condition in conditions:
        if condition.name not in facts.counts:
            raise BadOption(condition.name, str(condition), "facts that this compiler reports: "
                            + ", ".join(facts.counts))  # fmt: skip
        value = facts.counts[condition.name]
        if not condition.holds(value):
            found.append(f"{condition}: it is {shown(condition.name, value)}")
    return found


def _recorded(facts: Facts) -> tuple[Condition, ...]:
    """The conditions of the snapshot; writes the snapshot instead if that is asked for."""
    if place.snapshot is None:
        raise BadArguments("a contract without conditions needs a snapshot",
                           todo="run it with pytest, or write conditions")  # fmt: skip
    snapshots = _read(place.snapshot)
    if place.record:
        snapshots[place.name] = facts.to_dict()
        _write(place.snapshot, snapshots)
    if place.name not in snapshots:
        raise ContractBroken(f"{place.name} has no recorded facts: run pytest --compile-snapshot")
    counts = snapshots[place.name]["counts"]
    return tuple(Condition(name, "==", counts[name]) for name in NAMES if name in counts)


def _keep(facts: Facts) -> None:
    """Remember the facts of a run that passed."""
    if place.folder is not None:
        known = _read(place.folder / "passed.json")
        _write(place.folder / "passed.json", {**known, place.name: facts.to_dict()})


def _message(problems: list[str], facts: Facts, compiled: Any) -> str:
    lines = [f"the compile contract of {place.name or compiled.name} is broken:"]
    lines += [f"  {problem}" for problem in problems]
    old = _last_passed()
    if old is None:
        lines += ["now:", *(f"  {n} x {what}" for what, n in facts.lines.items())]
    else:
        lines += ["since the last run that passed:", *(f"  {line}" for line in changes(old, facts))]
    if place.folder is not None:
        name = "".join(c if c.isalnum() else "_" for c in place.name)
        page = compiled.report(place.folder / f"{name}.html")
        lines.append(f"explorer page: {page}")
    return "\n".join(lines)


def _last_passed() -> Facts | None:
    """The facts of the last passing run on this machine, otherwise those of the snapshot."""
    for file in (place.folder and place.folder / "passed.json", place.snapshot):
        known = _read(file).get(place.name) if file else None
        if known is not None:
            return Facts.from_dict(known)
    return None


def changes(old: Facts, new: Facts) -> Iterator[str]:
    """The lines of the source that changed, then what the lines cause more (+) or less (-)."""
    yield from (f"- {line}" for line in old.source if line not in new.source)
    yield from (f"+ {line}" for line in new.source if line not in old.source)
    before, after = Counter(dict(old.lines)), Counter(dict(new.lines))
    yield from (f"- {n} x {what}" for what, n in (before - after).items())
    yield from (f"+ {n} x {what}" for what, n in (after - before).items())


def _read(file: Path) -> dict[str, Any]:
    if not file.exists():
        return {}
    try:
        found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise BadArguments(f"{file} is no JSON: {error}", todo="delete it") from None
    return found


def _write(file: Path, data: Mapping[str, Any]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(data, indent=1, sort_keys=True, ensure_ascii=False)
    file.write_text(f"{text}\n", encoding="utf-8")
