"""`lab.diff`: equal runs have an empty diff, and a change is located at the stage of its begin."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch._inductor import config  # noqa: TID251

import inductor_lab as lab
from inductor_lab.compiler.base.errors import BadArguments, UnreadableFile
from inductor_lab.debug.diff.run_stages import _text_lines
from tests.saved.schemas import valid
from tests.stock.faulty_stock import FAULTS

Args = tuple[Any, ...]


class Setting:
    """Numbers and a flag that a function reads."""

    def __init__(self, scale: float = 2.0, checked: bool = False) -> None:
        self.scale, self.checked = scale, checked


def chain(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    first = (x.sin() + 1.5) * y
    product = first @ y
    return torch.softmax(product, -1) * 0.5, product.exp() - first


def chain_of_another_constant(x: torch.Tensor, y: torch.Tensor) -> Any:
    first = (x.sin() + 1.25) * y
    product = first @ y
    return torch.softmax(product, -1) * 0.5, product.exp() - first


def chain_of_another_function(x: torch.Tensor, y: torch.Tensor) -> Any:
    first = (x.cos() + 1.5) * y
    product = first @ y
    return torch.softmax(product, -1) * 0.5, product.exp() - first


def chain_with_a_break(x: torch.Tensor, y: torch.Tensor) -> Any:
    first = (x.sin() + 1.5) * y
    torch._dynamo.graph_break()
    product = first @ y
    return torch.softmax(product, -1) * 0.5, product.exp() - first


def guarded(x: torch.Tensor, setting: Setting) -> torch.Tensor:
    if setting.checked:
        x = x + 1
    return x * 2


def guarded_by_more(x: torch.Tensor, setting: Setting) -> torch.Tensor:
    if setting.checked or setting.scale < 0:
        x = x + 1
    return x * 2


def mlp(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return F.gelu(F.layer_norm(x @ weight, (9,))).sum()


def norms(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return F.layer_norm(x, (9,)) + y.var(0)


def doubled(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return x.t().t() * 1 + y


PROGRAMS = [chain, mlp, norms, torch.add]


def inputs(grad: bool = False, dtype: torch.dtype = torch.float32, size: int = 9) -> Args:
    generator = torch.Generator().manual_seed(0)
    made = (torch.rand(size, size, generator=generator).to(dtype) for _ in range(2))
    return tuple(x.requires_grad_(grad) for x in made)


def inspected(
    fn: Callable[..., Any], args: Args, compiler: str = "inductor_lab", **options: Any
) -> Any:
    torch._dynamo.reset()
    return lab.inspect(fn, *args, compiler=compiler, options=options)


@pytest.mark.parametrize("compiler", ["inductor_lab", "stock"])
@pytest.mark.parametrize("fn", PROGRAMS)
def test_equal_runs_have_an_empty_diff(fn: Callable[..., Any], compiler: str) -> None:
    old, new = (inspected(fn, inputs(grad=fn is mlp), compiler) for _ in range(2))
    found = lab.diff(old, new)
    assert not found and found.changes == () and found.equal == len(old.graphs) > 0, str(found)
    assert valid(found.to_dict())["differs"] is False


@dataclass(frozen=True)
class Seeded:
    """A change of the program or a setting, and the stage at which it begins."""

    stage: str
    fn: Callable[..., Any] = chain
    old: Callable[..., Any] = chain
    args: Callable[[], Args] = inputs
    options: dict[str, Any] | None = None
    around: Callable[[], Any] = contextlib.nullcontext


def _with_setting() -> Args:
    return torch.ones(9), Setting()


BOTH = {
    "constant": Seeded("captured graph", chain_of_another_constant),
    "function": Seeded("captured graph", chain_of_another_function),
    "graph break": Seeded("TorchDynamo", chain_with_a_break),
    "another guard": Seeded("guards", guarded_by_more, guarded, _with_setting),
    "dtype": Seeded("captured graph", args=lambda: inputs(dtype=torch.float64)),
    "size": Seeded("captured graph", args=lambda: inputs(size=8)),
    "symbolic sizes": Seeded("captured graph", options={"dynamic": True}),
}
OURS = {
    "no fusion": Seeded("forward fusion", options={"fusion": False}),
    "no identities": Seeded(
        "forward passes", doubled, doubled, options={"rewrites_off": ["identities"]}
    ),
    "no vector lanes": Seeded("forward kernels", options={"passes_off": ["lanes"]}),
    "another language": Seeded("forward kernels", options={"language": "triton"}),
    "gradients": Seeded("guards", mlp, mlp, lambda: inputs(grad=True)),
}
STOCK = {
    "a pass of the user's": Seeded(
        "forward passes", around=FAULTS["number of a later pass"].make
    ),
    "width of vectors": Seeded("forward kernels", around=lambda: config.patch({"cpp.simdlen": 1})),
    "size of fusions": Seeded("forward fusion", around=lambda: config.patch("max_fusion_size", 1)),
    "text of a kernel": Seeded("forward kernels", around=FAULTS["function in a kernel"].make),
    "text of the wrapper": Seeded(
        "forward host program", around=FAULTS["stride of a buffer"].make
    ),
    "order of results": Seeded(
        "forward host program", around=FAULTS["results in another order"].make
    ),
    "arguments of a product": Seeded(
        "forward host program", around=FAULTS["arguments of a product swapped"].make
    ),
}
SEEDED = {
    **{f"{name}, {compiler}": (seeded, compiler) for name, seeded in BOTH.items()
       for compiler in ("inductor_lab", "stock")},
    **{name: (seeded, "inductor_lab") for name, seeded in OURS.items()},
    **{name: (seeded, "stock") for name, seeded in STOCK.items()},
}  # fmt: skip


@pytest.mark.parametrize("name", SEEDED)
def test_a_change_is_located_at_its_stage(name: str) -> None:
    seeded, compiler = SEEDED[name]
    args = seeded.args() if seeded.args is _with_setting else inputs()
    old = inspected(seeded.old, args, compiler)
    with seeded.around():
        new = inspected(seeded.fn, seeded.args(), compiler, **(seeded.options or {}))
    found = lab.diff(old, new)
    assert found and found.first is not None, str(found)
    assert found.first.stage == seeded.stage, str(found)
    assert any(line.startswith(("+", "-")) for line in found.first.lines)
    assert f"the {seeded.stage} differ" in str(found) and valid(found.to_dict())["differs"]


# ---- trace logs --------------------------------------------------------------------------------

SCRIPT = """
import sys
import torch

