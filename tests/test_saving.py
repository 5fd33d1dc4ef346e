"""Saving: everything comes back equal, nothing but data is read, and files say what is wrong."""

import copy
import json
import math
import pickle
import sys
from dataclasses import dataclass, field, fields, is_dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest
import sympy
import torch

import inductor_lab as lab
from inductor_lab.api.compilation import Compilation
from inductor_lab.bench.bench_result import BenchResult, Experiments, SweepResult
from inductor_lab.bench.demo.programs import PROGRAMS
from inductor_lab.compiler.base.errors import CannotWrite, NotPicklable, UnreadableFile
from inductor_lab.compiler.base.options import FusionOptions, Options
from inductor_lab.compiler.capture.fx_graph import FxGraph, FxNode, Span, TensorFacts
from inductor_lab.compiler.ir.effects import Effect
from inductor_lab.compiler.ir.expr import Const, Expr, Load, Op
from inductor_lab.compiler.ir.index import Axis, Index
from inductor_lab.compiler.ir.program import (
    Buffer,
    BufferKind,
    BufferView,
    Layout,
    LoopProgram,
    Pointwise,
)
from inductor_lab.compiler.torch_door.torch_api import SYMPY_FUNCTIONS
from inductor_lab.saved import saving

f32 = torch.float32


def again(value):
    """Through JSON text and back."""
    return saving.from_json(json.loads(json.dumps(saving.to_json(value))))


s0 = sympy.Symbol("s0", integer=True, positive=True)
s1 = sympy.Symbol("s1", integer=True, nonnegative=True)
floordiv, modular = SYMPY_FUNCTIONS["torch.FloorDiv"], SYMPY_FUNCTIONS["torch.ModularIndexing"]


@pytest.mark.parametrize(
    "value",
    [
        None, True, 0, -1, 10**30, 1.5, -0.0, math.inf, -math.inf, 1e-320, "", "ab", "a" * 100,
        (), (1, (2.0, "x")), [1, [2]], {"a": 1, (1, 2): [3]}, frozenset({1, 2}), {"x"},
        b"\x00\xff", 1 + 2j, complex(-0.0, math.inf), torch.float32, torch.bool,
        torch.device("cuda:1"), torch.strided,
        torch.channels_last, BufferKind.EXTERN, (1, 1.0, True), (0.0, -0.0),
        s0, s0 * 4 + s1, s0**2, floordiv(s0 + 1, 2), modular(s0 * s1, 4, 8), sympy.Max(s0, s1),
        sympy.Mod(s0, 3), sympy.ceiling(s0 / 3), sympy.Rational(1, 3), sympy.oo, s0 < s1,
        Span("m.py", 3, code="y = x.sin()"), Options(fusion=FusionOptions(off=("bytes_saved",))),
        Axis("i0", s0 * 2), Index.of(Axis("i0", 8)) * 4 + s0,
        Const(math.nan, f32), Const(-0.0, f32),
    ],
    ids=repr,
)  # fmt: skip
def test_comes_back_equal(value):
    back = again(value)
    assert back == value
    assert type(back) is type(value)
    assert repr(back) == repr(value)


def test_nan():
    assert math.isnan(again(math.nan))


def test_symbols_are_the_same_symbols():
    back = again(s0)
    assert back.assumptions0 == s0.assumptions0
    assert back + s0 == 2 * s0


def test_zeros_and_booleans_keep_apart():
    back = again((0.0, -0.0, 0, False))
    assert [repr(item) for item in back] == ["0.0", "-0.0", "0", "False"]


def test_origins_survive_although_they_do_not_count_for_equality():
    loads = tuple(Load("x", (), f32, frozenset({name})) for name in ("add", "mul"))
    assert [load.origins for load in again(loads)] == [{"add"}, {"mul"}]


