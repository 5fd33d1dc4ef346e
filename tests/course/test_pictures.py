"""Pictures of the course have a description; accesses of students' kernels are recorded."""

from __future__ import annotations

import re

import pytest
import torch

from inductor_lab import course
from inductor_lab.api.backend import inspect
from inductor_lab.compiler.base.errors import CompileFailed, MissingPackage
from inductor_lab.course import cuda, memory
from inductor_lab.course.checking import Verdict
from inductor_lab.course.labs import wrong_values
from inductor_lab.course.scores import VARIABLE
from tests.course import wrong_fast, wrong_ranks, wrong_whole
from tests.course.wrong import WRONG

triton = pytest.importorskip("triton")
import triton.language as tl  # noqa: E402

from inductor_lab.course.gpu import Outside, run_kernel  # noqa: E402

HOSTILE = "<script>x</script>"


@pytest.fixture
def board(tmp_path, monkeypatch):
    monkeypatch.setenv(VARIABLE, str(tmp_path / "course.json"))
    yield
    course.speak("en")


def test_a_picture_escapes_text_and_has_a_description() -> None:
    drawn = course.bars(HOSTILE, [("a", 1.0, "1 ms"), (HOSTILE, 2.0, "2 ms")])
    assert "<script" not in drawn.html and "&lt;script&gt;" in drawn.html
    assert str(drawn).splitlines()[1].split() == ["a", "1", "ms"]
    assert 'role="img"' in drawn.html and "<desc>" in drawn.html


def test_crossed_values_are_also_in_the_description() -> None:
    line = [("1", "input"), ("2", "wrong"), ("", "box"), ("", "input")]
    drawn = course.cells("c", [("r", line)], [("accessed", "input")])
    assert str(drawn) == "c\n  r: 1 ×2 · (accessed)"
    assert drawn.html.count('class="arrow"') == 1


def test_the_animation_stops_if_reduced_motion_is_preferred() -> None:
    passes = [("x", 8_000_000, False), ("y", 8_000_000, True)]
    drawn = memory.race(1e9, "t", [("naive", passes * 3), ("fused", passes)])
    assert "prefers-reduced-motion:reduce" in drawn.html and "infinite" not in drawn.html
    assert 'type="checkbox"' in drawn.html and "paused" in drawn.html
    assert "naive: 6 passes, 48.0 MB, 48.0 ms" in str(drawn)
    ends = re.findall(r"-head\{0%\{transform:none\}([\d.]+)%", drawn.html)
    assert ends == ["100.00", "33.33"], "a third of the bytes is there after a third of the time"


def test_a_verdict_has_a_picture_and_a_description() -> None:
    verdict = Verdict("1.1", "t", 0, 2, "wrong", "f(1)", picture=course.bars("b", [("a", 1, "1")]))
    assert str(verdict).splitlines()[-2:] == ["  b", "    a  1"]
    html = verdict._repr_html_()
    assert "<svg" in html and html.count("f(1)") == 1 and "<pre" in html


def test_a_check_draws_the_failed_case() -> None:
    verdict = course.check("6.2", lambda rows, columns, tile: [(0, 0)])
    assert verdict.points == 0 and verdict.picture is not None and "i=0" in str(verdict.picture)


@pytest.mark.parametrize("name", course.EXERCISES)
def test_a_typical_wrong_answer_gets_a_picture(name: str, board) -> None:
    drawn = []
    for language in ("en", "zh"):
        course.speak(language)
        found = (course.check(n, wrong).picture for n, wrong, _ in WRONG if n == name)
        drawn.append(next((picture for picture in found if picture is not None), None))
    assert all(drawn), "no wrong answer has a picture"
    english, chinese = drawn
    assert not re.search("[\u4e00-\u9fff]", english.text)
    assert re.search("[\u4e00-\u9fff]", chinese.text), "a picture that is English"
    for picture in drawn:
        assert 'role="img"' in picture.html and "<desc>" in picture.html
        assert len(picture.text.splitlines()) > 1, "a picture of nothing"


def test_a_picture_does_not_show_the_answer_of_its_prediction() -> None:
    printed = str(wrong_values.still_possible(5, False, 8, 1)).splitlines()[1:]
    assert printed == ["  your answer 5: 1 2 3 4 ×5 ×6 ×7 ×8"]
    assert str(wrong_values.still_possible(1, True, 4)).endswith("your answer 1: ×0 ×1 2 3 4")
    assert str(wrong_values.still_possible(2, None, 3, 1)).endswith("your answer 2: 1 ×2 3")
    assert str(wrong_values.still_possible(900, False, 3, 1)).endswith("×900")
    printed = str(wrong_values.prediction(6, 12_345, [("before fusion", 24_000)]))
    assert "12,345" not in printed and "moves more than your answer" in printed
    assert "24,000 B" in printed


