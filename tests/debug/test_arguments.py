"""Invalid arguments of public calls raise BadArguments, which lists the valid ones."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
import torch

import inductor_lab as lab
from inductor_lab.api.arguments import Count, Gpu, Seconds, checked, fits, in_words
from inductor_lab.api.compilation import Compilation
from inductor_lab.compiler.base.errors import BadArguments, LabError


def wave(x: torch.Tensor) -> torch.Tensor:
    return (x + 1).sin()


X = torch.ones(8)
NO_PATH = (3, None, b"file", ["file"])
NO_TIME = (-1, None, "1", [1], math.nan, math.inf, True)
NO_COUNT = (0, -1, None, "1", 1.5, True)
NO_FUNCTION = (3, None, "wave", [wave])
NO_COMPILATION = (3, None, "c", wave)
NO_LIST = (3, None)

OF_A_COMPILATION: dict[str, tuple[Callable[[Any, Any], Any], tuple[Any, ...]]] = {
    "report path": (lambda c, v: c.report(v), NO_PATH),
    "report ladder": (
        lambda c, v: c.report("r.html", ladder=v),
        (90, "cuda", "cuda:", "cuda:x", "gpu:90", "", True, ["cuda:90"]),
    ),
    "report assembly": (lambda c, v: c.report("r.html", assembly=v), (3, "yes", None)),
    "save": (lambda c, v: c.save(v), NO_PATH),
    "dump": (lambda c, v: c.dump(v), NO_PATH),
    "trace": (lambda c, v: c.trace(v), NO_PATH),
    "compare": (lambda c, v: c.compare(v), NO_COMPILATION),
    "measure": (lambda c, v: c.measure(v), NO_TIME),
    "profile": (lambda c, v: c.profile(v), NO_COUNT),
    "ablation": (lambda c, v: c.ablation(v), NO_TIME),
    "blame": (lambda c, v: c.blame(limit=v), NO_TIME),
    "why_not_fused": (lambda c, v: c.why_not_fused(v), (1.5, ["buf0"])),
    "why_not_fused part": (lambda c, v: c.why_not_fused(part=v), (3, ["g0.forward"])),
    "cuda_graphs": (lambda c, v: c.cuda_graphs(require=v), (3, "yes", None)),
    "plot": (lambda c, v: c.plot(v), (3, None, ["graph"])),
    "forbid": (lambda c, v: c.what_if(forbid=v), (*NO_LIST, [3], [None], ["buf0"], [("a", 3)])),
    "force": (lambda c, v: c.what_if(force=v), (*NO_LIST, [3], [None], ["buf0"])),
    "fusion_off": (lambda c, v: c.what_if(fusion_off=v), (*NO_LIST, [3], [("near",)])),
    "rewrites_off": (lambda c, v: c.what_if(rewrites_off=v), (*NO_LIST, [None])),
    "passes_off": (lambda c, v: c.what_if(passes_off=v), (*NO_LIST, [3])),
    "memory_budget": (lambda c, v: c.what_if(memory_budget=v), ("half", [], True, math.nan)),
    "fusion": (lambda c, v: c.what_if(fusion=v), ("off", 3, [])),
}
OF_THE_LAB: dict[str, tuple[Callable[[Any], Any], tuple[Any, ...]]] = {
    "inspect": (lambda v: lab.inspect(v, X), NO_FUNCTION),
    "compile": (lambda v: lab.compile(v), (3, "wave", [wave])),
    "bench": (lambda v: lab.bench(v, X), NO_FUNCTION),
    "bench seconds": (lambda v: lab.bench(wave, X, seconds=v), NO_TIME),
    "bench against": (lambda v: lab.bench(wave, X, against=v), (3, None, [3])),
    "bench options": (lambda v: lab.bench(wave, X, options=v), (3, "fast", ["fast"])),
    "bench modes": (lambda v: lab.bench(wave, X, modes=v), (3, None, [3])),
    "sweep": (lambda v: lab.bench.sweep(wave, torch.ones, v), (3, None, ["a"], [1.5])),
    "ceilings": (lambda v: lab.bench.ceilings(v), (3, None)),
    "bench load": (lambda v: lab.bench.load(v), NO_PATH),
    "blame": (lambda v: lab.blame(v, X), NO_FUNCTION),
    "blame limit": (lambda v: lab.blame(wave, X, limit=v), NO_TIME),
    "backends": (lambda v: lab.backends(v, X), NO_FUNCTION),
    "backends jobs": (lambda v: lab.backends(wave, X, jobs=v), NO_COUNT),
    "backends only": (lambda v: lab.backends(wave, X, only=v), (*NO_LIST, [3])),
    "minify": (lambda v: lab.minify(v, X), NO_FUNCTION),
    "minify folder": (lambda v: lab.minify(wave, X, folder=v), (3, b"here", [])),
    "join": (lambda v: lab.join(v), (*NO_LIST, [3], [None])),
    "timeline": (lambda v: lab.distributed.timeline(v, 2), NO_COMPILATION),
    "language": (lambda v: lab.language(v), (3, None, ["zh"])),
    "load": (lambda v: lab.load(v), NO_PATH),
    "read_trace": (lambda v: lab.read_trace(v), NO_PATH),
    "recompiles": (lambda v: lab.recompiles(v), (3, "yes", None)),
    "compare": (lambda v: lab.compare(v, v), NO_COMPILATION),
    "try_kernel": (lambda v: lab.try_kernel(v, "kernel", "text"), NO_COMPILATION),
    "override": (lambda v: lab.override(cpp=v), (3, None, "neg")),
    "lowers": (lambda v: lab.lowers(v), (3, None, "aten.sin", torch.sin)),
}


@pytest.fixture(scope="module")
def compilation() -> Compilation:
    return lab.inspect(wave, X)


@pytest.mark.parametrize("name", OF_A_COMPILATION)
def test_invalid_arguments_of_a_compilation_list_the_valid_ones(
    name: str, compilation: Compilation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    call, wrong = OF_A_COMPILATION[name]
    for value in wrong:
        refused(lambda value=value: call(compilation, value))
    assert not list(tmp_path.iterdir()), "nothing is written"


@pytest.mark.parametrize("name", OF_THE_LAB)
def test_invalid_arguments_of_lab_list_the_valid_ones(name: str) -> None:
    call, wrong = OF_THE_LAB[name]
    for value in wrong:
        refused(lambda value=value: call(value))


def test_tensors_without_data_are_refused() -> None:
    on_meta, module = X.to("meta"), torch.nn.Linear(8, 2, device="meta")
    for call in (lab.inspect, lab.bench):
        for function, given in ((wave, on_meta), (lambda xs: wave(xs[0]), [on_meta]), (module, X)):
            with pytest.raises(BadArguments, match=r"meta device have no data\n.*module\.to_empty"):
                call(function, given)


def test_comparing_compilations_of_one_compiler_names_the_right_method() -> None:
    ours, stock = lab.inspect(wave, X), lab.inspect(wave, X, compiler="stock")
    with pytest.raises(BadArguments, match=r"before\.compare\(after\)"):
        lab.compare(ours, ours)
    with pytest.raises(BadArguments, match=r"lab\.compare\(compilation, stock\)"):
        ours.compare(stock)


def refused(call: Callable[[], Any]) -> None:
    with pytest.raises(BadArguments) as error:
        call()
    what = error.value.what
    assert re.search(r"^\w+\(\): (\w+ must be|expected) .+, got ", what), what
    assert len(what) < 220


Y = torch.ones(5, 6)
NO_TENSOR = (3, None, "x", [X])
NO_CALL = ((), (X,), (X, Y, 2, 3), (3, Y), ("x", Y), (None, Y))
"""Arguments that `product` cannot be called with."""


def product(x: torch.Tensor, y: torch.Tensor, n: int = 2) -> torch.Tensor:
    return (x @ y).relu() * n


@pytest.fixture(scope="module")
def stages() -> dict[str, Any]:
    """Stage name → a stage that can run, with valid inputs."""
    x = torch.ones(4, 5, requires_grad=True)
    c = lab.inspect(product, x, Y)
    graph, part = c.graphs[0], c.graphs[0].forward
    assert graph.joint is not None and part.executable is not None
    stages = {
        "capture": c.capture, "graph": graph.captured, "aten graph": part.graph,
        "loops": part.loops, "schedule": part.schedule, "executable": part.executable,
    }  # fmt: skip
    return {name: (stage, (x.detach(), Y)) for name, stage in stages.items()} | {
        "joint": (graph.joint, (x.detach(), Y, torch.ones(4, 6)))
    }


STAGES = ("capture", "graph", "aten graph", "joint", "loops", "schedule", "executable")


@pytest.mark.parametrize("name", STAGES)
def test_invalid_inputs_of_a_stage_list_the_valid_ones(name: str, stages: dict[str, Any]) -> None:
    stage, right = stages[name]
    expected = product(*right[:2])
    torch.testing.assert_close(next(r for r in stage.run(*right)), expected)
    for inputs in ((), right[:-1], (*right, Y)):
        refused(lambda inputs=inputs: stage.run(*inputs))
    for value in NO_TENSOR:
        refused(lambda value=value: stage.run(value, *right[1:]))


@pytest.mark.parametrize("name", ["loops", "schedule", "executable"])
def test_loops_refuse_other_sizes(name: str, stages: dict[str, Any]) -> None:
    stage, (_, y) = stages[name]
    for wrong in (torch.ones(4), torch.ones(4, 6), torch.ones(5, 4), torch.ones(0, 5)):
        refused(lambda wrong=wrong: stage.run(wrong, y))


def test_kernels_refuse_inputs_with_another_layout(stages: dict[str, Any]) -> None:
    """Kernels would read out of bounds, or misread the bytes."""
    executable, (x, y) = stages["executable"]
    columns = torch.ones(5, 4).t()
    for wrong in (x.double(), columns, x.to("meta")):
        refused(lambda wrong=wrong: executable.run(wrong, y))
    for stage in ("graph", "loops", "schedule"):
        assert stages[stage][0].run(columns, y)[0].equal(product(x, y)), "the planned layout"


def test_symbolic_sizes_accept_any_value() -> None:
    c = lab.inspect(wave, torch.ones(8), options={"dynamic": True})
    part = c.graphs[0].forward
    for stage in (part.graph, part.loops, part.schedule, part.executable):
        assert stage is not None and stage.run(5, torch.ones(5))[-1].shape == (5,)
        refused(lambda stage=stage: stage.run(5, 5))
        refused(lambda stage=stage: stage.run("5", torch.ones(5)))
    for compiled in (part.loops, part.schedule, part.executable):
        refused(lambda stage=compiled: stage.run(torch.ones(5), torch.ones(5)))
        refused(lambda stage=compiled: stage.run(5, torch.ones(5, 1)))


@pytest.mark.parametrize("given", NO_CALL, ids=str)
@pytest.mark.parametrize("asked", ["again", "blame"])
def test_invalid_arguments_of_the_function_are_named(asked: str, given: tuple[Any, ...]) -> None:
    if asked == "blame" and not given:
        return  # the inspected call's own arguments
    c = lab.inspect(product, torch.ones(4, 5), Y)
    with pytest.raises(BadArguments, match=rf"^{asked}\(\): (\w+ must be like|wrong arguments)"):
        getattr(c, asked)(*given)


def test_exceptions_of_the_function_are_passed_on() -> None:
    def picky(x: torch.Tensor) -> torch.Tensor:
        if x.shape[0] == 3:
            raise ZeroDivisionError("three")
        return x + 1

    c = lab.inspect(picky, X)
    with pytest.raises(ZeroDivisionError, match="three"):
        c.again(torch.ones(3))
    assert c.again(torch.ones(4)).result.sum() == 8


def test_each_public_call_of_a_compilation_is_checked() -> None:
    """Every method with arguments is in the table above."""
    names = {name.split()[0] for name in OF_A_COMPILATION}
    for name, method in vars(Compilation).items():
        if inspect.isfunction(method) and not name.startswith("_") and name != "what_if":
            own = [p for p in inspect.signature(method).parameters.values()
                   if p.name != "self" and p.annotation != "Any"]  # fmt: skip
            assert not own or name in names, name


def test_valid_arguments_are_accepted(compilation: Compilation, tmp_path: Path) -> None:
    assert compilation.report(tmp_path / "r.html", assembly=False).exists()
    assert compilation.save(str(tmp_path / "c.lab.json")).exists()
    assert compilation.compare(compilation).rows and compilation.measure(0).parts[0].times
    assert lab.compile(wave)(X).equal(lab.compile()(wave)(X))
    assert lab.compile(torch.nn.ReLU())(X).equal(X)
    assert compilation.what_if(passes_off=(name for name in ("lanes",))).graphs


def test_missing_and_unknown_arguments_raise_type_error(compilation: Compilation) -> None:
    with pytest.raises(TypeError, match=r"report\(\) missing 1 required positional argument"):
        compilation.report()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="unexpected keyword argument 'lader'"):
        compilation.report("r.html", lader="cuda:90")  # type: ignore[call-arg]


def test_the_message_describes_the_expected_value(compilation: Compilation) -> None:
    with pytest.raises(LabError) as error:
        compilation.report("r.html", ladder=90)
    assert str(error.value) == (
        'report(): ladder must be a GPU such as "cuda:90" or "hip:gfx942" or None, got 90'
    )
    assert in_words(Seconds) == "a number of seconds, 0 or more"
    assert in_words(Iterable[str] | None) == 'a list of names, such as ["a", "b"] or None'
    assert in_words(Callable[..., Any]) == "a function or a module"


def test_types_of_every_kind() -> None:
    assert fits(3, Count) and not fits(3.5, Count) and fits(0.5, Seconds)
    assert fits("hip:gfx942", Gpu | None) and fits(None, Gpu | None) and not fits("hip", Gpu | None)
    assert fits([["a", "b"]], Iterable[tuple[str, ...]])
    assert fits({"a": 1}, dict[str, Any]) and not fits({"a": 1}, dict[str, str])
    assert fits(object(), Any)


def test_annotations_that_exist_only_for_type_checkers_are_skipped() -> None:
    def taken(x: "NotHere") -> Any:  # noqa: F821, UP037
        return x

    assert checked(taken)(3) == 3 and checked(taken).__name__ == "taken"