def program():
    i = Axis("i0", 4)
    c = Buffer("c", BufferKind.CONSTANT, f32, "cpu", Layout.contiguous((4,)))
    out = Buffer("buf0", BufferKind.COMPUTED, f32, "cpu", Layout.contiguous((4,)))
    body = Op("add", (Load("c", (Index.of(i),), f32), Const(1.0, f32)), f32, frozenset({"add"}))
    view = BufferView("buf0", out.layout)
    nest = Pointwise("buf0", (i,), body, frozenset({"add"}))
    constants = {"c": torch.tensor([1.0, math.nan, -0.0, math.inf])}
    return LoopProgram("p", (), {"c": c, "buf0": out}, (nest,), (view, s0), constants)


def test_program_prints_and_runs_as_before():
    first = LoopProgram(
        *(getattr(program(), f) for f in ("name", "inputs", "buffers", "steps")), ()
    )
    back = again(first)
    assert str(back) == str(first)
    whole = again(program())
    assert str(whole) == str(program())
    assert torch.equal(
        whole.constants["c"].view(torch.int32), program().constants["c"].view(torch.int32)
    )


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.bool, torch.int64, torch.complex64])
def test_tensors(dtype):
    tensor = torch.tensor([[0, 1, 3], [1, 0, 7]]).to(dtype).t()
    assert torch.equal(again(tensor), tensor)
    assert again(tensor).dtype is dtype
    assert again(torch.empty(0, 3)).shape == (0, 3)
    assert again(torch.tensor(2.5)).shape == ()


def test_large_tensors_are_left_out():
    small, large = torch.zeros(10), torch.zeros(saving.MAX_TENSOR_BYTES)
    assert again(large) is None
    assert again((large, small))[1] is not None


def test_live_fields_come_back_as_none():
    graph = FxGraph("g", (), "text", module=object())
    back = again(graph)
    assert (back.name, back.module) == ("g", None)


def chain(length):
    expr: Expr = Load("x", (), f32)
    for _ in range(length):
        expr = Op("mul", (expr, expr), f32)
    return expr


def test_deep_and_shared_expressions():
    deep = chain(3000)
    data = saving.to_json(deep)
    assert len(data["table"]) < 3010
    back = saving.from_json(json.loads(json.dumps(data)))
    depth = 0
    while isinstance(back, Op):
        assert back.args[0] is back.args[1]
        back, depth = back.args[0], depth + 1
    assert depth == 3000


def test_a_big_graph_stays_small():
    facts = TensorFacts("f32", ("1", "128", "768"), ("98304", "768", "1"), "cpu", 393216)
    span = Span("/home/somebody/model.py", 12, 9, 12, 30, "forward", "return self.dense(hidden)")
    nodes = tuple(
        FxNode(f"n_{i}", "call_function", "aten.add.Tensor", "x, y", (f"n_{i - 1}",), facts, span)
        for i in range(3000)
    )
    text = json.dumps(saving.to_json([FxGraph("g", nodes, "", None) for _ in range(8)]))
    assert len(text) < 500_000


# ---- what is refused -------------------------------------------------------------------------


def test_only_data_is_saved():
    with pytest.raises(TypeError, match=r"cannot save a function in .*FxNode"):
        saving.to_json(FxNode("n", "call", "t", "", (), None, test_nan))


def test_only_listed_classes_are_loaded():
    @dataclass(frozen=True)
    class Stranger:
        x: int

    with pytest.raises(TypeError, match="cannot save a Stranger"):
        saving.to_json(Stranger(1))
    data = saving.to_json(Stranger(1), {"a.Stranger": Stranger})
    with pytest.raises(KeyError):
        saving.from_json(data)
    assert saving.from_json(data, {"a.Stranger": Stranger}) == Stranger(1)


@pytest.mark.parametrize(
    "row",
    [["z", "os.system", "true"], ["torch", "torch.load"], ["o", "os.Path"], ["?", 1], ["r", 7]],
)
def test_nothing_else_can_be_built(row, tmp_path):
    path = tmp_path / "bad.json"
    data = {"inductor_lab": 1, "kind": "x", "classes": {"os.Path": []}, "table": [], "root": row}
    path.write_text(json.dumps(data))
    with pytest.raises(UnreadableFile, match="damaged"):
        saving.load(path, object)


