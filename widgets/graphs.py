"""FX graphs, loop programs and schedules → pictures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache

from inductor_lab.compiler.base.display import bytes_text
from inductor_lab.compiler.capture.fx_graph import FxGraph, FxNode
from inductor_lab.compiler.ir.program import (
    Buffer,
    BufferView,
    ExternCall,
    LoopProgram,
    Pointwise,
    Step,
    read_by,
    written_by,
)
from inductor_lab.compiler.schedule.schedule import Group, Schedule
from inductor_lab.compiler.step_time import StepTime, duration
from inductor_lab.compiler.torch_door.torch_tables import DTYPE_NAMES
from inductor_lab.notebook.language import say, translate
from inductor_lab.widgets.links import Links
from inductor_lab.widgets.modules import common_module, module_frames
from inductor_lab.widgets.picture import ROOT, Frame, Item, Picture, draw

OPEN_UP_TO = 70
"""A graph with more nodes than this opens collapsed by module."""

_ROLES = {"placeholder": "input", "output": "output", "get_attr": "constant"}


def fx_picture(
    graph: FxGraph,
    links: Links | None = None,
    scope: str = "",
    notes: Mapping[str, str] | None = None,
) -> Picture:
    """One box for each node; above `OPEN_UP_TO` nodes, closed frames for modules.

    `notes` has extra lines for the tooltips of nodes.
    """
    edges = [(source, node.name) for node in graph.nodes for source in node.inputs]
    frames: list[Frame] = []
    frame_of: Mapping[str, str] = {}
    if len(graph.nodes) > OPEN_UP_TO:
        paths = node_paths(graph.nodes)
        kinds = {node.name: node.target for node in graph.nodes if node.op.startswith("call")}
        frames, frame_of = module_frames(paths, kinds, edges)
    items = [
        Item(
            name=node.name,
            label=_input_name(node, links, scope) or short_target(node),
            sub=str(node.tensor) if node.tensor else "",
            role=_ROLES.get(node.op, "call"),
            tip=node_tip(node) + (notes or {}).get(node.name, ""),
            things=tuple(links.find("node", scope, [node.name])) if links else (),
            frame=frame_of.get(node.name, ROOT),
        )
        for node in graph.nodes
    ]
    return draw(graph.name, items, frames, edges)


def _input_name(node: FxNode, links: Links | None, scope: str) -> str:
    """The user's name of an input, or its node name; "" for other nodes."""
    if node.op != "placeholder":
        return ""
    return links.label("node", scope, node.name) if links else node.given or node.name


def node_paths(nodes: Iterable[FxNode]) -> dict[str, str]:
    """Module path of each node; in graphs without modules, the user's function and line."""
    known = tuple(nodes)
    if any(node.module_path for node in known):
        return {node.name: node.module_path for node in known}
    return {
        node.name: f"{node.span.function}.line {node.span.line}" if node.span else ""
        for node in known
    }


def short_target(node: FxNode) -> str:
    """`torch.ops.aten.pow.Tensor_Scalar` → `pow`; `torch.nn.functional.gelu` → `gelu`."""
    if node.op == "output":
        return "output"
    if node.target.startswith("torch.ops."):
        return ".".join(node.target.split(".")[3:4]) or node.target
    return node.target.rpartition(".")[2] or node.target


def node_tip(node: FxNode) -> str:
    """The tooltip of a node: the call, the tensor, the module, the user's line."""
    lines = [f"{node.name} = {node.target}({node.args})" if node.op != "placeholder" else node.name]
    if node.tensor:
        fact = node.tensor
        strides = ", ".join(fact.stride)
        lines.append(f"{fact}  stride ({strides})  {fact.device}  {bytes_text(fact.nbytes)}")
    if node.module_path:
        lines.append(say("module {path}", path=node.module_path))
    if node.span:
        lines.append(f"{node.span}  {node.span.code}")
    return "\n".join(lines)


def program_picture(
    program: LoopProgram,
    links: Links | None = None,
    scope: str = "",
    modules: Mapping[str, str] | None = None,
) -> Picture:
    """One box for each buffer: inputs, loop nests and extern calls.

    `modules` has the module paths of FX nodes; a large program opens collapsed by module.
    """
    frames, frame_of = _program_frames(program, modules or {}, {})
    items = list(_program_items(program, frame_of, links, scope))
    return draw(program.name, items, frames, _program_edges(program.steps))


