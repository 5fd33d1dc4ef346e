"""The side of the student's code: one stage is called, and its result is sent as data.

Nothing here knows what is right.  The judge (`judges.py`) computes that in another process, and
draws the programs there.
"""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from inductor_lab.course.capstone import repository, triton_printer
from inductor_lab.course.capstone.programs import Program, trace
from inductor_lab.course.capstone.values import from_data, to_data
from inductor_lab.course.language import speak
from inductor_lab.mini import cpp, host
from inductor_lab.mini.fuse import Schedule

Data = Any
Stage = Callable[..., Data]
"""Called by the judge."""


def begin(argument: dict[str, Any]) -> Stage:
    """Import the student's files, with reference code for all other steps.

    The small compiler loses the bodies of the steps first, so calling it solves nothing.
    """
    known = repository.codes()
    repository.take_back(known)
    folder = Path(repository.PACKAGE)
    folder.mkdir()
    for name, text in {**argument["files"], "__init__": ""}.items():
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
    sys.path.insert(0, str(Path.cwd()))
    own = argument["bodies"]
    other = [place for place in known if own is not None and list(place) not in own]
    repository.borrow(repository.PACKAGE, known, other)
    return _stage


def _stage(name: str, *args: Any) -> Data:
    return STAGES[name](*args)


def _module(name: str) -> Any:
    return importlib.import_module(f"{repository.PACKAGE}.{name}")


def _program(graph: torch.fx.GraphModule) -> Data:
    return to_data(_module("lower").Lowering(graph).program())


def _own(data: Data) -> Any:
    return from_data(data, repository.PACKAGE)


def bounds(offset: int, coefs: tuple[int, ...], sizes: tuple[int, ...]) -> Data:
    return _module("loops").Affine(offset, coefs).bounds(sizes)


def interpret(program: Data, inputs: Sequence[torch.Tensor]) -> Data:
    return _own(program).run(*inputs)


def lower(program: Program) -> Data:
    """Trace, with the student's decompositions, and lower."""
    return _program(program.traced(_module("decompose").table()))


def partition(program: Program, tangents: Sequence[torch.Tensor]) -> Data:
    """The programs of the forward and of the backward."""
    results = len(program.results())
    joint = trace(joint_of(program.function(), results),
                  [*leaves(program.inputs()), *tangents], _module("decompose").table())  # fmt: skip
    split = _module("autograd").partition(joint, results)
    return _program(split.forward), _program(split.backward)


def joint_of(function: Stage, results: int) -> Stage:
    """A function of inputs and tangents that returns results and gradients."""
    def joint(primals_x: Any, primals_y: Any, primals_w: Any, *tangents: Any) -> Any:
        primals = [primals_x, primals_y, primals_w]
        out = function(*primals)
        gradients = torch.autograd.grad(out, primals, tangents, materialize_grads=True)
        return [*out, *gradients]

    first = "primals_x, primals_y, primals_w"
    names = ", ".join(f"tangents_{number}" for number in range(results))
    made: Stage = eval(f"lambda {first}, {names}: joint({first}, {names})", {"joint": joint})
    return made


