"""The catalogue: real kinds of compiler faults, each patched into the code that it affects."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

import torch

import inductor_lab.debug.faults.examples as examples
from inductor_lab.compiler import pipeline
from inductor_lab.compiler.codegen import generate
from inductor_lab.compiler.codegen.cpp.cpp_ops import CPP_OPS
from inductor_lab.compiler.codegen.cpu import passes
from inductor_lab.compiler.codegen.cpu.facts import Facts
from inductor_lab.compiler.codegen.kernel import Code, HostProgram, Kernel
from inductor_lab.compiler.codegen.tree.loop_tree import Loop, Stmt, Tree
from inductor_lab.compiler.ir.expr import Load, Op
from inductor_lab.compiler.ir.program import Pointwise
from inductor_lab.compiler.lower.registry import LOWERINGS
from inductor_lab.compiler.rewrite.aten.identities import RULES, Edit
from inductor_lab.compiler.schedule.schedule import Group, Schedule
from inductor_lab.debug.faults.seeding import entries, now_in, replaced, seeds, several, threads

aten = torch.ops.aten

# ---- operations and their text ------------------------------------------------------------------


@seeds("kernel", examples.bytes_turned)
def wrong_neg() -> Iterator[None]:
    """`-x` of unsigned bytes is written as `2 * x`."""
    with entries(CPP_OPS, {"neg.uint8": "2 * {0}"}):
        yield


@seeds("load", examples.bytes_turned, "raises")
def neg_without_text() -> Iterator[None]:
    """`-x` of unsigned bytes is written as a function that does not exist."""
    with entries(CPP_OPS, {"neg.uint8": "negated({0})"}):
        yield


@seeds("kernel", examples.best_of_two)
def nan_is_lost() -> Iterator[None]:
    """A maximum is a comparison, which keeps a NaN on the right and loses a NaN on the left."""
    with entries(CPP_OPS, {"maximum.float32": "{0} > {1} ? {0} : {1}"}):
        yield


@seeds("kernel", examples.squashed)
def short_series() -> Iterator[None]:
    """`tanh` is the first two terms of its series, which is accurate only near zero."""
    with entries(CPP_OPS, {"tanh.float32": "{0} - {0} * {0} * {0} / 3"}):
        yield


@seeds("kernel", examples.direction)
def sign_of_zero() -> Iterator[None]:
    """`-x` is written as `0 - x`, which has no negative zero."""
    with entries(CPP_OPS, {"neg.float32": "0.0f - {0}"}):
        yield


@seeds("kernel", examples.page_numbers)
def truncating_division() -> Iterator[None]:
    """`//` of integers rounds towards zero, as C++ does."""
    with entries(CPP_OPS, {"floordiv.int64": "{0} / {1}"}):
        yield


@seeds("kernel", examples.squares)
def int_overflow() -> Iterator[None]:
    """A product of 64-bit integers is computed in 32 bits."""
    product = "(int64_t)(int32_t)((uint32_t){0} * (uint32_t){1})"
    with entries(CPP_OPS, {"mul.int64": product}):
        yield


# ---- loop trees ----------------------------------------------------------------------------------

TreeEdit = Callable[[Tree], Tree]


def _edited_pass(name: str, edit: TreeEdit) -> AbstractContextManager[None]:
    """Edit the result of one pass over loop trees."""
    step = passes.PASSES[name]

    def apply(tree: Tree, facts: Facts) -> Tree:
        return _changed(step.apply, edit, tree, facts)

    return entries(passes.PASSES, {name: replace(step, apply=apply)})


def _changed(apply: Any, edit: TreeEdit, tree: Tree, facts: Facts) -> Tree:
    made: Tree = apply(tree, facts)
    return made if made is tree else edit(made)


@seeds("loop tree: build", examples.rows)
def off_by_one() -> Iterator[None]:
    """The last row is not computed."""
    original = now_in(passes, "full_tree")

    def shorter(stmt: Stmt) -> Stmt:
        if not isinstance(stmt, Loop):
            return stmt
        return replace(stmt, end=stmt.stop - 1)

    def built(*args: Any, **kwargs: Any) -> Tree:
        return tuple(map(shorter, original(*args, **kwargs)))

    with replaced(passes, "full_tree", built):
        yield


@seeds("loop tree: registers", examples.long_rows)
def lost_tail() -> Iterator[None]:
    """A vectorized loop skips the elements after the last full vector."""

    def cut(tree: Tree) -> Tree:
        inside = (replace(s, body=cut(s.body)) if isinstance(s, Loop) else s for s in tree)
        return tuple(s for s in inside if not (isinstance(s, Loop) and s.begin.constant))

    with _edited_pass("registers", cut):
        yield


# ---- loops and threads --------------------------------------------------------------------------

Edited = Callable[[str], str]


def _edited(function: str, edit: Edited) -> AbstractContextManager[None]:
    """Edit the lines of every kernel that `generate.<function>` writes."""
    original = now_in(generate, function)

    def kernel(*args: Any, **kwargs: Any) -> Kernel:
        made: Kernel = original(*args, **kwargs)
        lines = []
        for line in made.code.lines:
            lines += [replace(line, text=text) for text in edit(line.text).split("\n")]
        return replace(made, code=Code.of(lines))

    return replaced(generate, function, kernel)


@seeds("kernel", examples.average)
def half_sum() -> Iterator[None]:
    """Float16 values are summed in float16, whose largest value is 65504."""
    adding = re.compile(r"^(\s*)(.+?) = \2 \+ (.+);$")
    rounded = r"\1\2 = lab_convert<float>(lab_convert<lab_half>(\2 + \3));"
    with _edited("cpp_kernel", lambda text: adding.sub(rounded, text)):
        yield


@seeds("kernel", examples.nearest)
def lost_mask() -> Iterator[None]:
    """The mask at the edge of a block is missing: a maximum reads values after the row."""
    masked = re.compile(r'tl\.where\((\w+), (\w+), float\("-inf"\)\)')
    with _edited("triton_kernel", lambda text: masked.sub(r"\2", text)):
        yield


@seeds("kernel", examples.histogram, "race")
def race() -> Iterator[None]:
    """Threads add to the same elements at the same time (with a sleep between each load and store,
    so that every run is wrong)."""
    loop = re.compile(r"^(\s*)(for \(int64_t j0 = 0; j0 < \d+; j0\+\+\) \{)$")
    adding = re.compile(r"^(\s*)(out0\[.*\]) = \2 \+ (\w+);$")
    slowly = r"\1{ float seen = \2; if (j0 % 131072 < 4) usleep(5000); \2 = seen + \3; }"

    def edit(text: str) -> str:
        text = HEAD.sub(rf"{SLEEP}\n\1", text)
        text = loop.sub(r"\1#pragma omp parallel for" + "\n" + r"\1\2", text)
        return adding.sub(slowly, text)

    with several(threads(4), _edited("cpp_kernel", edit)):
        yield


@seeds("kernel", examples.total, "not deterministic")
def order_of_arrival() -> Iterator[None]:
    """Partial sums are added in the order in which threads finish (here: a new one per call)."""
    first = re.compile(r"^(\s*)(float parts_acc\d+\[32\];)$")
    turn = r"\1static int64_t turn = 0;" + "\n" + r"\1turn += 7;" + "\n" + r"\1\2"
    adding = re.compile(r"(acc\d+ = acc\d+ \+ parts_acc\d+)\[part\];")

    def edit(text: str) -> str:
        return adding.sub(r"\1[(part + turn) % 32];", first.sub(turn, text))

    with several(threads(2), _edited("cpp_kernel", edit)):
        yield


SLEEP = 'extern "C" int usleep(unsigned);'
HEAD = re.compile(r'^(extern "C" LAB_EXPORT .*\{)$')


def _at_start(line: str) -> AbstractContextManager[None]:
    """Add a line at the start of every C++ kernel."""
    return _edited("cpp_kernel", lambda text: HEAD.sub(rf"{SLEEP}\n\1\n    {line}", text))


@seeds("kernel", examples.slice_of, "crashes")
def unaligned_load() -> Iterator[None]:
    """A vector load assumes that the address of every tensor is a multiple of 16 bytes."""
    four = "typedef float four __attribute__((vector_size(16)));"
    with _at_start(f"{four} volatile four first = *(const volatile four*)in0; (void)first;"):
        yield


@seeds("kernel", examples.slice_of, "hangs")
def endless_loop() -> Iterator[None]:
    """A loop never ends (it sleeps, so that other processes are not slowed)."""
    with _at_start("for (volatile int64_t turns = 1; turns > 0; turns = 1) usleep(1000);"):
        yield


# ---- memory ------------------------------------------------------------------------------------


def _edited_host(edit: Callable[[list[str]], list[str]]) -> AbstractContextManager[None]:
    """Edit the lines of every host program."""
    original = now_in(pipeline, "host_program")

    def host(*args: Any, **kwargs: Any) -> HostProgram:
        made: HostProgram = original(*args, **kwargs)
        texts = edit([line.text for line in made.code.lines])
        lines = [replace(line, text=text)
                 for line, text in zip(made.code.lines, texts, strict=True)]  # fmt: skip
        return replace(made, code=Code.of(lines))

    return replaced(pipeline, "host_program", host)


@seeds("host program", examples.mixed_twice)
def reused_too_early() -> Iterator[None]:
    """A buffer reuses the memory of another buffer that is still needed."""
    new = r"(?:POOL\.empty(?:_rounded)?|empty_strided_cpu)"
    made = re.compile(rf"^(\s*)(buf\d+) = {new}\((\(.*?\), \(.*?\)), ")

    def edit(texts: list[str]) -> list[str]:
        known: dict[str, str] = {}
        for number, text in enumerate(texts):
            found = made.match(text)
            if found and found[3] in known:
                texts[number] = f"{found[1]}{found[2]} = {known[found[3]]}"
                return texts
            if found:
                known[found[3]] = found[2]
        return texts

    with _edited_host(edit):
        yield


@seeds("host program", examples.counter)
def dropped_write() -> Iterator[None]:
    """A write to an input goes to a separate buffer, so the input does not change."""
    planned = re.compile(r"^(\s*)(\w+) = (arg\w+)  # in place$")
    with _edited_host(
        lambda texts: [planned.sub(r"\1\2 = torch.empty_like(\3)", text) for text in texts]
    ):
        yield


# ---- graphs -------------------------------------------------------------------------------------


@seeds("loops", examples.turned)
def wrong_stride() -> Iterator[None]:
    """The transpose of a square matrix is read with the strides of the matrix."""

    def keeping(lowering: Any) -> Any:
        def lowered(build: Any, x: Any, *args: Any) -> Any:
            square = x.ndim == 2 and x.shape[0] == x.shape[1]
            return x if square else lowering(build, x, *args)

        return lowered

    views = (aten.permute.default, aten.t.default, aten.transpose.int)
    with entries(LOWERINGS, {view: keeping(LOWERINGS[view]) for view in views}):
        yield


def _defined(new: Mapping[Any, Any]) -> AbstractContextManager[None]:
    """Replace decompositions of operators."""
    original = now_in(pipeline, "definitions")
    return replaced(pipeline, "definitions", lambda: {**original(), **new})


@seeds("decomposed", examples.swish)
def wrong_definition() -> Iterator[None]:
    """`silu` is decomposed with a wrong sign: `x / (1 + exp(x))`."""
    with _defined({aten.silu.default: lambda x: aten.div(x, aten.add(aten.exp(x), 1))}):
        yield


@seeds("joint", examples.trained)
def wrong_gradient() -> Iterator[None]:
    """The gradient of `tanh` is computed as `1 - y`; correct is `1 - y * y`."""

    def backward(gradient: Any, y: Any) -> Any:
        return aten.mul(gradient, aten.rsub(y, 1))

    with _defined({aten.tanh_backward.default: backward}):
        yield


@seeds("partition", examples.recomputed)
def wrong_recompute() -> Iterator[None]:
    """The recomputation in the backward reads the wrong input."""
    original = now_in(pipeline, "partition")

    def partition(*args: Any, **kwargs: Any) -> Any:
        forward, backward, split = original(*args, **kwargs)
        inputs = backward.graph.find_nodes(op="placeholder")
        for node in backward.graph.nodes:
            others = [n for n in inputs if n not in node.all_input_nodes]
            if node.target is aten.sin.default and others:
                node.replace_input_with(node.all_input_nodes[0], others[0])
        backward.recompile()
        return forward, backward, split

    with replaced(pipeline, "partition", partition):
        yield


@seeds("rewrite: identities", examples.cubes)
def wrong_rule() -> Iterator[None]:
    """The rewrite rule for `x ** 3` computes a square: `x * x`."""

    def pow_three(node: torch.fx.Node, edit: Edit) -> torch.fx.Node | None:
        base, exponent = node.args
        return edit.add(aten.mul.Tensor, base, base) if exponent == 3 else None

    with entries(RULES, {"pow_three": pow_three}):
        yield


@seeds("schedule", examples.chain)
def forgotten_producer() -> Iterator[None]:
    """A value that is inlined into its consumer loses its last operation."""
    original = now_in(pipeline, "schedule_program")

    def forget(nest: Pointwise) -> Pointwise:
        body = nest.body
        only = isinstance(body, Op) and len(body.args) == 1 and isinstance(body.args[0], Load)
        return replace(nest, body=body.args[0]) if only else nest  # type: ignore[union-attr]

    def schedule(*args: Any, **kwargs: Any) -> Schedule:
        made: Schedule = original(*args, **kwargs)
        steps = tuple(
            replace(step, inlined={name: forget(nest) for name, nest in step.inlined.items()})
            if isinstance(step, Group) else step
            for step in made.steps
        )  # fmt: skip
        return replace(made, steps=steps)

    with replaced(pipeline, "schedule_program", schedule):
        yield


@seeds("guards", examples.scaled, "stale")
def stale_guard() -> Iterator[None]:
    """Compiled code is reused without checking its guards."""
    original = now_in(torch, "compile")

    def compile_without_guards(*args: Any, **kwargs: Any) -> Any:
        kwargs["options"] = {"guard_filter_fn": lambda guards: [False for _ in guards]}
        return original(*args, **kwargs)

    with replaced(torch, "compile", compile_without_guards):
        yield
