"""Generated text with its origins: lines, kernels and the host program."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import sympy

from inductor_lab.compiler.base.display import Shown, counted
from inductor_lab.compiler.base.operations import perform
from inductor_lab.compiler.ir.expr import NO_ORIGINS, Origins
from inductor_lab.compiler.ir.program import Buffer
from inductor_lab.compiler.ir.value import Value
from inductor_lab.compiler.schedule.schedule import Group
from inductor_lab.compiler.torch_door.torch_types import torch

MARK = "inductor_lab"
"""A file that marks our kernels in Triton's cache folder, which all programs share."""


@dataclass(frozen=True, slots=True)
class Line(Value):
    """One line of generated text and the FX nodes that it computes.

    `statement` is false for lines that compute nothing (braces, includes, blank lines).
    """

    text: str
    origins: Origins = NO_ORIGINS
    statement: bool = True


def heading(origins: Origins) -> str:
    """The comment above a C++ function that names its FX nodes."""
    return f"// {', '.join(sorted(origins))}"


def merged(texts: Iterable[Iterable[Line]]) -> Iterator[Line]:
    """The lines of equal texts, once; each line has the union of its origins in all texts."""
    for same in zip(*texts, strict=True):
        yield replace(same[0], origins=NO_ORIGINS.union(*(line.origins for line in same)))


@dataclass(frozen=True, slots=True)
class Code(Shown):
    """Generated text: a tuple of lines, created while emitting and never parsed."""

    lines: tuple[Line, ...]

    @staticmethod
    def of(lines: Iterable[Line]) -> Code:
        return Code(tuple(lines))

    def __repr__(self) -> str:
        return f"Code({counted(len(self.lines), 'line')})"

    def __str__(self) -> str:
        return "\n".join(line.text for line in self.lines) + "\n"

    def lines_of(self, node: str) -> tuple[int, ...]:
        """1-based numbers of the lines that compute this FX node."""
        return tuple(n for n, line in enumerate(self.lines, 1) if node in line.origins)


@dataclass(frozen=True, slots=True)
class Parameter:
    """One argument of a kernel: a buffer's address, the value of a symbol (int64), or another
    number that kernels do not compute themselves (`ir.index.size_arguments`).

    `name` is its name in the kernel's text (`in0`, `out0`, `ks0`).  If `checked`, the buffer is
    passed with its length (`options.check_bounds`).
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
    code        the function of this kernel only, with origins
    parameters  in call order
    group, buffers   the source, so that the group can be rendered in the other language
    launch      for Triton: constants and grid (see `codegen/triton/printer.py`); empty for C++
    seconds     time to generate the text (nearly 0 for copies of equal kernels)
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
        """Every stage of Triton's compiler for a target GPU; no GPU is needed.

        `"cuda:90"` gives ttir, ttgir, llir, ptx, cubin; `"hip:gfx942"` gives amdgcn and hsaco
        instead of the last two.  A C++ kernel is first rendered as Triton.  Raises UnknownTarget or
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
