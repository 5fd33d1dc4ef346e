"""If torch lacks optional names, everything still compiles, and only one feature is off.

A forked process imports inductor_lab again with some names removed from torch.  torch's own
functions still see them.  One missing name switches its feature off, so names are removed in groups
in which no feature has two names.  The programs run with all names of a feature removed, which
finds code that uses a name without checking.
"""

from __future__ import annotations

import importlib
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from types import ModuleType
from typing import Any

import pytest

from inductor_lab.compiler.torch_door.torch_names import OPTIONAL, REQUIRED
from tests import processes

NAMES = sorted({name for feature in OPTIONAL.values() for name in feature.names})
JOBS = 2


class Without(ModuleType):
    """A module with one of its names removed."""

    def __init__(self, whole: Any, name: str, instead: Any = None) -> None:
        super().__init__(getattr(whole, "__name__", name))
        vars(self).update(__path__=getattr(whole, "__path__", []), _kept=(whole, name, instead))
        self.__spec__ = getattr(whole, "__spec__", None)

    def __getattr__(self, wanted: str) -> Any:
        whole, name, instead = vars(self)["_kept"]
        if wanted != name:
            return getattr(whole, wanted)
        if instead is None:
            raise AttributeError(f"{whole!r} without {name}")
        return instead


@contextmanager
def torch_without(name: str) -> Iterator[None]:
    """Inside this block, imports of torch do not have this name."""
    parts = name.split(".")
    first = max(n for n in range(1, len(parts) + 1) if ".".join(parts[:n]) in sys.modules)
    first = min(first, len(parts) - 1)
    instead = None
    for depth in range(len(parts) - 1, first - 1, -1):
        whole = importlib.import_module(".".join(parts[:first]))
        for part in parts[first:depth]:
            whole = getattr(whole, part)
        instead = Without(whole, parts[depth], instead)
    module = ".".join(parts[:first])
    taken = {key: sys.modules[key] for key in (module, name) if key in sys.modules}
    sys.modules.pop(name, None)
    sys.modules[module] = instead
    try:
        yield
    finally:
        sys.modules.update(taken)


def import_anew() -> Any:
    for loaded in [m for m in sys.modules if m.split(".")[0] == "inductor_lab"]:
        del sys.modules[loaded]
    lab = importlib.import_module("inductor_lab")
    for name in ("api.backend", "debug.doctor", "compiler.accelerate.pool", "api.compilation"):
        importlib.import_module(f"inductor_lab.{name}")
    return lab


def features_off(send: Callable[[Any], None], *names: str) -> Any:
    """Send the features that are off, as reported by the doctor."""
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = tempfile.mkdtemp()
    with ExitStack() as stack:
        for name in names:
            stack.enter_context(torch_without(name))
        lab = import_anew()
    doctor = sys.modules["inductor_lab.debug.doctor"]
    send({row.name.strip() for row in doctor._names_of_torch() if row.todo})
    return lab


def programs_without(send: Callable[[Any], None], *names: str) -> None:
    """Send the features that are off, and those of three programs that are wrong."""
    lab = features_off(send, *names)
    send([program.__name__ for program in (inference, training, inspected) if not program(lab)])


def inference(lab: Any) -> bool:
    """A linear layer, softmax, and a result that is large enough for the pool."""
    import torch

    torch.manual_seed(0)
    layer = torch.nn.Linear(32, 48)

    def f(x: Any) -> Any:
        return torch.softmax(layer(x), -1), x.repeat(40, 100).sin() + 1

    x = torch.randn(30, 32)
    with torch.no_grad():
        fast, expected = lab.compile(f), f(x)
        results = [fast(x) for _ in range(3)]
    return all(map(_close, results, [expected] * 3))


