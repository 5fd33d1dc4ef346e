"""Print groups that differ only in names once; the other kernels are renamed copies.

    buf3[i0] = tanh(buf2[i0])      # tanh_1         in0 = buf2, out0 = buf3, lines of tanh_1
    buf7[i0] = tanh(buf6[i0])      # tanh_2    →    in0 = buf6, out0 = buf7, lines of tanh_2

Therefore the equal layers of a model are printed once.  Names affect the printed text in one place:
they determine the order of those terms of an index that are read from memory.  Twins read the same
names there.

Kernels whose printed text is equal also share one name (`share_equal_texts`).

Inductor has no counterpart: it prints every kernel, then finds equal texts.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Set
from dataclasses import replace

from inductor_lab.compiler.codegen.kernel import Code, Kernel, Line, heading
from inductor_lab.compiler.ir.expr import Expr, Load, Masked, Op, Origins
from inductor_lab.compiler.ir.program import Buffer, Nest
from inductor_lab.compiler.ir.text import in_reading_order
from inductor_lab.compiler.schedule.schedule import Group


class Twins:
    """The kernels printed so far, by the structure of their groups.

    `results` are buffers that kernels write with streaming stores (`cpp.cpp_kernel`).
    """

    def __init__(self, buffers: Mapping[str, Buffer], results: Set[str]) -> None:
        self.buffers = buffers
        self.results = results
        self.made: dict[Hashable, tuple[Kernel, NumberedNames]] = {}

    def kernel(self, group: Group, printed: Callable[[Group], Kernel]) -> Kernel:
        """The renamed kernel of an equal group; if there is none, a new kernel from `printed`."""
        numbered = NumberedNames(self.buffers)
        key = numbered.key(group, self.results)
        if key not in self.made:
            self.made[key] = printed(group), numbered
            return self.made[key][0]
        kernel, other = self.made[key]
        return _Renaming(other, numbered).kernel(kernel, group)


class NumberedNames:
    """The names in a group, numbered in order of appearance."""

    def __init__(self, known: Mapping[str, Buffer]) -> None:
        self.known = known
        self.buffers: dict[str, int] = {}
        self.origins: dict[str, int] = {}
        self._known_sets: dict[Origins, frozenset[int]] = {}

    def key(self, group: Group, results: Set[str]) -> Hashable:
        """Everything that a kernel depends on, with numbers instead of names."""
        nests = tuple(map(self._nest, (*group.nests, *group.inlined.values())))
        parts = tuple(map(self._part, group.parts))
        described = tuple((self._buffer_facts(name), name in results) for name in self.buffers)
        return nests, parts, described

    def _part(self, part: Group) -> Hashable:
        """The nests of a part: which are inlined, and which are stored."""
        own = tuple(self._buffer(nest.buffer) for nest in part.nests)
        inlined, stored = map(self._buffer, part.inlined), frozenset(map(self._buffer, part.stored))
        return part.axes, own, tuple(inlined), stored, self._origin_numbers(part.origins)

    def _nest(self, nest: Nest) -> Hashable:
        named = ("buffer", "body", "origins")  # `base` is not: a scatter is the only user of it
        kind = [getattr(nest, name) for name in nest.__match_args__ if name not in named]
        nodes = list(nest.body.walk())
        places = {id(node): place for place, node in enumerate(nodes)}
        body = tuple(self._node(node, places) for node in nodes)
        return (
            type(nest),
            *kind,
            self._buffer(nest.buffer),
            self._origin_numbers(nest.origins),
            body,
        )

    def _node(self, node: Expr, places: Mapping[int, int]) -> Hashable:
        """A node, with its children as their positions in the walk."""
        below = tuple(places[id(child)] for child in node.children())
        match node:
            case Load(buffer, index, dtype, origins):
                return self._buffer(buffer), index, dtype, self._origin_numbers(origins)
            case Op(name, _, dtype, origins):
                return name, below, dtype, self._origin_numbers(origins)
            case Masked(origins=origins):
                return below, self._origin_numbers(origins)
            case _:
                return node

    def _buffer(self, name: str) -> int:
        return self.buffers.setdefault(name, len(self.buffers))

    def _origin_numbers(self, origins: Origins) -> frozenset[int]:
        if origins not in self._known_sets:
            for name in in_reading_order(origins - self.origins.keys()):
                self.origins[name] = len(self.origins)
            self._known_sets[origins] = frozenset(self.origins[name] for name in origins)
        return self._known_sets[origins]

    def _buffer_facts(self, name: str) -> Hashable:
        buffer = self.known[name]
        return buffer.dtype, buffer.device, buffer.layout, self._origin_numbers(buffer.origins)


class _Renaming:
    """Renames from a group to its twin."""

    def __init__(self, old: NumberedNames, new: NumberedNames) -> None:
        self.buffers = dict(zip(old.buffers, new.buffers, strict=True))
        self.names = dict(zip(old.origins, new.origins, strict=True))
        self._known_sets: dict[Origins, Origins] = {}

    def kernel(self, kernel: Kernel, group: Group) -> Kernel:
        """The kernel of `group`, with the function name of the other kernel."""
        headings = {heading(kernel.group.origins): heading(group.origins)}
        lines = (
            Line(headings.get(line.text, line.text), self.origins(line.origins), line.statement)
            for line in kernel.code.lines
        )
        parameters = tuple(
            replace(p, buffer=self.buffers[p.buffer]) if p.buffer is not None else p
            for p in kernel.parameters
        )
        return replace(kernel, code=Code.of(lines), parameters=parameters, group=group)

    def origins(self, old: Origins) -> Origins:
        if old not in self._known_sets:
            self._known_sets[old] = frozenset(self.names[name] for name in old)
        return self._known_sets[old]


def share_equal_texts(kernels: Iterable[Kernel]) -> Iterable[Kernel]:
    """Give kernels whose text differs only in the name the name of the first of them.

    Therefore the equal layers of a model are compiled once.  Each kernel keeps its own origins and
    buffers.  Triton text does not contain the dtypes of its pointers, so they are compared too.
    """
    first: dict[object, str] = {}
    for kernel in kernels:
        key = text_key(kernel)
        name = first.setdefault(key, kernel.name)
        if name == kernel.name:
            yield kernel
        else:
            renamed = (
                replace(line, text=line.text.replace(kernel.name, name))
                for line in kernel.code.lines
            )
            yield replace(kernel, name=name, code=Code.of(renamed))


def text_key(kernel: Kernel) -> object:
    """A key that is equal for kernels whose text differs only in the name."""
    named = heading(kernel.group.origins)
    lines = (line.text for line in kernel.code.lines if line.text != named)
    text = "\n".join(lines).replace(kernel.name, "")
    dtypes = tuple(given.dtype for given in kernel.parameters)
    return text, dtypes, kernel.language, kernel.device, repr(kernel.launch)
