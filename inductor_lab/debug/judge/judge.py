"""`lab.judge`: is a candidate correct, and how fast is it?"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from inductor_lab.api.arguments import Seconds, checked
from inductor_lab.bench.machine import ceilings
from inductor_lab.bench.roofs import Ceilings
from inductor_lab.compiler.base.errors import BadArguments, NotRunnable
from inductor_lab.compiler.torch_door.torch_api import pytree
from inductor_lab.debug.compare.values import copies
from inductor_lab.debug.judge.applied import Applied
from inductor_lab.debug.judge.bound import IMPOSSIBLE, cold_seconds, least_bytes, least_seconds
from inductor_lab.debug.judge.candidate import candidate_of
from inductor_lab.debug.judge.cases import Arguments, Cases, arguments_of_case
from inductor_lab.debug.judge.correctness import Checked, check_all, stopped_text
from inductor_lab.debug.judge.expected import expected, with_leaves
from inductor_lab.debug.judge.gpu_timing import GpuTiming, TrustedProcess
from inductor_lab.debug.judge.remote_call import RemoteCall, same_bits
from inductor_lab.debug.judge.serve_candidate import NoGpu
from inductor_lab.debug.judge.speed import (
    COLD,
    OWN,
    REFERENCE_LIMIT,
    CannotTime,
    OpenSides,
    Speed,
    measure,
    processes,
    shared_folder,
)
from inductor_lab.debug.judge.tree import Tree
from inductor_lab.debug.judge.verdict import JudgeVerdict
from inductor_lab.debug.untrusted.confine import Limits, confinable, gpu_devices
from inductor_lab.debug.untrusted.fresh import Fresh
from inductor_lab.debug.untrusted.remote import Process, Raised, Stopped
from inductor_lab.debug.untrusted.wire import DTYPES

BEGIN = "inductor_lab.debug.judge.serve_candidate:begin"
CLASSES = "inductor_lab.debug.judge.serve_candidate:CLASSES"
PRELOADED = ("inductor_lab.debug.judge.serve_candidate",)
START = 60.0
"""Seconds to run the text of a candidate, which may compile."""
Tell = Callable[[str], None]
GPU_MEMORY = 1 << 46
"""A process that uses a GPU reserves much address space."""


@checked
def judge(
    reference: Callable[..., Any],
    candidate: Any,
    cases: Sequence[Any],
    *,
    name: str = "",
    gradients: bool = False,
    seconds: Seconds | None = 1.0,
    limit: Seconds = 120.0,
) -> JudgeVerdict:
    """Judge a candidate for a reference: is it correct, and how fast is it?

    `candidate` is a text, a path to a `.py` or `.cpp` file, a Python function, or a `Candidate`;
    `name` is the function in a text or a file (`"candidate"` if empty).  `cases` are examples of
    arguments, each a tuple or `lab.case(x, dim=1)`; more cases are derived from them.  With
    `gradients` the gradients of floating-point arguments are judged too.  The first case is timed
    for about `seconds` (None: not at all).  The candidate has `limit` seconds for everything.

    Raises BadArguments if there is no case, the reference fails on one, or the reference is random;
    NotRunnable if the reference cannot be timed.
    """
    with Judge() as courtroom:
        return courtroom.judge(reference, candidate, cases, name=name, gradients=gradients,
                               seconds=seconds, limit=limit)  # fmt: skip


class Judge:
    """Judges several candidates; keeps the process ready from which theirs are forked.

    hidden  files and folders that candidates cannot read
    roof    what this machine can do; measured when it is first needed
    """

    def __init__(self, hidden: Sequence[Path] = (), roof: Ceilings | None = None) -> None:
        self.hidden = list(hidden)
        self.roofs = {} if roof is None else {"cpu": roof, "cuda": roof}
        self.fresh = _server()
        self.trusted = TrustedProcess(_server, self._started_trusted)

    def close(self) -> None:
        """End the processes."""
        self.fresh.close()
        self.trusted.close()

    def __enter__(self) -> Judge:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def judge(
        self,
        reference: Callable[..., Any],
        candidate: Any,
        cases: Sequence[Any],
        *,
        name: str = "",
        gradients: bool = False,
        fixed: bool = False,
        seconds: float | None = 1.0,
        limit: float = 120.0,
        tell: Tell = lambda text: None,
    ) -> JudgeVerdict:
        """The verdict about one candidate (see `lab.judge`).

        With `fixed` it is only for the sizes, strides and dtypes of the cases.  `tell` is called
        with the progress.
        """
        text = candidate_of(candidate, name)
        if gradients and text.language == "cpp":
            what = "a function in C++ has no gradients"
            raise BadArguments(what, todo="give a Python function, such as an autograd.Function")
        examples = [arguments_of_case(one) for one in cases]
        applied = Applied(reference, secrets.randbits(62) if gradients else None)
        made = cases_of(applied, examples, fixed)
        gpu = any(one.is_cuda for one in pytree.tree_leaves(examples)
                  if isinstance(one, torch.Tensor))  # fmt: skip
        limits = Limits(limit, START, GPU_MEMORY if gpu else 4 << 30, 512 << 20)
        notes: tuple[str, ...] = () if confinable() else (NOT_CONFINED,)
        with ExitStack() as stack:
            timing: GpuTiming | None = None
            if gpu and seconds is not None:
                try:
                    timing = stack.enter_context(closing(GpuTiming.of(applied, examples[0])))
                except CannotTime as refused:
                    notes, seconds = (*notes, str(refused)), None
            data = {"candidate": text.as_data(), "memory": timing.memory.nbytes if timing else 0}
            process = stack.enter_context(
                self._started(self.fresh, data, limits, gpu, [timing.file] if timing else []))
            verdict = judged(applied, process, made, text.name, gpu, limit, tell)
            verdict = replace(verdict, notes=notes)
            if not verdict.accepted or seconds is None:
                return verdict
            tell("timing")
            tree = Tree(self.fresh.server.pid, keepers=True)
            sides = processes(process, process.scratch, tree) if timing is None else timing.sides(
                process, tree, self.trusted)  # fmt: skip
            device = "cuda" if gpu else "cpu"
            try:
                return timed(verdict, applied, process, made, seconds, sides,
                             lambda: self._roof(device))  # fmt: skip
            except CannotTime as refused:
                return replace(verdict, notes=(*verdict.notes, str(refused)))

    def _started(
        self, server: Fresh, data: dict[str, Any], limits: Limits, gpu: bool, files: list[int]
    ) -> Process:
        argument = data | {"gpu": gpu, "threads": torch.get_num_threads()}
        return server.start(BEGIN, argument, limits, CLASSES, self.hidden,
                            devices=gpu_devices() if gpu else (), files=files)  # fmt: skip

    def _started_trusted(self, server: Fresh, data: dict[str, Any], file: int) -> Process:
        """A process that runs only code of ours."""
        limits = Limits(REFERENCE_LIMIT, START, GPU_MEMORY, 512 << 20)
        return self._started(server, data, limits, True, [file])

    def _roof(self, device: str) -> Ceilings:
        if device not in self.roofs:
            self.roofs[device] = ceilings(device)
        return self.roofs[device]


def _server() -> Fresh:
    interpreted = {} if torch.cuda.is_available() else {"TRITON_INTERPRET": "1"}
    return Fresh(PRELOADED, shared_folder(), required=False, more=interpreted)


NOT_CONFINED = ("this machine has no Landlock: the candidate's process could read files, such as "
                "the source of the reference")  # fmt: skip


def cases_of(reference: Applied, examples: Sequence[Arguments], fixed: bool = False) -> Cases:
    """Cases for a reference, from a new secret.  Raises BadArguments (see `lab.judge`)."""
    _check_reference(reference, examples)
    return Cases(examples, secrets.randbits(62), lambda args: _accepts(reference, args), fixed)


def _check_reference(reference: Applied, examples: Sequence[Arguments]) -> None:
    if not examples:
        raise BadArguments("there is no case to judge", todo="give cases=[(x, y)]")
    for number, args in enumerate(examples):
        try:
            function, inputs, _ = with_leaves(reference, args)
            first, second = (pytree.tree_leaves(function(*copies(inputs))) for _ in range(2))
        except Exception as error:
            what = f"the reference fails on case {number}: {type(error).__name__}: {error}"
            raise BadArguments(what, todo="give arguments that it computes") from error
        if not _can_be_sent([inputs, first]):
            what = f"case {number} has a dtype that the judge cannot send to another process"
            raise BadArguments(what, todo=f"it can send {', '.join(DTYPES)}")
        tensors = [one for one in first if isinstance(one, torch.Tensor)]
        again = [one for one in second if isinstance(one, torch.Tensor)]
        if not all(same_bits(a, b) for a, b in zip(tensors, again, strict=True)):
            what = f"the reference gives two results for case {number}"
            raise BadArguments(what, todo="give a function without random numbers")


def _accepts(reference: Applied, args: Arguments) -> bool:
    """Does the reference compute this case, also for the judge's comparison?"""
    try:
        kept = expected(reference, args)
    except Exception:
        return False
    return _can_be_sent([args, list(kept.plain.values())])


