"""The contenders: eager, inductor_lab in its modes, stock, other backends of torch.compile."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias, cast

import torch
from torch.utils.benchmark import Measurement

from inductor_lab.api.backend import backend_with
from inductor_lab.bench.bench_result import OURS, STOCK
from inductor_lab.compiler.base.display import counted
from inductor_lab.compiler.base.errors import BadArguments, BadOption
from inductor_lab.compiler.base.observer import Observer
from inductor_lab.compiler.base.options import Mode, Options
from inductor_lab.compiler.codegen.kernel import HostProgram, Kernel
from inductor_lab.compiler.runtime.cache.kernel_cache import VARIABLE
from inductor_lab.stock.caches import forget

EAGER = "eager"
GIVEN = "timed before"
"""The kind of a contender whose samples are given; its name ends with it."""
FEWEST_GIVEN = 7
SECONDS_TO_COMPILE = {EAGER: 0.0, GIVEN: 0.0, STOCK: 10.0}
"""Estimated seconds of the first compile, for the progress bar."""


Rival: TypeAlias = str | Callable[..., Any] | Measurement
"""What can be compared with: a backend's name, a function, or times that torch measured before."""


@dataclass(frozen=True)
class Way:
    """One way to run a function.  `make(fn)` returns the function to call instead.

    given  seconds per call that were measured before: this way is not run
    """

    name: str
    kind: str
    make: Callable[[Callable[..., Any]], Callable[..., Any]]
    code: CodeText | None = None
    given: tuple[float, ...] = ()

    @property
    def compiles(self) -> bool:
        return self.kind not in (EAGER, GIVEN)

    @property
    def expected_seconds(self) -> float:
        return SECONDS_TO_COMPILE.get(self.kind, 1.0)


@dataclass
class CodeText(Observer):
    """Records the kernels and host programs that our compiler generates."""

    phase: Callable[[str], None]
    texts: list[str] = field(default_factory=list)

    def entered(self, phase: str) -> None:
        self.phase(phase)

    def left(self, phase: str, result: Any) -> None:
        if isinstance(result, HostProgram):
            self.texts.append(str(result))
        elif isinstance(result, tuple):
            self.texts += [str(kernel) for kernel in result if isinstance(kernel, Kernel)]


def ways(
    against: Iterable[Rival],
    modes: Sequence[str],
    options: Options,
    tell: Callable[[str], None],
    works: Sequence[str],
) -> tuple[Way, ...]:
    """All contenders: first those in `against`, then inductor_lab.

    `tell` is called with each phase of our compiler.  Raises BadOption for an unknown backend or
    mode, BadArguments for a measurement of none of these `works`, or that cannot be compared.
    """
    found: list[Way] = []
    for asked in against:
        if isinstance(asked, Measurement):
            found.append(_given(asked, works, [way.name for way in found]))
        else:
            found += _others(asked, modes, options.dynamic)
    for mode in modes:
        code = CodeText(tell)
        chosen = replace(options, mode=cast(Mode, mode))  # raises BadOption if unknown
        found.append(Way(_in_mode(OURS, mode), OURS, _ours(chosen, code), code))
    return tuple({way.name: way for way in found}.values())


def _others(
    asked: str | Callable[..., Any], modes: Sequence[str], dynamic: bool | None
) -> Iterator[Way]:
    if callable(asked):
        name = getattr(asked, "__name__", type(asked).__name__)
        yield Way(name, EAGER, lambda fn: asked)
    elif asked == EAGER:
        yield Way(EAGER, EAGER, lambda fn: fn)
    elif asked == STOCK:
        for mode in modes:
            yield Way(_in_mode(STOCK, mode), STOCK, _stock(mode, dynamic))
    elif asked in torch.compiler.list_backends(exclude_tags=()):
        yield Way(asked, asked, lambda fn: torch.compile(fn, backend=asked))
    else:
        known = ", ".join((EAGER, *torch.compiler.list_backends(exclude_tags=())))
        raise BadOption("against", asked, f"a function, or one of {known}")


def _given(measurement: Measurement, works: Sequence[str], taken: Sequence[str]) -> Way:
    """A contender that was measured before; raises BadArguments if it cannot be compared."""
    spec = measurement.task_spec
    name = f"{spec.description or spec.label or spec.stmt}, {GIVEN}"
    seconds, threads = tuple(measurement.times), torch.get_num_threads()
    ours = spec.stmt == spec.sub_label  # of BenchResult.measurements
    if name in taken:
        what, todo = f"two measurements are named {name}", "give each Timer its own description"
    elif len(seconds) < FEWEST_GIVEN:
        what = f"{name}: {counted(len(seconds), 'sample')}, at least {FEWEST_GIVEN} are needed"
        todo = "for example timer.blocked_autorange(min_run_time=1)"
    elif spec.num_threads != threads:
        what = f"{name}: measured with {counted(spec.num_threads, 'thread')}, others use {threads}"
        todo = "measure it with Timer(..., num_threads=torch.get_num_threads())"
    elif ours and spec.stmt not in works:
        what = f"{name}: it measured {spec.stmt}, not {' or '.join(works)}"
        todo = "call lab.bench with the same function, arguments and backward"
    else:
        return Way(name, GIVEN, lambda fn: fn, given=seconds)
    raise BadArguments(what, todo=todo)


def _in_mode(name: str, mode: str) -> str:
    return name if mode == "default" else f"{name} {mode}"


def _ours(options: Options, code: CodeText) -> Callable[..., Any]:
    return lambda fn: torch.compile(
        fn,
        backend=backend_with(options, code),
        fullgraph=options.fullgraph,
        dynamic=options.dynamic,
    )


def _stock(mode: str, dynamic: bool | None) -> Callable[..., Any]:
    return lambda fn: torch.compile(fn, backend=STOCK, mode=mode, dynamic=dynamic)


@contextlib.contextmanager
def caches_in(folder: Path) -> Iterator[None]:
    """Use this folder for the disk caches of our compiler and stock, while the block runs."""
    places = {
        VARIABLE: folder,
        "TORCHINDUCTOR_CACHE_DIR": folder / "inductor",
        "TRITON_CACHE_DIR": folder / "triton",
    }
    before = {name: os.environ.get(name) for name in places}
    os.environ.update({name: str(place) for name, place in places.items()})
    forget()
    try:
        yield
    finally:
        for name, old in before.items():
            if old is None:
                del os.environ[name]
            else:
                os.environ[name] = old
        forget()


@contextlib.contextmanager
def empty_folder() -> Iterator[Path]:
    """A temporary folder for caches, deleted at the end if the system allows it."""
    with tempfile.TemporaryDirectory(prefix="lab-bench-", ignore_cleanup_errors=True) as name:
        yield Path(name)


def plus_one(x: torch.Tensor) -> torch.Tensor:
    """A minimal function, to measure the set-up time of a compiler."""
    return x + 1