@torch.compile
def scaled(x):
    return (x.sin() * {number}).sum()

for size in {sizes}:
    scaled(torch.ones(size, 4))
"""


def trace(folder: Path, name: str, number: float = 2.0, sizes: tuple[int, ...] = (3, 5)) -> Path:
    """The log of a script, run in a process of its own."""
    found = folder / name
    env = {**os.environ, "TORCH_TRACE": str(found),
           "TORCHINDUCTOR_CACHE_DIR": str(folder / f"cache_{name}")}  # fmt: skip
    file = folder / "scaled.py"
    file.write_text(SCRIPT.format(number=number, sizes=sizes))
    subprocess.run([sys.executable, file], check=True, env=env, capture_output=True)
    return found


def test_trace_logs(tmp_path: Path) -> None:
    old = trace(tmp_path, "old")
    assert not lab.diff(old, trace(tmp_path, "same")), "equal runs"
    edited = lab.diff(old, trace(tmp_path, "edited", number=3.0))
    assert [change.stage for change in edited.changes] == ["captured graph"] * 2, str(edited)
    assert any(line.startswith("-") and "2.0" in line for line in edited.changes[0].lines)
    assert "forward kernels" in edited.changes[0].consequences
    fewer = lab.diff(old, trace(tmp_path, "fewer", sizes=(3,)))
    assert fewer.only_old == ("scaled 0/1",) and not fewer.changes and fewer.equal == 1
    assert valid(fewer.to_dict())["only_old"] == ["scaled 0/1"]


def test_a_saved_compilation_is_a_run(tmp_path: Path) -> None:
    old, new = (inspected(fn, inputs()) for fn in (chain, chain_of_another_constant))
    path = old.save(tmp_path / "old.lab.json")
    assert not lab.diff(path, old)
    assert lab.diff(path, new).first.stage == "captured graph"


def test_bad_runs_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadArguments, match="not a run"):
        lab.diff(3, 4)
    with pytest.raises(UnreadableFile):
        lab.diff(tmp_path, tmp_path)
    found = inspected(torch.add, inputs())
    with pytest.raises(BadArguments, match="no process 'rank7'"):
        lab.diff(found, found, processes=("rank7", "rank7"))
    with pytest.raises(BadArguments, match="not the log of several processes"):
        lab.diff(found)


def test_gpus_are_numbered_in_the_order_in_which_they_appear() -> None:
    code = "with torch.cuda._DeviceGuard({a}):\n  x = empty(device='cuda:{a}')\n  y = f('cuda:{b}')"
    first, second = (_text_lines(code.format(a=a, b=b)) for a, b in ((0, 1), (3, 2)))
    assert first == second != _text_lines(code.format(a=0, b=0))


def test_numbered_names_of_objects_are_equal() -> None:
    guards = "check(__builtins_dict___{n}['str'], 9), check(_14045078103638{n}_c1{n}.Tensor, 9)"
    assert _text_lines(guards.format(n=2)) == _text_lines(guards.format(n=3))


def test_guards_on_settings_of_torch_are_not_compared() -> None:
    found = inspected(torch.add, inputs())
    known = next(guard for guard in found.capture.guards if guard.source)
    for code, differs in (("torch.compiler.config._config['x'].user_override == 1", False),
                          ("setting.scale == 1", True)):  # fmt: skip
        guards = (*found.capture.guards, replace(known, code=code))
        other = replace(found, capture=replace(found.capture, guards=guards))
        assert bool(lab.diff(found, other)) is differs


def test_imports_of_a_host_program_are_not_compared() -> None:
    found = inspected(chain, inputs(), "stock")
    (graph,) = found.graphs
    part = graph.forward
    line = replace(part.host.lines[0], text="assert_more = torch._C._dynamo.guards.assert_more")
    host = replace(part.host, lines=(line, *part.host.lines))
    other = replace(found, graphs=(replace(graph, forward=replace(part, host=host)),))
    assert str(host) != str(part.host) and not lab.diff(found, other)


def test_compilations_name_the_version_of_torch(tmp_path: Path) -> None:
    old = inspected(torch.add, inputs())
    assert lab.load(old.save(tmp_path / "old.lab.json")).torch_version == torch.__version__
    found = lab.diff(replace(old, torch_version="2.11.0"), old)
    assert found.versions == ("2.11.0", torch.__version__) and not found
    assert f"torch 2.11.0 -> {torch.__version__}" in str(found)