def _can_be_sent(values: Any) -> bool:
    """Has each tensor a dtype that can be sent?"""
    dtypes = {leaf.dtype for leaf in pytree.tree_leaves(values) if isinstance(leaf, torch.Tensor)}
    return dtypes <= {*DTYPES.values()}


def judged(
    reference: Applied, process: Process, cases: Cases, name: str,
    gpu: bool, limit: float, tell: Tell = lambda text: None,
) -> JudgeVerdict:  # fmt: skip
    """The verdict about the results of a candidate, which `process` offers as its root."""
    found: list[Checked] = []
    tell("starting the candidate")
    try:
        process.begin()
        remote = RemoteCall(process, gpu, reference.gradients)
        for each in check_all(reference, remote, cases.all()):
            found.append(each)
            tell(f"case {len(found)}: {each.result}")
    except Raised as raised:  # before there is a function
        if raised.kind == NoGpu.__name__:
            raise NotRunnable(raised.text, todo="give arguments on the CPU") from None
        return JudgeVerdict(name, (f"its text raised {raised}",))
    except Stopped as stopped:
        reason = stopped_text(stopped, limit)
        return JudgeVerdict(name, (reason,), tuple(found))
    wrong = tuple(f"{each.case}: {each.message}" for each in found if each.result == "wrong")
    return JudgeVerdict(name, wrong, tuple(found))


