"""Typical wrong answers get a helpful explanation; no answer crashes a check."""

from __future__ import annotations

import ctypes
import json
import os
import re
import subprocess
import sys
from itertools import islice
from pathlib import Path
from random import Random

import pytest
import torch
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

import inductor_lab as lab
from inductor_lab import course
from inductor_lab.compiler.base.errors import BadArguments
from inductor_lab.course import exercise, order
from inductor_lab.course.given.capture import OPERATIONS
from inductor_lab.course.labs import gradients
from inductor_lab.course.language import VARIABLE
from tests.course.wrong import WRONG


@pytest.fixture(autouse=True)
def own_board(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("INDUCTOR_LAB_COURSE_FILE", str(tmp_path / "course.json"))
    course.speak("en")
    yield tmp_path / "course.json"
    course.speak("en")


@pytest.mark.parametrize(
    "name, solution, said", WRONG, ids=lambda value: getattr(value, "__name__", None)
)
def test_a_wrong_answer_gets_an_explanation(name: str, solution, said: str) -> None:
    verdict = course.check(name, solution)
    assert verdict.points == 0 and said in verdict.message, str(verdict)


def test_every_exercise_has_two_wrong_answers() -> None:
    for name in course.EXERCISES:
        assert sum(wrong[0] == name for wrong in WRONG) >= 2, name


def agreeing(kind: type) -> type:
    """A class whose values equal everything."""
    said = {"__eq__": lambda self, other: True, "__ne__": lambda self, other: False}
    return type("Agreeing", (kind,), {**said, "__hash__": lambda self: 0})


@pytest.mark.parametrize("name, answer", [
    ("1.1", agreeing(int)(1)), ("2.4", agreeing(list)()), ("4.1", (agreeing(tuple)(),) * 3),
    ("8.1", {"a": agreeing(int)(1)}), ("8.4", True), ("10.2", agreeing(object)()),
    ("11.7", agreeing(object)()), ("12.6", ("me", [agreeing(int)(1)] * 3)),
    ("13.6", agreeing(object)()),
])  # fmt: skip
def test_a_value_that_equals_everything_is_wrong(name: str, answer) -> None:
    verdict = course.check(name, lambda *given: answer)
    assert verdict.points == 0 and "it should return" in verdict.message, str(verdict)


def of_nothing(answer):
    """A solution that empties its inputs, which would make the answer easy."""

    def solution(*given):
        for each in given:
            each.zero_() if isinstance(each, torch.Tensor) else getattr(each, "clear", int)()
        return answer(*given)

    return solution


@pytest.mark.parametrize("name, answer", [("9.4", lambda x: x.sum(0)), ("10.4", lambda *_: [])])
def test_a_solution_that_empties_its_inputs_is_wrong(name: str, answer) -> None:
    verdict = course.check(name, of_nothing(answer))
    assert verdict.points == 0, str(verdict)


def endless(instructions, arguments):
    while True:
        arguments["a"] = 0


def crashes(instructions, arguments):
    ctypes.string_at(0)


def leaves(instructions, arguments):
    os._exit(3)


def raises(instructions, arguments):
    return arguments["nothing"]


def changes(instructions, arguments):
    OPERATIONS.clear()
    raise SystemExit(1)


def crashing_kernel(instructions, arguments):
    with lab.faults.unaligned_load():
        return lab.inspect(lambda x: torch.sin(x) + 1, torch.randn(4097)[1:]).result


def forgets(instructions, arguments):
    return of_a_cell_that_was_not_run(arguments)  # noqa: F821


def nothing(instructions, arguments):
    pass


def prints(instructions, arguments):
    print("half way <b>")
    return 1


@pytest.mark.parametrize("solution, said", [
    (endless, "still running after 6 s: does the program end?\nin line"), (crashes, "SIGSEGV"),
    (crashing_kernel, "SIGSEGV"), (crashing_kernel, "torch.randn(4097)[1:]).result"),
    (forgets, "run the cells above"),
    (crashes, "ctypes.string_at(0)"), (leaves, "exit status 3"), (raises, "KeyError: 'nothing'"),
    (raises, 'return arguments["nothing"]'), (nothing, "no `return`?"),
    (changes, "it raised SystemExit: 1\nin line"),
    (3, "'int' object is not callable"), (None, "not callable"),
])  # fmt: skip
def test_no_answer_crashes_a_check(solution, said: str, monkeypatch) -> None:
    monkeypatch.setattr(
        type(course.EXERCISES["1.1"]), "limit", 6.0 if solution is endless else 30.0
    )
    verdict = course.check("1.1", solution)
    assert verdict.points == 0 and said in verdict.message, str(verdict)
    assert OPERATIONS


def test_warnings_do_not_name_folders() -> None:
    """Those of a judge that handles what it cannot use are not the student's.  pytest keeps
    warnings of this process to itself."""
    lines = [
        "import torch, warnings",
        "from inductor_lab import course",
        "print(course.check('11.5', lambda: torch.ones(3)))",
        "print(course.check('1.1', lambda *_: warnings.warn('careful')))",
    ]
    ran = subprocess.run([sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True)
    assert ran.stdout.count("printed:") == 1 and "    UserWarning: careful\n" in ran.stdout


def test_cells_run_in_the_wrong_order_are_reported() -> None:
    InteractiveShell.clear_instance()
    shell = InteractiveShell.instance()
    order.watch()
    order.watch()
    with capture_output() as captured:
        shell.run_cell("from inductor_lab import course\ncourse.check('1.1', machine_of_mine)")
        shell.run_cell("1 / 0")
    assert captured.stdout.count("`machine_of_mine` is not defined: run the cells above") == 1
    InteractiveShell.clear_instance()


def test_a_missing_compiler_is_reported_as_doctor_does(monkeypatch) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    verdict = course.check("1.1", crashing_kernel)
    assert verdict.points == 0 and "CXX=no-such-compiler" in verdict.message, str(verdict)


def test_printed_text_is_shown_and_escaped() -> None:
    verdict = course.check("1.1", prints)
    assert "half way <b>" in verdict.printed and "half way <b>" in str(verdict)
    assert "<b>half" not in verdict._repr_html_() and "&lt;b&gt;" in verdict._repr_html_()


@pytest.mark.parametrize("name", ["1.6", "6.1", "7.2", "8.4"])
def test_counts_of_one_are_singular(name: str) -> None:
    verdict = course.check(name, lambda *given, **named: -1)
    assert re.search(r": \d+; your answer: -1", verdict.message), str(verdict)


def test_a_counterexample_is_small() -> None:
    (swapped,) = (s for n, s, _ in WRONG if getattr(s, "__name__", "") == "swapped_operands")
    verdict = course.check("1.1", swapped)
    assert verdict.case.count("\n") == 2 and len(verdict.case) < 60


def test_the_board_keeps_the_best_score(own_board: Path) -> None:
    def constant(rows):
        return 1

    course.check("1.6", constant)
    assert course.board(1).points == 0 and "✗ 1.6" in str(course.board(1))
    known = json.loads(own_board.read_text())
    known["1.6"]["points"] = 2
    own_board.write_text(json.dumps(known))
    course.check("1.6", constant)
    assert course.board(1).points == 2 and json.loads(own_board.read_text())["1.6"]["tries"] == 2
    own_board.write_text("{ damaged")
    assert course.board().points == 0


def test_the_board_and_errors_list_exercises_in_course_order() -> None:
    labs = [int(row[0].partition(".")[0]) for row in course.board().rows]
    assert labs == sorted(labs) and labs[0] == 1 and labs[-1] == 14
    with pytest.raises(BadArguments) as refused:
        course.check("1.99", None)
    assert str(refused.value).index("9.5") < str(refused.value).index("10.1")


def test_a_prediction_is_compared_with_the_answer() -> None:
    assert course.predict("kernels", 2, 2).right
    assert "you said 3, it is 2" in str(course.predict("kernels", 3, 2))
    hidden = course.predict("kernels", None, 2)
    assert not hidden.right and "set guess first" in str(hidden)
    assert "<details>" in hidden._repr_html_()


@pytest.mark.parametrize("guess, truth, right", [
    ("2", 2, True), (2.0, 2, True), (2.7, 2, False), ("two", 2, False), ([2], 2, False),
    (False, True, False), ("False", True, False), ("true", True, True), (1, True, False),
    (True, 1, False), ("inf", "inf", True), (0, 0.0, True), (None, 0, False), (3, "3", False),
])  # fmt: skip
def test_a_prediction_of_any_type_is_compared(guess: object, truth: object, right: bool) -> None:
    revealed = course.predict("any", guess, truth)
    assert revealed.right is right and str(revealed)


def test_a_plausible_wrong_guess_is_explained() -> None:
    """In the language of the notebook, whose label is in this language; a right one never is."""
    label = ("inputs of the graph", "图的输入数")
    wrong = course.predict(label, 3, 2)
    assert str(wrong).splitlines()[1].startswith("You counted `n`.")
    assert "<code>n</code>" in wrong._repr_html_()
    assert "You counted" not in "".join(str(course.predict(label, guess, 2)) for guess in (2, None))
    assert "\n" not in str(course.predict(label, 17, 2))
    assert "NaN" in str(course.predict("the first number", "inf", "nan"))
    assert "four for tensors" in str(course.predict("overloads of aten.add", "?", 16))
    assert "\n" not in str(course.predict("graphs of noisy", True, 3)), "True is not the number 1"
    course.speak("zh")
    assert "你把 `n` 也算上了" in str(course.predict("图的输入数", "3", 2))


class Careless:
    def take(self, size):
        return {}["no block"]

    def give(self, block):
        pass


def test_an_error_of_the_students_own_class_has_its_line() -> None:
    said = course.check("8.5", Careless).message
    assert "it raised KeyError: 'no block'\nin line" in said and 'return {}["no block"]' in said


@pytest.mark.parametrize("name, given", [("6.2", None), ("6.4", -1), ("8.5", "a pool")])
def test_an_unusable_value_is_not_reported_as_an_exception(name: str, given: object) -> None:
    said = course.check(name, lambda *arguments: given).message
    assert said.startswith("the check cannot use your answer: "), said


def test_empty_solutions_earn_nothing() -> None:
    """Without a partitioner of the student, the compiler's own, which is right, would be judged."""
    for nothing in (None, 5):
        verdict = course.check("3.5", nothing)
        assert verdict.points == 0 and "pass the function" in verdict.message


def test_a_check_asks_for_the_function_itself() -> None:
    said = course.check("6.2", [(0, 0)]).message
    assert said.endswith("pass the function or class itself, and do not call it"), said


OF_OBJECTS = ("2.4", "5.5", "6.7")
"""Their cases are printed objects, or names."""


def test_cases_are_in_the_chosen_language() -> None:
    course.speak("zh")
    described = {
        name: [each.described(case) for case in islice(each.cases(Random(0)), 12)]
        for name, each in course.EXERCISES.items() if name not in OF_OBJECTS
    }  # fmt: skip
    assert described["10.2"][0].startswith("阶段数：")
    english = re.compile(r"\b[a-z]{2,},? [a-z]{2,}\b")
    found = [(name, text) for name, texts in described.items() for text in texts
             if english.search(text)]  # fmt: skip
    assert found == []


def test_verdicts_exist_in_both_languages() -> None:
    course.speak("zh")
    assert "尚未开始" in str(course.check("1.1", _stub)) and "栈式虚拟机" in str(course.board(1))
    assert "你猜的是 3" in str(course.predict(("kernels", "kernel 数"), 3, 2))
    with pytest.raises(BadArguments, match="unknown language"):
        course.speak("fr")
    assert VARIABLE == "INDUCTOR_LAB_LANGUAGE"
    for each in course.EXERCISES.values():
        assert all(each.title) and any("\u4e00" <= letter <= "\u9fff" for letter in each.title[1])


def _stub(instructions, arguments):
    raise NotImplementedError


def test_an_unknown_exercise_is_an_error() -> None:
    with pytest.raises(BadArguments, match=r"no exercise 9\.9"):
        course.check("9.9", _stub)


def test_two_exercises_do_not_share_a_name() -> None:
    with pytest.raises(BadArguments, match=r"two exercises are called 1\.1"):
        exercise.exercise("1.1", "again", "又一次")(exercise.Exercise)


def test_the_gradients_of_lab_3_are_those_of_autograd() -> None:
    for tape in course.EXERCISES["3.1"].cases(Random(5)):
        by, _ = tape.every_gradient()
        known = {
            name: torch.tensor(float(value), dtype=torch.float64, requires_grad=True)
            for name, value in tape.arguments.items()
        }
        leaves = list(known.values())
        for name, op, left, right in tape.nodes:
            known[name] = gradients.OPERATIONS[op](known.get(left, left), known.get(right, right))
        found = torch.autograd.grad(known[tape.result], leaves, allow_unused=True)
        assert {n: by[n] for n in tape.arguments} == {
            n: 0 if g is None else int(g) for n, g in zip(tape.arguments, found, strict=True)
        }
