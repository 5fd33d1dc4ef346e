"""Duels: every seeded bug has an input that exposes it, and other answers earn nothing."""

from __future__ import annotations

import ast
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from inductor_lab import course
from inductor_lab.compiler.base.errors import BadArguments, UnreadableFile
from inductor_lab.course.command import command
from inductor_lab.course.duels import duel
from inductor_lab.course.duels.bank import FOLDER, Suspect, Topic, bank
from inductor_lab.course.duels.components import COMPONENTS
from inductor_lab.course.labs.memory import works

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
TOPICS = {topic.name: topic for topic in bank(NOTEBOOKS)}
EVERY = [(topic, one) for topic in TOPICS.values() for one in topic.suspects]
WITH_BUG = [(topic, one) for topic, one in EVERY if one.why]
WITHOUT = [(topic, one) for topic, one in EVERY if not one.why]


def named(pair: Any) -> str:
    return getattr(pair, "name", "")


def arguments(text: str) -> tuple[Any, ...]:
    found = ast.literal_eval(text)
    return found if isinstance(found, tuple) else (found,)


@pytest.fixture(autouse=True)
def english() -> None:
    course.speak("en")


@pytest.mark.parametrize(("topic", "suspect"), WITH_BUG, ids=named)
def test_a_seeded_bug_is_exposed_by_its_input_and_is_not_correct(
    topic: Topic, suspect: Suspect
) -> None:
    given = arguments(suspect.input)
    assert COMPONENTS[topic.name].legal(given)
    found = duel._answered(topic, suspect, given, "")
    assert found.points == duel.EXPOSED and "cannot use" not in found.why, found
    right = topic.of_kind(correct=True)[0]
    assert not duel.exposed(topic, right, given)
    assert duel._answered(topic, suspect, "correct", "").points == 0
    assert duel._answered(topic, right, given, "").why == "it is right for this input"


# ---- correct versions ----------------------------------------------------------------------------


def _lives(draw: random.Random) -> Any:
    work = next(iter(works(draw, 1))) if draw.random() < 0.2 else list(works(draw, 50))[-1]
    lives = dict(list(work.lives.items())[:8])
    return lives, {name: draw.randint(1, 9) for name in lives}


def _accesses(draw: random.Random) -> Any:
    axes = draw.randint(1, 3)
    sizes = tuple(draw.randint(0, 4) for _ in range(axes))

    def access() -> Any:
        return draw.randint(0, 1), tuple(draw.randint(0, 2) for _ in range(axes))

    one = access()
    return sizes, one, one if draw.random() < 0.3 else access()


def _rows(draw: random.Random, second: Callable[[], Any]) -> list[Any]:
    names, rows = ["x", "w"], list[Any]()
    for number in range(draw.randint(1, 8)):
        reads = [draw.choice(names[-4:]) for _ in range(draw.randint(0, 2))]
        rows.append((f"b{number}", second(), reads))
        names.append(f"b{number}")
    return rows


def _steps(draw: random.Random) -> Any:
    return (_rows(draw, lambda: draw.choice([1, 8])),)


def _values(draw: random.Random) -> Any:
    rows = _rows(draw, lambda: draw.choice(["rand", "matmul", "sin", "mul"]))
    return rows, [name for name, _, _ in rows if draw.random() < 0.4]


def _row(draw: random.Random) -> Any:
    scale = draw.choice([1, 1000])
    return [draw.uniform(-9, 5) * scale for _ in range(draw.randint(1, 9))], draw.randint(1, 4)


def _expression(draw: random.Random) -> Any:
    def drawn(depth: int) -> Any:
        if depth == 0 or draw.random() < 0.1:
            return draw.choice(["i", "j", draw.randint(0, 9)])
        op = draw.choice(["+", "*", "//", "%"])
        number = draw.choice([1, 2, 4, 6, 8])
        right = number if op in ("//", "%") or draw.random() < 0.6 else drawn(depth - 1)
        return op, drawn(depth - 1), right

    return drawn(3), {"i": draw.randint(0, 30), "j": draw.randint(0, 30)}


INPUTS = {"memory": _lives, "fusion": _accesses, "scheduler": _steps, "partitioner": _values,
          "kernel": _row, "simplify": _expression}  # fmt: skip


@pytest.mark.parametrize(("topic", "suspect"), WITHOUT, ids=named)
def test_no_input_exposes_a_correct_version(topic: Topic, suspect: Suspect) -> None:
    draw, names = random.Random(suspect.name), dict[str, Any]()
    exec(suspect.code, names)
    for _ in range(600):
        given = INPUTS[topic.name](draw)
        assert COMPONENTS[topic.name].legal(given), given
        assert COMPONENTS[topic.name].exposed(names[topic.function], given) is None, given


def test_a_text_differs_for_each_version() -> None:
    assert len({suspect.code for _, suspect in EVERY}) == len(EVERY) > 30
    for topic in TOPICS.values():
        assert len(topic.of_kind(correct=True)) >= 3, "a diff must not decide"
        assert len(topic.of_kind(correct=False)) >= 3


# ---- answers -------------------------------------------------------------------------------------

NOT_LEGAL = {
    "memory": [({"a": (0, 1)}, {}), ({"a": (1, 0)}, {"a": 64}), ({"a": (0, 1)}, {"a": 10**30}),
               ({"a": (0, True)}, {"a": 1}), 7],
    "fusion": [((10**9,), (0, (1,)), (1, (1,))), ((2, 2), (0, (1,)), (0, (1,))), ((2,), 0, 1)],
    "scheduler": [[("a", 8, ["b"]), ("b", 8, [])], [("a", 8, []), ("a", 8, [])], [],
                  [("a", 9e9, [])], [("a", 8, ["a"])]],
    "partitioner": [([("a", "cos", ["x"])], ["a"]), ([("a", "sin", ["x"])], ["b"])],
    "kernel": [([float("inf")], 1), ([], 1), ([1.0], 0), ([1.0] * 10**4, 1), ("text", 1)],
    "simplify": [(("//", "i", 0), {"i": 1}), (("+", "i", "k"), {"i": 1}), ("i", {"i": -1}),
                 (("**", 9, 9), {}), ("i",)],
}  # fmt: skip


