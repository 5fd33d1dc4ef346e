"""One sample of one op: run it eagerly, compile it, compare."""

from __future__ import annotations

import json
import re
import time
import traceback
import warnings
from collections.abc import Callable, Container, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

import torch

from inductor_lab.compiler.base.errors import CompilerDefect
from inductor_lab.compiler.base.options import Options
from tests.opinfo import database, judge, roads
from tests.opinfo.database import Sample
from tests.processes import CRASH

AGREE, WRONG, RAISES, TORCH, EAGER = "agree", "wrong", "raises", "torch", "eager raises"
MESSAGE = 400
UNFILLED = re.compile(r"(new_)?empty(_like|_strided|_permuted)?")
"""Ops whose results are memory as it was found."""


@dataclass(frozen=True)
class Settings:
    """What is checked: see `run.py`, which has an option for each."""

    dtype: str = "float32"
    gradients: bool = False
    in_place: bool = False
    dynamic: bool = False
    layout: str = ""
    stage: str = "code"
    language: str = ""
    road: str = ""
    samples: int = 0
    device: str = "cpu"
    reference: bool = False

    @property
    def options(self) -> Options:
        return Options(cache=False, dynamic=self.dynamic or None, language=self.language or None)


@dataclass
class Verdict:
    """What happened to one sample.

    verdict   agree; wrong; raises (our code, or code of ours that ran); torch (torch.compile raises
              with no compiler at all, too); eager raises; crash; hang
    detail    the difference or the message
    note      `"float64"` (farther from eager than allowed, as near to the exact result as eager),
              `"random"` (only dtypes and sizes compared), `"strides"` (other strides than eager),
              `"memory"` (other results share memory than in eager)
    externs   calls into libraries, with the reason; `"eager"`: no graph was captured
    """

    op: str
    dtype: str
    sample: int
    verdict: str = AGREE
    detail: str = ""
    note: str = ""
    road: str = ""
    externs: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def to_json(self) -> str:
        return json.dumps(asdict(self))