def training(lab: Any) -> bool:
    """Saved tensors are modified after the forward, and the input gets a gradient."""
    import torch

    def f(x: Any, w: Any) -> Any:
        y = (x.sin() * w).sum(0)
        x.mul_(2.0)
        return y.cos(), x.t()

    def step(call: Any) -> Any:
        torch.manual_seed(0)
        x, w = torch.randn(5, 7), torch.randn(7, requires_grad=True)
        results = call(x, w)
        results[0].sum().backward()
        return (*results, x, w.grad)

    fast = lab.compile(f)
    return all(_close(step(fast), step(f)) for _ in range(2))


def inspected(lab: Any) -> bool:
    """Print and run all stages of a graph with symbolic sizes, and run it under the profiler."""
    import torch

    def f(x: Any) -> Any:
        return torch.cat([x.t(), x.t().flip(0)]).cumsum(0) / x.shape[0]

    x = torch.randn(6, 4)
    c = lab.inspect(f, x, options={"dynamic": True})
    part = c.graphs[0].forward
    text = f"{c}{c.capture.graphs[0]}{part.loops}{part.schedule}{part.kernels[0]}{part.host}"
    with torch.profiler.profile():
        profiled = c.compiled(x)
    tall = torch.randn(9, 4)
    results = (c.result, profiled, c.compiled(tall))
    return "cumsum" in text and _close(results, (f(x), f(x), f(tall)))


def _close(results: Any, expected: Any) -> bool:
    import torch

    near = partial(torch.allclose, rtol=1e-4, atol=1e-5)
    return all(map(near, results, expected))


def _together() -> list[tuple[str, ...]]:
    """Return the names in groups such that no feature needs two names of a group."""
    groups: list[list[str]] = []
    for name in NAMES:
        for group in groups:
            if _features_of(name).isdisjoint(_features_of(*group)):
                group.append(name)
                break
        else:
            groups.append([name])
    return [tuple(group) for group in groups]


def _features_of(*names: str) -> set[str]:
    return {feature for feature, need in OPTIONAL.items() if {*names} & {*need.names}}


TOGETHER = _together()


@pytest.fixture(scope="module")
def outcomes() -> dict[tuple[str, ...], list[Any]]:
    """Return the results of processes without a group of names, or all names of a feature."""
    context = processes.server("tests.end_to_end.warm_names")
    clock = processes.Clock()
    whole = [needs.names for needs in OPTIONAL.values()]

    def outcome(names: tuple[str, ...]) -> list[Any]:
        work = programs_without if names in whole else features_off
        return list(processes.messages(context, work, names, 120, clock))

    outcome(whole[0])  # compiles the libraries for all processes
    lacking = [*whole, *(group for group in TOGETHER if group not in whole)]
    with ThreadPoolExecutor(JOBS) as pool:
        return dict(zip(lacking, pool.map(outcome, lacking), strict=True))


@pytest.mark.parametrize("names", TOGETHER, ids=lambda names: f"{names[0]} and {len(names) - 1}")
def test_without_one_name_its_feature_is_off(
    names: tuple[str, ...], outcomes: dict[tuple[str, ...], list[Any]]
) -> None:
    off, *wrong = outcomes[names]
    assert off == _features_of(*names) and not any(wrong)


@pytest.mark.parametrize("feature", OPTIONAL)
def test_without_one_feature_programs_are_right(
    feature: str, outcomes: dict[tuple[str, ...], list[Any]]
) -> None:
    names = OPTIONAL[feature].names
    assert outcomes[names] == [_features_of(*names), []]


def import_without(send: Callable[[Any], None], name: str) -> None:
    try:
        with torch_without(name):
            import_anew()
    except ImportError as problem:
        send(str(problem))


def test_without_a_required_name_the_import_says_which() -> None:
    context = processes.server("tests.end_to_end.warm_names")
    for name in (REQUIRED[1], REQUIRED[-1]):
        (said,) = processes.messages(
            context, import_without, (name,), 120, processes.Clock()
        )
        assert f"lacks names that inductor_lab needs: {name}" in said
