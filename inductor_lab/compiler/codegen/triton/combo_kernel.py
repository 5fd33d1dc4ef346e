"""Prints a combo in Triton: one function per distinct part, selected by the program's number.

    block = tl.program_id(0)
    if block < 2304:
        part0(block, in0, in1, out0, 1024)          2304 blocks of 1024 elements
    elif block < 2307:
        part1(block - 2304, in2, in3, out1, 256)    three of 256

Parts with the same text share one function.

Inductor: `codegen/triton_combo_kernel.py`, `ComboKernel.SequentialDispatch`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from inductor_lab.compiler.codegen.kernel import Code, Kernel, Line, Parameter, merged
from inductor_lab.compiler.codegen.parameters import kernel_parameters, with_symbols
from inductor_lab.compiler.codegen.tree.build import build_tree
from inductor_lab.compiler.codegen.triton.blocks import (
    Blocks,
    blocks_of,
    index_type,
    launch_checks,
    reach,
)
from inductor_lab.compiler.codegen.triton.statements import Printer
from inductor_lab.compiler.ir.expr import Origins
from inductor_lab.compiler.ir.program import Buffer
from inductor_lab.compiler.schedule.schedule import Group

BLOCK = "block"
"""The first argument of the function of a part: the number of the block to compute."""


@dataclass(frozen=True)
class Part:
    """One part: the body of its function, and its arguments."""

    lines: tuple[Line, ...]
    parameters: tuple[Parameter, ...]
    blocks: Blocks
    origins: Origins

    @property
    def text(self) -> tuple[str, ...]:
        """The arguments and the lines of the function.  An argument can be unused by the lines."""
        return (*(given.name for given in self.parameters), *(line.text for line in self.lines))


def combo_kernel(
    group: Group, buffers: Mapping[str, Buffer], name: str, device: str, ops: Mapping[str, str]
) -> Kernel:
    """Print a combo; see `printer.triton_kernel`."""
    trees = [build_tree(part, buffers) for part in group.combined]
    tree = tuple(stmt for part in trees for stmt in part)
    parameters = kernel_parameters(tree, buffers)
    blocks = [blocks_of(part, tiles=False) for part in trees]
    reached = tuple(dict.fromkeys(s for cut in blocks for s in reach(parameters, buffers, cut)))
    parameters = with_symbols(parameters, reached)
    index = index_type(reached)
    parts, asserts = [], False
    for own, cut, part in zip(trees, blocks, group.combined, strict=True):
        needed = kernel_parameters(own, buffers)
        printer = Printer("", needed, cut, ops, index, BLOCK)
        parts.append(Part(printer.body(), needed, cut, part.origins))
        asserts |= printer.asserts
    caller = Printer(name, parameters, blocks[0], ops, index)
    launch: dict[str, Any] = {
        "constants": {},
        "num_warps": max(cut.warps for cut in blocks),
        "parts": tuple((cut.xnumel, cut.xblock) for cut in blocks),
    }
    launch |= launch_checks(index, reached, asserts)
    lines = tuple(_Text(caller, parts).lines())
    return Kernel(name, "triton", device, Code(lines), parameters, group, buffers, launch)


class _Text:
    """Prints the functions of the parts, each distinct text once, and the kernel."""

    def __init__(self, caller: Printer, parts: list[Part]) -> None:
        self.caller, self.parts = caller, parts
        texts = dict.fromkeys(part.text for part in parts)
        self.functions = {text: f"part{number}" for number, text in enumerate(texts)}

    def lines(self) -> Iterator[Line]:
        for text, function in self.functions.items():
            alike = [part for part in self.parts if part.text == text]
            first = alike[0]
            arguments = [BLOCK, *(p.name for p in first.parameters)]
            yield from self.caller.heading(function, arguments, first.blocks.constants)
            yield from merged(part.lines for part in alike)
            yield from (Line("", statement=False), Line("", statement=False))
        names = [p.name for p in self.caller.parameters]
        yield from self.caller.heading(self.caller.name, names, ())
        yield Line(f"    {BLOCK} = tl.program_id(0)", statement=False)
        yield from self.calls()

    def calls(self) -> Iterator[Line]:
        """Yield the call of each part, for its range of block numbers."""
        given = {(p.buffer, p.symbol): p.name for p in self.caller.parameters}
        ends = list(self.ends())
        for name, value in ends:
            if name != value:
                yield Line(f"    {name} = {value}", statement=False)
        word, start = "if", "0"
        for part, (end, _) in zip(self.parts, ends, strict=True):
            yield Line(f"    {word} {BLOCK} < {end}:", statement=False)
            first = BLOCK if start == "0" else f"{BLOCK} - {start}"
            arguments = [first, *(given[p.buffer, p.symbol] for p in part.parameters)]
            arguments += map(str, part.blocks.constants.values())
            arguments += ["INDEX"] * (self.caller.index_type == "INDEX")
            call = f"{self.functions[part.text]}({', '.join(arguments)})"
            yield Line(f"        {call}", part.origins)
            word, start = "elif", end

    def ends(self) -> Iterator[tuple[str, str]]:
        """Yield the number after the last block of each part: a name, and its value as text."""
        total, text = 0, ""
        for number, part in enumerate(self.parts):
            points, block = part.blocks.xnumel, part.blocks.xblock
            if isinstance(points, int) and not text:
                total += -(-points // block)
                yield str(total), str(total)
                continue
            before = text or str(total)
            count = f"({self.caller.text.size(points).inside()} + {block - 1}) // {block}"
            text = f"end{number}"
            yield text, f"{before} + {count}"