def leaves(inputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    return [x.detach().requires_grad_() for x in inputs]


def substitute(program: Data) -> Data:
    return to_data(_module("fuse").substitute(_own(program))[0])


def group(program: Data) -> Data:
    return to_data(_module("fuse").group(_own(program)).items)


def plan(schedule: Data) -> Data:
    made = _module("memory").plan(_own(schedule))
    return to_data(made.places), dict(made.last_use)


def kernels(schedule: Data) -> Data:
    return to_data(_module("cpp").print_kernels(_own(schedule)))


def triton_kernels(schedule: Data) -> Data:
    return to_data(_module("triton_printer").print_kernels(_own(schedule)))


def call_host(plan: Data, kernels: Data, calls: Sequence[Sequence[torch.Tensor]]) -> Data:
    """The results of several calls of the host program, all kept until the last one is over."""
    made = _module("host").host_program(_own(plan), _own(kernels))
    return [made.run(*inputs) for inputs in calls], made.source


def train(weights: Sequence[torch.Tensor], x: torch.Tensor, target: torch.Tensor) -> Data:
    """Train with the student's backend: losses, weights, and the schedule of each graph."""
    pipeline = _module("pipeline")
    graphs: list[Any] = []

    def backend(module: Any, inputs: Any) -> Any:
        return pipeline.compile_captured(module, inputs, graphs)

    losses, after = training(weights, x, target, lambda f: torch.compile(f, backend=backend))
    found = [(part.kind, to_data(part.schedule.program), to_data(part.schedule.items))
             for each in graphs for part in each.parts]  # fmt: skip
    return losses, after, found


def training(
    weights: Sequence[torch.Tensor], x: torch.Tensor, target: torch.Tensor,
    compiled: Callable[[Stage], Stage],
) -> tuple[list[float], list[torch.Tensor]]:  # fmt: skip
    """Ten steps of gradient descent of a network with two layers."""
    def loss(x: torch.Tensor, target: torch.Tensor, *weights: torch.Tensor) -> torch.Tensor:
        first, bias, second = weights
        return ((torch.tanh(x @ first + bias) @ second).log_softmax(1) * target).sum(1).mean().neg()

    current, losses, step = leaves(weights), [], compiled(loss)
    for _ in range(10):
        value = step(x, target, *current)
        gradients = torch.autograd.grad(value, current)
        current = leaves([w - 0.5 * g for w, g in zip(current, gradients, strict=True)])
        losses.append(value.item())
    return losses, [w.detach() for w in current]


STAGES: dict[str, Stage] = {f.__name__: f for f in (
    bounds, interpret, lower, partition, substitute, group, plan, kernels, triton_kernels,
    call_host, train,
)}  # fmt: skip


# ---- the process of printed kernels -----------------------------------------------------------


def runner(argument: None) -> Stage:
    """The root of a process that compiles and calls printed kernels: it has no student's Python."""
    return _run


def _run(kind: str, *args: Any) -> Data:
    runs: dict[str, Stage] = {"cpp": run_kernels, "triton": run_triton}
    return runs[kind](*args)


def run_kernels(plan: Data, kernels: Data, inputs: Sequence[torch.Tensor]) -> Data:
    """What the compiler says, and the results."""
    made: cpp.Kernels = from_data(kernels)
    command = [os.environ.get("CXX", "g++"), *cpp.FLAGS, "-Wall", "-fsyntax-only"]
    source = cpp.prelude() + made.functions + "\n"
    said = subprocess.run(command, input=source, text=True, capture_output=True, check=False)
    if said.returncode or said.stderr:
        return said.stderr[:4000] or f"exit status {said.returncode}", []
    return "", host.host_program(from_data(plan), made).run(*inputs)


def run_triton(
    schedule: Data, kernels: Data, inputs: Sequence[torch.Tensor], block: int, spoken: str
) -> Data:
    """Run kernels in Triton's interpreter: what is wrong with their accesses, the results, and how
    many elements are loaded and stored."""
    from inductor_lab.course.gpu import Outside, run_kernel

    speak(spoken)
    accesses, races = 0, list[str]()

    def launch(kernel: Any, programs: int, tensors: Sequence[torch.Tensor], block: int) -> None:
        nonlocal accesses
        made = run_kernel(kernel, (programs,), *tensors, BLOCK=block)
        accesses += sum(len(one.elements) for one in made.accesses)
        races.extend(map(str, made.races()[:1]))

    given: Schedule = from_data(schedule)
    try:
        results = triton_printer.run(given, from_data(kernels), *inputs, block=block, launch=launch)
    except Outside as reason:
        return str(reason), [], 0
    return "".join(races[:1]), results, accesses
