"""Pages of figures speak Chinese: what is left in Latin letters is a name, a unit or a term."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import torch

import inductor_lab as lab
from inductor_lab.bench.bench_result import Contender
from inductor_lab.bench.progress import Progress
from inductor_lab.bench.timing import Timings
from inductor_lab.compiler.accelerators import LISTS
from inductor_lab.compiler.capture.fx_graph import Span
from inductor_lab.notebook.language import translate
from inductor_lab.stock.trace_log import Compiled
from inductor_lab.widgets import debug
from inductor_lab.widgets.bench import html
from inductor_lab.widgets.function_name import function_name
from inductor_lab.widgets.markup import written
from inductor_lab.widgets.model import document
from inductor_lab.widgets.plain import plain_document
from inductor_lab.widgets.trace import index_tree
from tests.widgets.test_bench import every, result
from tests.widgets.test_recompiles import watched

NAMES = {
    "eager", "inductor", "inductor_lab", "wave",
    "GFLOP", "GB", "MB", "kB", "B", "ms", "µs", "ns", "f32",
    "kernel", "kernels", "rank", "forward", "ATen", "aten", "default", "torch", "Markdown", "mm",
    "threads", "lane", "processor", "over", "sizes", "programs", "modes", "one", "two", "in", "a",
    "s", "x",
}  # fmt: skip
"""Names of functions and contenders, titles of the user, the machine's own text, and units."""


PHASES = {"graph", "captured", "partition", "rewrite", "lower", "schedule", "libraries", "codegen",
          "load", "host"}  # fmt: skip
"""Phases of a compile, which a running benchmark reports by name."""


@pytest.fixture(autouse=True)
def chinese() -> Iterator[None]:
    lab.language("zh")
    yield
    lab.language("en")


def english(page: str) -> set[str]:
    """Words in Latin letters that a reader of the page sees, pictures and code left out."""
    return english_words(re.sub(r"(?s)<(svg|pre)\b.*?</\1>|<div title=.*?</div>", " ", page))


def english_words(page: str) -> set[str]:
    """Words in Latin letters, those of pictures and code too."""
    text = re.sub(r"(?s)<(style|script)\b.*?</\1>", " ", page)
    text = re.sub(r"<[^>]*>|&\w+;", " ", text)
    text = re.sub(r"cpp_fused\w+|\w+\.py\S*|\w+\([^)]*\)", " ", text)
    return {word for word in re.findall(r"\b[A-Za-zµ_]\w*", text) if word not in NAMES}


@pytest.mark.parametrize("shown", every(), ids=lambda shown: type(shown).__name__)
def test_a_benchmark_speaks_chinese(shown: Any) -> None:
    found = html(shown)
    assert "每次调用" in found or "编译者" in found or "大小" in found
    assert english(found) <= {"img", "src", "onerror", "alert", "no"}, "the user's own names"
    assert "复制为 Markdown" in found and "Copy as" not in found
    for picture in re.findall(r"(?s)<svg.*?</svg>", found):
        drawn = " ".join(re.findall(r"<text[^>]*>([^<]*)<", picture))
        assert english_words(drawn) <= {"img", "src", "onerror", "alert", "no", "flop", "byte"}


@pytest.mark.parametrize("new, said", [
    ((1e-3,) * 8, "速度是 eager 的 2 倍"), ((4e-3,) * 8, "耗时是 eager 的 2 倍"),
    ((2e-3,) * 8, "与 eager 一样快"), ((1e-3, 9e-3) * 4, "噪声太大，无法判断"),
    ((1e-3,) * 2, "无法判断：只有 2 轮"),
])  # fmt: skip
def test_a_verdict_speaks_chinese(new: tuple[float, ...], said: str) -> None:
    times = {"eager": (2e-3,) * len(new), "inductor_lab": new}
    assert Timings(times).verdict("inductor_lab", "eager").startswith(said)


