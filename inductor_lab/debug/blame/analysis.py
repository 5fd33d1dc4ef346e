"""Check the stages of one captured graph, up to the first wrong one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch

from inductor_lab.compiler.autograd.joint import is_tangent
from inductor_lab.compiler.base.errors import CompilerDefect, LabError
from inductor_lab.compiler.capture.fx_graph import FxGraph
from inductor_lab.compiler.capture.fx_to_record import fx_graph
from inductor_lab.compiler.torch_door.torch_api import size_hint
from inductor_lab.debug.blame.blame_result import Fault, Verdict
from inductor_lab.debug.blame.findings import Findings
from inductor_lab.debug.blame.lost_writes import (
    behind_result,
    written_instead,
)
from inductor_lab.debug.blame.part import PartCheck
from inductor_lab.debug.blame.stages import (
    Difference,
    GraphRun,
    Values,
    first_changed,
    first_lost,
    gradients_of,
    lost_gradient,
    run_graph,
    span_of,
)
from inductor_lab.debug.blame.watch_call import Site
from inductor_lab.debug.compare.compare_results import first_wrong, worst_ulp
from inductor_lab.debug.compare.values import copies, tangent, widened


class Analysis(Findings[Site]):
    """`run` finds the first fault of one graph."""

    def run(self) -> Fault | None:
        """Check every stage in order; stops at the first wrong one."""
        if self.site.error is not None:
            return self._raised(self.site.error)
        if self.random:
            self.notes.append(
                f"{', '.join(sorted(self.random))} draws random numbers, ours are not eager's: "
                "the compiler's stages are compared with one another"
            )
        self.call_compiled()
        fault = self._decomposed()
        for name, part in self.site.called.items():
            if fault is None:
                fault = PartCheck(self, part, f"{self.where}.{name}").run()
        for name in self.site.parts.keys() - self.site.called.keys():
            says = "not called: no result of the call has a gradient"
            self.row(f"{self.where}.{name}", "compiled", "unknown", says)
        return fault or self.unexplained()

    # ---- ATen's operators ----------------------------------------------------------------------

    def _decomposed(self) -> Fault | None:
        site = self.site
        stage = "joint and halves" if site.compiler.joint else "decomposed"
        try:
            got = site.run(lambda name, inputs: site.parts[name].graph.run(*inputs))
        except Exception as error:  # whatever AOTAutograd's wrappers raise around the graph
            return self._wrappers_raise(stage, error)
        if self.random:
            self.row(self.where, stage, "unknown", "draws random numbers of its own")
            return None
        judged = self.reference.judge(got)
        wrong = first_wrong(judged)
        if wrong is None or not self.failed:
            same = all(j.kind == "equal" for j in judged.values())
            says = "ATen's operators agree with eager" if wrong is None else str(wrong[1])
            verdict: Verdict = "unknown" if wrong else ("right" if same else "rounding")
            self.row(self.where, stage, verdict, says, worst_ulp(judged))
            return None
        name, bad = wrong
        stage, found = self._where_decomposed(stage)
        if found is None and self.captured.exact is not None:
            site = self.site
            found = behind_result(site.module, site.captured, site.names, name, self.reads)
        self.row(self.where, stage, "wrong", f"{name}: {bad}", bad.ulp)
        says = f"{name}: {bad}" + (f" ({found.says})" if found else "")
        node = found.node if found else None
        return Fault(
            "wrong", self.where, stage, says,
            value=found.value if found and found.value else name,
            node=node.name if node else "",
            op=node.target if node else "",
            span=span_of(node.name, self.graphs) if node else None,
            judged=bad,
        )  # fmt: skip

    def _wrappers_raise(self, stage: str, error: Exception) -> Fault | None:
        """Does the call with ATen operators raise?  Then our generated code is not the cause."""
        says = f"{type(error).__name__}: {str(error).strip().split(chr(10))[0]}"
        self.row(self.where, stage, "raises" if self.failed else "unknown", says)
        return Fault("raises", self.where, stage, says) if self.failed else None

    @property
    def graphs(self) -> Sequence[FxGraph]:
        joint = self.site.compiler.joint
        return [self.site.captured, *([joint.graph] if joint else [])]

    def _where_decomposed(self, stage: str) -> tuple[str, Difference | None]:
        exact = self.captured.exact
        if exact is None:
            return stage, None
        joint = self.site.compiler.joint
        if joint is None:
            part = self.site.parts["forward"]
            run = self._run(part.graph, self.site.compiler.given["forward"])
            return stage, self._lost(part.graph, run.exact) if run.exact else None
        given = self._joint_inputs()
        run = self._run(joint.graph, [given[name] for name in (*joint.primals, *joint.tangents)])
        if run.exact is None:
            return stage, None
        found = self._lost(joint.graph, run.exact)
        if found is None and "backward" in self.site.called:
            gradients = gradients_of(self.site.module, widened(self.site.inputs), tangent)
            found = lost_gradient(self.site.captured, gradients, joint.graph, run.exact)
        if found is not None:
            return "joint", found
        return "partition", self._wrong_half(run)

    def _lost(self, later: FxGraph, values: Values) -> Difference | None:
        """The first value of the captured graph that a later graph does not compute.

        If it was read from written memory, the node that wrote it.
        """
        site = self.site
        assert self.captured.exact is not None, "compared in float64"
        found = first_lost(site.captured, self.captured.exact, later, values)
        return written_instead(site.captured, found, self.reads, values)

    def _wrong_half(self, joint: GraphRun) -> Difference | None:
        """The first node of a half whose value differs from the joint graph."""
        assert joint.exact is not None, "halves are compared in float64"
        for name, part in self.site.called.items():
            run = self._run(part.graph, self.site.compiler.given[name])
            nodes = [n for n in part.graph.nodes if n.op.startswith(("call", "placeholder"))]
            changed = run.exact and first_changed(nodes, joint.exact, run.exact, joint.spread)
            if changed:
                return Difference(changed, f"{changed.name} of the {name} is another value")
        return None

    def _run(self, graph: FxGraph, inputs: Sequence[Any]) -> GraphRun:
        return run_graph(graph, copies(inputs), widened(inputs), ())

    def _joint_inputs(self) -> Mapping[str, Any]:
        joint = self.site.compiler.joint
        found: dict[str, Any] = {}
        for name, part in self.site.called.items():
            given = [node.name for node in part.graph.nodes if node.op == "placeholder"]
            found = {**dict(zip(given, self.site.compiler.given[name], strict=True)), **found}
        return {**_no_tangents(joint.graph), **found} if joint else found

    def _raised(self, error: Exception) -> Fault:
        """The fault of a compiler error: its phase and its operator."""
        phase = error.phase if isinstance(error, CompilerDefect) else "load"
        part, _, step = phase.rpartition(".")
        where = f"{self.where}.{part}" if part else self.where
        says = str(error).strip().split("\n")[0]
        self.row(where, step, "raises", says)
        for name in self.site.parts:
            self.row(f"{self.where}.{name}", "compiled", "right", "was compiled before that")
        place = error.where if isinstance(error, LabError) else ""
        return Fault(
            "raises", where, step, f"{type(error).__name__}: {error}",
            op=error.op if isinstance(error, CompilerDefect) else "",
            span=next(self._spans_at(place), None),
        )  # fmt: skip

    def _spans_at(self, place: str) -> Iterator[Any]:
        """The spans of the captured graph that an error message names."""
        graph = fx_graph(self.site.module, "captured")
        for node in graph.nodes:
            if node.span is not None and place and node.span.code and str(node.span) in place:
                yield node.span


def _no_tangents(joint: FxGraph) -> Mapping[str, torch.Tensor]:
    """Zeros as output gradients of a joint graph whose backward was not called."""
    return {
        node.name: torch.zeros(
            [size_hint(n) for n in fake.shape], dtype=fake.dtype, device=fake.device
        )
        for node in joint.module.graph.find_nodes(op="placeholder")
        if is_tangent(node) and isinstance(fake := node.meta.get("val"), torch.Tensor)
    }
