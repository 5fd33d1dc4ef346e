"""Printed lines fit into a notebook of 900 px, and counts have the right plural."""

import re
from dataclasses import replace

import pytest
import torch

import inductor_lab as lab
from inductor_lab import course
from inductor_lab.course import dynamo
from inductor_lab.course.checking import Verdict
from inductor_lab.course.given.fusion import Scored
from inductor_lab.debug import faults
from inductor_lab.notebook.columns import LINE
from inductor_lab.notebook.language import table


def test_a_long_line_wraps_at_a_word(capsys) -> None:
    long = "  legality  same_iteration_space  no: " + "the kernel of buf2 runs over i0<64, " * 4
    course.show("short", "", long.rstrip())
    lines = capsys.readouterr().out.rstrip("\n").split("\n")
    assert lines[:2] == ["short", ""] and len(lines) > 3
    assert max(map(len, lines)) <= LINE and " ".join(" ".join(lines[2:]).split()) == " ".join(
        long.split()
    )
    assert all(line.startswith("      ") for line in lines[3:])


def test_one_is_singular() -> None:
    captured = dynamo.capture(lambda x: x + 1)
    captured(torch.ones(2))
    assert repr(captured).endswith(": 1 graph, 1 guard, 0 breaks)")
    assert "8.2 The peak: 0 of 1 point\n" in f"{Verdict('8.2', 'The peak', 0, 1)}\n"
    assert "0 of 2 points" in str(Verdict("8.1", "Lifetimes", 0, 2))


@pytest.fixture
def chinese():
    course.speak("zh")
    yield
    course.speak("en")


@pytest.mark.usefixtures("chinese")
def test_sentences_of_the_compiler_in_chinese(capsys) -> None:
    course.show(
        "  sin = aten.sin.default: cheap: fuses into its users; 8 flops versus 4 bytes",
        "buf0 -> buf1: profit: they share only 4 B of 8 B; it saves no memory traffic",
        ("in English", "用中文说"),
        "x: float = 1  # code stays",
    )
    assert capsys.readouterr().out.splitlines() == [
        "  sin = aten.sin.default: 开销小：可融合进使用它的算子；8 次浮点运算换 4 字节",
        "buf0 -> buf1: profit: 两者共享的数据只占 8 B 中的 4 B; 不节省访存流量",
        "用中文说",
        "x: float = 1  # code stays",
    ]


def test_effects_of_faults_in_both_languages() -> None:
    effects = {fault.what for fault in faults.CATALOGUE.values()}
    assert effects and effects <= table()["lines"].keys()


def test_every_line_has_its_values_in_both_languages() -> None:
    for english, chinese in table()["lines"].items():
        names = [sorted(re.findall(r"\{\w+\}", text)) for text in (english, chinese)]
        assert names[0] == names[1] and re.search("[\u4e00-\u9fff]", chinese), english


@pytest.mark.usefixtures("chinese")
def test_blame_in_chinese(capsys) -> None:
    with faults.short_series():
        found = lab.blame(lambda x: torch.tanh(x) * 2, torch.randn(64))
    course.show(found)
    for said in (capsys.readouterr().out, found._repr_html_()):
        assert "捕获的图与 eager 的结果一致" in said and "的 kernel 阶段出错：" in said
        assert "2 个步骤与其 FX 节点一致" in said and "expected" not in said


@pytest.mark.usefixtures("chinese")
def test_a_partition_and_the_coverage_in_chinese(capsys) -> None:
    x, w = (torch.randn(8, 8, requires_grad=True) for _ in range(2))
    c = lab.inspect(lambda x, w: torch.softmax(x @ w, -1).exp(), x, w)
    partition = c.graphs[0].partition
    assert {one.choice for one in partition.decisions} >= {"saved", "recomputed", "input"}
    course.show(partition, *partition.decisions)
    (product,) = c.coverage.extern
    for nests in range(3):
        for calls in range(3):
            extern = (replace(product, count=calls),)
            course.show(replace(c.coverage, generated=nests, extern=extern))
    said = capsys.readouterr().out
    names = "|".join([*map(re.escape, (one.node for one in partition.decisions)), r"aten\.[\w.]+"])
    left = re.findall(r"[a-z]{3,}", re.sub(rf"torch\.ops|Partition|eager|{names}", "", said))
    assert not left and "重算（" in said and "2 个循环嵌套，1 次外部调用" in said


def test_a_pair_in_english(capsys) -> None:
    course.show(("in English", "用中文说"), "it saves no memory traffic")
    assert capsys.readouterr().out == "in English\nit saves no memory traffic\n"


@pytest.mark.usefixtures("chinese")
def test_a_chinese_verdict_has_a_chinese_colon() -> None:
    assert str(Verdict("8.2", "峰值", 1, 1)) == "✓ 8.2 峰值：1/1 分"


@pytest.mark.usefixtures("chinese")
def test_columns_of_chinese_are_aligned() -> None:
    def wide(text: str) -> int:
        return len(text) + sum("\u2e80" < letter for letter in text)

    table = str(Scored((("waves", 1, 1, 16384, 16384), ("attend", 2, 2, 65536, 65536))))
    assert "我们" in table and len({wide(line) for line in table.splitlines()}) == 1