def test_errors_are_reported_in_chinese() -> None:
    shown = result()
    wrong = Contender("inductor_lab", error=0.5, agrees=False)
    told = replace(shown, contenders=(Contender("eager"), wrong), complete=False)
    assert "提前停止：结果来自 8 轮。" in told.sentences
    assert told.verdict("inductor_lab").endswith("；但结果相差 5e-01")
    failed = replace(shown, contenders=(Contender("eager"), Contender("inductor", failure="?")))
    assert failed.verdict("inductor") == "失败：?"


def test_profile_and_ranks_speak_chinese(known_limits: None) -> None:
    compilation = lab.inspect(lambda x, w: torch.softmax(x @ w, -1), *torch.randn(2, 64, 64))
    page = compilation.profile()._repr_html_()
    assert ">库</text>" in page and ">libraries</text>" not in page
    assert "kernel 之间" in page and english(page) <= {"lambda", "cell", "g0", "mkldnn"}
    other = lab.inspect(lambda x: x + 1, torch.ones(4))
    for second, said in ((compilation, "0 次集合通信一致"), (other, "集合通信")):
        page = lab.join([compilation, second])._repr_html_()
        assert said in page and "捕获的图" in page and english(page) <= {"lambda", "oneDNN"}
    line = lab.distributed.timeline(compilation, 2)._repr_html_()
    assert "2 个 rank" in line and "纸面推算：计算按假定的速率" in line
    assert english_words(line) <= {"lambda", "exp", "softmax", "mul", "sub"} and "<pre" not in line


def test_a_machine_without_roofs_is_described_in_chinese() -> None:
    doubt = ("this machine is too noisy to say what it can do: after 6 measurements copies of "
             "1.0 MB still differ by a factor of 3,950.2")  # fmt: skip
    assert translate(f"No shares of the roof: {doubt}.") == (
        "没有占屋顶线的百分比：这台机器干扰太多，无法确定其上限：测量 6 次后，"
        "1.0 MB 的复制仍相差 3,950.2 倍。"
    )


def test_blame_and_annotated_source_speak_chinese() -> None:
    def wave(x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x.sin(), -1)

    found = lab.blame(wave, torch.randn(8, 16))._repr_html_()
    for said in (">结论</th>", ">详情</th>", "wave: 舍入", "<h2>结果</h2>"):
        assert said in found
    assert "<td>right" not in found and "<td>rounding" not in found
    told = lab.inspect(wave, torch.randn(8, 16)).annotate()._repr_html_()
    assert "wave：访存量 1.0 kB；展开一行可看它的代码" in told
    assert "open a line" not in told


def test_a_rounding_and_values_by_line_are_translated() -> None:
    told = "rounding: at most 2e+06 ULP from float64, eager 1e+06; 4e-08 from float64 where digits"
    assert translate(f"{told} cancel, eager 2e-08") == (
        "舍入：至多离 float64 2e+06 ULP，eager 为 1e+06；"
        "有效数字相消处离 float64 4e-08，eager 为 2e-08"
    )
    x = torch.randn(8, 16, requires_grad=True)
    page = lab.blame(lambda x: torch.softmax(x.sin(), -1), x)._repr_html_()
    for said in ("<td>结果 0</td>", "<td>x 的梯度</td>", ">缓冲区</th>", ">源代码行</th>"):
        assert said in page
    for left in (">value</th>", ">yours</th>", "gradient of x"):
        assert left not in page


