from __future__ import annotations

import numpy as np
import pytest
import torch

import inductor_lab as lab
from inductor_lab.compiler.base.errors import BadArguments, NotRunnable
from inductor_lab.compiler.capture.capture import Guard
from inductor_lab.debug.recompiles.call_again import call_with_edits
from inductor_lab.widgets.conditions import condition_of, entry_guards, inputs_of
from inductor_lab.widgets.guards_live import answer_again, answer_prediction
from inductor_lab.widgets.model import linked_document

FACTOR = 3


def scaled(scale, flag):
    def f(x, n, mode="plain"):
        y = torch.sin(x) * scale + FACTOR
        return y * n if flag and mode == "plain" else y

    return f


@pytest.fixture(scope="module")
def guarded():
    return lab.inspect(scaled(2.0, True), torch.randn(6, 4, requires_grad=True), 5)


def test_editable_inputs_have_their_current_values(guarded):
    values = {each["name"]: each for each in inputs_of(guarded.capture)}
    assert values["x"] == {
        "source": "L['x']", "name": "x", "kind": "tensor", "size": [6, 4], "stride": [4, 1],
        "dtype": "float32", "requires_grad": True,
    }
    plain = {name: (v["kind"], v["value"]) for name, v in values.items() if name != "x"}
    assert plain == {
        "n": ("int", 5), "scale": ("float", 2.0), "flag": ("bool", True),
        "mode": ("str", "plain"), "FACTOR": ("int", 3),
    }


def test_an_array_can_be_edited():
    compilation = lab.inspect(lambda a: np.sin(a) + 1, np.ones(8, np.float32))
    (found,) = inputs_of(compilation.capture)
    assert found == {"source": "L['a']", "name": "a", "kind": "array", "size": [8], "stride": [1],
                     "dtype": "float32", "requires_grad": False}  # fmt: skip
    size = {"L['a']": {"size": [9]}}
    assert answer_prediction(compilation, {})["hit"] is not None
    assert answer_prediction(compilation, size)["hit"] is None
    assert not call_with_edits(compilation, size).hit


@pytest.mark.parametrize("code", ["\ud800", "\0", "(" * 500, "1" * 5000,
                                  "check_tensor(L['x'], torch.float32, siz=[8])"])
def test_a_guard_that_cannot_be_read_has_no_condition(code):
    guard = Guard("L['x']", "EXPRESSION", code, None, "0/0")
    assert condition_of(guard) is None


def test_open_sizes_are_hinted_and_conditions_speak_of_them():
    def f(x):
        return x * 2 if x.shape[0] > 3 else x

    capture = lab.inspect(f, torch.randn(8, 5), options={"dynamic": True}).capture
    assert inputs_of(capture)[0]["size"] == [8, 5]
    conditions = [condition_of(guard) for guard in entry_guards(capture)]
    assert ["compare", ["<="], [["const", 4], ["size", "L['x']", 0]]] in conditions


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("L['n'] % 2 == 0", ["compare", ["=="], [
            ["op", "%", [["input", "L['n']"], ["const", 2]]], ["const", 0]]]),
        ("Mod(L['x'].size()[0], 8) != 0", ["compare", ["!="], [
            ["op", "%", [["size", "L['x']", 0], ["const", 8]]], ["const", 0]]]),
        ("2 <= L['x'].size()[0] <= 9", ["compare", ["<=", "<="], [
            ["const", 2], ["size", "L['x']", 0], ["const", 9]]]),
        ("not L['flag']", ["op", "not", [["input", "L['flag']"]]]),
        ("L['self'].training == True", None),
        ("___check_obj_id(G['torch'], 140501462818848), type=<class 'module'>", None),
        ("hasattr(L['x'], '_dynamo_dynamic_indices') == False", None),
    ],
)
def test_a_guards_text_as_a_condition(code, expected):
    assert condition_of(Guard("LAMBDA_GUARD", code, "", None, "0/0")) == expected


def test_every_guard_holds_for_the_call_itself(guarded):
    again = call_with_edits(guarded, {})
    assert again.hit and not again.reasons and again.result.shape == (6, 4)


@pytest.mark.parametrize(
    ("source", "facts", "reason"),
    [
        ("L['x']", {"size": [3, 4]}, "size mismatch"),
        ("L['x']", {"dtype": "float64"}, "dtype mismatch"),
        ("L['x']", {"requires_grad": False}, "requires_grad mismatch"),
        ("L['n']", {"value": 7}, "n == 5"),
        ("L['scale']", {"value": 2.5}, "scale == 2.0"),
        ("L['flag']", {"value": False}, "flag == True"),
        ("G['FACTOR']", {"value": 4}, "FACTOR == 3"),
    ],
)
def test_an_edit_recompiles_with_a_reason(source, facts, reason):
    c = lab.inspect(scaled(2.0, True), torch.randn(6, 4, requires_grad=True), 5)
    links = linked_document(c)[1]
    answer = answer_again(c, {source: facts}, links)
    assert reason in answer["verdict"] and answer["entry"]["checks"]
    assert answer_again(c, {source: facts}, links)["entry"] is None
    assert call_with_edits(c, {}).hit and FACTOR == 3


def test_only_known_inputs_can_be_edited(guarded, tmp_path):
    with pytest.raises(BadArguments, match="nonsense"):
        call_with_edits(guarded, {"L['nonsense']": {"value": 1}})
    loaded = lab.load(guarded.save(tmp_path / "guarded.json"))
    assert inputs_of(loaded.capture) == inputs_of(guarded.capture)
    with pytest.raises(NotRunnable, match="loaded from a file"):
        loaded.again(torch.randn(6, 4), 5)
