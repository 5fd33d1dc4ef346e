"""Write the result of every stage to files: `c.dump(folder)` and `TORCH_COMPILE_DEBUG=1`.

The files have the names that stock TorchInductor uses, so PyTorch's documentation of debug folders
applies:

```
model__0_forward/fx_graph_readable.py       the ATen graph
                 fx_graph_runnable.py       the same with random inputs: `python` runs it
                 fx_graph_transformed.py    after our rewrites
                 ir_pre_fusion.txt          the loop program
                 ir_post_fusion.txt         the schedule
                 fusion.txt                 every decision, with the result of each rule
                 output_code.py             kernels and host program, with random inputs; runs too
                 kernels/                   each kernel separately; a Triton kernel with every
                                            stage down to its .ptx and .cubin
captured_0.py, joint_0.py, guards.txt, compilation.lab.json     for the whole call (`c.dump`)
```
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch.fx import GraphModule

from inductor_lab.compiler.base.display import write_errors, write_text
from inductor_lab.compiler.base.errors import CompileFailed, UnknownTarget
from inductor_lab.compiler.codegen.cpp.printer import by_name, translation_unit
from inductor_lab.compiler.codegen.kernel import Kernel
from inductor_lab.compiler.ir.index import hint
from inductor_lab.compiler.ir.program import LoopProgram
from inductor_lab.compiler.pipeline import GraphCompiler
from inductor_lab.compiler.records import AnyRecord, CompiledPart
from inductor_lab.debug.dump.runnable import inner_tensors, operators_of_the_user, sub_graphs
from inductor_lab.saved.saving import save

FOLDER = "torch_compile_debug"
CONSTANTS = "constants.pt"

_GIVEN = '''
def given(dtype, size, stride, device):
    """Random numbers in this layout; integers are 0 or 1, so that they may be indices."""
    room = 1 + sum((n - 1) * s for n, s in zip(size, stride)) if all(size) else 0
    real = dtype.is_floating_point or dtype.is_complex
    flat = torch.randn(room, dtype=torch.float32) if real else torch.randint(0, 2, (room,))
    return flat.to(dtype).to(device).as_strided(size, stride)


def inputs():
    torch.manual_seed(0)
    return [
{inputs}
    ]


def summary(result):
    """A result in one line: dtype, shape and sum."""
    if not isinstance(result, torch.Tensor):
        return repr(result)
    value = result.detach().to(torch.complex128 if result.is_complex() else torch.float64).sum()
    return f"{{result.dtype}} {{list(result.shape)}} sum {{value.item():.5g}}"


if __name__ == "__main__":
    for number, result in enumerate({run}):
        print(number, summary(result))
'''


_WRITTEN = '''
def results(args):
    """The return values of the graph: the results, then the inputs that it writes to."""
    return (*call(list(args)), {written})
'''

_HELD = "# not runnable alone: self holds"
"""The note in a graph's text about attributes, which this program defines."""

_LOADED = f"""from pathlib import Path

constants = torch.load(Path(__file__).with_name("{CONSTANTS}"), weights_only=True)
"""


def dump(compilation: AnyRecord, folder: str | Path) -> Path:
    """Implements `Compilation.dump`."""
    root = _made(Path(folder))
    write_text(root / "guards.txt", str(compilation.capture) + "\n", "guards")
    for number, graph in enumerate(compilation.graphs):
        write_text(root / f"captured_{number}.py", str(graph.captured), "graph")
        if graph.joint is not None:
            write_text(root / f"joint_{number}.py", str(graph.joint), "graph")
        for part in graph.parts:
            dump_part(part, root / f"model__{number}_{part.name}", compilation.target)
    save(root / "compilation.lab.json", compilation)
    return root


def dump_part(part: CompiledPart, folder: Path, target: str | None = None) -> Path:
    """Write the files of one direction; raises CannotWrite.

    `target` is the machine that it was compiled for (`"cuda:90"`); None: this machine.
    """
    _made(folder)
    last = next((s.after for s in reversed(part.rewrites.steps) if s.after is not None), part.graph)
    texts = {
        "fx_graph_readable.py": str(part.graph),
        "fx_graph_runnable.py": runnable(part),
        "fx_graph_transformed.py": str(last),
        "ir_pre_fusion.txt": str(part.loops),
        "ir_post_fusion.txt": str(part.schedule),
        "fusion.txt": str(part.schedule.decisions),
        "output_code.py": output_code(part),
    }
    for name, text in texts.items():
        write_text(folder / name, text.rstrip("\n") + "\n", "text")
    kernels = _made(folder / "kernels")
    for kernel in part.kernels:
        suffix = "cpp" if kernel.language == "cpp" else "py"
        write_text(kernels / f"{kernel.name}.{suffix}", str(kernel), "kernel")
        if kernel.language == "triton":
            _rungs(kernel, kernels, target or _this_gpu())
    inner = inner_tensors(part.graph.module, "Constants")
    inner |= inner_tensors(_called_graphs(part.loops), "Constants")
    constants = {**_attributes(part), **inner, **part.loops.constants}
    if constants:
        torch.save(constants, folder / CONSTANTS)
    return folder


def _rungs(kernel: Kernel, folder: Path, target: str) -> None:
    """Write `name.ttir` ... `name.ptx`, `name.cubin`, or `name.error.txt` if Triton fails."""
    if not target:
        return
    try:
        rungs = kernel.ladder(target)
    except (UnknownTarget, CompileFailed) as error:
        rungs = {"error.txt": str(error)}
    for rung, made in rungs.items():
        file = folder / f"{kernel.name}.{rung}"
        if isinstance(made, str):
            write_text(file, made, "code")
        else:
            file.write_bytes(made)