def test_the_minifier_speaks_chinese() -> None:
    def wrong(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.maximum(b, torch.neg(a)).sin()

    args = (torch.randint(256, (rows, 8), dtype=torch.uint8) for rows in (1, 90))
    told: list[str] = []
    with lab.faults.wrong_neg():
        found = lab.minify(wrong, *args, tell=told.append)
    assert told[0].startswith("wrong：失败：结果错误；起初有 6 个节点，2 个输入，728 个元素")
    assert re.match(r"保留一半：从 6 个节点，.* 到 3 个节点，1 个输入，8 个元素", told[1])
    page = found._repr_html_()
    assert "<td>保留一半</td>" in page and "<h1>wrong: 失败：结果错误</h1>" in page
    assert english(page) <= {"wrong"}


def test_a_call_that_is_stepped_through_speaks_chinese() -> None:
    steps = lab.inspect(lambda x: x.sin() + 1, torch.randn(4)).steps()
    live = written(debug.tree(steps, live=True))
    assert english(live) <= {"lambda", "g0", "NaN", "inf"} | set(re.findall(r"\w+", steps.file))
    steps.rest()
    page = written(debug.tree(steps))
    assert re.search("第 \\d+ 行计算 .*；存活的缓冲区：\\d+ B", page) and ">直方图</th>" in page


def test_an_ablation_and_heads_of_stages_speak_chinese(known_limits: None) -> None:
    compilation = lab.inspect(lambda x: x.sin().sum(-1), torch.randn(64, 64))
    page = compilation.ablation(seconds=0)._repr_html_()
    assert "倍数：各轮比值的中位数" in page and ">去掉</th>" in page
    passes = {name for table in LISTS.values() for name in table}
    assert english(page) <= {"nothing", "all", "pass", *passes}
    part = compilation.graphs[0].forward
    assert "LoopProgram(forward：共 2 个循环嵌套，0 次外部调用)" in part.loops._repr_html_()
    assert "Schedule(kernel：未融合 2 -&gt; 融合后 1，" in part.schedule._repr_html_()
    assert "融合的结果：图 0 forward" in compilation._repr_html_()


def test_a_running_benchmark_and_its_roofs_speak_chinese(known_limits: None) -> None:
    told: list[str] = []

    class Heard(Progress):
        def update(self, done: float, doing: str, result: Any) -> None:
            told.append(doing)

    def wave(x: torch.Tensor) -> torch.Tensor:
        return x.sin()

    found = lab.bench(wave, torch.ones(8), against="eager", seconds=0, progress=Heard())
    lab.bench.sweep(wave, torch.ones, [8], against="eager", seconds=0, progress=Heard())
    assert any(re.match("第 1 个，共 1 个：.*：inductor_lab：再次编译", doing) for doing in told)
    assert {word for doing in told for word in english_words(doing)} <= PHASES
    tips = re.findall("<title>(.*?)</title>", str(found.plot("roofline")), re.DOTALL)
    assert tips and all("屋顶线" in tip and "roof" not in tip for tip in tips)


def test_recompiles_speak_chinese() -> None:
    seen = watched([4, 4, 5])
    page = seen._repr_html_()
    assert page is not None
    for said in ("重新编译 1 次", "服务的调用数", "x 第 0 维的大小是 5", "在第 3 次调用时编译"):
        assert said in page
    assert english(page) <= {"shifted"}
    assert function_name("torch_dynamo_resume_in_f_at_12") == "f 第 12 行之后"


def test_a_trace_log_speaks_chinese() -> None:
    where = Span("/a/train.py", 3, 0, 3, 1)
    row = Compiled("", "0/0", "forward", where, 0.5, 1, ("miss", "hit"), ("again",), (), (), "")
    rows = (row, replace(row, compile_id="0/1", parts=0), replace(row, error="no"))
    log = SimpleNamespace(compiled=rows, name="log", torch_version="", problems=("line 3",))
    page = written(index_tree(log, {"0/0"}))  # type: ignore[arg-type]
    for said in ("3 个编译编号", "缓存未命中", "没有图", "重新开始", "跳过了 1 处损坏"):
        assert said in page
    assert english(page) <= {"log", "train", "again", "no", "line", "py"}


def test_an_explorer_without_its_script_speaks_chinese() -> None:
    def wave(x: torch.Tensor) -> torch.Tensor:
        y = x.sin() * 2
        print("a graph break")
        return y.cos()

    page = plain_document(document(lab.inspect(wave, torch.ones(3))))
    assert "访存遍数" in page and "<h2>图中断</h2>" in page and "<h2>源码 " in page
    facts = page.partition("<p>")[2].partition("</p>")[0]
    assert english(facts) == set(), facts
