"""Ctrl-C in each phase of a compile, and between them: the next call works."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator

import torch
from torch.testing import assert_close

import inductor_lab as lab
from inductor_lab.api.backend import backend_with
from inductor_lab.compiler.base.observer import Observer
from inductor_lab.compiler.base.options import Options
from tests.faults import jobs
from tests.faults.child import batch, caches
from tests.faults.outcome import DEFECT, OK, Tried, judged
from tests.faults.plan import Plan

TORCHS_OWN = "Guard failed on the same frame it was created"
"""The error that TorchDynamo sometimes raises for a Ctrl-C during its guards."""


class Interrupter(Observer):
    """Sends Ctrl-C once, when a phase starts or ends.  `seen` has all such moments."""

    def __init__(self, moment: tuple[str, str] | None = None) -> None:
        self.moment, self.seen = moment, []  # type: tuple[str, str] | None, list[tuple[str, str]]

    def entered(self, phase: str) -> None:
        self._at("at the start of", phase)

    def left(self, phase: str, result: object) -> None:
        self._at("at the end of", phase)

    def _at(self, when: str, phase: str) -> None:
        self.seen.append((when, phase))
        if self.moment == (when, phase):
            self.moment = None
            signal.raise_signal(signal.SIGINT)


def tries(plan: Plan) -> Iterator[Tried]:
    yield from batch(caches(plan.place("phases")), phases, plan.short)
    times = plan.times(60, 2)
    chance = plan.random()
    moments = [chance.uniform(0.0, 1.5) for _ in range(times)]
    yield from batch(caches(plan.place("moments")), at_moments, moments)


def arguments() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.linspace(0, 2, 64), torch.linspace(-1, 1, 64).requires_grad_()


def inspected(observer: Observer) -> None:
    x, w = arguments()
    lab.inspect(jobs.bowl, x, w, options={"cache": False}, observer=observer)


def compiled(observer: Observer) -> None:
    torch._dynamo.reset()
    x, w = arguments()
    backend = backend_with(Options(cache=False), observer)
    found = torch.compile(jobs.bowl, backend=backend)(x, w)
    assert_close(found, jobs.bowl(x, w))


def phases(short: bool) -> Iterator[Tried]:
    for how in (compiled, inspected):
        every = Interrupter()
        how(every)
        moments = every.seen[::5] if short else every.seen
        for moment in moments[:4] if short else moments:
            yield Tried(f"Ctrl-C {moment[0]} a phase, {how.__name__}", *interrupted(how, moment))


def interrupted(how: Callable[[Observer], None], moment: tuple[str, str]) -> tuple[str, str]:
    observer = Interrupter(moment)
    try:
        how(observer)
        return DEFECT, f"{' '.join(moment)}: the KeyboardInterrupt was lost"
    except KeyboardInterrupt:
        pass
    except BaseException as error:
        return DEFECT, f"{' '.join(moment)}: {type(error).__name__}: {error}"
    found, said = judged(how, Observer())
    return found, f"{' '.join(moment)}: {said}"


def at_moments(moments: list[float]) -> Iterator[Tried]:
    """Ctrl-C after each of these times; afterwards everything works."""
    for seconds in moments:
        torch._dynamo.reset()
        timer = threading.Timer(seconds, signal.raise_signal, [signal.SIGINT])
        timer.start()
        try:
            jobs.both()
        except KeyboardInterrupt:
            pass
        except BaseException as error:
            said = f"after {seconds:.3f} s: {type(error).__name__}: {error}"
            if TORCHS_OWN not in said:
                yield Tried("Ctrl-C at a random moment", DEFECT, said)
                timer.cancel()
                continue
        timer.cancel()
        timer.join()
        torch._dynamo.reset()
        found, said = judged(jobs.both)
        outcome = found if found == OK else DEFECT
        yield Tried("Ctrl-C at a random moment", outcome, f"after {seconds:.3f} s: {said}")
