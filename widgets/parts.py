"""One direction of one graph (forward or backward) as panes, from ATen ops to the host program."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from inductor_lab.compiler.base.display import bytes_text
from inductor_lab.compiler.codegen.kernel import Kernel
from inductor_lab.compiler.codegen.tree.loop_tree import Tree
from inductor_lab.compiler.codegen.tree.text import tree_lines
from inductor_lab.compiler.ir.higher_order import KERNELS_OF_OURS
from inductor_lab.compiler.ir.index import ASSUMED
from inductor_lab.compiler.ir.program import LoopProgram, written_by
from inductor_lab.compiler.library_choice import Choice
from inductor_lab.compiler.rewrite.rewrites import Step
from inductor_lab.compiler.schedule.cost import extern_cost
from inductor_lab.compiler.schedule.schedule import Decision, Group, Schedule
from inductor_lab.compiler.step_time import StepTime, duration
from inductor_lab.notebook.language import say, translate
from inductor_lab.widgets.graphs import (
    cost_text,
    fx_picture,
    node_paths,
    program_picture,
    schedule_picture,
)
from inductor_lab.widgets.links import Links
from inductor_lab.widgets.memory import memory_views
from inductor_lab.widgets.shapes import Block, Pane, ShownLine, View
from inductor_lab.widgets.views import (
    PART_VIEWS,
    Row,
    block,
    code_lines,
    diff_lines,
    empty_view,
    fx_lines,
    loop_lines,
    pane,
    row,
    table_view,
    text_view,
)
from inductor_lab.widgets.words import pass_description

if TYPE_CHECKING:
    from inductor_lab.compiler.records import CompiledPart, PassStep

def part_panes(
    part: CompiledPart, scope: str, earlier: str, links: Links, seconds: Mapping[str, float]
) -> dict[str, Pane]:
    """Panes of a part by id; `scope` is like `g0.forward`, `earlier` the scope it came from."""
    link_part(part, scope, earlier, links)

    def took(phase: str) -> float | None:
        return seconds.get(f"{part.name}.{phase}")

    kernels = len(part.all_kernels)
    panes = {
        f"{scope}.graph": graph_pane(part, scope, links),
        f"{scope}.rewrites": rewrites_pane(part, scope, links, took("rewrite")),
        f"{scope}.loops": loops_pane(part, scope, links, took("lower")),
        f"{scope}.schedule": schedule_pane(part, scope, links, took("schedule")),
        f"{scope}.memory": pane(
            "memory", memory_views(part.schedule, scope, links, assumed_text([part]))
        ),
        f"{scope}.code": pane(
            "code",
            [code_view(part, scope, links), *trees_views(part, scope, links)],
            count=kernels,
            seconds=took("codegen"),
        ),
        f"{scope}.host": pane(
            "host", [*host_views(part, scope, links)], seconds=took("host"),
        ),
    }
    for name, added in PART_VIEWS.items():
        panes[f"{scope}.{name}"]["views"] += [make(part, scope, links) for make in added.values()]
    return panes


def host_views(part: CompiledPart, scope: str, links: Links) -> Iterator[View]:
    """The host program, and the one that calls consecutive steps at once, if there is one."""
    yield text_view("text", [block(code_lines(part.host.code, links, scope))])
    if part.host_in_runs is not None:
        title = say("What a call runs: each run calls its steps from C++.")
        lines = code_lines(part.host_in_runs.code, links, scope)
        yield text_view("steps in one call", [block(lines, title)])


def link_part(part: CompiledPart, scope: str, earlier: str, links: Links) -> None:
    """Link the nodes before and after the rewrites, and the buffers."""
    links.graph(part.graph, scope, earlier)
    for step in part.rewrites.steps:
        if step.after is not None:
            links.graph(step.after, scope, scope)
    link_buffers(part.loops, links, scope)


def link_buffers(program: LoopProgram, links: Links, scope: str) -> None:
    """Link every buffer to the FX nodes it came from."""
    for name, buffer in program.buffers.items():
        given = links.label("node", scope, name)
        nodes = links.find("node", scope, sorted(buffer.origins))
        links.add("buffer", scope, name, nodes, given)
    for step in program.steps:
        parents = links.find("node", scope, sorted(step.origins))
        for name in written_by(step):
            links.add("buffer", scope, name, parents)


def graph_pane(part: CompiledPart, scope: str, links: Links) -> Pane:
    """The ATen graph, and the decompositions."""
    picture = fx_picture(part.graph, links, scope, step_notes(part))
    views: list[View] = [
        picture.view("graph"),
        text_view("text", [block(fx_lines(part.graph, links, scope))]),
        decompositions_view(part, scope, links),
    ]
    calls = sum(node.op.startswith("call") for node in part.graph.nodes)
    return pane("graph", views, count=calls)


def step_notes(part: CompiledPart) -> dict[str, str]:
    """FX node → the kernels or library calls that compute it, and their measured times."""
    notes: dict[str, str] = defaultdict(str)
    for step, took in zip(part.schedule.steps, part.times, strict=False):
        said = say("in {kernel}: {time}", kernel=took.name, time=translate(str(took)))
        for origin in step.origins:
            notes[origin] += f"\n{said}"
    return notes


def decompositions_view(part: CompiledPart, scope: str, links: Links) -> View:
    """Each decomposed op, the ops that replace it, and the user's line."""
    if not part.decompositions:
        return empty_view("decompositions", "No ops were decomposed.")
    rows = [
        row((d.op, ", ".join(d.became), d.span or ""), links.find("node", scope, d.nodes))
        for d in part.decompositions
    ]
    return table_view("decompositions", ("op", "replaced by", "line"), rows)


