"""Twins: the renamed copy of a kernel equals the kernel that printing would produce."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any

import pytest
import torch
import torch.nn.functional as F

import inductor_lab as lab
from inductor_lab.compiler.base.options import Options
from inductor_lab.compiler.codegen import generate
from inductor_lab.compiler.codegen.cpp import printer
from inductor_lab.compiler.codegen.cpu import passes
from inductor_lab.compiler.codegen.dedupe_kernels import NumberedNames, Twins
from inductor_lab.compiler.codegen.kernel import Kernel
from inductor_lab.compiler.ir.expr import Const, Expr, Load, Masked, Op, map_expr
from inductor_lab.compiler.ir.index import ZERO, Axis, Index
from inductor_lab.compiler.ir.program import Buffer, BufferKind, Layout, Pointwise, Reduction
from inductor_lab.compiler.records import CompiledPart
from inductor_lab.compiler.schedule.schedule import Cost, Group

F32 = torch.float32
X, W = torch.randn(32, 64), torch.randn(64, 64)
Layer = Callable[[torch.Tensor], torch.Tensor]


def repeated(layer: Layer, count: int = 3, x: torch.Tensor = X) -> Iterator[CompiledPart]:
    """Layers separated by matrix products, so that each is a kernel."""

    def layers(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        for _ in range(count):
            x = layer(x) @ w
        return x

    return parts_of(layers, x, W)


def parts_of(fn: Callable[..., Any], *args: torch.Tensor) -> Iterator[CompiledPart]:
    for graph in lab.inspect(fn, *args).graphs:
        yield from (part for part in (graph.forward, graph.backward) if part is not None)


def transformer(dtype: torch.dtype) -> Iterator[CompiledPart]:
    layer = torch.nn.TransformerEncoderLayer(32, 2, 64, dropout=0.0, batch_first=True)
    model = torch.nn.TransformerEncoder(layer, 3, enable_nested_tensor=False).to(dtype)
    return parts_of(model, torch.randn(2, 8, 32, dtype=dtype))


def any_rows() -> torch.Tensor:
    x = X.clone()
    torch._dynamo.mark_dynamic(x, 0)
    return x


def looked_up(x: torch.Tensor) -> torch.Tensor:
    places = (x[:, 0] * 5).long() % 32
    return x[places] + x[places % 7, :1] + x[:, (x[0] * 5).long() % 64]


def two_places(x: torch.Tensor, w: torch.Tensor, *places: torch.Tensor) -> torch.Tensor:
    """The terms of an index are ordered by the names of the buffers that they are read from,
    `arg10_1` before `arg9_1`; the last two kernels are twins."""
    x = x + places[0]
    for rows, columns in zip(places[1::2], places[2::2], strict=True):
        x = torch.tanh(x[rows, columns]) @ w
    return torch.tanh(x[rows, columns]) @ w


def nearly_equal(x: torch.Tensor, w: torch.Tensor) -> list[torch.Tensor]:
    """Kernels that each differ from another one in one respect: operation, constant, index, stride,
    which operands are equal, which value is kept, which buffers are results."""
    kept = []
    p, q = w[:32], w[:, :32].t()
    for layer in (torch.tanh, torch.exp, lambda x: x + 1, lambda x: x + 2, lambda x: x * x[1],
                  lambda x: x * x[2], lambda x: x - p, lambda x: x - q, lambda x: x * p,
                  lambda x: x * x):  # fmt: skip
        x = layer(x) @ w
    for keep in (True, False):
        total = x.sum(1, keepdim=True)
        kept += [total] if keep else []
        x = torch.exp(x - total) @ w
    for keep in (True, False):
        value = torch.tanh(x)
        kept += [value] if keep else [value @ w]
        x = torch.exp(x) @ w
    return [x, *kept]


def two_sizes(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """Layers with two pointwise kernels that become a combo."""
    for _ in range(4):
        product = x @ w
        wide, narrow = torch.tanh(product), torch.exp(product[:, :16])
        x = narrow.t() @ wide @ w
    return x


PROGRAMS: dict[str, Callable[[], Iterator[CompiledPart]]] = {
    "transformer": lambda: transformer(torch.float32),
    "bfloat16": lambda: transformer(torch.bfloat16),
    "symbols": lambda: repeated(lambda x: torch.softmax(x * x.shape[0], -1), x=any_rows()),
    "masks": lambda: repeated(lambda x: F.pad(torch.tanh(x)[1:, 2:], (1, 1, 1, 0)).exp()),
    "running sums": lambda: repeated(lambda x: x.flip(1).cumsum(1).flip(1)),
    "columns": lambda: repeated(lambda x: x - x.mean(0)),
    "positions": lambda: repeated(lambda x: x + x.argmax(1, keepdim=True)),
    "remainders": lambda: repeated(lambda x: x.reshape(64, 32).t().reshape(32, 64) + 1),
    "looked up": lambda: repeated(looked_up),
    "two places": lambda: parts_of(two_places, X, W, *torch.zeros(15, 32, 64).long()),
    "scattered": lambda: repeated(lambda x: x.index_add(0, torch.arange(4) % 3, x[:4])),
    "siblings": lambda: parts_of(lambda *xs: [x + 1 for x in xs], X, W, X[:, :5], W),
    "nearly equal": lambda: parts_of(nearly_equal, X, W),
    "combos": lambda: parts_of(two_sizes, X, W),
}


def spelled_out(value: Any) -> Any:
    """A value as plain data, including the origins that equality ignores."""
    if isinstance(value, tuple):
        return tuple(map(spelled_out, value))
    if is_dataclass(value):
        found = ((field.name, getattr(value, field.name)) for field in fields(value) if field.init)
        return type(value), {name: spelled_out(of) for name, of in found}
    return value


def written(kernel: Kernel) -> Any:
    names = ("name", "language", "device", "code", "parameters", "launch")
    return {name: spelled_out(getattr(kernel, name)) for name in names}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_copy_equals_the_printed_kernel(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    monkeypatch.setattr(passes, "STREAMED_BYTES", 0)
    languages = Options(language="cpp"), Options(language="triton")
    jobs = [(part.schedule, options) for part in PROGRAMS[name]() for options in languages]
    copied = [generate.generate_kernels(*job) for job in jobs]
    monkeypatch.setattr(Twins, "kernel", lambda _, group, printed: printed(group))
    for job, kernels in zip(jobs, copied, strict=True):
        printed = generate.generate_kernels(*job)
        assert [written(kernel) for kernel in kernels] == [written(kernel) for kernel in printed]
        assert [kernel.group for kernel in kernels] == list(job[0].groups)


def named(x: str, y: str, z: str, *nodes: str) -> tuple[Group, dict[str, Buffer]]:
    """`y = sum of exp(x * 2)` along rows and `z = where(x > 0, x, 1) - y`, from three nodes."""
    i, j = Axis("i0", 8), Axis("i1", 16)
    place, (first, second, third) = (Index.of(i), Index.of(j)), (frozenset({n}) for n in nodes)
    load, two, zero = Load(x, place, F32, first), Const(2.0, F32), Const(0.0, F32)
    twice = Op("mul", (load, two), F32, first | second)
    total = Reduction(y, (i,), (j,), "sum", Op("exp", (twice,), F32, second), second)
    chosen = Masked(Op("gt", (load, zero), torch.bool, third), load, Const(1.0, F32), third)
    body = Op("sub", (chosen, Load(y, place[:1], F32)), F32, third)
    nests = total, Pointwise(z, (i, j), body, third)
    group = Group("g", (i,), nests, frozenset({y, z}), {}, Cost(), second | third)
    sizes, nodes_of = {x: (8, 16), y: (8,), z: (8, 16)}, {x: first, y: second, z: third}
    return group, {
        name: Buffer(name, BufferKind.COMPUTED, F32, "cpu", Layout.contiguous(size), nodes_of[name])
        for name, size in sizes.items()
    }


def key(group: Group, buffers: dict[str, Buffer], results: str = "") -> Hashable:
    return NumberedNames(buffers).key(group, set(results))


def with_nest(group: Group, number: int, **changed: Any) -> Group:
    nests = list(group.nests)
    nests[number] = replace(nests[number], **changed)
    return replace(group, nests=tuple(nests))


def with_body(group: Group, number: int, change: Callable[[Expr], Expr]) -> Group:
    """The group, with `change` applied to every operation, load and mask of a body."""

    done: dict[int, Expr] = {}

    def value(node: Expr) -> Expr:
        if id(node) not in done:  # shared nodes stay shared
            done[id(node)] = change(map_expr(node, value, lambda index: index))
        return done[id(node)]

    return with_nest(group, number, body=value(group.nests[number].body))


def with_each_nest(group: Group) -> Iterator[Group]:
    return (replace(group, nests=(nest,), stored=frozenset({nest.buffer})) for nest in group.nests)


def where(kind: type, **new: Any) -> Callable[[Expr], Expr]:
    return lambda node: replace(node, **new) if isinstance(node, kind) else node


CHANGES: dict[str, Callable[[Group], Group]] = {
    "a buffer for another": lambda g: with_body(g, 1, where(Load, buffer="x")),
    "a place": lambda g: with_body(g, 0, where(Load, index=(ZERO, ZERO))),
    "an operation": lambda g: with_body(g, 0, where(Op, name="add")),
    "a dtype": lambda g: with_body(g, 0, where(Load, dtype=torch.float64)),
    "a constant": lambda g: with_body(g, 0, where(Const, value=3.0, dtype=F32)),
    "nodes of an operation": lambda g: with_body(g, 0, where(Op, origins=frozenset("a"))),
    "nodes of a load": lambda g: with_body(g, 0, where(Load, origins=frozenset("b"))),
    "nodes of a mask": lambda g: with_body(g, 1, where(Masked, origins=frozenset("b"))),
    "nodes of a nest": lambda g: with_nest(g, 1, origins=frozenset("b")),
    "nodes of the group": lambda g: replace(g, origins=frozenset("abc")),
    "the reduction": lambda g: with_nest(g, 0, kind="prod"),
    "axes of a nest": lambda g: with_nest(g, 0, reduce_axes=(Axis("i1", 15),)),
    "axes of the group": lambda g: replace(g, axes=()),
    "the stored buffers": lambda g: replace(g, stored=frozenset("z")),
    "the combined groups": lambda g: replace(g, combined=tuple(with_each_nest(g))),
    "the inlined nests": lambda g: replace(g, nests=g.nests[:1], inlined={"z": g.nests[1]}),
}


@pytest.mark.parametrize("name", CHANGES)
def test_different_groups_have_different_keys(name: str) -> None:
    group, buffers = named("x", "y", "z", "a", "b", "c")
    changed = CHANGES[name](group)
    assert spelled_out(changed) != spelled_out(group), "it changes nothing"
    assert key(changed, buffers) != key(group, buffers)


@pytest.mark.parametrize(
    "changed",
    [{"layout": Layout((8, 16), (1, 8))}, {"dtype": torch.float64}, {"device": "cuda:0"},
     {"origins": frozenset({"c"})}],
)  # fmt: skip
def test_different_buffers_have_different_keys(changed: dict[str, Any]) -> None:
    group, buffers = named("x", "y", "z", "a", "b", "c")
    assert key(group, {**buffers, "x": replace(buffers["x"], **changed)}) != key(group, buffers)


def test_keys_depend_on_results_but_not_on_names() -> None:
    group = named("x", "y", "z", "a", "b", "c")
    assert key(*group, results="z") != key(*group)
    assert key(*named("buf10", "buf9", "x", "mul_9", "exp_10", "b")) == key(*group)


def test_more_equal_layers_are_not_printed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    printed: list[str] = []

    def counted(*args: Any, **how: Any) -> Kernel:
        printed.append(args[2])
        return printer.cpp_kernel(*args, **how)

    monkeypatch.setattr(generate, "cpp_kernel", counted)
    for count in (3, 9):
        (part,) = repeated(lambda x: F.layer_norm(torch.tanh(x), (64,)), count)
        assert len(part.kernels) == count
    # the first layer reads an input instead of a product
    assert len(printed) <= 4