def all_samples(name: str, settings: Settings) -> list[Sample]:
    """The samples of an op that are to be checked: all, or a fixed choice spread over all."""
    entry = database.find(name)
    found = database.samples(
        entry,
        database.DTYPES[settings.dtype],
        gradients=settings.gradients,
        in_place=settings.in_place,
        layout=database.LAYOUTS[settings.layout] if settings.layout else None,
        device=settings.device,
        reference=settings.reference,
    )
    limit = settings.samples
    if limit and len(found) > limit:
        found = [found[n * len(found) // limit] for n in range(limit)]
    return found


def verdicts(
    name: str, settings: Settings, numbers: Container[int] | None = None
) -> Iterator[Verdict]:
    """One for each sample (of those `numbers`)."""
    entry = database.find(name)
    tolerance = database.tolerance(entry, database.DTYPES[settings.dtype], settings.device)
    for number, sample in enumerate(all_samples(name, settings)):
        if numbers is not None and number not in numbers:
            continue
        started = time.perf_counter()
        verdict = Verdict(name, settings.dtype, number)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            _check(sample, settings, tolerance, verdict)
        verdict.detail = verdict.detail[:MESSAGE]
        verdict.seconds = round(time.perf_counter() - started, 3)
        broken = settings.device == "cuda" and _gpu_is_broken(verdict)
        yield verdict
        if broken:
            return


def _gpu_is_broken(verdict: Verdict) -> bool:
    """After a kernel reads out of bounds, its process can no longer use its GPU."""
    try:
        torch.cuda.synchronize()
    except RuntimeError as error:
        verdict.verdict = CRASH if verdict.verdict != EAGER else EAGER
        verdict.detail = verdict.detail or str(error).splitlines()[0]
        return True
    return False


def _check(
    sample: Sample, settings: Settings, tolerance: dict[str, float], verdict: Verdict
) -> None:
    try:
        expected = run(sample.call, sample, settings)
        random = UNFILLED.fullmatch(verdict.op) or _is_random(sample, settings, expected)
    except Exception as raised:
        verdict.verdict, verdict.detail = EAGER, _said(raised)
        return
    actual = _compiled(sample, settings, verdict)
    if verdict.verdict != AGREE:
        return
    if random:
        verdict.note, verdict.detail = "random", judge.same_facts(actual, expected)
    else:
        verdict.detail = judge.difference(actual, expected, tolerance)
    if verdict.detail:
        exact = None if random else _exact(sample, settings)
        if exact is not None and judge.nearer(actual, expected, exact, tolerance):
            verdict.note = "float64"
        else:
            verdict.verdict = WRONG
    elif judge.strides(actual[0]) != judge.strides(expected[0]):
        verdict.note = "strides"
    elif judge.sharing(actual) != judge.sharing(expected):
        verdict.note = "memory"


def run(call: Callable[..., Any], sample: Sample, settings: Settings, seed: int = 0) -> Any:
    """Results, gradients, and the arguments afterwards (an op may write to them)."""
    tensors = sample.fresh(settings.gradients)
    torch.manual_seed(seed)
    with torch.set_grad_enabled(settings.gradients):
        result = call(*tensors)
    gradients = _gradients(sample.finish(result), tensors) if settings.gradients else ()
    detached = torch.utils._pytree.tree_map_only(torch.Tensor, torch.Tensor.detach, result)
    return detached, gradients, [tensor.detach() for tensor in tensors]


def _is_random(sample: Sample, settings: Settings, expected: Any) -> bool:
    """Does eager itself give other values the next time (another seed, or memory as it was)?"""
    for seed in range(1, 9):
        again = run(sample.call, sample, settings, seed)
        if judge.difference(again, expected, {}):
            return True
        drawn = _generators(settings)
        torch.manual_seed(seed)
        if all(map(torch.equal, drawn, _generators(settings))):
            return False  # no number was drawn
    return False


def _generators(settings: Settings) -> list[torch.Tensor]:
    """Where the generators of random numbers stand."""
    on_gpu = [torch.cuda.get_rng_state()] if settings.device == "cuda" else []
    return [torch.get_rng_state(), *on_gpu]


def _gradients(result: Any, tensors: tuple[torch.Tensor, ...]) -> tuple[Any, ...]:
    outputs = [t for t in database.tensors_of(result) if t.requires_grad]
    wanted = [t for t in tensors if t.requires_grad]
    if not outputs or not wanted:
        return ()
    maker = torch.Generator().manual_seed(11)
    along = [torch.randn(t.shape, generator=maker, dtype=torch.float64).to(t) for t in outputs]
    return torch.autograd.grad(outputs, wanted, along, allow_unused=True)


def _compiled(sample: Sample, settings: Settings, verdict: Verdict) -> Any:
    """The compiled result, over the short path if possible."""
    options, seen = settings.options, roads.Seen()
    if settings.road != "dynamo":
        verdict.road = "aot"
        try:
            actual = run(roads.short(sample, seen, settings.stage, options), sample, settings)
            verdict.externs = seen.externs()
            return actual
        except Exception as raised:
            reached = seen.phase or seen.programs
            # AOTAutograd alone makes symbols that Dynamo never does: of offsets, and of sizes that
            # depend on values
            if settings.road == "aot" or (reached and not settings.dynamic):
                verdict.verdict, verdict.detail = RAISES, _said(raised, seen.phase)
                verdict.externs = seen.externs()
                if not seen.phase and _torch_raises(sample, settings):
                    verdict.verdict = TORCH
                return None
    verdict.road, seen = "dynamo", roads.Seen()
    try:
        actual = run(roads.long(sample, seen, settings.stage, options), sample, settings)
        verdict.externs = seen.externs() if seen.programs else ["eager"]
        return actual
    except Exception as raised:
        verdict.verdict, verdict.detail = RAISES, _said(raised, seen.phase)
        verdict.externs = seen.externs()
        if not seen.phase and _torch_raises(sample, settings):
            verdict.verdict = TORCH
        return None


def _torch_raises(sample: Sample, settings: Settings) -> bool:
    try:
        run(roads.stock(sample, settings.options), sample, settings)
    except Exception:
        return True
    return False


def _exact(sample: Sample, settings: Settings) -> Any:
    wide = database.in_float64(sample)
    try:
        return run(wide.call, wide, settings)
    except Exception:
        return None


def _said(raised: BaseException, phase: str = "") -> str:
    """One line: the phase, the kind of exception, its message, and the last line of ours."""
    inner = getattr(raised, "inner_exception", None) or raised
    inner = inner.__cause__ if isinstance(inner, CompilerDefect) and inner.__cause__ else inner
    frames = traceback.extract_tb(inner.__traceback__) or traceback.extract_tb(raised.__traceback__)
    own = [f for f in frames if "/inductor_lab/" in f.filename.replace("\\", "/")]
    where = f" [{own[-1].filename.rsplit('inductor_lab/', 1)[1]}:{own[-1].lineno}]" if own else ""
    text = " ".join(str(inner).split())[: MESSAGE // 2]
    return f"{phase + ': ' if phase else ''}{type(inner).__name__}: {text}{where}"
