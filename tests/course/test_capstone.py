"""The capstone: starters and references make the small compiler again; wrong steps are rejected."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from inductor_lab import course, mini
from inductor_lab.compiler.base.errors import BadArguments, UnreadableFile
from inductor_lab.course.capstone import process, repository, triton_printer
from inductor_lab.course.capstone.check import check
from inductor_lab.course.capstone.command import checked, started
from inductor_lab.course.capstone.judges import JUDGES, judge_of
from inductor_lab.course.capstone.kernel_text import unexpected
from inductor_lab.course.capstone.repository import (
    FILES,
    body_of,
    functions,
    reference,
    starter,
    step_named,
    steps,
    stubs,
)
from inductor_lab.course.checking import Verdict
from inductor_lab.course.exercise import Wrong
from inductor_lab.course.gpu import descend, run_kernel
from inductor_lab.debug.untrusted.confine import confinable
from inductor_lab.notebook.language import say
from tests.course.broken_capstone import (
    BROKEN,
    BROKEN_TRITON,
    CHEATS,
    KERNEL_CHEATS,
    WRONG_DATA,
)

needs_triton = pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="no Triton")
confined = pytest.mark.skipif(not confinable(), reason="no Landlock on this machine")


@pytest.fixture(autouse=True)
def own_board(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.setenv("INDUCTOR_LAB_COURSE_FILE", str(tmp_path / "course.json"))
    course.speak("en")
    yield
    course.speak("en")


def written(folder: Path, edits: dict[str, str] | None = None) -> Path:
    """A repository with the reference; `edits` replaces functions by name: "fuse.is_legal"."""
    texts = {file: reference(file) for file in FILES}
    for place, body in (edits or {}).items():
        file, _, name = place.partition(".")
        lines, found = texts[file].splitlines(), functions(texts[file])[name]
        first, last = body_of(found)[0], body_of(found)[-1]
        new = [" " * first.col_offset + line for line in body.strip().splitlines()]
        lines[first.lineno - 1 : last.end_lineno] = new
        texts[file] = "\n".join(lines) + "\n"
    (folder / "my").mkdir(parents=True)
    for file, text in texts.items():
        (folder / "my" / f"{file}.py").write_text(text, encoding="utf-8")
    (folder / "my" / "__init__.py").write_text(repository.INIT, encoding="utf-8")
    return folder


# ---- starters ----------------------------------------------------------------------------------


@pytest.mark.parametrize("file", FILES)
def test_a_starter_with_the_reference_bodies_is_the_small_compiler_again(file: str) -> None:
    text, whole = starter(file), reference(file).splitlines()
    bodies = [name for step in steps() if step.file == file for name in step.bodies]
    assert stubs(text) == [name for name in functions(text) if name in bodies] != []
    known = functions(reference(file))
    lines = text.splitlines()
    for name in reversed(stubs(text)):
        body = body_of(known[name])
        (refusal,) = body_of(functions("\n".join(lines))[name])
        lines[refusal.lineno - 1 : refusal.end_lineno] = \
            whole[body[0].lineno - 1 : body[-1].end_lineno]  # fmt: skip
    assert lines == whole
    own = repository.reference_path(file).read_text(encoding="utf-8").splitlines()
    assert [a for a, b in zip(own, whole, strict=True) if a != b and "inductor_lab" not in a] == []


def test_each_function_to_write_has_a_docstring_and_is_explained() -> None:
    for step in steps():
        known = functions(starter(step.file)) if step.file else {}
        for name in step.bodies:
            assert len(known[name].body) == 2, f"{name} has no docstring"
            short = name.rpartition(".")[2]
            assert all(f"`{name}" in text or f"`{short}" in text for text in step.text), name
    assert {step.name for step in steps()} == set(JUDGES)
    assert {step.file for step in steps()} == {*FILES, ""}


def test_texts_are_in_both_languages() -> None:
    for step in steps():
        english, chinese = step.text
        assert not re.search(r"[一-鿿]", english) and re.search(r"[一-鿿]", chinese)
        assert re.findall(r"`[^`\n]+`", english) and english.count("**") == chinese.count("**")
        assert not re.search(r"[一-鿿]", step.title[0]) and re.search(r"[一-鿿]", step.title[1])


def test_a_new_repository_works(tmp_path: Path) -> None:
    """All bodies come from the reference, although nothing may be copied from it."""
    folder = tmp_path / "mine"
    assert "README.md" in started(folder)
    with pytest.raises(BadArguments, match="already exists"):
        started(folder)
    page = (folder / "steps" / "06_group.md").read_text(encoding="utf-8")
    assert "for i0 < 4:\n    buf3[i0] = amax over" in page and "legality.py" in page
    count = sum(len(step.bodies) for step in steps())
    program = f"import my\nassert len(my.borrowed) == {count}, my.borrowed\n" \
        "from my.loops import Affine\nassert Affine(5, (-1, 6)).bounds((6, 4)) == (0, 23)\n" \
        "from my import fuse, lower\nassert fuse.loops.__name__ == 'my.loops'\n"  # fmt: skip
    subprocess.run([sys.executable, "-c", program], cwd=folder, check=True, timeout=120)


def test_pages_are_in_the_language_of_the_student() -> None:
    from inductor_lab.course.capstone.readme import overview, page

    course.speak("zh")
    first = page(step_named("loops")).splitlines()[2]
    assert first.startswith("2 分，约 3 小时。在 `my/loops.py` 中编写：`Affine.bounds`、`flat`、")
    assert "借用" in overview() and "| [7 内存规划](steps/07_memory.md) |" in overview()


def test_the_differences_of_the_full_compiler_are_in_both_languages() -> None:
    """All items of all files, and the table has no other ones."""
    from inductor_lab.course.capstone.readme import chinese_differences, items, page

    title = {"en": "## What the full compiler does differently", "zh": "## 完整的编译器有什么不同"}
    parts: dict[str, list[str]] = {"en": [], "zh": []}
    for spoken, found in parts.items():
        course.speak(spoken)
        for step in steps():
            found += items(page(step).partition(f"{title[spoken]}\n\n")[2]) if step.file else []
    assert dict(zip(parts["en"], parts["zh"], strict=True)) == chinese_differences()
    code = re.compile(r"`[^`]+`|\w+\.py", re.ASCII)
    for english, chinese in chinese_differences().items():
        assert code.findall(english) == code.findall(chinese)
        assert re.search("[一-鿿]", chinese)


# ---- before anything runs ------------------------------------------------------------------------


def test_an_untouched_starter_fails_with_the_name_of_the_step(tmp_path: Path) -> None:
    folder = written(tmp_path / "mine")
    for file in FILES:
        (folder / "my" / f"{file}.py").write_text(starter(file), encoding="utf-8")
    verdicts, required = [*check(folder)], [step for step in steps() if not step.optional]
    assert [v.points for v in verdicts] == [0] * len(required) == [0] * (len(steps()) - 1)
    for step, verdict in zip(required, verdicts, strict=True):
        assert f"step {step.number} is not written yet: " in str(verdict)
    assert "lowest_start, plan" in verdicts[6].message


def test_a_syntax_error_and_a_missing_file_are_reported(tmp_path: Path) -> None:
    folder = written(tmp_path / "mine")
    (folder / "my" / "memory.py").write_text("def plan(:\n", encoding="utf-8")
    (verdict,) = check(folder, [step_named("memory")])
    assert "memory.py, line 1: invalid syntax" in verdict.message
    (folder / "my" / "host.py").unlink()
    with pytest.raises(UnreadableFile, match=r"host\.py"):
        [*check(folder)]
    with pytest.raises(BadArguments, match="has no step 99"):
        checked(["99"], None, False, print)


def test_a_copy_is_recognized_by_its_shape(tmp_path: Path) -> None:
    """Renamed variables and other comments do not hide a copy; another algorithm is not a copy."""
    texts = {file: reference(file) for file in FILES}
    texts["memory"] = texts["memory"].replace("living", "others").replace("other.", "each.") \
        .replace("for other in", "for each in")  # fmt: skip
    assert repository.copied(step_named("memory"), texts) == ["lowest_start", "plan"]
    texts["memory"] = texts["memory"].replace("-buffer.bytes)", "buffer.bytes)")
    assert repository.copied(step_named("memory"), texts) == ["lowest_start"]
    folder = written(tmp_path / "mine")
    (verdict,) = check(folder, [step_named("7")], refuse_copies=True)
    assert verdict.points == 0 and "a copy of inductor_lab.mini" in verdict.message


# ---- judges, in this process -------------------------------------------------------------------


def found_wrong(name: str, solution: Callable[..., Any]) -> Wrong | None:
    asked = judge_of(step_named(name), lambda: pytest.fail("no process is needed"))
    asked.counts = " ".join(asked.counts.split()[1::3])  # type: ignore[misc]
    return asked.first_wrong(solution, "a seed")


@pytest.mark.parametrize("name", ["loops", "lower", "decompose", "autograd", "substitute", "group",
                                  "memory"])  # fmt: skip
def test_the_reference_is_right(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repository, "PACKAGE", "inductor_lab.mini")
    assert found_wrong(name, process._stage) is None


@pytest.mark.parametrize("what", WRONG_DATA)
def test_wrong_data_is_rejected(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Data that is not a program, accesses out of bounds, and calls of other operators."""
    monkeypatch.setattr(repository, "PACKAGE", "inductor_lab.mini")
    name, change, sentence = WRONG_DATA[what]

    def solution(stage: str, *args: Any) -> Any:
        return change(process._stage(stage, *args))

    wrong = found_wrong(name, solution)
    assert wrong is not None and re.search(sentence, wrong.reason), wrong and wrong.reason