def rewrites_pane(
    part: CompiledPart, scope: str, links: Links, seconds: float | None
) -> Pane:
    """The diff and the applied rules of each pass that changed the graph."""
    changed = [step for step in part.rewrites.steps if step.changed]
    quiet = [step.name for step in part.rewrites.steps if not step.changed]
    idle = say("Passes without effect: {names}.", names=", ".join(quiet)) if quiet else ""
    if not changed:
        nothing = empty_view("diff", f"{say('No pass changed the graph.')} {idle}")
        return pane("rewrites", [nothing], count="0", seconds=seconds)
    rules = [
        row((step.name, fired.rule, fired.node, fired.became or say("nothing"), fired.span_text),
            links.find("node", scope, (fired.node, fired.became)))
        for step in changed
        for fired in step.fired
    ]
    columns = ("pass", "rule", "node", "replaced by", "line")
    views: list[View] = [
        text_view("diff", [step_diff(step, scope, links) for step in changed]),
        table_view("rules", columns, rules, idle),
    ]
    last = next((s.after for s in reversed(part.rewrites.steps) if s.after is not None), None)
    if last is not None:
        views += [
            fx_picture(last, links, scope).view("graph after"),
            text_view("text after", [block(fx_lines(last, links, scope))]),
        ]
    return pane("rewrites", views, count=len(changed), seconds=seconds)


def step_diff(step: Step, scope: str, links: Links) -> Block:
    if step.before is None or step.after is None:
        return block([[str(fired)] for fired in step.fired], step.name, first=0, language="")
    before = list(fx_lines(step.before, links, scope))
    after = list(fx_lines(step.after, links, scope))
    return block(diff_lines(before, after), step.name, first=0)


def loops_pane(part: CompiledPart, scope: str, links: Links, seconds: float | None) -> Pane:
    """The loop program before fusion: one nest for each op."""
    program = part.loops
    picture = program_picture(program, links, scope, module_paths(part))
    views: list[View] = [
        text_view("text", [block(loop_lines(program, links, scope))]),
        picture.view("graph"),
        *passes_views(part.loop_steps, scope, links),
    ]
    return pane("loops", views, count=len(program.steps), seconds=seconds)


def module_paths(part: CompiledPart) -> dict[str, str]:
    """The module path of every FX node of the part, before and after the rewrites."""
    graphs = [part.graph, *(step.after for step in part.rewrites.steps)]
    return node_paths(node for graph in graphs if graph is not None for node in graph.nodes)


def schedule_pane(part: CompiledPart, scope: str, links: Links, seconds: float | None) -> Pane:
    """The loop graph with its groups, every decision with its reasons, and the costs."""
    schedule = part.schedule
    picture = schedule_picture(schedule, links, scope, module_paths(part), part.times)
    views: list[View] = [
        picture.view("graph"),
        decisions_view(schedule, scope, links),
        groups_view(part, scope, links),
        *([libraries_view(part.libraries)] if part.libraries else []),
        *passes_views(part.schedule_steps, scope, links),
    ]
    count = ops_to(schedule.before.kernels, schedule.after.kernels)
    return pane("schedule", views, count=count, seconds=seconds)


def ops_to(before: int, after: int) -> str:
    """`5 ops → 1`: the count of a schedule in the rail."""
    return say("1 op → {m}" if before == 1 else "{n} ops → {m}", n=f"{before:,}", m=f"{after:,}")