def test_fields_of_other_versions():
    class Kind(Enum):
        A = 1

    @dataclass(frozen=True)
    class Old:
        x: int
        kind: Kind

    @dataclass(frozen=True)
    class New:
        x: int
        kind: Kind
        more: str = "default"
        live: object = field(default=None, metadata={"live": True})

    old, new = {"m.T": Old, "m.K": Kind}, {"m.T": New, "m.K": Kind}
    assert saving.from_json(saving.to_json(Old(1, Kind.A), old), new) == New(1, Kind.A)
    with pytest.raises(ValueError, match="has no fields more"):
        saving.from_json(saving.to_json(New(1, Kind.A, "x"), new), old)


def test_file_round_trip(tmp_path):
    path = tmp_path / "p.lab.json"
    assert saving.save(path, program()) == path
    assert str(saving.load(path, LoopProgram)) == str(program())
    assert [p.name for p in tmp_path.iterdir()] == ["p.lab.json"]


def test_half_a_surrogate_pair(tmp_path):
    """Python reads bytes of a source that are no UTF-8 so."""
    strange = Options(rewrites_off=("\ud800", "x" * 30 + "\udcff"))
    assert saving.load(saving.save(tmp_path / "p.json", strange), Options) == strange


def test_cannot_write(tmp_path):
    path = tmp_path / "nowhere" / "p.json"
    with pytest.raises(CannotWrite, match="nowhere"):
        saving.save(path, program())
    with pytest.raises(CannotWrite):
        (tmp_path / "folder").mkdir()
        saving.save(tmp_path / "folder", program())
    assert [p.name for p in tmp_path.iterdir()] == ["folder"]


def edited(path, **changes):
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def test_unreadable_files(tmp_path):
    path = tmp_path / "p.json"
    with pytest.raises(UnreadableFile, match="cannot read"):
        saving.load(path, LoopProgram)
    saving.save(path, program())
    with pytest.raises(UnreadableFile, match="contains a LoopProgram, not a Options"):
        saving.load(path, Options)
    edited(path, inductor_lab=99)
    with pytest.raises(UnreadableFile, match="newer version"):
        saving.load(path, LoopProgram)
    edited(path, inductor_lab=1, table=[])
    with pytest.raises(UnreadableFile, match="damaged"):
        saving.load(path, LoopProgram)
    path.write_text(path.read_text()[:-20])
    with pytest.raises(UnreadableFile, match="not a saved compilation"):
        saving.load(path, LoopProgram)
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UnreadableFile, match="not a saved compilation"):
        saving.load(path, LoopProgram)
    path.write_text("[1, 2]")
    with pytest.raises(UnreadableFile, match="not a saved compilation"):
        saving.load(path, LoopProgram)


# ---- every type of a record ------------------------------------------------------------------


def saved_types(root: type) -> set[type]:
    """Every dataclass and enum that a saved value may hold, by what its fields declare."""
    found: set[type] = set()
    waiting: list[object] = [root]
    while waiting:
        declared = waiting.pop()
        waiting.extend(get_args(declared))
        if not isinstance(declared, type) or declared in found:
            continue
        if is_dataclass(declared):
            known = {**saving.known_names(), **vars(sys.modules[declared.__module__])}
            hints = get_type_hints(declared, None, known)
            stored = [f for f in fields(declared) if f.init and not f.metadata.get("live")]
            waiting.extend(hints[f.name] for f in stored)
        if is_dataclass(declared) or issubclass(declared, Enum):
            found.add(declared)
    return found


@pytest.mark.parametrize("root", [Compilation, BenchResult, SweepResult, Experiments, LoopProgram])
def test_every_type_that_a_field_declares_can_be_saved(root):
    found = saved_types(root)
    assert len(found) > 3
    assert found <= set(saving.known_classes().values())


def test_a_layer_whose_library_was_measured_comes_back(tmp_path):
    c = lab.inspect(torch.nn.Linear(512, 512), torch.randn(64, 512))
    assert c.parts[0].libraries, "a product of this size is measured"
    back = lab.load(c.save(tmp_path / "c.json"))
    assert back.parts[0].libraries == c.parts[0].libraries
    assert saving.to_json(back) == saving.to_json(c)