# ---- real processes ----------------------------------------------------------------------------


@confined
def test_the_reference_earns_all_points_and_trains(tmp_path: Path) -> None:
    shown: list[Any] = []
    secret = tmp_path / "course" / "secret_seed"
    secret.parent.mkdir()
    secret.write_text("a secret", encoding="ascii")
    folder = written(tmp_path / "mine")
    said = checked([str(folder)], secret, False, shown.append)
    wrong = [str(v) for v in shown if not v.right]
    assert wrong == []
    assert said == f"{sum(s.points for s in steps())} of {sum(s.points for s in steps())} points"
    assert "kernels: " in shown[-2].case and "loads and stores: " in shown[-1].case


def verdicts(folder: Path, edits: dict[str, str], names: str) -> list[Verdict]:
    """Limits are long, except for solutions that do not end."""
    asked = [replace(step_named(name), limit=20 if "while True" in edits.get(place, "") else 300)
             for name in names.split() for place in ["fuse.group" if name == "group" else ""]]
    return [*check(written(folder, edits), asked, "a secret")]


@confined
def test_broken_solutions_are_rejected_at_their_step(tmp_path: Path) -> None:
    """All are in one repository: each step is judged without the errors of the others."""
    names = "lower decompose autograd substitute group memory"
    edits = {place: body for _, place, body, _ in BROKEN}
    found = dict(zip(names.split(), verdicts(tmp_path / "all", edits, names), strict=True))
    for name, _, _, sentence in BROKEN:
        assert found[name].points == 0 and re.search(sentence, found[name].message), found[name]
        assert "def f(x, y, w):" in found[name].case


