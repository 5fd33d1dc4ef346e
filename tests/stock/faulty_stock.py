"""Stock made wrong on purpose: its generated text, its wrapper, or its passes are edited."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch._inductor import config  # noqa: TID251
from torch._inductor.graph import GraphLowering, SubgraphLowering  # noqa: TID251
from torch.fx import Graph, Node

aten = torch.ops.aten


def chain(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """A kernel, a matrix product, and a kernel that reads its result twice."""
    first = (x.sin() + 1.5) * y
    product = first @ y
    return torch.softmax(product, -1) * 0.5, product.exp() - first


def inputs() -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    return torch.rand(9, 9, generator=generator), torch.rand(9, 9, generator=generator)


@contextlib.contextmanager
def text_edited(pattern: str, new: str, count: int = 0) -> Iterator[None]:
    """The text that stock writes for a graph, with each match of a pattern replaced."""
    with pytest.MonkeyPatch.context() as patch:
        right = GraphLowering.codegen

        def codegen(self: Any) -> Any:
            wrapper, kernels = right(self)
            text, hits = re.subn(pattern, new, wrapper.value, count=count, flags=re.MULTILINE)
            if not isinstance(self, SubgraphLowering):
                assert hits, f"{pattern} is not in the text\n{wrapper.value}"
            wrapper.value = text
            return wrapper, kernels

        patch.setattr(GraphLowering, "codegen", codegen)
        yield


@contextlib.contextmanager
def pass_added(where: str, edit: Callable[[Node], None], target: Any) -> Iterator[None]:
    """A pass of the user's that edits each node with one target."""

    def wrong_pass(graph: Graph) -> None:
        for node in graph.find_nodes(op="call_function", target=target):
            edit(node)

    with config.patch({where: wrong_pass}):
        yield


def _swapped(node: Node) -> None:
    node.args = node.args[::-1]


def _became(target: Any) -> Callable[[Node], None]:
    def edit(node: Node) -> None:
        node.target = target

    return edit


def _argument(position: int, value: Any) -> Callable[[Node], None]:
    def edit(node: Node) -> None:
        node.args = (*node.args[:position], value, *node.args[position + 1 :])

    return edit


@dataclass(frozen=True)
class Seeded:
    """A fault; `stage` is what blame has to name."""

    make: Callable[[], contextlib.AbstractContextManager[None]]
    stage: str


def _text(pattern: str, new: str, count: int = 0) -> Callable[[], Any]:
    return lambda: text_edited(pattern, new, count)


def _pass(where: str, edit: Callable[[Node], None], target: Any) -> Callable[[], Any]:
    return lambda: pass_added(where, edit, target)


JOINT, POST = "joint_graph_passes: joint_custom_post_pass", "post_grad_custom_post_pass"
FAULTS = {
    "constant in a kernel": Seeded(_text(r"static_cast<float>\(1\.5\)", "1.25f"), "kernel"),
    "function in a kernel": Seeded(_text(r"(tmp\d+)\.sin\(\)", r"\1.cos()"), "kernel"),
    "operator in a kernel": Seeded(
        _text(r"auto (tmp\d+) = (tmp\d+) - (tmp\d+);", r"auto \1 = \2 + \3;"), "kernel"
    ),
    "start of a reduction": Seeded(
        _text(r"float tmp_acc0 = 0;", "float tmp_acc0 = 1;"), "kernel"
    ),
    "bound of a loop": Seeded(_text(r"x0<static_cast<int64_t>\(9L\)", "x0<8L"), "kernel"),
    "factor at the end": Seeded(_text(r"static_cast<float>\(0\.5\)", "0.75f"), "kernel"),
    "arguments of a product swapped": Seeded(
        _text(r"extern_kernels\.mm\((\w+), (\w+), out", r"extern_kernels.mm(\2, \1, out"),
        "host program",
    ),
    "stride of an argument": Seeded(
        _text(r"extern_kernels\.mm\((\w+), (\w+), out",
              r"extern_kernels.mm(reinterpret_tensor(\1, (9, 9), (1, 9), 0), \2, out"),
        "host program",
    ),
    "stride of a buffer": Seeded(
        _text(r"buf1 = empty_strided_(cpu|cuda)\(\(9, 9\), \(9, 1\)",
              r"buf1 = empty_strided_\1((9, 9), (1, 9)"),
        "host program",
    ),
    "results in another order": Seeded(
        _text(r"return \((\w+), (\w+), \)", r"return (\2, \1, )"), "host program"
    ),
    "view that is returned": Seeded(
        _text(r"return \((\w+), ", r"return (reinterpret_tensor(\1, (9, 9), (1, 9), 0), "),
        "host program",
    ),
    "buffer reused too early": Seeded(
        _text(r"buf1 = empty_strided_(cpu|cuda)\(.*\)", "buf1 = buf0"), "host program"
    ),
    "arguments of a joint pass": Seeded(
        _pass("joint_custom_post_pass", _swapped, aten.sub.Tensor), JOINT
    ),
    "number of a later pass": Seeded(
        _pass(POST, _argument(1, 1.25), aten.add.Tensor), f"post_grad_passes: {POST}"
    ),
    "operator of a later pass": Seeded(
        _pass(POST, _became(aten.cos.default), aten.sin.default), f"post_grad_passes: {POST}"
    ),
}  # fmt: skip
"""Faults of `chain` on a CPU, each of one kind."""

TRITON_FAULTS = {
    "constant in a kernel": Seeded(_text(r"(tl\.full\(\[1\], |= )1\.5\b", r"\g<1>1.25"), "kernel"),
    "function in a kernel": Seeded(_text(r"tl_math\.sin", "tl_math.cos"), "kernel"),
    "operator in a kernel": Seeded(_text(r"(tmp\d+) - (tmp\d+)$", r"\1 + \2"), "kernel"),
    "start of a reduction": Seeded(_text(r"tl\.sum\((\w+), 1\)", r"(tl.sum(\1, 1) + 1)"), "kernel"),
    "bound of a loop": Seeded(_text(r"xmask = xindex < xnumel$", "xmask = xindex < 8"), "kernel"),
} | {name: fault for name, fault in FAULTS.items() if fault.stage != "kernel"}
"""Faults of `chain` on a GPU."""