def schedule_picture(
    schedule: Schedule,
    links: Links | None = None,
    scope: str = "",
    modules: Mapping[str, str] | None = None,
    times: Sequence[StepTime] = (),
) -> Picture:
    """The loop nests as boxes, with a frame around the nests of each kernel.

    `times` are the measured times of the schedule's steps.
    """
    program = schedule.program
    group_of = {
        nest.buffer: group
        for group in schedule.groups
        for nest in (*group.inlined.values(), *group.nests)
    }
    frames, frame_of = _program_frames(program, modules or {}, group_of)
    steps = zip(schedule.steps, times, strict=False)
    took = {step.name: time for step, time in steps if isinstance(step, Group)}
    for group in schedule.groups:
        count = len(group.nests) + len(group.inlined)
        name = f"group {group.name}"
        things = tuple(links.find("node", scope, sorted(group.origins))) if links else ()
        counted = "1 nest in one kernel" if count == 1 else "{n} nests in one kernel"
        sub = say(counted, n=count)
        tip = f"{group.name}\n{sub}\n{cost_text(group)}"
        if group.name in took:
            sub += f", {duration(took[group.name].seconds)}"
            tip += f"\n{translate(str(took[group.name]))}"
        around = frame_of.get(group.nests[0].buffer, ROOT)
        frames.append(Frame(name, group.name, sub, tip, around, open=True, things=things))
    frame_of.update({buffer: f"group {group.name}" for buffer, group in group_of.items()})
    items = list(_program_items(program, frame_of, links, scope))
    return draw(program.name, items, frames, _program_edges(program.steps))


def _program_frames(
    program: LoopProgram, modules: Mapping[str, str], group_of: Mapping[str, Group]
) -> tuple[list[Frame], dict[str, str]]:
    """Module frames of a large program; all nests of a group are put in the same module."""
    if len(program.buffers) <= OPEN_UP_TO:
        return [], {}
    made = {name: step for step in program.steps for name in written_by(step)}
    paths = {name: "" for name in program.buffers if name not in made}

    @cache  # all nests of a group have the same origins
    def module_of(origins: frozenset[str]) -> str:
        return common_module(modules.get(origin, "") for origin in origins)

    for name, step in made.items():
        origins = group_of[name].origins if name in group_of else step.origins
        paths[name] = module_of(origins)
    kinds = {name: type(step).__name__ for name, step in made.items()}
    return module_frames(paths, kinds, _program_edges(program.steps))


def cost_text(group: Group) -> str:
    """`reads 4.0 kB, writes 4.0 kB, 12 kflop`."""
    cost = group.cost
    return say(
        "reads {read}, writes {written}, {flop} flop",
        read=bytes_text(cost.bytes_read),
        written=bytes_text(cost.bytes_written),
        flop=f"{cost.flops:,}",
    )


def _program_items(
    program: LoopProgram, frame_of: Mapping[str, str], links: Links | None, scope: str
) -> Iterator[Item]:
    made = {name: step for step in program.steps for name in written_by(step)}
    used = {name for step in program.steps for name in read_by(step)}
    shown = {out.buffer for out in program.outputs if isinstance(out, BufferView)}
    for name, buffer in program.buffers.items():
        step = made.get(name)
        if step is None and name not in used and name not in shown:
            continue
        things = tuple(links.find("buffer", scope, [name])) if links else ()
        tip = f"{name}: {buffer_text(buffer)} {buffer.device}" + step_tip(step)
        role = _step_role(step, buffer)
        sub = buffer_text(buffer)
        given = links.label("buffer", scope, name) if links else name
        label = given if step is None else f"{name} = {step_kind(step)}"
        if name in shown:
            tip += f"\n{say('an output of the graph')}"
            sub += f"  {say('→ output')}"
        yield Item(name, label, sub, role, tip, things, frame_of.get(name, ROOT))


def _step_role(step: Step | None, buffer: Buffer) -> str:
    if step is None:
        return buffer.kind.value if buffer.kind.value in ("input", "constant") else "input"
    return "extern" if isinstance(step, ExternCall) else "call"


def _program_edges(steps: Iterable[Step]) -> list[tuple[str, str]]:
    return [
        (source, target)
        for step in steps
        for target in written_by(step)
        for source in sorted(read_by(step))
    ]


def step_kind(step: Step) -> str:
    """The kind of a step in a few words: the ops it came from, the reduction, the library call."""
    if isinstance(step, ExternCall):
        return step.op.removesuffix(".default").removeprefix("aten.")
    if not isinstance(step, Pointwise):
        return step.kind
    return " + ".join(sorted(step.origins)) or "pointwise"


def step_tip(step: Step | None) -> str:
    """Extra lines for a tooltip."""
    if step is None:
        return ""
    came = ", ".join(sorted(step.origins))
    lines = [say("from {names}", names=came)] if came else []
    if isinstance(step, ExternCall):
        lines.append(say("library call {op} ({why})", op=step.op, why=translate(step.reason)))
    return "".join(f"\n{line}" for line in lines)


def buffer_text(buffer: Buffer) -> str:
    """`f32[128, 64]`."""
    sizes = ", ".join(map(str, buffer.layout.size))
    return f"{DTYPE_NAMES.get(buffer.dtype, str(buffer.dtype))}[{sizes}]"
