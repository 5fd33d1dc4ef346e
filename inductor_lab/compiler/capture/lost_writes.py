"""The reason that a function runs in eager mode because TorchDynamo would lose its writes."""

from __future__ import annotations

from collections.abc import Sequence
from traceback import FrameSummary

from torch.fx import GraphModule

from inductor_lab.compiler.capture.capture import AsCaptured
from inductor_lab.compiler.capture.expression import find_expression
from inductor_lab.compiler.capture.fx_graph import Span
from inductor_lab.compiler.capture.span import innermost, shown_file, spans_in
from inductor_lab.compiler.torch_door.pending_writes import Writes, writes_to_other_tables
from inductor_lab.compiler.torch_door.torch_api import HigherOrderOperator
from inductor_lab.compiler.torch_door.torch_names import missing

Stack = Sequence[FrameSummary]

BEFORE, AFTER, UNKNOWN = "before", "after", "unknown"


def loses_writes(module: GraphModule) -> AsCaptured | None:
    """The reason, if the function that is being traced, as `module`, would lose a write.

    TorchDynamo has dropped the final writes of an object that the function made and does not
    return.  They count as lost unless all of them were traced on one side of each operator, and
    before the last.
    """
    operators = [n for n in module.graph.nodes if isinstance(n.target, HigherOrderOperator)]
    if missing("lost writes") or not operators:
        return None
    traces = [str(node.meta.get("stack_trace") or "") for node in operators]
    calls = [spans_in(trace) for trace in traces]
    lost = [writes for writes in writes_to_other_tables() if _are_lost(writes, calls)]
    if not lost:
        return None
    names = ", ".join(sorted({repr(name) for writes in lost for name in writes.attributes}))
    between = operators[0].target.name()
    text = f"TorchDynamo would lose writes to {names} before or after `{between}`"
    return AsCaptured("lost_writes", text, innermost(traces[0]))


def _are_lost(writes: Writes, calls: Sequence[Sequence[Span]]) -> bool:
    if writes.are_lost is not None or not writes.stacks:
        return True
    sides = [{_side(stack, call, writes.stacks) for stack in writes.stacks} for call in calls]
    return sides[-1] != {BEFORE} or any(side not in ({BEFORE}, {AFTER}) for side in sides)


def _side(write: Stack, call: Sequence[Span], stacks: Sequence[Stack]) -> str:
    """Was this write traced before or after a call?  Decided in the first frame that differs."""
    for depth, (frame, span) in enumerate(zip(write, call, strict=False)):
        side = _side_in_frame(frame, span)
        if side:
            return UNKNOWN if _is_repeated(frame, depth, stacks) else side
    return UNKNOWN


def _side_in_frame(frame: FrameSummary, span: Span) -> str:
    """The side of a frame's current expression; empty if the call is in the same expression.

    Arguments of the call are evaluated before it.
    """
    if (shown_file(frame.filename), frame.name) != (span.file, span.function):
        return UNKNOWN
    line, column = frame.lineno or 0, _column(frame)
    if line == span.line and column in (span.column, 0):
        return ""
    call = find_expression(frame.filename, span.line, span.column, "")
    if call and (span.line, span.column) < (line, column) < (call.end_line, call.end_column):
        return BEFORE
    return BEFORE if (line, column) < (span.line, span.column) else AFTER


def _column(frame: FrameSummary) -> int:
    """From 1; 0 if it is not known."""
    return 0 if frame.colno is None else frame.colno + 1


def _is_repeated(frame: FrameSummary, depth: int, stacks: Sequence[Stack]) -> bool:
    """Was this expression evaluated several times, as in a loop?  Each time has its own frame."""
    place = frame.filename, frame.lineno, _column(frame)
    at_depth = (stack[depth] for stack in stacks if len(stack) > depth)
    return any(
        one is not frame and (one.filename, one.lineno, _column(one)) == place for one in at_depth
    )
