"""The user's line of an error at run time.

Kernels fail at integer divisions and indirect indices.  In a host program an allocation or a
library call may raise; the exception gets the user's line as a note.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from inductor_lab.compiler.base.errors import LabError
from inductor_lab.compiler.codegen.kernel import Line
from inductor_lab.compiler.ir.expr import Load, Origins, integer_divisors
from inductor_lab.compiler.ir.index import gathered_in
from inductor_lab.compiler.ir.program import Scatter
from inductor_lab.compiler.runtime.toolchain.shared_library import place_of
from inductor_lab.compiler.schedule.schedule import Group


def integer_divisions(group: Group) -> Iterator[Origins]:
    """Yield the nodes that divide integers by a value that can be zero."""
    for nest in (*group.nests, *group.inlined.values()):
        for root in nest.roots:
            yield from (origins or nest.origins for _, origins in integer_divisors(root))


def indirect_accesses(group: Group) -> Iterator[tuple[str, Origins]]:
    """Yield the buffers that a group accesses with an indirect index.

    If a loaded position is used as a number, the buffer computed from it is yielded.
    """
    for nest in (*group.nests, *group.inlined.values()):
        nodes = [node for root in nest.roots for node in root.walk()]
        if isinstance(nest, Scatter):
            nodes.append(Load(nest.buffer, nest.index, nest.body.dtype, nest.origins))
        for node in nodes:
            if any(any(gathered_in(index)) for index in node.indices()):
                if isinstance(node, Load):
                    yield node.buffer, node.origins
                else:
                    yield nest.buffer, nest.origins


HEAD = "def call(args):"
NOTE = "_add_user_line"


def guarded_text(lines: Sequence[Line]) -> str:
    """The text of a host program that calls NOTE with an exception before it leaves.

                                    def call(args):
        def call(args):       →      try:
            buf0 = mm(x, y)             buf0 = mm(x, y)
                                     except Exception as error: _add_user_line(error); raise

    The lines of the body keep their numbers.  A call that raises nothing pays nothing for `try`.
    """
    texts = [line.text for line in lines]
    head = texts.index(HEAD)
    assert texts[head - 1] == "", "an empty line is above the function"
    texts[head - 1 : head + 1] = [HEAD, " try:"]
    return "\n".join([*texts, f" except Exception as error: {NOTE}(error); raise", ""])


def line_adder(lines: Sequence[Line], traces: Mapping[str, str]) -> Callable[[Exception], None]:
    """The function NOTE of a host program: a note with the user's line of the failed statement.

    Errors of our own contain their line.
    """

    def add(error: Exception) -> None:
        if isinstance(error, LabError) or error.__traceback__ is None:
            return
        failed = error.__traceback__.tb_lineno
        if place := place_of(lines[failed - 1].origins, traces):
            error.add_note(f"  {place}")

    return add
