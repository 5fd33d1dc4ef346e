"""Write a minified graph as a standalone program that reproduces the failure."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path
from typing import Any

import torch

from inductor_lab.compiler.base.display import write_errors
from inductor_lab.debug.faults.seeding import ACTIVE
from inductor_lab.debug.isolate import run_isolated
from inductor_lab.debug.minify.candidate import Candidate
from inductor_lab.debug.minify.checks import VARIES
from inductor_lab.debug.minify.minified import Minified

FREED = re.compile(r";  [\w =]+ = None$")
"""The text with which FX releases a name that is no longer needed."""
MANY = 200
"""Number of calls in a script with an intermittent failure, which does not occur in every call."""
INLINE = 64
"""Maximum number of elements written in a script; larger tensors are in a separate file."""

HEAD = '''"""{name}: {symptom}

Made by lab.minify.  It ends with status 0 once nothing fails any more.
"""

import copy
import faulthandler
from pathlib import Path

import torch
from torch import device, inf, nan{imports}

'''
TAIL = '''

def outcome(function):
    """Results, gradients, and what is written to inputs."""
    given = [
        copy.deepcopy(v.detach()).requires_grad_(v.requires_grad)
        if isinstance(v, torch.Tensor) else v
        for v in {given}
    ]
    results = function(*[v.view_as(v) if isinstance(v, torch.Tensor) else v for v in given])
    results = [t for r in results for t in (r if isinstance(r, tuple) else [r])]
    found = [{view} for r in results if isinstance(r, torch.Tensor)]
    trained = [r.float().sum() for r in found if r.requires_grad]
    if trained:
        sum(trained).backward()
    return [r.detach() for r in found] + [
        t for v in given if isinstance(v, torch.Tensor)
        for t in (v.detach(), v.grad) if t is not None
    ]


faulthandler.dump_traceback_later(60, exit=True)  # if it hangs
expected = outcome(Repro())
{indent}compiled = torch.compile(Repro(), backend={backend!r})
{first}{indent}for _ in range({calls}):
{indent}    for got, wanted in zip(outcome(compiled), expected, strict=True):
{indent}        torch.testing.assert_close(got, wanted, equal_nan=True, rtol={rtol}, atol={atol})
print("it does not fail any more")
'''


def script_of(
    candidate: Candidate, name: str, symptom: str, backend: Any, checked: bool
) -> str:
    """The program: the graph, its inputs, the call, and the comparison with eager mode.

    It needs our package only for our backend.  If only a check of the user detects the failure, the
    program calls the compiled graph without a comparison.
    """
    ours = backend == "inductor_lab"
    imports = "\n\nimport inductor_lab as lab" if ours and ACTIVE else ""
    known = backend if isinstance(backend, str) else "inductor_lab"
    exact = symptom.endswith(f"fails {VARIES}")
    faults = "".join(f"lab.faults.{fault}(), " for fault in ACTIVE) if ours else ""
    enter = f"with {faults.removesuffix(', ')}:\n" if faults else ""
    tail = TAIL.format(
        given="INPUTS", backend=known, indent="    " if enter else "",
        first=f"{'    ' if enter else ''}expected = outcome(compiled)\n" if exact else "",
        calls=MANY if VARIES in symptom else 5,
        view="torch.signbit(r)" if "sign of zero" in symptom else "r",
        rtol=0 if exact else _tolerance(candidate), atol=0 if exact else 1e-5,
    )  # fmt: skip
    tail = tail.replace("expected = outcome(Repro())\n", f"expected = outcome(Repro())\n{enter}")
    return (
        HEAD.format(name=name, symptom=symptom, imports=imports)
        + f"INPUTS = [\n{_inputs(candidate)}]\n\n\n{_modules(candidate.module)}{tail}"
    )


def _tolerance(candidate: Candidate) -> float:
    """The relative tolerance for the least precise dtype of the inputs."""
    short = any(isinstance(v, torch.Tensor) and v.dtype in (torch.float16, torch.bfloat16)
                for v in candidate.inputs)  # fmt: skip
    return 2e-2 if short else 1e-3


def _modules(module: torch.fx.GraphModule, name: str = "Repro") -> str:
    """The graph as a torch module with inputs x0, x1, ..., after the modules of its branches and
    loop bodies."""
    graph, known = torch.fx.Graph(), dict[torch.fx.Node, torch.fx.Node]()
    for node in module.graph.nodes:
        count = len(graph.find_nodes(op="placeholder"))
        known[node] = (
            graph.placeholder(f"x{count}") if node.op == "placeholder"
            else graph.node_copy(node, lambda n: known[n])
        )  # fmt: skip
    lines = graph.python_code("self").src.strip().splitlines()
    body = "\n".join(f"    {FREED.sub('', line)}".rstrip() for line in lines)
    read = dict.fromkeys(str(node.target) for node in graph.find_nodes(op="get_attr"))
    held = {target: each for target, each in module.named_children() if target in read}
    made = "".join(f"        self.{each} = {name}_{each}()\n" for each in held)
    made = f"    def __init__(self):\n        super().__init__()\n{made}\n" if held else ""
    inner = (f"{_modules(each, f'{name}_{target}')}\n\n" for target, each in held.items()
             if isinstance(each, torch.fx.GraphModule))  # fmt: skip
    return f"{''.join(inner)}class {name}(torch.nn.Module):\n{made}{body}\n"


def _inputs(candidate: Candidate) -> str:
    texts = (_input(number, value) for number, value in enumerate(candidate.inputs))
    return "".join(f"    {text},\n" for text in texts)


def _input(number: int, value: Any) -> str:
    if not isinstance(value, torch.Tensor):
        return repr(value)
    grad = ".requires_grad_()" if value.requires_grad else ""
    plain = getattr(value, "lab_text", "")
    if plain:
        return f"{plain}{grad}"
    if _spelled_out(value):
        text = f"torch.tensor({value.detach().flatten().tolist()}, dtype={value.dtype})"
        return f"{text}.reshape({tuple(value.shape)}){grad}"
    return f'torch.load(Path(__file__).with_name("input{number}.pt")){grad}'


def _spelled_out(value: torch.Tensor) -> bool:
    """Is it a small contiguous tensor at the start of its storage?"""
    whole = value.layout is torch.strided and value.is_contiguous() and not value.storage_offset()
    return whole and value.numel() <= INLINE and not value.dtype.is_complex


def write_files(
    minified: Minified, folder: Path, limit: float, compiler: str = "inductor_lab"
) -> Path:
    """Write `repro.py` with its inputs, `log.txt`, and a saved compilation; raises CannotWrite.

    The compilation is saved if the compile and the call succeed within `limit` seconds.
    """
    candidate = minified.candidate
    ast.parse(minified.script)
    with write_errors(folder, "minified graph"):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "repro.py").write_text(minified.script, encoding="utf-8")
        (folder / "log.txt").write_text("\n".join(map(str, minified.log)) + "\n", encoding="utf-8")
        for number, value in enumerate(candidate.inputs):
            if isinstance(value, torch.Tensor) and "torch.load" in _input(number, value):
                torch.save(value.detach(), folder / f"input{number}.pt")
    run_isolated(lambda tell: _save(candidate, folder, compiler), limit)
    return folder


def _save(candidate: Candidate, folder: Path, compiler: str) -> None:
    from inductor_lab.api.backend import inspect

    def first_call(*given: Any) -> Any:
        return candidate.module(*given)

    inspect(first_call, *candidate.inputs, compiler=compiler).save(folder / "compilation.lab.json")
    sys.stdout.flush()
