"""Check the stages of one part (a forward or a backward), from ATen graph to host program."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from typing import Any

import torch

from inductor_lab.compiler.base.display import counted
from inductor_lab.compiler.base.options import Options
from inductor_lab.compiler.capture.fx_graph import FxGraph
from inductor_lab.compiler.ir.interpret import run_nest
from inductor_lab.compiler.ir.program import ExternCall
from inductor_lab.compiler.records import CompiledPart
from inductor_lab.debug.blame.blame_result import Fault, ValueRow, Verdict
from inductor_lab.debug.blame.findings import Findings
from inductor_lab.debug.blame.first_nonfinite import first_nonfinite_in
from inductor_lab.debug.blame.host_check import HostCheck, plainly
from inductor_lab.debug.blame.kernels import KernelVerdict, check_kernels, one_by_one, unfused
from inductor_lab.debug.blame.programs import (
    NotWide,
    Ran,
    run_groups,
    run_loops,
    wide_program,
    wide_schedule,
)
from inductor_lab.debug.blame.run_graphs import is_random
from inductor_lab.debug.blame.stages import (
    GraphRun,
    agree,
    holders,
    run_graph,
    span_of,
    wrong_buffer,
    wrong_rule,
)
from inductor_lab.debug.blame.tree_stages import ITERATIONS, THOROUGH, TooManyIterations, TreeCheck
from inductor_lab.debug.blame.watch_call import Site
from inductor_lab.debug.compare.precision import Judged, judge
from inductor_lab.debug.compare.values import copies, widened
from inductor_lab.debug.isolate import Ended, Tell, run_isolated

SEED = 1
"""Seed, so that programs draw the same random numbers in each stage."""


class PartCheck:
    """`run` finds the first fault of one part; rows and values are added to `found`."""

    def __init__(self, found: Findings[Site], part: CompiledPart, where: str) -> None:
        self.found, self.part, self.where = found, part, where
        self.given: Sequence[Any] = found.site.compiler.given[part.name]
        nodes = part.graph.module.graph.nodes
        self.random = frozenset(node.name for node in nodes if is_random(node))
        self.kernels: list[KernelVerdict] = []
        self.interpreted = set[int]()

    @property
    def limit(self) -> float:
        """Time limit of code that may hang in seconds; short once a hang has occurred."""
        whole, limit = self.found.whole, self.found.limit
        return min(limit, 5.0) if whole and whole.how == "hung" else limit

    @property
    def options(self) -> Options:
        return self.found.site.compiler.options

    @property
    def graphs(self) -> list[FxGraph]:
        steps = self.part.rewrites.steps
        after = [step.after for step in steps if step.changed and step.after is not None]
        return [*self.found.graphs, self.part.graph, *after]

    def run(self) -> Fault | None:
        wide = [v.detach() if isinstance(v, torch.Tensor) else v for v in widened(self.given)]
        self.wide = wide
        run = run_graph(self.part.graph, copies(self.given), wide, self.random)
        self.found.births += [
            born for born in first_nonfinite_in(self.part.graph, run, "inductor_lab", self.where)
            if not any(b.what == born.what for b in self.found.births)
        ]  # fmt: skip
        fault, self.rewritten = self._rewrites(run)
        fault = fault or self._loops() or self._schedule() or self._trees() or self._kernels()
        self._table()
        return fault or self._host()

    # ---- stages without code ---------------------------------------------------------------------

    def _rewrites(self, run: GraphRun) -> tuple[Fault | None, GraphRun]:
        """Check each pass; returns the first fault and the graph after the last pass."""
        for step in self.part.rewrites.steps:
            if not step.changed or step.after is None:
                continue
            stage = f"rewrite: {step.name}"
            after = run_graph(step.after, copies(self.given), self.wide, self.random, run.drawn)
            if run.exact is None or after.exact is None:
                self._row(stage, "unknown", "float64 cannot run it")
            elif self._same_outputs(after, run):
                self._row(stage, "right", f"{counted(len(step.fired), 'rule')} fired")
            else:
                found = wrong_rule(step, run, after.exact)
                fired = found[0] if found else step.fired[0]
                says = f"the rule {fired.rule} made another value of {fired.node}"
                self._row(stage, "wrong", says)
                node = self.part.graph.node(fired.node)
                span = fired.span or span_of(fired.node, self.graphs)
                op = node.target if node else ""
                return Fault("wrong", self.where, stage, says, fired.became, fired.node, op,
                             span), after  # fmt: skip
            run = after
        return None, run

    def _same_outputs(self, after: GraphRun, before: GraphRun) -> bool:
        assert after.exact is not None and before.exact is not None, "compared in float64"
        new, old = (_outputs(run.graph) for run in (after, before))
        return all(
            agree(after.exact.get(n), before.exact.get(o), before.spread.get(str(o)))
            for n, o in zip(new, old, strict=True) if n is not None and o is not None
        )  # fmt: skip

    def _loops(self) -> Fault | None:
        program, known = self.part.loops, self.rewritten
        drawn = {
            name: known.drawn[node]
            for name, node in holders(program.buffers)
            if isinstance(known.drawn.get(node), torch.Tensor)
        }
        with _same_numbers():
            self.loops = run_loops(program, copies(self.given), drawn)
        try:
            exact = None if known.exact is None else run_loops(
                wide_program(program), self.wide, drawn)  # fmt: skip
        except (NotWide, RuntimeError, NotImplementedError):
            exact = None
        self.exact_loops = exact
        if exact is None:
            self._row("loops", "unknown", "float64 cannot run them")
            return None
        wrong = wrong_buffer(exact, program.buffers, known)
        if wrong is None:
            says = _match(len(program.steps), "step", "FX node")
            self._row("loops", "right", says)
            return None
        name, node = wrong
        says = f"{name} does not hold what {node} is"
        if not self._outputs_differ(exact, known) and not self.found.failed:
            self._row("loops", "unknown", says)
            return None
        self._row("loops", "wrong", says)
        return self._fault("wrong", "loops", says, name, node)

    def _outputs_differ(self, exact: Ran, known: GraphRun) -> bool:
        assert known.exact is not None, "compared in float64"
        return not all(
            agree(made, known.exact.get(name), known.spread.get(name))
            for made, name in zip(exact.outputs, _outputs(known.graph), strict=True)
            if name is not None
        )

    def _schedule(self) -> Fault | None:
        schedule = self.part.schedule
        with _same_numbers():
            self.right = run_groups(schedule, copies(self.given))
        if self.exact_loops is None or self.random:
            self._row("schedule", "unknown", "not compared in float64")
            return None
        try:
            exact = run_groups(wide_schedule(schedule), self.wide)
        except (NotWide, RuntimeError, NotImplementedError):
            self._row("schedule", "unknown", "float64 cannot run it")
            return None
        for name, value in exact.buffers.items():
            known = self.exact_loops.buffers.get(name)
            if known is not None and not agree(value, known):
                name = self._inlined_wrongly(name) or name
                says = f"{name} is another value in its group than the nest's own"
                self._row("schedule", "wrong", says)
                return self._fault("wrong", "schedule", says, name, self._node(name))
        fused = len(schedule.groups)
        says = "1 fused group matches its loop nests" if fused == 1 else (
            f"{fused} fused groups match their loop nests")  # fmt: skip
        self._row("schedule", "right", says)
        return None

    def _inlined_wrongly(self, buffer: str) -> str:
        """The first producer whose value changes when it is inlined into a group."""
        assert self.exact_loops is not None, "compared in float64"
        ran, program = self.exact_loops, wide_schedule(self.part.schedule)
        for group in (part for step in program.groups for part in step.parts):
            if buffer not in group.stored:
                continue
            for name, nest in group.inlined.items():
                value = run_nest(nest, ran.buffers, ran.symbols)
                if name in ran.buffers and not agree(value, ran.buffers[name]):
                    return name
        return ""

    # ---- code ------------------------------------------------------------------------------------

    def _trees(self) -> Fault | None:
        """Check the trees of each kernel, once for each kernel name."""
        kernels = dict[str, int]()
        for position, kernel in enumerate(self.part.kernels):
            kernels.setdefault(kernel.name, position)
        if not kernels:
            return None
        if any(kernel.device != "cpu" for kernel in self.part.kernels):
            self._row("loop tree", "unknown", "its interpreter runs on the CPU only")
            return None
        for position in kernels.values():
            with suppress(TooManyIterations):
                fault = self._wrong_tree(position, ITERATIONS)
                if fault is not None:
                    return fault
        says = _match(len(self.interpreted), "kernel", "fused group")
        left = len(kernels) - len(self.interpreted)
        verdict: Verdict = "unknown" if left else "right"
        too_long = f"; {left} take too many iterations to interpret" if left else ""
        self._row("loop tree", verdict, says + too_long)
        return None

    def _wrong_tree(self, position: int, iterations: int) -> Fault | None:
        """The first wrong tree of a kernel; raises TooManyIterations."""
        wrong = self._tree_check.wrong_tree(self.part.kernels[position], iterations)
        self.interpreted.add(position)
        if wrong is None:
            return None
        stage = f"loop tree: {wrong.made_by}"
        after = "as it was built" if wrong.made_by == "build" else f"after pass {wrong.made_by}"
        says = f"the tree of {wrong.kernel} {after}: {wrong.says}"
        if not self.found.failed:
            self._row(stage, "unknown", says)
            return None
        self._row(stage, "wrong", says, wrong.judged.ulp if wrong.judged else None)
        value = wrong.nest or wrong.value
        return self._fault(
            "wrong", stage, says, value, self._node(value), position, wrong.judged
        )

    @cached_property
    def _tree_check(self) -> TreeCheck:
        return TreeCheck(self.part.schedule, self.options, self.right, self.loops)

    def _kernels(self) -> Fault | None:
        def work(tell: Tell) -> None:
            for said in check_kernels(self.part, self.options, self.right, self.loops):
                tell(said)

        if not self.part.kernels:
            return None
        ended = run_isolated(work, self.limit)
        self.kernels = [said for said in ended.messages if isinstance(said, KernelVerdict)]
        for verdict in self.kernels:
            fault = self._judge_kernel(verdict)
            if fault is not None:
                return fault
        if ended.how != "returned":
            return self._lost_kernel(ended)
        return None

    def _judge_kernel(self, verdict: KernelVerdict) -> Fault | None:
        name, judged = verdict.worst
        stage = f"kernel {verdict.kernel}"
        if verdict.right:
            same = all(j.kind == "equal" for j in verdict.judged.values())
            self._row(stage, "right" if same else "rounding", str(judged), judged.in_ulp)
            return None
        kind: Verdict = "wrong"
        if verdict.position not in self.interpreted and not verdict.varies:
            with suppress(TooManyIterations):
                fault = self._wrong_tree(verdict.position, THOROUGH)
                if fault is not None:
                    return fault
        if verdict.outside:
            name, says = verdict.outside, f"writes outside of {verdict.outside}"
        elif verdict.varies and judged.right:
            kind, says = "not deterministic", f"{name} has other bits in each call ({judged})"
        elif verdict.varies and verdict.alone:
            kind = "race"
            says = f"{name} is right with one thread, and differs from call to call: {judged}"
        else:
            says = f"{name}: {judged}"
        self._row(stage, kind, says, judged.in_ulp)
        value = verdict.nest or name
        return self._fault(kind, "kernel", says, value, self._node(value), verdict.position, judged)

    def _lost_kernel(self, ended: Ended) -> Fault:
        """The fault of a kernel that crashed or hung."""
        position = len(self.kernels)
        kernel = self.part.kernels[position]
        verdicts: dict[str, Verdict] = {"crashed": "crashes", "hung": "hangs", "raised": "raises"}
        kind = verdicts[ended.how]
        says = f"{kernel.name} {ended}"
        self._row(f"kernel {kernel.name}", kind, says)

        alone = unfused(self.part.schedule, kernel, self.options).loaded()

        def nests(tell: Tell) -> None:
            for buffer, _ in one_by_one(alone, self.loops):
                tell(buffer)

        again = run_isolated(nests, self.limit)
        stopped = again.how != "returned" and again.messages
        name = again.messages[-1] if stopped else kernel.group.parts[0].nests[-1].buffer
        return self._fault(kind, "kernel", says, name, self._node(name), position)

    def _fault(
        self, verdict: Verdict, stage: str, says: str, value: str, node: str,
        position: int | None = None, judged: Judged | None = None,
    ) -> Fault:  # fmt: skip
        """A fault with the node, the kernel line and the user line of a value."""
        known = next((g.node(node) for g in reversed(self.graphs) if g.node(node)), None)
        kernel, line, code = self._line_of(node, position)
        return Fault(
            verdict, self.where, stage, says, value, node, known.target if known else "",
            span_of(node, self.graphs), kernel, line, code, judged,
        )  # fmt: skip

    def _line_of(self, node: str, position: int | None) -> tuple[str, int, str]:
        """The last line of a kernel (any kernel, or the one at `position`) that computes a node."""
        kernels = self.part.kernels if position is None else self.part.kernels[position:][:1]
        for kernel in kernels:
            lines = kernel.code.lines
            found = [n for n in kernel.code.lines_of(node) if lines[n - 1].statement]
            if found:
                own = [n for n in found if lines[n - 1].origins == {node}] or found
                return kernel.name, own[-1], lines[own[-1] - 1].text
        return (kernels[0].name, 0, "") if kernels and position is not None else ("", 0, "")

    def _node(self, buffer: str) -> str:
        known = self.part.loops.buffers.get(buffer)
        return max(known.origins, default="") if known is not None else ""

    # ---- the host program ------------------------------------------------------------------------

    def _host(self) -> Fault | None:
        if not self.found.failed or self.random:
            return None
        walk = HostCheck(self.part, self.given, self.right, self._judged)
        ended = run_isolated(walk.first_wrong, self.limit)
        lines = str(self.part.host).splitlines()
        if ended.how == "returned" and ended.value is None:
            self._row("host program", "right", "every buffer is right while it is needed")
            return None
        verdicts: dict[str, Verdict] = {"crashed": "crashes", "hung": "hangs", "raised": "raises"}
        if ended.how != "returned":
            at, kind, says = ended.messages[-1] + 1, verdicts[ended.how], str(ended)
            name = ""
        else:
            at, name, says = ended.value
            kind = "wrong"
        self._row("host program", kind, says)
        node = self._node(name)
        known = next((g.node(node) for g in reversed(self.graphs) if g.node(node)), None)
        code = lines[at - 1] if at <= len(lines) else ""
        return Fault(kind, self.where, "host program", says, name, node,
                     known.target if known else "", span_of(node, self.graphs), "host program", at,
                     code)  # fmt: skip

    def _judged(self, name: str, value: torch.Tensor, expected: torch.Tensor) -> Judged:
        """The verdict about a buffer, allowing for all earlier rounding errors."""
        node = self._node(name)
        exact = (self.rewritten.exact or {}).get(node)
        spread = self.rewritten.spread.get(node)
        if not isinstance(exact, torch.Tensor) or exact.shape != value.shape:
            return plainly(value, expected)
        return judge(value, expected, exact, spread)

    # ---- the table -------------------------------------------------------------------------------

    def _table(self) -> None:
        """Each buffer's distance from float64 after each stage."""
        judged = {n: j for verdict in self.kernels for n, j in verdict.judged.items()}
        made = [
            name for step in self.part.loops.steps
            for name in (step.outputs if isinstance(step, ExternCall) else (step.buffer,)) if name
        ]  # fmt: skip
        loops = getattr(self, "loops", None)
        groups = getattr(self, "right", None)
        for name in made:
            node = self._node(name)
            columns = {
                "ATen": self.rewritten.own.get(node),
                "loops": loops.buffers.get(name) if loops else None,
                "schedule": groups.buffers.get(name) if groups else None,
            }
            kinds, ulps = dict[str, str](), dict[str, float | None]()
            exact = (self.rewritten.exact or {}).get(node)
            for stage, value in columns.items():
                kinds[stage], ulps[stage] = _cell(value, exact, self.rewritten.spread.get(node))
            if name in judged:
                kinds["kernel"], ulps["kernel"] = judged[name].kind, judged[name].in_ulp
            span = span_of(node, self.graphs)
            self.found.values.append(ValueRow(self.where, node, name, span, ulps, kinds))

    def _row(self, stage: str, verdict: Verdict, says: str, ulp: float | None = None) -> None:
        self.found.row(self.where, stage, verdict, says, ulp)


def _match(count: int, one: str, reference: str) -> str:
    """`1 kernel matches its fused group`, `2 steps match their FX nodes`."""
    if count == 1:
        return f"1 {one} matches its {reference}"
    return f"{count} {one}s match their {reference}s"


def _cell(value: Any, exact: Any, spread: Any) -> tuple[str, float | None]:
    usable = isinstance(value, torch.Tensor) and isinstance(exact, torch.Tensor)
    if not usable or value.shape != exact.shape or not value.is_floating_point():
        return "", None
    judged = judge(value, exact.to(value.dtype), exact, spread)
    return judged.kind, judged.in_ulp


def _outputs(graph: FxGraph) -> list[str | None]:
    """The node of each output; None for outputs that are not nodes."""
    (output,) = graph.module.graph.find_nodes(op="output")
    return [value.name if isinstance(value, torch.fx.Node) else None for value in output.args[0]]


@contextmanager
def _same_numbers() -> Iterator[None]:
    """Use a fixed seed for random numbers, and restore the generator states afterwards."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(SEED)
        yield