@confined
def test_negative_axes_are_checked(tmp_path: Path) -> None:
    """The page of step 2 says that a negative axis counts from the end."""
    text = reference("lower").splitlines()
    body = functions(reference("lower"))["Lowering.reduction"].body[1:]
    lines = "\n".join(line[8:] for line in text[body[0].lineno - 1 : body[-1].end_lineno])
    careless = lines.replace("{d % rank for d in dims}", "dims")
    assert careless != lines
    (verdict,) = verdicts(tmp_path / "mine", {"lower.Lowering.reduction": careless}, "lower")
    assert verdict.points == 0 and "sum(-1, keepdim=True)" in verdict.case


@needs_triton
@confined
@pytest.mark.parametrize("what", BROKEN_TRITON)
def test_broken_triton_printers_are_rejected(tmp_path: Path, what: str) -> None:
    old, new, sentence = BROKEN_TRITON[what]
    folder = written(tmp_path / "mine")
    file = folder / "my" / "triton_printer.py"
    text = file.read_text(encoding="utf-8")
    assert text.count(old) == 1
    file.write_text(text.replace(old, new), encoding="utf-8")
    (verdict,) = check(folder, [step_named("triton")], "a secret")
    assert verdict.points == 0 and re.search(sentence, verdict.message), verdict
    assert "def f(x, y, w):" in verdict.case