@pytest.mark.parametrize("name", [
    "trig", "uint8", "add_mul", "scale_sin", "numpy", "gpt2",
    "resnet18",
])  # fmt: skip
def test_demo_programs_come_back(name, tmp_path):
    program = next(p for p in PROGRAMS if p.name == name)
    fn, args = program.make()
    c = lab.inspect(fn, *args)
    back = lab.load(c.save(tmp_path / "c.json"))
    assert str(back) == str(c) and saving.to_json(back) == saving.to_json(c)
    for ours, theirs in zip(c.parts, back.parts, strict=True):
        assert str(theirs) == str(ours)


def broken_in_two(x):
    y = x.cumsum(0)
    torch._dynamo.graph_break()
    return y.sort(0).values.index_add(0, torch.tensor([0, 1]), torch.ones(2, 8))


KINDS = {
    "symbolic sizes": (lambda x: x.softmax(0) @ x.T, {"dynamic": True}),
    "a target": (lambda x: (x * 2).sum(1), {"target": "cuda:90"}),
    "graph breaks, scans, scatters": (broken_in_two, {}),
    "random numbers": (lambda x: torch.nn.functional.dropout(x) + torch.rand(8), {}),
    "sizes that the data tell": (lambda x: x[x > 0].nonzero() * 2, {}),
    "branches": (lambda x: torch.cond(x.sum() > 0, torch.sin, torch.cos, (x,)), {}),
    "complex numbers": (lambda x: torch.fft.fft(x).abs(), {}),
    "constants": (lambda x: x * torch.tensor([float("nan"), 1.0, 2.0, 3.0] * 2), {}),
}


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.filterwarnings("ignore")
def test_records_of_every_kind_come_back(name, tmp_path):
    fn, options = KINDS[name]
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        c = lab.inspect(fn, torch.randn(16, 8, requires_grad=True), options=options)
    back = lab.load(c.save(tmp_path / "c.json"))
    assert str(back) == str(c) and [str(p) for p in back.parts] == [str(p) for p in c.parts]


@pytest.mark.parametrize("field, value", [
    ("name", 3), ("graphs", "ab"), ("seconds", {"total": "1"}), ("target", 1.5),
    ("source", None), ("phases", ("capture",)),
])  # fmt: skip
def test_a_value_of_another_type_is_refused(field, value, tmp_path):
    c = lab.inspect(torch.sin, torch.ones(3))
    with pytest.raises(UnreadableFile, match=field):
        lab.load(replace(c, **{field: value}).save(tmp_path / "c.json"))


@pytest.mark.parametrize("way", [pickle.dumps, copy.deepcopy])
def test_compiled_code_is_of_one_process(way: Any, tmp_path: Path) -> None:
    c = lab.inspect(lambda x: x.sin() * 2, torch.ones(3))
    for live in (c, c.graphs[0], c.graphs[0].forward):
        with pytest.raises(NotPicklable, match=r"only in this process\n  use c\.save") as said:
            way(live)
        assert isinstance(said.value, TypeError)
    assert copy.copy(c).result is c.result
    loaded = lab.load(c.save(tmp_path / "c.json"))
    again = way(loaded)
    again = pickle.loads(again) if isinstance(again, bytes) else again
    assert str(again) == str(loaded)


def test_a_call_of_an_older_file_gets_its_effect(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files that were written before `ExternCall.effect` have the reason alone."""
    program = lab.inspect(lambda x: x @ x, torch.randn(4, 4)).parts[0].loops
    (call,) = program.steps
    steps = (call, replace(call, reason="collective"), replace(call, reason="wait"))
    stored = saving._stored_fields
    with monkeypatch.context() as older:
        older.setattr(
            saving, "_stored_fields", lambda cls: [f for f in stored(cls) if f.name != "effect"]
        )
        text = saving.to_json(replace(program, steps=steps))
    loaded = saving.from_json(text)
    assert [step.effect for step in loaded.steps] == [Effect.FRESH, Effect.COLLECTIVE, Effect.WAIT]