def _this_gpu() -> str:
    """Triton's name of this machine's GPU; "" if there is no NVIDIA GPU."""
    if not torch.cuda.is_available() or torch.version.hip is not None:
        return ""
    return "cuda:{}{}".format(*torch.cuda.get_device_capability())


def _made(folder: Path) -> Path:
    with write_errors(folder, "folder of files"):
        folder.mkdir(parents=True, exist_ok=True)
    return folder


def runnable(part: CompiledPart) -> str:
    """The ATen graph as a standalone program, which needs only torch."""
    module = part.graph.module
    held = any(node.op == "get_attr" for node in part.graph.nodes)
    first = "Constants, " if held else ""
    lines = [line for line in str(part.graph).splitlines() if not line.startswith(_HELD)]
    head = ['"""The graph as torch runs it, on random inputs."""\n',
            operators_of_the_user(module), *lines, ""]  # fmt: skip
    if held:
        kept = _attributes(part) or inner_tensors(module, "Constants")
        head.append(_LOADED if kept else "constants = {}\n")
        head.append("Constants = type('Constants', (), constants)\n")
        if any(sub_graphs(module, "Constants")):
            head.append("from torch import device, inf, nan\n\n")
        head += sub_graphs(module, "Constants")
    run = f"forward({first}*inputs())"
    return "\n".join([*head, _GIVEN.format(inputs=_inputs(part.loops), run=run)])


def output_code(part: CompiledPart) -> str:
    """Kernels and host program as a standalone program, which needs this package to run them."""
    loops = part.loops
    heading = f'"""{part.name}: the generated code, on random inputs."""\n'
    others = [kernel.name for kernel in part.kernels if kernel.language != "cpp"]
    cannot = "Triton kernels are started by the compiled function alone" if others else ""
    graphs = _called_graphs(loops)
    if len(graphs) < len(loops.callees):
        cannot = "it calls functions that are not in this file"
    lines = [heading, operators_of_the_user(part.graph.module), *_cpp(part)]
    lines += [f"{kernel.code}" for kernel in part.kernels if kernel.language != "cpp"]
    lines.append(str(part.host))
    if loops.constants or inner_tensors(graphs, "Constants"):
        lines.append(_LOADED + "globals().update(constants)\n")
    if graphs:
        lines.append("from torch import device, inf, nan\n\n\nclass Constants:\n    pass\n\n")
        lines += sub_graphs(graphs, "Constants")
        lines += [f"{name} = Constants.{name}" for name in graphs]
    run = "call(inputs())"
    if loops.writes:
        places = [str(entry) for entry in loops.inputs]
        written = ", ".join(f"args[{places.index(write.input)}]" for write in loops.writes)
        lines.append(_WRITTEN.format(written=written))
        run = "results(inputs())"
    run = f"exit({cannot!r})" if cannot else run
    return "\n".join([*lines, _GIVEN.format(inputs=_inputs(loops), run=run)])


def _called_graphs(program: LoopProgram) -> torch.nn.ModuleDict:
    """The sub-graphs that are arguments of higher-order operators."""
    called = program.callees.items()
    return torch.nn.ModuleDict({name: f for name, f in called if isinstance(f, GraphModule)})


def _cpp(part: CompiledPart) -> Iterator[str]:
    kernels = [kernel for kernel in part.kernels if kernel.language == "cpp"]
    if not kernels:
        return
    unit = str(translation_unit(kernels))
    assert "'''" not in unit, "C++ has no such token"
    signatures = {
        name: "".join("n" if p.role == "symbol" else "p" for p in twins[0].parameters)
        for name, twins in by_name(kernels).items()
    }
    yield "from inductor_lab.debug.dump.load import cpp_functions\n"
    yield f"CPP = r'''{unit}'''\n"
    yield f"globals().update(cpp_functions(CPP, {signatures!r}))\n"


def _attributes(part: CompiledPart) -> Mapping[str, torch.Tensor]:
    """Tensors that are attributes of the graph, if the live module exists."""
    names = [node.target for node in part.graph.nodes if node.op == "get_attr"]
    found = {name: getattr(part.graph.module, name.removeprefix("self."), None) for name in names}
    tensors = ((n, t) for n, t in found.items() if isinstance(t, torch.Tensor))
    return {name.removeprefix("self."): tensor.detach() for name, tensor in tensors}


def _inputs(program: LoopProgram) -> str:
    """One line for each input; symbolic sizes are 64, as in `hint`."""
    lines = []
    for entry in program.inputs:
        buffer = program.buffers.get(str(entry))
        if buffer is None:
            lines.append("64,")
            continue
        size, stride = (tuple(map(hint, n)) for n in (buffer.layout.size, buffer.layout.stride))
        lines.append(f"given({buffer.dtype}, {size}, {stride}, {buffer.device!r}),")
    return "\n".join(f"        {line}" for line in lines)


# ---- TORCH_COMPILE_DEBUG ---------------------------------------------------------------------


class DumpingCompiler(GraphCompiler):
    """Writes each part that it compiles below `torch_compile_debug/`, as stock does."""

    def compile_part(self, module: torch.fx.GraphModule, name: str) -> Callable[..., Any]:
        compiled = super().compile_part(module, name)
        run = run_folder()
        number = sum(1 for _ in run.glob("model__*"))
        dump_part(self.parts[name], run / f"model__{number}_{name}", self.options.target)
        return compiled


@cache
def run_folder() -> Path:
    """One folder for all graphs of this process."""
    started = datetime.now().strftime("%Y_%m_%d_%H_%M_%S")
    return Path(FOLDER).resolve() / f"run_{started}-pid_{os.getpid()}" / "inductor_lab"