@pytest.mark.parametrize(
    ("name", "solution", "rows"),
    [
        ("8.5", wrong_fast.AlwaysFresh, ["+4 −4 ×+4", "block 1: 4 · ·", "block 2: · · ×4"]),
        ("9.3", wrong_fast.twice_at_most, ["call: 4 x 20 5 x 20 5 x 21", "graph: 0 1 2"]),
        ("10.2", wrong_whole.one_by_one, ["stage: 0 1 2", "run: 1 2 ×3", "your answer: None"]),
        ("13.1", wrong_ranks.always_own, ["rank 0: ×0 ×1", "rank 1: ×0 ×1"]),
        ("13.4", wrong_ranks.sends_first, ["×s1 s0"]),
    ],
)
def test_the_values_in_the_picture_of_a_lane(name, solution, rows, board) -> None:
    printed = [line.strip() for line in str(course.check(name, solution).picture).splitlines()]
    assert [row for row in rows if row not in printed] == []


def test_the_picture_crosses_the_wrong_value() -> None:
    printed = str(wrong_values.matrices("rows", [[1, 2], [3, 4]], [[1, 2], [3, 5]])).splitlines()
    assert printed == ["rows", "  right 0: 1 2", "  you 0: 1 2", "  right 1: 3 4", "  you 1: 3 ×5"]
    nan = float("nan")
    assert str(wrong_values.lines("l", [1.0, nan, 3], [1.0, nan])).endswith("you: 1 nan ×–")
    printed = str(wrong_values.amounts("b", "right", [("read, ", 4, 1_000)]))
    assert printed.splitlines()[1:] == ["  read, right  4 B", "  read, you    1,000 B"]


def test_chinese_names_fit() -> None:
    wide, narrow = (course.cells("", [(name, [("1", "box")])]).html for name in ("正确", "ab"))
    width = re.compile(r'viewBox="0 0 ([\d.]+)')
    assert float(width.search(wide)[1]) - float(width.search(narrow)[1]) > 8


def reads_too_far(x, out, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at), at < count)


def right(x, out, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, at < count) + tl.sum(at, 0), at < count)


def test_accesses_of_a_kernel_are_recorded() -> None:
    x, out = torch.arange(6.0), torch.zeros(6)
    trace = run_kernel(right, (2,), x, out, 6, BLOCK=4)
    assert out.tolist() == [6, 7, 8, 9, 26, 27]
    seen = [(a.program, a.writes, a.argument, a.elements, a.masked) for a in trace.accesses]
    assert seen == [(0, False, 0, (0, 1, 2, 3), 0), (0, True, 1, (0, 1, 2, 3), 0),
                    (1, False, 0, (4, 5), 2), (1, True, 1, (4, 5), 2)]  # fmt: skip


def test_a_kernel_ends_before_an_access_out_of_bounds() -> None:
    x, out = torch.arange(6.0), torch.zeros(6)
    with pytest.raises(Outside, match="program 1 reads element 6 of argument 0") as caught:
        run_kernel(reads_too_far, (2,), x, out, 6, BLOCK=4)
    assert out.tolist() == [0, 1, 2, 3, 0, 0] and len(caught.value.trace.accesses) == 3
    assert not hasattr(tl.sum, "rewriter"), "the language is as it was"


def test_cuda_is_compiled_to_ptx_with_nvrtc() -> None:
    if cuda.library() is None:
        with pytest.raises(MissingPackage, match="nvidia-cuda-nvrtc"):
            cuda.ptx_of(cuda.SOFTMAX)
        return
    assert "softmax_rows" in cuda.ptx_of(cuda.SOFTMAX)
    with pytest.raises(CompileFailed, match="by_hand"):
        cuda.ptx_of("int f( {")


def test_memory_passes_match_the_kernels() -> None:
    made = inspect(lambda x: ((x + 1) * 2).sin(), torch.randn(1000))
    assert [(n, w) for _, n, w in memory.passes_of(made.parts[0])] == [(4000, False), (4000, True)]
    assert memory.copy_rate(1 << 20) > 0