@pytest.mark.parametrize("text", KERNEL_CHEATS)
def test_a_kernel_has_nothing_but_triton(text: str) -> None:
    assert unexpected(text) is not None


@needs_triton
def test_the_triton_kernels_of_the_reference_compile_for_a_gpu(tmp_path: Path) -> None:
    def normed(x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(x) - torch.softmax(x, 1).amax(1, keepdim=True)

    x = torch.randn(64, 48)
    schedule = mini.inspect(normed, x)[0].parts[0].schedule
    kernels = triton_printer.print_kernels(schedule)
    assert unexpected(kernels.functions) is None
    module = triton_printer.load(kernels)
    for name, parameters in kernels.parameters.items():
        given = [schedule.program.buffers[each].empty() for each in parameters]
        assert ".visible .entry" in str(descend(getattr(module, name), *given, BLOCK=64)["ptx"])


@needs_triton
def test_integers_masks_and_indices_are_printed_too() -> None:
    def counted(x: torch.Tensor, n: torch.Tensor) -> tuple[torch.Tensor, ...]:
        place = torch.arange(48).expand(64, 48)
        return (n + place).amax(1), (x > 0).any(1), torch.where(n > place, x, 1 - x), n.double() / 3

    x, n = torch.randn(64, 48), torch.randint(-9, 60, (64, 48))
    (part,) = mini.inspect(counted, x, n)[0].parts
    kernels = triton_printer.print_kernels(part.schedule)

    def launch(kernel: Any, programs: int, tensors: Any, block: int) -> None:
        assert not run_kernel(kernel, (programs,), *tensors, BLOCK=block).races()

    inputs = {tuple(x.shape) + (x.dtype,): x for x in (x, n)}
    given = [inputs[(*part.program.buffers[name].size, part.program.buffers[name].dtype)]
             for name in part.program.inputs]  # fmt: skip
    found = triton_printer.run(part.schedule, kernels, *given, block=16, launch=launch)
    for mine, right in zip(found, counted(x, n), strict=True):
        assert mine.dtype == right.dtype and torch.equal(mine, right)


@confined
def test_cheats_and_endless_loops_earn_nothing(tmp_path: Path) -> None:
    edits = {place: body for _, place, body, _ in CHEATS}
    names = " ".join(name for name, *_ in CHEATS)
    found = verdicts(tmp_path / "all", edits, names)
    for (_, _, _, sentence), verdict in zip(CHEATS, found, strict=True):
        assert verdict.points == 0 and re.search(sentence, verdict.message), verdict


@confined
def test_steps_are_solved_in_any_order(tmp_path: Path) -> None:
    """Only step 7 is solved; it is checked, and the last step lists the unsolved ones."""
    folder = written(tmp_path / "mine")
    for file in FILES:
        if file != "memory":
            (folder / "my" / f"{file}.py").write_text(starter(file), encoding="utf-8")
    memory, last = check(folder, [step_named("7"), step_named("train")])
    assert memory.right and "bytes of memory: " in memory.case
    assert "is not written yet: Affine.bounds" in last.message


@confined
def test_a_verdict_in_chinese(tmp_path: Path) -> None:
    course.speak("zh")
    edits = {"memory.lowest_start": "return 0"}
    (verdict,) = verdicts(tmp_path / "mine", edits, "memory")
    assert "7 内存规划：0/3 分" in str(verdict) and "起重叠" in verdict.message
    assert say("points") == "分数"
