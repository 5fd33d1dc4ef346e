"""Generated text with its origins: lines, kernels and the host program."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import sympy
import torch

from inductor_lab.compiler.base.display import Shown, counted
from inductor_lab.compiler.base.operations import perform
from inductor_lab.compiler.ir.expr import NO_ORIGINS, Origins
from inductor_lab.compiler.ir.program import Buffer
from inductor_lab.compiler.ir.value import Value
from inductor_lab.compiler.schedule.schedule import Group

MARK = "inductor_lab"
"""A file that marks our kernels in Triton's cache folder, which all programs share."""


@dataclass(frozen=True, slots=True)
class Line(Value):
    """One line of generated text and the FX nodes that it computes.

    `statement` is false for lines that compute nothing of the user's (braces, includes, blank).
    """

    text: str
    origins: Origins = NO_ORIGINS
    statement: bool = True


def heading(origins: Origins) -> str:
    """The line over a C++ function that names its FX nodes."""
    return f"// {', '.join(sorted(origins))}"


def merged(texts: Iterable[Iterable[Line]]) -> Iterator[Line]:
    """The lines of equal texts once, each with the origins that it has in all of them."""
    for same in zip(*texts, strict=True):
        yield replace(same[0], origins=NO_ORIGINS.union(*(line.origins for line in same)))


@dataclass(frozen=True, slots=True)
class Code(Shown):
    """Generated text: a tuple of lines, made while emitting and never parsed again."""

    lines: tuple[Line, ...]

    @staticmethod
    def of(lines: Iterable[Line]) -> Code:
        return Code(tuple(lines))

    def __str__(self) -> str:
        return "\n".join(line.text for line in self.lines) + "\n"

    def lines_of(self, node: str) -> tuple[int, ...]:
        """1-based numbers of the lines that compute this FX node."""
        return tuple(n for n, line in enumerate(self.lines, 1) if node in line.origins)


@dataclass(frozen=True, slots=True)
class Parameter:
    """One argument of a kernel: a buffer's address, or the value of a symbol (int64), or of another
    number that kernels do not work out themselves (`ir.index.given_of`).

    `name` is its name in the kernel's text (`in0`, `out0`, `ks0`).  A buffer that is `checked` is
    given with its length (`options.check_bounds`).
    """

    name: str
    role: Literal["in", "out", "symbol"]
    buffer: str | None = None
    dtype: torch.dtype | None = None
    symbol: sympy.Expr | None = None
    checked: bool = False


@dataclass(frozen=True, eq=False)
class Kernel(Shown):
    """One fused group as text for one language.

    name        `cpp_fused_add_cos_pow_sin_0`, `triton_fused_...`
    code        this kernel's function alone, with origins
    parameters  in call order
    group, buffers   what it was made from, so that the group can be rendered in the other language
    launch      for Triton: constants and grid (see `codegen/triton/printer.py`); empty for C++
    seconds     what writing it took, of which equal kernels take next to nothing
    """

    name: str
    language: Literal["cpp", "triton"]
    device: str
    code: Code
    parameters: tuple[Parameter, ...]
    group: Group
    buffers: Mapping[str, Buffer]
    launch: Mapping[str, Any] = field(default_factory=dict)
    seconds: float = 0.0

    def __repr__(self) -> str:
        return f"Kernel({self.name}: {self.language}, {counted(len(self.code.lines), 'line')})"

    def __str__(self) -> str:
        return str(self.code)

    def ladder(self, target: str) -> dict[str, str | bytes]:
        """Every rung of Triton's compiler for a named GPU, without a GPU.

        `"cuda:90"` gives ttir, ttgir, llir, ptx, cubin; `"hip:gfx942"` gives amdgcn and hsaco in
        their place.  A C++ kernel is rendered as Triton first.  Raises UnknownTarget, or
        CompileFailed.
        """
        return dict(perform("ladder", self, target))


@dataclass(frozen=True, eq=False)
class HostProgram(Shown):
    """The Python function that allocates, calls the kernels and frees, in order."""

    code: Code
    parameters: tuple[str, ...]

    def __repr__(self) -> str:
        return f"HostProgram({counted(len(self.code.lines), 'line')})"

    def __str__(self) -> str:
        return str(self.code)
