"""Check the names in `options={"fusion": {"force": ..., "forbid": ...}}`."""

from __future__ import annotations

from collections.abc import Sequence

from inductor_lab.compiler.base.errors import BadOption, unknown_name
from inductor_lab.compiler.base.options import FusionOptions, within
from inductor_lab.compiler.ir.program import BufferKind, LoopProgram
from inductor_lab.compiler.records import CompiledGraph


def _decided(program: LoopProgram) -> set[str]:
    """The buffers that decisions are about: results of steps, and inputs that are written to."""
    given = (BufferKind.INPUT, BufferKind.CONSTANT)
    made = {name for name, buffer in program.buffers.items() if buffer.kind not in given}
    return made | {write.base for write in program.partial_writes}


def refuse_unknown(fusion: FusionOptions, graphs: Sequence[CompiledGraph]) -> None:
    """Raise BadOption for a pair to force or forbid that no part of the graphs has."""
    made = {
        f"g{number}.{part.name}": _decided(part.loops)
        for number, graph in enumerate(graphs)
        for part in graph.parts
    }
    for option in ("force", "forbid"):
        for pair in getattr(fusion, option):
            parts = [part for part in made if within((pair,), part)]
            known = sorted(set().union(*(made[part] for part in parts)), key=lambda n: (len(n), n))
            wrong = [name for name in pair[:2] if name not in known]
            todo = ""
            if not made:
                todo = "no graph was captured, so there is no buffer"
            elif not parts:
                todo = "\n  ".join(unknown_name("part", pair[-1], made))
            elif wrong:
                todo = "\n  ".join(unknown_name("buffer", wrong[0], known))
            elif not any(made[part].issuperset(pair[:2]) for part in parts):
                todo = f"no single part has both buffers: {', '.join(parts)}"
            if todo:
                raise BadOption(f"fusion.{option}", pair, todo=todo)