def decisions_view(schedule: Schedule, scope: str, links: Links) -> View:
    """One row for each pair with its final decision, which opens to the verdict of every rule and
    to earlier attempts."""
    if not len(schedule.decisions):
        return empty_view(
            "decisions", "Nothing to decide: no two loop nests share data."
        )
    rows = []
    for *earlier, final in schedule.decisions.by_pair.values():
        joined = not final.fused and schedule.in_one_kernel(final.producer, final.consumer)
        rows.append(decision_row(final, scope, links, earlier, joined))
    columns = ("pair", "decision", "reason", "relation", ">saves")
    note = "Open a row to see the verdict of every rule."
    return table_view("decisions", columns, rows, note)


def decision_row(
    d: Decision, scope: str, links: Links, earlier: Sequence[Decision] = (), joined: bool = False
) -> Row:
    """The row of one pair; its button requests the opposite decision.

    `joined`: other pairs have put both nests into one kernel, although this pair was not fused.
    """
    cells = (
        f"{d.producer} + {d.consumer}",
        say("in one kernel through other pairs" if joined else fused_or_not(d)),
        refusal(d),
        say(d.relation),
        bytes_text(d.bytes_saved),
    )
    things = links.find("buffer", scope, (d.producer, d.consumer))
    said = [
        (v.rule, say(v.kind), translate(v.reason) if v.reason else say("ok")) for v in d.verdicts
    ]
    signs = ["no" if v.reason else "ok" for v in d.verdicts]
    for number, each in enumerate(earlier, 1):
        said.append((say("earlier attempt {n}", n=number), say(fused_or_not(each)), refusal(each)))
        signs.append("ok" if each.fused else "no")
    pair = f"{'forbid' if d.fused else 'force'} {d.producer} {d.consumer} {scope}"
    shown = row(cells, things, said, "ok" if d.fused or joined else "no")
    return replace(shown, more_marks=tuple(signs), pair=pair)


def fused_or_not(decision: Decision) -> str:
    return "fused" if decision.fused else "not fused"


def refusal(decision: Decision) -> str:
    """The first reason against a fusion, or the option that decided."""
    if decision.choice != "rules":
        return say(f"{decision.choice} by an option")
    against = [verdict for verdict in decision.verdicts if verdict.reason]
    if not against:
        return say("all {n} rules agree", n=len(decision.verdicts))
    return f"{against[0].rule}: {translate(against[0].reason or '')}"


def groups_view(part: CompiledPart, scope: str, links: Links) -> View:
    """What each kernel reads, writes and computes, its time if measured, and its share of the roof
    if known; the totals unfused and fused."""
    schedule, measured = part.schedule, bool(part.times)
    shown = 3 if any(took.roof is not None for took in part.times) else 2 * measured
    rows = []
    for position, step in enumerate(schedule.steps):
        things = links.find("node", scope, sorted(step.origins))
        took = _time_cells(part.times[position])[:shown] if measured else ()
        if isinstance(step, Group):
            cost = step.cost
            made = ", ".join(sorted(step.stored)) or say("nothing")
            inlined = ", ".join(sorted(step.inlined))
            detail = [("stored", made), ("inlined", inlined or say("nothing"))]
            detail.append(("cost", cost_text(step)))
            rows.append(row((*_cost_cells(step.name, cost), *took), things, detail))
        else:
            cost = extern_cost(step, part.loops.buffers)
            why = "" if step.reason == KERNELS_OF_OURS else f"  ({translate(step.reason)})"
            name = f"{step.op}{why}"
            rows.append(row((*_cost_cells(name, cost), *took), things))
    total = duration(sum(took.seconds for took in part.times))
    unfused = _cost_cells(say("unfused"), schedule.before)
    rows.append(row((*unfused, *[""] * shown)))
    after = (*_cost_cells(say("fused"), schedule.after), *(total, "", "")[:shown])
    rows.append(row(after, mark="ok"))
    note = say("; ").join(filter(None, (saved_text(schedule), assumed_text([part]))))
    columns = ("kernel", ">reads", ">writes", ">flop", ">passes")
    more = (">time", ">GB/s", ">of the roof")[:shown]
    return table_view("kernels", (*columns, *more), rows, note)


def libraries_view(choices: Sequence[Choice]) -> View:
    """One row for each size of a product, with the chosen library, which opens to all times."""
    rows = []
    for choice in choices:
        m, k, n = choice.sizes
        took = dict(choice.seconds)
        cells = (choice.op, f"({m:,}, {k:,}) × ({k:,}, {n:,})", choice.dtype, choice.chosen,
                 duration(took[choice.chosen]))  # fmt: skip
        times = [(name, duration(seconds)) for name, seconds in choice.seconds]
        rows.append(row(cells, more=times))
    note = (
        "Timed on random operands, with the weight read from memory.  The fastest is called; "
        "inductor_lab if it is nearly as fast.  Packed: the weight stays in the library's layout."
    )
    return table_view("libraries", ("operator", "sizes", "dtype", "called", ">time"), rows, note)


