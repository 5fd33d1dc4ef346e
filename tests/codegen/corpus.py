"""Print the C++ and Triton texts of a few hundred programs, before and after a compiler change:

    python -m tests.codegen.corpus build/before       (before the change)
    python -m tests.codegen.corpus build/after        (after it)
    diff -r build/before build/after

A change that only moves code causes no difference.  The first run saves the schedules next to the
folder (`build/schedules.pickle`), so that the second run takes seconds.  After a change of an
earlier phase, create new schedules with `--fresh`.

Nothing is compiled or run.  Each kernel is printed in C++ three times: unchanged; with threads for
any amount of work and transposed tiles for any matrix; and with streaming stores for all results.
Then once in Triton, with its launch parameters.
"""

from __future__ import annotations

import argparse
import pickle
import sys
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import torch

import inductor_lab as lab
from inductor_lab.compiler import pipeline
from inductor_lab.compiler.codegen.cpp.printer import cpp_kernel
from inductor_lab.compiler.codegen.generate import generate_kernels
from inductor_lab.compiler.codegen.triton.printer import triton_kernel
from inductor_lab.compiler.ir.program import Buffer
from inductor_lab.compiler.schedule.schedule import Group
from tests.fresh import compile_always
from tests.tuning import tuned

VARIANTS: dict[str, dict[str, int]] = {
    "plain": {},
    "threads": {"GRAIN": 16, "SMALLEST_TRANSPOSED": 0},
    "streams": {"STREAMED_BYTES": 0},
}
"""The constants of the code generator that each variant replaces, in all modules."""

Call = tuple[Callable[..., Any], Sequence[Any], Mapping[str, Any]]


@dataclass
class Recorded:
    """The groups of one program's schedules, each with its buffers."""

    name: str
    groups: list[tuple[Group, Mapping[str, Buffer]]] = field(default_factory=list)

    def record(self, schedule: Any, options: Any) -> Any:
        for group in schedule.groups:
            self.groups.append((group, schedule.program.buffers))
        return generate_kernels(schedule, options)


def programs() -> Iterator[tuple[str, Callable[[], Call], bool]]:
    """Names; functions that create a function and its arguments; whether to differentiate it."""
    from benchmarks.workloads import KERNELS, OPERATORS
    from inductor_lab.bench.demo.programs import PROGRAMS
    from tests.codegen.cpp_cases import POINTWISE, REDUCTIONS
    from tests.end_to_end.functions import CASES
    from tests.end_to_end.test_golden import FUNCTIONS
    from tests.models.library import MODELS

    for name, (fn, given) in {**POINTWISE, **REDUCTIONS}.items():
        yield f"case {name}", lambda fn=fn, given=given: (fn, given, {}), False
    for name, (fn, make) in CASES.items():
        yield f"function {name}", lambda fn=fn, make=make: (fn, make(), {}), True
    for name, build in FUNCTIONS.items():
        yield f"golden {name}", lambda build=build: (*build(), {}), False
    for work in (*KERNELS, *OPERATORS):
        yield f"benchmark {work.name}", lambda work=work: (*work.build(), {}), work.gradient
    for program in PROGRAMS:
        if not program.name.startswith("gpt2"):
            yield f"demo {program.name}", lambda p=program: (*p.make(), {}), program.gradient
    for name in ("bert", "gpt2", "llama", "vit", "t5"):
        if name in MODELS:
            yield f"model {name}", lambda name=name: _of_model(*MODELS[name]()), True
    yield from _random()


def _of_model(model: torch.nn.Module, inputs: dict[str, torch.Tensor]) -> Call:
    return model, (), inputs


def _random() -> Iterator[tuple[str, Callable[[], Call], bool]]:
    from tests.fuzz.run import draw

    drawn: list[Any] = []
    draw(200, 7, drawn.append, "default")
    for number, program in enumerate(drawn):
        yield (
            f"random {number:03}",
            lambda program=program: (program.function(), program.make(), {}),
            False,
        )


def recorded() -> Iterator[Recorded]:
    """The programs as schedules; every second program also with symbolic sizes."""
    compile_always()
    for number, (name, make, gradient) in enumerate(programs()):
        for dynamic in (False, True) if number % 4 == 0 else (False,):
            found = Recorded(f"{name} symbolic" if dynamic else name)
            torch.manual_seed(0)
            torch.compiler.reset()
            with (
                mock.patch.object(pipeline, "generate_kernels", found.record),
                mock.patch.object(pipeline, "build_executable", lambda *a, **k: None),
                warnings.catch_warnings(),
            ):
                warnings.simplefilter("ignore")
                try:
                    _call(make, gradient, dynamic)
                except Exception as error:  # what torch cannot trace or differentiate is no matter
                    print(f"{found.name}: {type(error).__name__}", file=sys.stderr)
            if found.groups:
                yield found


def _call(make: Callable[[], Call], gradient: bool, dynamic: bool) -> None:
    fn, args, kwargs = make()
    if gradient:
        args = [_with_gradient(a) for a in args]
    out = lab.compile(fn, dynamic=dynamic or None)(*args, **kwargs)
    tensors = [t for t in torch.utils._pytree.tree_leaves(out) if isinstance(t, torch.Tensor)]
    total = [t.sum() for t in tensors if t.requires_grad]
    if gradient and total:
        sum(total[1:], total[0]).backward()


def _with_gradient(given: Any) -> Any:
    if isinstance(given, torch.Tensor) and given.is_leaf and given.is_floating_point():
        return given.requires_grad_(True)
    return given


def written(program: Recorded) -> str:
    """All texts of one program."""
    lines = []
    for variant, constants in VARIANTS.items():
        with tuned(**constants):
            for number, (group, buffers) in enumerate(program.groups):
                lines.append(f"// {variant} {number}")
                results = group.stored if variant == "streams" else ()
                lines.append(_cpp(group, buffers, results))
    for number, (group, buffers) in enumerate(program.groups):
        lines += [f"# triton {number}", _triton(group, buffers)]
    return "\n".join(lines)


def _cpp(group: Group, buffers: Mapping[str, Buffer], results: Collection[str]) -> str:
    try:
        return str(cpp_kernel(group, buffers, f"cpp_{group.name}", results=results))
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def _triton(group: Group, buffers: Mapping[str, Buffer]) -> str:
    try:
        kernel = triton_kernel(group, buffers, f"triton_{group.name}")
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return f"{kernel}{kernel.launch}"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--fresh", action="store_true", help="create new schedules")
    parser.add_argument("--schedules", type=Path, help="where the schedules are kept")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    kept = given.schedules or given.folder.parent / "schedules.pickle"
    if given.fresh or not kept.exists():
        kept.write_bytes(pickle.dumps(list(recorded())))
    found: list[Recorded] = pickle.loads(kept.read_bytes())
    for program in found:
        name = program.name.replace(" ", "_").replace("/", "-")
        (given.folder / f"{name}.txt").write_text(written(program), encoding="utf-8")
    print(f"{sum(len(p.groups) for p in found)} kernels of {len(found)} programs")


if __name__ == "__main__":
    main()
