"""Check the host program of a part by statement: is every buffer right while it is needed?"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from inductor_lab.compiler.ir.program import BufferView, read_by
from inductor_lab.compiler.records import CompiledPart
from inductor_lab.compiler.schedule.schedule import Group
from inductor_lab.debug.blame.programs import Ran
from inductor_lab.debug.compare.precision import Judged, judge
from inductor_lab.debug.compare.values import copies
from inductor_lab.debug.explore.host_statements import HostRun
from inductor_lab.debug.isolate import Tell


@dataclass(frozen=True)
class HostCheck:
    """`first_wrong` steps through one call of a part on copies of its inputs (`given`).

    right   the schedule's buffers and outputs
    judged  judges a buffer from its name, its value and the right value, allowing for rounding
    """

    part: CompiledPart
    given: Sequence[Any]
    right: Ran
    judged: Callable[[str, torch.Tensor, torch.Tensor], Judged]

    def first_wrong(self, tell: Tell) -> tuple[int, str, str] | None:
        """The first line after which a buffer that is still needed is wrong."""
        made, last = self._made(), self._last_uses()
        inputs = copies(self.given)
        run, step = HostRun(self.part, inputs), -1
        made_at: dict[str, int] = {}
        lines = self.part.host.code.lines
        line = 0
        for statement in run:
            line = statement.line
            tell(line)
            made_at.update(dict.fromkeys(statement.made, line))
            step += any(x.statement for x in lines[line - 1 : line + statement.text.count("\n")])
            for name, value in run.tensors.items():
                expected = self.right.buffers.get(name)
                # before its step, a buffer is uninitialized memory
                if expected is None or not made.get(name, 0) <= step < last.get(name, -1):
                    continue
                judged = self.judged(name, value, expected)
                if name not in statement.made and not judged.right:
                    return line, name, f"{name} is needed later, and is lost here: {judged}"
                if not judged.right:
                    return line, name, f"{name}: {judged}"
        results = self.right.outputs[: len(self.part.loops.returned)]
        for number, (got, expected) in enumerate(zip(run.results or (), results, strict=True)):
            name = _buffer(self.part.loops.returned[number])
            judge_it = partial(self.judged, name) if name else plainly
            if isinstance(expected, torch.Tensor) and not (judged := judge_it(got, expected)).right:
                return line, name, f"result {number}: {judged}"
        for write, output in self.part.loops.written_inputs:
            position = self.part.loops.inputs.index(write.input)
            number = self.part.loops.outputs.index(output)
            judged = plainly(inputs[position], self.right.outputs[number])
            if not judged.right:
                buffer = _buffer(output)
                says = f"{write.input} does not get its new value: {judged}"
                return made_at.get(buffer, line), buffer, says
        return None

    def _made(self) -> Mapping[str, int]:
        """The position of the step that computes each buffer."""
        found: dict[str, int] = {}
        for position, step in enumerate(self.part.schedule.steps):
            if isinstance(step, Group):
                made = [nest.buffer for group in step.parts for nest in group.nests]
            else:
                made = [name for name in step.outputs if name is not None]
            found.update(dict.fromkeys(made, position))
        return found

    def _last_uses(self) -> Mapping[str, int]:
        """The position of the last step that reads each buffer; results are always needed."""
        schedule, found = self.part.schedule, dict[str, int]()
        for position, step in enumerate(schedule.steps):
            nests: Sequence[Any] = (step,)
            if isinstance(step, Group):
                nests = [n for g in step.parts for n in (*g.nests, *g.inlined.values())]
            for nest in nests:
                found.update(dict.fromkeys(read_by(nest), position))
        return {**found, **dict.fromkeys(self.part.loops.output_buffers, len(schedule.steps))}


def _buffer(output: Any) -> str:
    return output.buffer if isinstance(output, BufferView) else ""


def plainly(value: Any, expected: torch.Tensor) -> Judged:
    """Compare a value with the right one, without a tolerance."""
    exact = expected.double() if expected.is_floating_point() else None
    return judge(value, expected, exact, None)