def assumed_text(parts: Iterable[CompiledPart]) -> str:
    """`s27, s77 counted as 64`; "" if all sizes are known."""
    names = ", ".join(sorted({name for part in parts for name in part.assumed}))
    return say("{names} counted as {n}", names=names, n=ASSUMED) if names else ""


def _time_cells(took: StepTime) -> tuple[str, str, str]:
    bandwidth = f"{took.bandwidth / 1e9:.3g}"
    return duration(took.seconds), bandwidth, took.share_text


def _cost_cells(name: str, cost: Any) -> tuple[str, ...]:
    return (
        name,
        bytes_text(cost.bytes_read),
        bytes_text(cost.bytes_written),
        f"{cost.flops:,}",
        f"{cost.passes:,}",
    )


def saved_text(schedule: Schedule) -> str:
    """Kernels and memory passes before and after fusion, and the traffic that fusion saves."""
    before, after = schedule.before, schedule.after
    return say(
        "kernels: {n} unfused → {fused}; memory passes: {passes} unfused → {fewer} fused; "
        "{saved:.1f} % of the traffic saved",
        n=f"{before.kernels:,}", passes=f"{before.passes:,}",
        fused=fused_text(after.kernels, schedule.library_calls), fewer=f"{after.passes:,}",
        saved=100 * schedule.saved,
    )  # fmt: skip


def fused_text(steps: int, library_calls: int) -> str:
    """The kernels after fusion: `2 fused`, or `37 generated + 84 library calls`."""
    if not library_calls:
        return say("{n} fused", n=f"{steps:,}")
    one = library_calls == 1
    text = "{n} generated + 1 library call" if one else "{n} generated + {calls} library calls"
    return say(text, n=f"{steps - library_calls:,}", calls=f"{library_calls:,}")


def passes_views(steps: Sequence[PassStep], scope: str, links: Links) -> list[View]:
    """The diff of each pass over a loop program or a schedule."""
    shown = [list(_step_lines(step, scope, links)) for step in steps]
    blocks = [
        block(diff_lines(before, after), pass_title(step.name), first=0)
        for step, before, after in zip(steps[1:], shown, shown[1:], strict=False)
    ]
    return [text_view("diff", blocks)] if blocks else []


def _step_lines(step: PassStep, scope: str, links: Links) -> Iterable[ShownLine]:
    if isinstance(step.result, LoopProgram):
        return loop_lines(step.result, links, scope)
    return ([line, []] for line in str(step.result).splitlines())


def pass_title(name: str) -> str:
    """The name of a pass with what it does."""
    return f"{name}: {translate(pass_description(name)) or say('a user-defined pass')}"


def code_view(part: CompiledPart, scope: str, links: Links) -> View:
    """The generated kernels in execution order; a block with `kernel` can be edited."""
    if not part.all_kernels:
        return empty_view("text", "No kernels: this part only calls libraries or creates views.")
    blocks: list[Block] = []
    for kernel in part.all_kernels:
        shown = kernel_block(kernel, f"{kernel.name}   {kernel.language}", links, scope)
        if kernel not in part.written:
            shown["kernel"] = [scope, kernel.name]
        blocks.append(shown)
    return text_view("text", blocks)


def kernel_block(kernel: Kernel, title: str, links: Links, scope: str) -> Block:
    """A generated kernel with syntax colours."""
    return block(code_lines(kernel.code, links, scope), title, language=kernel.language)


def trees_views(part: CompiledPart, scope: str, links: Links) -> list[View]:
    """The loop tree of each C++ kernel before all passes, and the diff of each pass."""
    blocks = []
    for trees in part.trees:
        lines = [tree_shown(step.tree, links, scope) for step in trees.steps]
        blocks.append(block(lines[0], f"{trees.kernel}   {say('before all passes')}"))
        for step, before, after in zip(trees.steps[1:], lines[:-1], lines[1:], strict=True):
            title = f"{trees.kernel}   {pass_title(step.name)}"
            blocks.append(block(diff_lines(before, after), title, first=0))
    return [text_view("loops", blocks)] if blocks else []


def tree_shown(tree: Tree, links: Links, scope: str) -> list[ShownLine]:
    """A loop tree's text, each line with its FX nodes."""
    return [
        [text, links.find("node", scope, sorted(origins))] for text, origins in tree_lines(tree)
    ]