def timed(
    verdict: JudgeVerdict, reference: Applied, process: Process, cases: Cases, seconds: float,
    sides: OpenSides, roof: Callable[[], Ceilings],
) -> JudgeVerdict:  # fmt: skip
    """The verdict with times.  Raises CannotTime."""
    try:
        found = measure(reference, cases, seconds, sides)
    except Raised as raised:
        found = Speed(wrong=f"in a timed call it raised {raised}")
    except Stopped as stopped:
        found = Speed(wrong=stopped_text(stopped, process.limits.seconds))
    reasons = (found.wrong,) if found.wrong else ()
    verdict = replace(verdict, timings=found.timings, reasons=reasons)
    if reasons or not found.timings.rounds:
        return verdict
    return _bounded(verdict, reference, cases.examples[0], roof())


def _bounded(
    verdict: JudgeVerdict, reference: Applied, args: Arguments, roof: Ceilings
) -> JudgeVerdict:
    """Reject what is faster than the machine can move the bytes."""
    least = least_bytes(reference, args)
    bound = least_seconds(least, roof)
    reasons = [f"{slowest:.3g} s {what}is faster than this machine can move the bytes "
               f"({seconds:.3g} s)"
               for mode, what, seconds in (("", "", bound), (COLD, f"{COLD[1:]} ",
                                                             cold_seconds(least, roof)))
               if OWN + mode in verdict.timings.seconds
               for slowest in [verdict.timings.median_interval(OWN + mode)[1]]
               if slowest < IMPOSSIBLE * seconds]  # fmt: skip
    doubt = (roof.doubt,) if roof.doubt else ()
    return replace(verdict, bound=bound, reasons=(*verdict.reasons, *reasons),
                   notes=(*verdict.notes, *doubt))  # fmt: skip
