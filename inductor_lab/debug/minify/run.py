"""The minifier: try the candidates of each strategy, several at a time, each isolated."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch.fx import GraphModule

from inductor_lab.api.arguments import Count, Seconds, checked
from inductor_lab.compiler.base.errors import BadArguments, BadOption
from inductor_lab.compiler.torch_door import torch_api
from inductor_lab.compiler.torch_door.torch_api import pytree
from inductor_lab.debug.compare.values import copied_call, copies
from inductor_lab.debug.isolate import Ended, Tell, Work, run_all_isolated, run_isolated
from inductor_lab.debug.minify.candidate import Candidate
from inductor_lab.debug.minify.checks import VARIES, Check, Fails, symptom, work_of
from inductor_lab.debug.minify.minified import Minified, Tried
from inductor_lab.debug.minify.script import script_of, write_files
from inductor_lab.debug.minify.strategies import CUTTING, STRATEGIES
from inductor_lab.notebook.language import translate

LIMIT = 120.0


@checked
def minify(
    fn: Callable[..., Any],
    /,
    *args: Any,
    check: Check | None = None,
    backend: Any = "inductor_lab",
    folder: str | Path | None = None,
    limit: Seconds = LIMIT,
    jobs: Count = 2,
    tell: Callable[[str], None] | None = print,
    compiler: str = "inductor_lab",
    **kwargs: Any,
) -> Minified:
    """Shrink the graph of a failing call to the few nodes that make it fail, and write a script.

    check    `check(function, inputs)` is true if the failure occurs; by default, if the code of
             `backend` crashes, hangs, raises, or differs from eager mode
    backend  a name or function as for `torch.compile`: "inductor", "aot_eager", ...
    folder   the folder for `repro.py`, its inputs and a saved compilation
    limit    seconds for one candidate; `jobs` run at a time, each in a separate process
    tell     called with a line for each step; None: no output
    compiler "stock": the backend is torch's own, and the script needs only torch

    Ctrl-C stops it with the smallest graph so far.  Raises BadOption for an unknown backend, and
    BadArguments if nothing fails, or if the failure is not in a graph (for reused code whose guard
    should have failed, use `lab.blame`).
    """
    started = time.monotonic()
    if compiler not in ("inductor_lab", "stock"):
        raise BadOption("compiler", compiler, "'inductor_lab' or 'stock'")
    if compiler == "stock":
        backend = "inductor"
    known = torch.compiler.list_backends(exclude_tags=()) if isinstance(backend, str) else []
    if known and backend not in known:
        raise BadOption("backend", backend, f"a function, or one of {', '.join(known)}")

    def say(line: str) -> None:
        if tell is not None:
            tell(translate(line))

    fails = Fails(backend)
    name = getattr(fn, "__name__", type(fn).__name__)
    candidate, wanted = _first_failure(fn, args, kwargs, check, fails, limit)
    say(f"{name}: {' '.join(wanted)}; started off with {candidate}")
    shrinking = _Shrinking(check, fails, wanted, limit, jobs, say)
    complete = True
    try:
        for smaller in shrinking.steps(candidate):
            candidate = smaller
    except KeyboardInterrupt:
        complete = False
        say("interrupted: this is the smallest so far")
    script = script_of(candidate, name, " ".join(wanted), backend, check is not None)
    found = Minified(
        name, " ".join(wanted), candidate, tuple(shrinking.log), complete, script,
        time.monotonic() - started,
    )  # fmt: skip
    if folder is None:
        return found
    return replace(found, folder=write_files(found, Path(folder), limit, compiler))


class _Shrinking:
    """`steps` yields smaller and smaller candidates that fail in the same way."""

    def __init__(
        self, check: Check | None, fails: Fails, wanted: tuple[str, str], limit: float, jobs: int,
        say: Callable[[str], None],
    ) -> None:  # fmt: skip
        self.check, self.fails, self.wanted = check, fails, wanted
        self.limit, self.jobs, self.say = limit, jobs, say
        self.log: list[Tried] = []

    def steps(self, candidate: Candidate) -> Iterator[Candidate]:
        names = list(STRATEGIES)
        position = 0
        while position < len(names):
            smaller = self._try(names[position], candidate)
            if smaller is None:
                position += 1
                continue
            candidate = smaller
            yield candidate
            cuts = names[position] in CUTTING and len(candidate.calls) > 1
            position = 0 if cuts else position

    def _try(self, strategy: str, candidate: Candidate) -> Candidate | None:
        """The first candidate of a strategy that fails in the same way."""
        started, tries = time.monotonic(), 0
        makers: list[Callable[[], Candidate]] = []

        def works() -> Iterator[Work]:
            for maker in STRATEGIES[strategy](candidate):
                makers.append(maker)
                yield self._work(maker)

        running = run_all_isolated(works(), self.limit, self.jobs)
        try:
            for number, ended in running:
                tries += 1
                if symptom(ended) == self.wanted and self._again(makers[number]):
                    smaller = makers[number]()
                    took = time.monotonic() - started
                    tried = Tried(strategy, str(candidate), str(smaller), tries, took)
                    self.log.append(tried)
                    self.say(str(tried))
                    return smaller
        finally:
            running.close()  # type: ignore[attr-defined]
        return None

    def _again(self, maker: Callable[[], Candidate]) -> bool:
        """An intermittent failure must occur twice more."""
        if VARIES not in self.wanted[1]:
            return True
        ended = (run_isolated(self._work(maker), self.limit) for _ in range(2))
        return all(symptom(each) == self.wanted for each in ended)

    def _work(self, maker: Callable[[], Candidate]) -> Work:
        def work(tell: Tell) -> Any:
            try:
                candidate = maker()
            except Exception:
                return ""  # the graph does not accept this size or dtype
            return work_of(candidate, self.check, self.fails)(tell)

        return work


def _first_failure(
    fn: Callable[..., Any], args: Any, kwargs: Any, check: Check | None, fails: Fails, limit: float
) -> tuple[Candidate, tuple[str, str]]:
    """The first captured graph that fails, and how."""
    last: Ended | None = None
    for candidate in captured(fn, args, kwargs):
        last = run_isolated(work_of(candidate, check, fails), limit)
        if symptom(last) != ("", ""):
            return candidate, symptom(last)
    how = "no graph was captured" if last is None else "none of its graphs fails by itself"
    raise BadArguments(
        f"there is nothing to shrink: {how}",
        todo="lab.blame(f, x) says whether something is wrong, and in which part",
    )


def captured(fn: Callable[..., Any], args: Any, kwargs: Any) -> list[Candidate]:
    """The graphs of one call, with their inputs."""
    found: list[Candidate] = []

    def backend(module: GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
        def run(*given: Any) -> Any:
            inputs = tuple(copies(given))
            leaves = pytree.tree_leaves(inputs)
            trained = torch.is_grad_enabled() and any(
                isinstance(v, torch.Tensor) and v.requires_grad for v in leaves
            )
            found.append(Candidate(module, inputs, trained))
            return module(*given)

        return run

    given, named = copied_call(args, kwargs)
    with torch_api.fresh_compile({}):
        torch.compile(fn, backend=backend, dynamic=False)(*given, **named)
    return found
