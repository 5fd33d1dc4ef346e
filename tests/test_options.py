"""Options: each field accepts only what it declares; unknown names are reported."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from dataclasses import fields
from typing import Any

import numpy as np
import pytest
import torch

import inductor_lab as lab
from inductor_lab.compiler.base.errors import (
    BadOption,
    NothingToChange,
    UnknownTarget,
    unknown_name,
)
from inductor_lab.compiler.base.inductor_options import OURS, hint
from inductor_lab.compiler.base.options import FusionOptions, Options
from inductor_lab.compiler.runtime.prestart import warn_of_mode

STRANGE = (
    None, 7, -1, 1.5, math.inf, math.nan, 10**400, "attention", "", b"x", [1, 2], [["a"]], [None],
    [("a", "b", "c", "d")], {"a": 1}, {1, 2}, object(), int, torch.ones(2), np.zeros(3), True,
)  # fmt: skip
RIGHT: dict[str, tuple[Any, ...]] = {
    "mode": ("max-autotune",), "dynamic": (None, True, False), "target": (None, "cuda:90"),
    "language": (None, "cpp"), "memory_budget": (0, 1, 0.5, np.float32(0.25)),
    "rewrites_off": ((), ["attention"]), "memory_pool": (0, 3, 1.5), "matmul": ("aten",),
    "fusion": (True, False, {}, {"off": ["bytes_saved"]}, FusionOptions()),
    "off": (["bytes_saved"],), "force": ([("buf0", "buf1"), ["buf1", "buf2", "g0.forward"]],),
    "forbid": ([],),
}  # fmt: skip


def every_field() -> Iterator[tuple[str, Any]]:
    """(name, function that sets it)."""
    for field in fields(Options):
        yield field.name, lambda value, name=field.name: Options.make({name: value})
    for field in fields(FusionOptions):
        yield field.name, lambda value, name=field.name: Options.make({"fusion": {name: value}})


def is_known(name: str, value: Any) -> bool:
    """Is it an unusual value that this field accepts?"""
    default = next((f.default for c in (Options, FusionOptions) for f in fields(c)
                    if f.name == name), None)  # fmt: skip
    kind = type(default)
    if value is None:
        return name in ("dynamic", "target", "language")
    if name in ("fusion", "dynamic") or kind is bool:
        return isinstance(value, bool)
    if kind is float:
        return isinstance(value, int | float) and value in (1.5, 7) and name == "memory_pool"
    return False


@pytest.mark.parametrize("name, give", list(every_field()),
                         ids=lambda x: x if type(x) is str else "")
def test_a_wrong_value_is_refused_with_a_word_on_what_is_expected(name: str, give: Any) -> None:
    refused = 0
    for value in STRANGE:
        if is_known(name, value):
            give(value)
            continue
        with pytest.raises((BadOption, UnknownTarget)) as caught:
            give(value)
        assert name in str(caught.value) and caught.value.todo
        refused += 1
    assert refused >= 10
    for value in RIGHT.get(name, ()):
        give(value)


def test_a_text_is_no_list_of_names() -> None:
    with pytest.raises(BadOption, match=r'a list of names, such as \["a", "b"\]'):
        Options.make({"rewrites_off": "attention"})
    c = lab.inspect(torch.sin, torch.ones(3))
    for option in ("rewrites_off", "fusion_off"):
        with pytest.raises(BadOption, match=r"a list of names, such as \['attention'\]"):
            c.what_if(**{option: "attention"})


def test_a_value_that_is_made_directly_is_looked_at_too() -> None:
    with pytest.raises(BadOption, match=r"memory_budget: '0\.5'"):
        Options(memory_budget="0.5")  # type: ignore[arg-type]
    with pytest.raises(BadOption, match=r"fusion\.off: 'x'"):
        FusionOptions(off="x")  # type: ignore[arg-type]


@pytest.mark.parametrize("given", [[], ["mode"], "mode", 3, True])
def test_options_are_a_dict(given: Any) -> None:
    with pytest.raises(BadOption, match="a dict"):
        lab.compile(torch.sin, options=given)


@pytest.fixture(autouse=True)
def nothing_compiled_before() -> None:
    """Earlier tests must not have exhausted the recompile limit of `torch.sin`."""
    torch.compiler.reset()


@pytest.mark.parametrize("name", ["max_autotune", "triton.cudagraphs", "epilogue-fusion",
                                  "shape_padding", "triton.unique_kernel_names"])  # fmt: skip
def test_names_of_inductor_get_a_hint(name: str) -> None:
    with pytest.raises(BadOption, match="this is an option of TorchInductor"):
        lab.compile(torch.sin, options={name: True})
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed, match="option of TorchInductor"):
        torch.compile(torch.sin, backend="inductor_lab", options={name: True})(torch.ones(3))


def test_the_hints_speak_of_options_that_there_are() -> None:
    own = {field.name for field in fields(Options)}
    assert own.isdisjoint(OURS) and not hint("nothing of the kind")
    for text in OURS.values():
        named = text.split('{"')[1].split('"')[0] if '{"' in text else "mode"
        assert named in own, text


def test_a_slip_of_the_pen_gets_the_name_that_was_meant() -> None:
    with pytest.raises(BadOption, match="'memory_budgte'; did you mean 'memory_budget'"):
        Options.make({"memory_budgte": 0.5})
    with pytest.raises(BadOption, match=r"unknown option 'fusion.frobid'; did you mean 'forbid'"):
        Options.make({"fusion": {"frobid": []}})


@pytest.mark.parametrize("options, meant", [
    ({"passes_off": ["tile"]}, "tiles"), ({"rewrites_off": ["attentoin"]}, "attention"),
    ({"accelerators_off": ["poool"]}, "pool"), ({"fusion": {"off": ["byte_saved"]}}, "bytes_saved"),
])  # fmt: skip
def test_so_does_a_name_in_a_list(options: dict[str, Any], meant: str) -> None:
    with pytest.raises(BadOption, match=rf"did you mean '{meant}'\?\n *Valid names: .*{meant}"):
        lab.inspect(torch.sin, torch.ones(3), options=options)


def test_what_torch_decides_is_no_option_of_a_backend() -> None:
    for name in ("dynamic", "fullgraph"):
        compiled = torch.compile(torch.sin, backend="inductor_lab", options={name: True})
        with pytest.raises(torch._dynamo.exc.BackendCompilerFailed, match="an argument of its own"):
            compiled(torch.ones(3))
        assert torch.equal(lab.compile(torch.sin, options={name: True})(torch.ones(3)),
                           torch.ones(3).sin())  # fmt: skip


def wave(x: torch.Tensor) -> torch.Tensor:
    return x.sin() * 2


def test_a_mode_that_changes_nothing_on_a_cpu_says_so_once() -> None:
    torch._dynamo.reset()
    warn_of_mode.cache_clear()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("default")
        for size in (3, 4, 5):
            lab.compile(wave, mode="max-autotune", dynamic=False)(torch.ones(size))
        lab.compile(wave)(torch.ones(6))
    messages = [str(w.message) for w in told if w.category is NothingToChange]
    assert len(messages) == 1 and 'mode="max-autotune" has no effect on a CPU' in messages[0]


def broken_in_two(x: torch.Tensor) -> torch.Tensor:
    y = x.relu() * 2
    torch._dynamo.graph_break()
    return y.softmax(-1).cumsum(0).sum(0)


ONLY_IN_SECOND = ("buf0", "buf3", "g1.forward")
REFUSED = {
    ("buf0", "bug1"): r"buffer 'bug1'; did you mean 'buf1'\?\n  Valid buffers: buf0, buf1, ",
    ("buf99", "buf0"): r"unknown buffer 'buf99'\n  Valid buffers: buf0, ",
    ("x", "buf0"): "unknown buffer 'x'",
    ("buf0", "buf1", "g1.forwards"):
        r"'g1\.forwards'; did you mean 'g1\.forward'\?\n  Valid parts: g0",
    (*ONLY_IN_SECOND[:2], "g0.forward"): "unknown buffer 'buf3'",
}


@pytest.mark.parametrize("option", ["force", "forbid"])
def test_pairs_are_of_buffers_that_a_part_has(option: str) -> None:
    c = lab.inspect(broken_in_two, torch.randn(4, 5))
    first, second = ({b for b in p.loops.buffers if b.startswith("buf")} for p in c.parts)
    assert "buf3" in second - first
    for pair in (ONLY_IN_SECOND[:2], ONLY_IN_SECOND, ("buf0", "buf1")):
        c.what_if(**{option: [pair]})
    for wrong, said in REFUSED.items():
        with pytest.raises(BadOption, match=said) as refused:
            c.what_if(**{option: [wrong]})
        assert f"option fusion.{option}: {wrong}" in str(refused.value)
        with pytest.raises(BadOption, match=said):
            lab.inspect(broken_in_two, torch.randn(4, 5), options={"fusion": {option: [wrong]}})
    with pytest.raises(BadOption, match="no graph was captured"):
        lab.inspect(len, [1], options={"fusion": {option: [("buf0", "buf1")]}})


def test_many_names_are_not_all_listed() -> None:
    assert unknown_name("buffer", "x", [f"b{n}" for n in range(999)])[1].endswith("b48, b49, ...")
