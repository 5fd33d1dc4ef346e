"""`lab.compare(ours, stock)`: compare two compilers on one call, for each line of user code.

```
both = lab.compare(lab.inspect(f, x), lab.inspect(f, x, compiler="stock"))
both                      # a table: for each line, the kernels of both and the bytes they move
both.code(12)             # the generated lines that come from line 12, ours and stock's
```

Kernels have times if the compilations were measured: call `.measure()` on each.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from inductor_lab.api.arguments import checked
from inductor_lab.compiler.base.display import Shown, bytes_text, counted
from inductor_lab.compiler.base.errors import UnknownName
from inductor_lab.compiler.capture.fx_graph import FxGraph
from inductor_lab.compiler.codegen.kernel import Code
from inductor_lab.compiler.ir.higher_order import KERNELS_OF_OURS
from inductor_lab.compiler.ir.program import ExternCall
from inductor_lab.compiler.records import CompiledPart, Record
from inductor_lab.compiler.schedule.cost import extern_cost
from inductor_lab.compiler.step_time import duration
from inductor_lab.stock.stock_compilation import StockCompilation, StockPart

Place = tuple[str, int]


@dataclass(frozen=True)
class Work:
    """A kernel or a library function of one compiler; `seconds` if it was measured.

    lines     the generated lines, by the user's source line that they come from
    calls     the number of calls in one run; `nbytes` and `seconds` are totals of these calls
    """

    name: str
    part: str
    generated: bool
    nbytes: int
    seconds: float | None
    places: frozenset[Place]
    lines: Mapping[Place, tuple[str, ...]] = field(default_factory=dict)
    calls: int = 1


@dataclass(frozen=True)
class LineWork:
    """One line of user code, and the work of both compilers for it.

    Work that comes from several lines is listed at each of them, so the bytes of lines cannot be
    summed.
    """

    file: str
    line: int
    code: str
    ours: tuple[Work, ...]
    stock: tuple[Work, ...]


@dataclass(frozen=True, eq=False)
class SideBySide(Shown):
    """All kernels and library calls of our compiler and stock for one call."""

    name: str
    lines: tuple[LineWork, ...]
    ours: tuple[Work, ...]
    stock: tuple[Work, ...]

    def code(self, line: int, file: str = "") -> tuple[str, str]:
        """The generated lines that come from a line, ours and stock's; raises UnknownName."""
        for found in self.lines:
            if found.line == line and file in ("", found.file):
                place = (found.file, found.line)
                return _text(found.ours, place), _text(found.stock, place)
        raise UnknownName(
            f"no code was generated from line {line}",
            todo=f"lines with generated code: {', '.join(str(f.line) for f in self.lines)}",
        )

    def __repr__(self) -> str:
        return f"SideBySide({self.name}: {total_text(self.ours)}; stock {total_text(self.stock)})"

    def __str__(self) -> str:
        lines = [f"{self.name}", f"  inductor_lab  {total_text(self.ours)}",
                 f"  stock         {total_text(self.stock)}"]
        for found in self.lines:
            lines.append(f"{found.file}:{found.line}  {found.code}")
            for side, works in (("inductor_lab", found.ours), ("stock", found.stock)):
                lines += [f"    {side:13} {work_text(work)}" for work in works]
        return "\n".join(lines)


@checked
def compare(ours: Record, stock: StockCompilation) -> SideBySide:
    """Compare our compilation and stock's of the same call; raises BadArguments."""
    texts: dict[Place, str] = {}
    mine = tuple(w for n, g in enumerate(ours.graphs) for p in g.parts
                 for w in _our_work(p, f"g{n}.{p.name}", texts))  # fmt: skip
    theirs = tuple(w for n, g in enumerate(stock.graphs) for p in g.parts
                   for w in _stock_work(p, f"g{n}.{p.name}", texts))  # fmt: skip
    places = sorted({place for work in (*mine, *theirs) for place in work.places})
    lines = tuple(
        LineWork(
            file, line, texts[file, line],
            tuple(work for work in mine if (file, line) in work.places),
            tuple(work for work in theirs if (file, line) in work.places),
        )
        for file, line in places
    )  # fmt: skip
    return SideBySide(ours.name, lines, mine, theirs)


def _our_work(part: CompiledPart, scope: str, texts: dict[Place, str]) -> Iterator[Work]:
    after = (step.after for step in part.rewrites.steps if step.after is not None)
    spans = _places((part.graph, *after), texts)
    kernels = {g.name: k for g, k in zip(part.schedule.groups, part.kernels, strict=True)}
    for position, step in enumerate(part.schedule.steps):
        seconds = part.times[position].seconds if part.times else None
        places = frozenset(spans[origin] for origin in step.origins if origin in spans)
        if isinstance(step, ExternCall):
            cost = extern_cost(step, part.schedule.program.buffers)
            ours = step.reason == KERNELS_OF_OURS
            yield Work(step.op, scope, ours, cost.bytes, seconds, places)
        else:
            kernel = kernels[step.name]
            code = _by_place(kernel.code, spans)
            yield Work(kernel.name, scope, True, step.cost.bytes, seconds, places, code)


def _stock_work(part: StockPart, scope: str, texts: dict[Place, str]) -> Iterator[Work]:
    spans = _places((part.graph, part.last), texts)
    for kernel in part.kernels:
        places = frozenset(spans[node] for node in kernel.nodes if node in spans)
        generated = kernel.language != "extern"
        code = _by_place(kernel.code, spans)
        yield Work(
            kernel.name, scope, generated, kernel.bytes, kernel.seconds, places, code,
            max(kernel.calls, 1),
        )  # fmt: skip


def _places(graphs: Iterable[FxGraph], texts: dict[Place, str]) -> dict[str, Place]:
    """Node → its line; the code of each line is added to `texts`."""
    found: dict[str, Place] = {}
    for graph in graphs:
        for node in graph.nodes:
            if node.span is not None:
                place = found[node.name] = (node.span.file, node.span.line)
                texts.setdefault(place, node.span.code)
    return found


def _by_place(code: Code, spans: Mapping[str, Place]) -> dict[Place, tuple[str, ...]]:
    found: dict[Place, list[str]] = {}
    for line in code.lines:
        if line.statement:
            for place in sorted({spans[origin] for origin in line.origins if origin in spans}):
                found.setdefault(place, []).append(line.text)
    return {place: tuple(lines) for place, lines in found.items()}


def _text(works: Iterable[Work], place: Place) -> str:
    blocks = (f"// {work.name}\n" + "\n".join(work.lines.get(place, ())) for work in works)
    return "\n".join(block.rstrip() for block in blocks)


def work_text(work: Work) -> str:
    """`cpp_fused_sin_0  g0.forward  8.0 kB`."""
    times = f"  {work.calls} calls" if work.calls > 1 else ""
    took = "" if work.seconds is None else f"  {duration(work.seconds)}"
    moves = f"  {bytes_text(work.nbytes)}" if work.nbytes else ""
    return f"{work.name}  {work.part}{times}{moves}{took}"


def total_text(works: Iterable[Work]) -> str:
    """`3 kernels moving 1.2 MB, 1 library call`; repeated calls of a kernel count."""
    works = tuple(works)
    kernels = sum(work.calls for work in works if work.generated)
    library = sum(work.calls for work in works if not work.generated)
    moved = bytes_text(sum(work.nbytes for work in works if work.generated))
    return f"{counted(kernels, 'kernel')} moving {moved}, {counted(library, 'library call')}"
