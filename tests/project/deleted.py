"""Programs that are compiled in a process that refuses to import some of our packages:

    python -m tests.project.deleted inductor_lab.compiler.accelerate inductor_lab.debug

With `--wide`, the demo programs and a sample of torch's operators follow.  Prints the modules of
ours that were imported, in order.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from importlib.abc import MetaPathFinder
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

DEMO = Path(__file__).parents[2] / "inductor_lab" / "bench" / "demo" / "programs.py"
EVERY = 45
"""A sample takes each such operator of the database."""
DRAWN = ("rand", "dropout", "bernoulli", "normal", "multinomial", "poisson", "empty", "exponential",
         "uniform", "cauchy", "geometric")  # fmt: skip
"""In names of operators whose results are drawn, or not set."""


class Refuses(MetaPathFinder):
    """Makes packages look as if they had been deleted."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(names)

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if name.startswith(tuple(f"{refused}." for refused in self.names)) or name in self.names:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def programs() -> Iterator[tuple[str, Callable[[], Sequence[Any]]]]:
    """A function of each program, which returns what it computes, gradients included."""
    import torch
    from torch import nn
    from torch.nn import functional as F

    mlp = nn.Sequential(nn.Linear(64, 128), nn.GELU(), nn.LayerNorm(128), nn.Linear(128, 10))
    image = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU()).eval()
    x, labels = torch.randn(32, 64), torch.randint(0, 10, (32,))
    rows, pictures = torch.randn(64, 1000), torch.randn(2, 3, 32, 32)
    index = torch.randint(0, 64, (100,))

    def training_step() -> Sequence[Any]:
        loss = F.cross_entropy(mlp(x), labels)
        return [loss, *torch.autograd.grad(loss, list(mlp.parameters()))]

    yield "softmax", lambda: [rows.softmax(-1)]
    yield "training step", training_step
    yield "convolution", lambda: [image(pictures)]
    yield "reductions", lambda: [rows.sum(0), rows.amax(1), rows.argmax(1), rows.var(1)]
    yield "gather and scatter", lambda: [rows[index], rows.index_add(0, index, rows[index])]
    yield "scan and sort", lambda: [rows.cumsum(1), rows.sort(1).values]
    yield "half", lambda: [(rows.half() * 2).sum(1), rows.bfloat16().exp()]
    yield "transpose", lambda: [(rows.T.contiguous() + 1), F.pad(rows, (1, 2)).tanh()]


def demos() -> Iterator[tuple[str, Callable[[], Sequence[Any]]]]:
    """The eight programs of `inductor-lab demo`; their file needs nothing of ours."""
    import torch

    spec = spec_from_file_location("demo_programs", DEMO)
    assert spec is not None and spec.loader is not None
    module = sys.modules[spec.name] = module_from_spec(spec)
    spec.loader.exec_module(module)
    for demo in module.PROGRAMS:
        function, args = demo.make()

        def program(function: Any = function, args: Any = args, wants: bool = demo.gradient) -> Any:
            out = torch.utils._pytree.tree_leaves(function(*args))
            out = [each for each in out if isinstance(each, torch.Tensor)]
            given = [arg for arg in args if isinstance(arg, torch.Tensor) and arg.requires_grad]
            if wants and given:
                out += torch.autograd.grad(sum(each.sum() for each in out), given)
            return out

        yield demo.name, program


def operators() -> Iterator[tuple[str, Callable[[], Sequence[Any]]]]:
    """Operators of torch's own database, each with its first example."""
    import torch
    from torch.testing._internal.common_methods_invocations import op_db

    known = [op for op in op_db if not any(word in op.name for word in DRAWN)]
    for op in known[::EVERY]:
        if op.supports_dtype(torch.float32, "cpu"):
            sample = next(iter(op.sample_inputs("cpu", torch.float32)))

            def program(op: Any = op, sample: Any = sample) -> Any:
                out = op(sample.input, *sample.args, **sample.kwargs)
                return torch.utils._pytree.tree_leaves(out)

            yield op.name, program


def compare(options: dict[str, Any], wide: bool) -> None:
    import torch
    from torch.testing import assert_close

    torch.manual_seed(0)
    for name, program in (*programs(), *((*demos(), *operators()) if wide else ())):
        torch.compiler.reset()
        fast = torch.compile(program, backend="inductor_lab", options=options)
        for _ in range(2):
            for ours, eager in zip(fast(), program(), strict=True):
                assert_close(
                    ours, eager, rtol=1e-3, atol=1e-4, equal_nan=True,
                    msg=lambda m, n=name: f"{n}: {m}",
                )  # fmt: skip


def main() -> None:
    options: dict[str, Any] = {"passes_off": "all", "accelerators_off": "all"}
    refused = [name for name in sys.argv[1:] if not name.startswith("--")]
    sys.meta_path.insert(0, Refuses(refused))
    compare(options if "--bare" in sys.argv else {}, "--wide" in sys.argv)
    print(*(name for name in sys.modules if name.split(".")[0] == "inductor_lab"), sep="\n")


if __name__ == "__main__":
    main()