def test_what_is_no_legal_input_earns_nothing() -> None:
    for name, answers in NOT_LEGAL.items():
        suspect = TOPICS[name].of_kind(correct=False)[0]
        for answer in answers:
            found = duel._answered(TOPICS[name], suspect, answer, "")
            assert found.points == 0 and found.why == "this is not a legal input", answer


CHEATS = {
    "runs": "answers = __import__('os').system('touch {made}')",
    "ends": "import os\nos._exit(0)\nanswers = {}",
    "hangs": "while True:\n    pass\nanswers = {'memory': None}",
    "power": "answers = 9 ** 9 ** 9 ** 9",
    "deep": "answers = " + "(" * 5000 + ")" * 5000,
    "long": "answers = {'memory': '" + "x" * 50_000 + "'}",
    "list": "answers = ['correct'] * 6",
    "syntax": "answers = {",
    "nothing": "",
}


def test_files_that_cheat_or_hang_earn_nothing(tmp_path: Path) -> None:
    made = tmp_path / "made"
    for name, text in CHEATS.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "answers.py").write_text(text.replace("{made}", str(made)))
    found = duel.check(tmp_path, "a secret", NOTEBOOKS)
    assert {one.name: one.points for one in found} == dict.fromkeys(CHEATS, 0)
    assert not made.exists()


def test_an_input_on_which_a_suspect_does_not_end_exposes_nothing(monkeypatch: Any) -> None:
    monkeypatch.setattr(duel, "LIMIT", 1.0)
    hangs = Suspect("hangs", "def may_fuse(*given):\n    while True:\n        pass\n", ("", ""))
    given = ((4,), (0, (1,)), (1, (1,)))
    assert duel._answered(TOPICS["fusion"], hangs, given, "").points == 0


def test_the_command(tmp_path: Path) -> None:
    secret = tmp_path / "secret_seed"
    secret.write_text("42")
    fall, given = tmp_path / "fall", ("--secret", str(secret), "--folder", str(NOTEBOOKS))
    said = command(["duel", "start", str(fall), "ada", "bob", "eve", *given])
    assert said.endswith("3 folders written")
    with pytest.raises(BadArguments, match="already exists"):
        command(["duel", "start", str(fall), "ada", *given])
    drawn = {name: list(duel.drawn(list(TOPICS.values()), "42", name)) for name in ("ada", "bob")}
    assert drawn["ada"] != drawn["bob"]
    for topic, suspect in drawn["ada"]:
        assert (fall / "ada" / f"{topic.name}.py").read_text() == suspect.code
        assert topic.text in (fall / "ada" / "README.md").read_text()
    right = {topic.name: ast.literal_eval(suspect.input) if suspect.why else "correct"
             for topic, suspect in drawn["ada"]}  # fmt: skip
    (fall / "ada" / "answers.py").write_text(f"import random\nanswers = {right!r}\n")
    (fall / "bob" / "answers.py").write_text(f"answers = {dict.fromkeys(right, 'correct')!r}\n")
    (fall / "ada" / "memory.py").write_text("changed by the student")
    said = command(["duel", "check", str(fall), *given])
    assert said == command(["duel", "check", str(fall), *given])
    bugs = sum(bool(suspect.why) for _, suspect in drawn["ada"])
    fine = sum(not suspect.why for _, suspect in drawn["bob"])
    assert said.splitlines()[1].split() == ["1", "ada", str(6 + bugs)] and 0 < bugs < 6
    assert said.splitlines()[2].split() == ["2", "bob", str(fine)]
    assert said.splitlines()[3].split() == ["3", "eve", "0"] or fine == 0
    hints = [suspect.why[0] for _, suspect in drawn["ada"] if suspect.why]
    assert not any(hint in said for hint in hints)
    solved = command(["duel", "check", str(fall), "--solutions", *given])
    assert all(hint in solved for hint in hints)


def test_both_languages(tmp_path: Path) -> None:
    made = ["--folder", str(NOTEBOOKS), "--language", "zh"]
    command(["duel", "start", str(tmp_path / "秋"), *made])
    text = (tmp_path / "秋" / "me" / "README.md").read_text(encoding="utf-8")
    assert text.startswith("# 找错对决")
    assert all(topic.texts[1] in text for topic in TOPICS.values())
    assert command(["duel", "check", str(tmp_path / "秋"), *made]).count("没有答案") == len(TOPICS)


def test_a_bank_that_is_not_there_or_is_wrong(tmp_path: Path) -> None:
    with pytest.raises(BadArguments, match=r"there is no .*memory\.toml"):
        bank(tmp_path)
    with pytest.raises(BadArguments, match="no folder with a file answers"):
        duel.check(tmp_path, "", NOTEBOOKS)
    place = tmp_path / FOLDER
    place.mkdir(parents=True)
    for path in (NOTEBOOKS / FOLDER).glob("*.toml"):
        text = path.read_text(encoding="utf-8").replace("at = max(at, end)", "at = end", 1)
        (place / path.name).write_text(text, encoding="utf-8")
    with pytest.raises(UnreadableFile, match="is in the code 0 times"):
        bank(tmp_path)
