"""One captured graph through stock's stages, up to the first that is wrong.

Whole stages are judged as ours are, by what the call leaves behind.  Within a chain of passes two
neighbours run in float64 on the same inputs: the first pass that changes a result is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch.fx import GraphModule

from inductor_lab.compiler.base.display import counted
from inductor_lab.compiler.capture.fx_graph import FxGraph, FxNode, Span
from inductor_lab.compiler.capture.fx_to_record import fx_graph
from inductor_lab.debug.blame.blame_result import Fault, Verdict
from inductor_lab.debug.blame.findings import Findings
from inductor_lab.debug.blame.lost_writes import behind_result, written_instead
from inductor_lab.debug.blame.run_graphs import Keeping
from inductor_lab.debug.blame.stages import Difference, first_lost, run_graph, span_of
from inductor_lab.debug.compare.compare_results import first_wrong, judge_all, worst_ulp
from inductor_lab.debug.compare.precision import Judged
from inductor_lab.debug.compare.values import Outcome, copies, tangent, widened
from inductor_lab.debug.isolate import Tell, run_isolated
from inductor_lab.stock.blame.record_stages import Snapshot, numbers
from inductor_lab.stock.blame.stock_site import StockSite, Traced
from inductor_lab.stock.blame.wrapper_run import (
    WrapperChecks,
    WrapperRun,
    why_not_examined,
)


class StockAnalysis(Findings[StockSite]):
    """`run` finds the first fault of one graph."""

    def run(self) -> Fault | None:
        if self.site.error is not None:
            return self._not_compiled(self.site.error)
        if self.random:
            self.notes.append(
                f"{', '.join(sorted(self.random))} draws random numbers, stock's are not eager's: "
                "only whether the code runs is checked"
            )
        self.call_compiled()
        fault = None
        if not self.random:
            fault = self._traced("joint", self.site.joint) or self._traced(
                "decomposed", self.site.decomposed
            )
            fault = fault or self._passes()
            for part in self.site.given:
                fault = fault or self._code(part)
        return fault or self.unexplained()

    def _not_compiled(self, error: Exception) -> Fault:
        """Stock raised; where it was lowering a node, that node is named."""
        says = _first_line(error)
        self.row(self.where, "compile", "raises", says)
        lowered = self.site.record.lowered
        module = lowered.graph.owning_module if lowered is not None else None
        if lowered is None or module is None:
            return Fault("raises", self.where, "compile", says)
        node = fx_graph(module, "lowered").node(lowered.name)
        return Fault(
            "raises", self.where, "compile", says, node=lowered.name,
            op=node.target if node else "", span=node.span if node else None,
        )  # fmt: skip

    # ---- whole stages --------------------------------------------------------------------------

    def _traced(self, stage: str, traced: Traced) -> Fault | None:
        if traced.problem:
            self.row(self.where, stage, "unknown", traced.problem)
            return None
        return self._stage(stage, lambda: self.site.run_traced(traced), traced)

    def _stage(self, stage: str, run: Any, traced: Traced | None = None) -> Fault | None:
        """Judge what a call leaves with a stage in it; wrong counts if the code is wrong too."""
        try:
            got: Outcome = run()
        except Exception as error:
            says = _first_line(error)
            self.row(self.where, stage, "raises" if self.failed else "unknown", says)
            return Fault("raises", self.where, stage, says) if self.failed else None
        judged = self.reference.judge(got)
        wrong = first_wrong(judged)
        if wrong is None or not self.failed:
            same = all(j.kind == "equal" for j in judged.values())
            verdict: Verdict = "unknown" if wrong else ("right" if same else "rounding")
            says = str(wrong[1]) if wrong else "agrees with eager"
            self.row(self.where, stage, verdict, says, worst_ulp(judged))
            return None
        return self._fault(stage, *wrong, traced)

    def _fault(self, stage: str, name: str, bad: Judged, traced: Traced | None) -> Fault:
        self.row(self.where, stage, "wrong", f"{name}: {bad}", bad.ulp)
        found = self._node_of(stage, name, traced)
        node = found.node if found else None
        return Fault(
            "wrong", self.where, stage, f"{name}: {bad}" + (f" ({found.says})" if found else ""),
            value=name, node=node.name if node else "", op=node.target if node else "",
            span=self._span(node), judged=bad,
        )  # fmt: skip

    def _span(self, node: FxNode | None) -> Span | None:
        return span_of(node.name, [self.site.captured]) if node else None

    def _node_of(self, stage: str, name: str, traced: Traced | None) -> Difference | None:
        """The captured node that a traced graph gets wrong; else the one behind the result."""
        site = self.site
        if self.captured.exact is None:
            return None
        found = None
        if traced is not None and "forward" in traced.given:
            later = fx_graph(traced.graphs["forward"], stage, earlier=site.captured)
            given = traced.given["forward"]
            run = run_graph(later, copies(given), widened(given), ())
            if run.exact is not None:
                found = first_lost(site.captured, self.captured.exact, later, run.exact)
                found = written_instead(site.captured, found, self.reads, run.exact)
        return found or behind_result(site.module, site.captured, site.names, name, self.reads)

    # ---- passes --------------------------------------------------------------------------------

    def _passes(self) -> Fault | None:
        chains = self.site.record.chains
        for place, inputs in self._chain_inputs().items():
            if place not in ("forward", "backward"):
                fault = self._chain(place, chains[place], inputs)
                if fault is not None:
                    return fault
        fault = self._stage("partition", lambda: self.site.run_snapshots(last=False))
        for part, given in self.site.given.items():
            fault = fault or self._chain(part, chains[part], given)
        return fault or self._stage(
            "post_grad_passes", lambda: self.site.run_snapshots(last=True)
        )

    def _chain_inputs(self) -> Mapping[str, Sequence[Any]]:
        """Inputs for the graphs of each chain that has some."""
        found: dict[str, Sequence[Any]] = {}
        for place, chain in self.site.record.chains.items():
            count = len(chain[0].module.graph.find_nodes(op="placeholder"))
            if place == "pre_grad":
                found[place] = self.site.inputs
            elif place == "joint":
                forward = self.site.given.get("forward", [])
                found[place] = _joint_inputs(chain[0].module, forward)
            else:
                found[place] = self.site.given.get(place, [])
            if len(found[place]) != count:
                del found[place]
        return found

    def _chain(self, place: str, chain: Sequence[Snapshot], given: Sequence[Any]) -> Fault | None:
        """The first pass after which a result is another."""
        where = self.where if place in ("pre_grad", "joint") else f"{self.where}.{place}"
        before = None
        for snapshot in chain:
            try:
                after = _left(snapshot.module, given)
            except Exception as error:
                says = _first_line(error)
                self.row(where, snapshot.label, "raises" if self.failed else "unknown", says)
                if self.failed:
                    return Fault("raises", where, snapshot.label, says)
                continue
            before, earlier = after, before
            if earlier is None:
                continue
            wrong = _changed(after, earlier)
            if wrong is not None and self.failed:
                says = f"{wrong[0]} is another value after the pass: {wrong[1]}"
                self.row(where, snapshot.label, "wrong", says)
                node = _output_node(snapshot.module, wrong[0])
                return Fault(
                    "wrong", where, snapshot.label, says, wrong[0], node.name if node else "",
                    node.target if node else "", node.span if node else None, judged=wrong[1],
                )  # fmt: skip
            self.row(where, snapshot.label, "unknown" if wrong else "right",
                     str(wrong[1]) if wrong else "no result changes")  # fmt: skip
        return None

    # ---- kernels and the wrapper ---------------------------------------------------------------

    def _code(self, part: str) -> Fault | None:
        """Each kernel by itself, and what the wrapper does with its buffers."""
        where = f"{self.where}.{part}"
        wrapper = self.site.record.wrappers.get(part)
        if wrapper is None:
            self.row(where, "kernel", "unknown", "this torch does not give its wrapper")
            return None
        if reason := why_not_examined(wrapper.text):
            self.row(where, "kernel", "unknown", reason)
            return None
        given = self.site.given[part]
        graph = fx_graph(self.site.record.chains[part][-1].module, part)

        def work(tell: Tell) -> WrapperChecks:
            return WrapperRun(wrapper, graph, given, tell).run()

        ended = run_isolated(work, self.limit)
        kernels = [name for name in ended.messages if isinstance(name, str)]
        if ended.how == "returned":
            return self._judged_code(where, ended.value, graph, kernels)
        verdicts: dict[str, Verdict] = {"crashed": "crashes", "hung": "hangs"}
        verdict = verdicts.get(ended.how, "raises") if self.failed else "unknown"
        at = kernels[-1] if kernels else "wrapper"
        self.row(where, "kernel", verdict, f"{at}: {ended}")
        return Fault(verdict, where, "kernel", f"{at} {ended}", kernel=at) if self.failed else None

    def _judged_code(
        self, where: str, checks: WrapperChecks, graph: FxGraph, kernels: Sequence[str],
    ) -> Fault | None:  # fmt: skip
        found = checks.fault
        if found is None:
            self._row_of_calls(where, kernels, checks.not_compared)
            return None
        if not self.failed:
            self.row(where, found.stage, "unknown", f"{found.kernel}: {found.says}")
            return None
        self.row(where, found.stage, "wrong", found.says)
        node = graph.node(found.node)
        span = node.span if node else None
        return Fault(
            "wrong", where, found.stage, found.says, found.buffer, found.node,
            node.target if node else "", span, found.kernel, found.line, found.code, found.judged,
        )  # fmt: skip


    def _row_of_calls(
        self, where: str, kernels: Sequence[str], not_compared: Sequence[str]
    ) -> None:
        """Right if all calls were compared; unknown if none was."""
        says = f"{counted(len(kernels), 'call')}, each on correct inputs"
        if not_compared:
            says += f"; not compared: {', '.join(dict.fromkeys(not_compared))}"
        verdict: Verdict = "right" if len(not_compared) < max(len(kernels), 1) else "unknown"
        self.row(where, "kernel", verdict, says)


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).strip()}".split("\n")[0]


def _left(module: GraphModule, given: Sequence[Any]) -> tuple[Outcome, Outcome | None]:
    """Results and written inputs of a graph, by torch and in float64 (None: it cannot)."""
    plain = _once(module, copies(given), wide=False)
    try:
        return plain, _once(module, widened(given), wide=True)
    except (RuntimeError, NotImplementedError, TypeError):
        return plain, None


def _once(module: GraphModule, given: list[Any], wide: bool) -> Outcome:
    given = [v.detach() if isinstance(v, torch.Tensor) else v for v in given]
    with torch.no_grad():
        results = Keeping(module, wide=wide, keep=False).run_graph(given)
    found = {f"result {n}": v.detach() for n, v in enumerate(numbers(results))}
    return found | {f"input {n}": v for n, v in enumerate(given) if isinstance(v, torch.Tensor)}


def _changed(
    after: tuple[Outcome, Outcome | None], before: tuple[Outcome, Outcome | None]
) -> tuple[str, Judged] | None:
    exact = before[1]
    if exact is not None and after[1] is not None:
        return first_wrong(judge_all(after[1], exact, None, _digits(exact)))
    return first_wrong(judge_all(after[0], before[0], None, _digits(before[0])))


def _digits(values: Outcome) -> dict[str, torch.Tensor]:
    """What two orders of the same sums may differ by."""
    return {
        name: (v.abs().nan_to_num(0.0, 0.0, 0.0).max() * torch.finfo(v.dtype).eps * 64)
        .double().expand(v.shape)
        for name, v in values.items()
        if isinstance(v, torch.Tensor) and v.is_floating_point() and v.numel()
    }  # fmt: skip


def _joint_inputs(module: GraphModule, forward: Sequence[Any]) -> list[Any]:
    """The forward's inputs, and gradients for its results."""
    rest = module.graph.find_nodes(op="placeholder")[len(forward) :]
    made = list(_tangents(rest))
    return [*forward, *made] if len(made) == len(rest) else []


def _tangents(nodes: Sequence[torch.fx.Node]) -> Iterator[torch.Tensor]:
    for number, node in enumerate(nodes):
        fake = node.meta.get("val")
        if isinstance(fake, torch.Tensor) and all(isinstance(s, int) for s in fake.shape):
            like = torch.empty(fake.shape, dtype=fake.dtype, device=fake.device)
            yield tangent(like, number)


def _output_node(module: GraphModule, result: str) -> FxNode | None:
    """The node behind `result 2`."""
    graph = fx_graph(module, "after")
    (output,) = module.graph.find_nodes(op="output")
    nodes = [n for n in torch.utils._pytree.tree_leaves(output.args) if n is not None]
    kind, _, number = result.partition(" ")
    return graph.node(nodes[int(number)].name) if kind == "result" else None
