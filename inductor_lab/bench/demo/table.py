"""The table that the demo prints for one program."""

from __future__ import annotations

from inductor_lab.bench.demo.run import Outcome
from inductor_lab.compiler.base.display import bytes_text, counted


def outcome_table(outcome: Outcome) -> str:
    """One line each for graphs, kernels, bytes, seconds and the largest error."""
    c = outcome.compilation
    kinds = f"{sum(g.backward is not None for g in c.graphs)} with gradient"
    ratio = outcome.eager_ms / outcome.compiled_ms
    verdict = "agrees" if outcome.passed else "DIFFERS"
    note = f", {outcome.note}" if outcome.note else ""
    rows = [
        ("graphs", f"{len(c.graphs)} ({kinds}), {counted(len(c.capture.breaks), 'break')}"),
        ("kernels", c.kernels_text),
        ("memory passes", f"{c.before.passes:,} unfused → {c.after.passes:,} fused"),
        ("bytes saved", f"{bytes_text(c.before.bytes - c.after.bytes)} ({c.saved:.1%})"),
        ("code", f"{c.coverage.headline}, {counted(c.coverage.calls, 'extern call')}"),
        ("compile seconds", _phase_text(c.seconds)),
        ("eager", f"{outcome.eager_ms:.3f} ms"),
        ("compiled", f"{outcome.compiled_ms:.3f} ms ({ratio:.2f}x)"),
        ("largest error", f"{outcome.error:.1e} ({verdict}){note}"),
    ]
    if outcome.report:
        rows.append(("report", str(outcome.report)))
    return "\n".join([f"\n{outcome.program.title}", *(f"  {name:16}{text}" for name, text in rows)])


def _phase_text(seconds: dict[str, float]) -> str:
    """`0.61 = capture and autograd 0.40 + rewrite 0.01 + ...`, parts of both directions summed."""
    phases: dict[str, float] = {}
    for name, took in seconds.items():
        if name not in ("total", "graph"):
            short = name.split(".")[-1]
            phases[short] = phases.get(short, 0.0) + took
    rest = seconds["total"] - sum(phases.values())
    parts = [f"capture, autograd, first run {rest:.2f}"]
    parts += [f"{name} {took:.2f}" for name, took in phases.items()]
    return f"{seconds['total']:.2f} = " + " + ".join(parts)
