"""What the chapters and labs state about machines, torch and statistics is asserted by behaviour.

Facts about TorchDynamo and TorchInductor (chapters 1, 2, 5, 8 and 9) are asserted in the notebooks.
"""

from __future__ import annotations

import ctypes
import math
import platform
import random
import re
import statistics
from itertools import islice
from pathlib import Path

import pytest
import torch

from inductor_lab import course
from inductor_lab.bench.timing import Timings
from inductor_lab.compiler.base.errors import MissingPackage
from inductor_lab.compiler.runtime.toolchain.find_compiler import find_toolchain, run_program
from inductor_lab.course import cuda, memory, recorded
from inductor_lab.course.labs.cpp import hits
from tests.course.test_notebooks import SOURCES, TUTORIALS

MAXIMUM = """
extern "C" float f(float a, float b) {
    __asm__("maxss %1, %0" : "+x"(a) : "x"(b));
    return a;
}
"""


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="an instruction of x86")
def test_the_maximum_instruction_of_x86_returns_its_second_operand(tmp_path: Path) -> None:
    source, library = tmp_path / "f.cpp", tmp_path / "f.so"
    source.write_text(MAXIMUM)
    command = [*find_toolchain().command, "-shared", "-fPIC", str(source), "-o", str(library)]
    assert run_program(command, 60.0)[0] == 0
    maximum = ctypes.CDLL(str(library)).f
    maximum.argtypes, maximum.restype = [ctypes.c_float] * 2, ctypes.c_float
    assert maximum(math.nan, 1.0) == 1 and math.isnan(maximum(1.0, math.nan))
    assert torch.maximum(torch.tensor(math.nan), torch.tensor(1.0)).isnan()


@pytest.mark.parametrize("order, fetched", [
    ([(i, j) for i in range(8) for j in range(8)], lambda i, j: True),
    ([(a + i, b + j) for a in (0, 4) for b in (0, 4) for i in range(4) for j in range(4)],
     lambda i, j: i in (0, 4)),
], ids=["row by row", "tile by tile"])  # fmt: skip
def test_the_pictures_of_chapter_6_show_the_cache(order, fetched) -> None:
    """8 x 8 elements, lines of 4 elements, a cache of 8 lines."""
    addresses = [address for i, j in order for address in (j * 8 + i, 64 + i * 8 + j)]
    found = hits(addresses, lines=8, line=4)[::2]
    assert [not hit for hit in found] == [fetched(i, j) for i, j in order]


def test_chapter_7_counts_barriers_and_threads() -> None:
    over_block = cuda.SOFTMAX[: cuda.SOFTMAX.index("\n}\n")]
    assert over_block.count("__syncthreads()") == cuda.SOFTMAX.count("__syncthreads()") == 2
    assert 132 * 2048 == 270_336, "multiprocessors of an H100, threads of each"


def test_a_package_without_an_extra_is_installed_by_its_name() -> None:
    assert str(MissingPackage("nvidia-cuda-nvrtc", None)).endswith("pip install nvidia-cuda-nvrtc")
    assert "inductor-lab[notebook]" in str(MissingPackage("anywidget"))


def test_the_largest_cache_is_that_of_this_machine() -> None:
    found = memory.largest_cache()
    assert found is None or 1 << 18 <= found <= 4 << 30


def holds_the_median(disturbed: int, tries: int = 400) -> float:
    """How often the interval holds the true median, 1, if a disturbance lasts several rounds."""
    draw, found = random.Random(0), 0
    for _ in range(tries):
        noise = [draw.gauss(1, 0.1) for _ in range(30)]
        samples = tuple(noise[n // disturbed] for n in range(30))
        low, high = Timings({"a": samples, "b": (1.0,) * 30}).interval("b", "a")
        found += low <= 1 <= high
    return found / tries


def test_an_interval_needs_independent_rounds() -> None:
    """Chapter 11: 19 of 20 intervals hold the median; far fewer if rounds depend on each other."""
    assert holds_the_median(disturbed=1) > 0.93
    assert holds_the_median(disturbed=6) < 0.85


def samples(base: float, noise: float, count: int = 12) -> tuple[float, ...]:
    draw = random.Random(base)
    return tuple(base * (1 + noise * draw.uniform(-1, 1)) for _ in range(count))


def test_a_ratio_is_measured_only_if_it_is_clear() -> None:
    course.speak("en")
    kept = course.Recorded("a machine", {"slow": 9.0})
    clear = Timings({"base": samples(1.0, 0.1), "slow": samples(2.0, 0.1)})
    shown = str(course.slowdowns("ratio", clear, "base", kept))
    assert re.search(r"slow +(1\.[89]|2\.[0-2])\dx", shown) and "recorded" not in shown
    noisy = Timings({"base": samples(1.0, 0.9), "slow": samples(1.01, 0.9)})
    shown = str(course.slowdowns("ratio", noisy, "base", kept))
    assert "slow (recorded)  9.00x" in shown and "a machine" in shown
    opposite = Timings({"base": samples(2.0, 0.1), "slow": samples(1.0, 0.1)})
    assert "9.00x" in str(course.slowdowns("ratio", opposite, "base", kept))
    shown = str(course.slowdowns("ratio", opposite, "base", course.Recorded("a machine")))
    assert "no clear difference" in shown and "x" not in shown.partition("slow")[2]


def test_recorded_ratios_are_shown_together() -> None:
    """One that is hardly measurable next to a recorded one would look like the smaller one."""
    kept = course.Recorded("a machine", {"large": 3.0, "small": 2.0})
    hardly = Timings({"base": samples(1.0, 0.001), "large": samples(1.01, 0.001),
                      "small": samples(1.5, 0.001), "other": samples(1.4, 0.001)})  # fmt: skip
    shown = str(course.slowdowns("ratio", hardly, "base", kept))
    assert "large (recorded)  3.00x" in shown and "small (recorded)  2.00x" in shown
    assert re.search(r"other +1\.[34]\dx", shown)
    shown = str(course.slowdowns("ratio", hardly, "base", course.Recorded("a machine")))
    assert re.search("large +no clear difference", shown), "1.01x is no difference"


def test_the_largest_value_is_measured_only_if_it_is_clear() -> None:
    known = {"a": 1.0, "b": 2.0}
    assert course.clear_maximum({"a": (3.0, 4.0), "b": (1.0, 2.0)}, known) == "a"
    assert course.clear_maximum({"a": (1.5, 4.0), "b": (1.0, 2.0)}, known) == "b"
    assert course.clear_maximum({"a": (1.02, 1.03), "b": (0.9, 1.0)}, known) == "b"


def test_a_recorded_ratio_supports_its_chapter() -> None:
    for kept in (recorded.TRANSPOSE, recorded.SOFTMAX, recorded.FUSION, recorded.LESS_WORK):
        assert kept.ratios and min(kept.ratios.values()) > 1 and "torch" in kept.where


def test_no_chapter_draws_times_of_its_own() -> None:
    """A bar of a ratio of times is drawn by `slowdowns`, which refuses what is not clear."""
    cells = [block.text for source in TUTORIALS for block in source.blocks
             if block.kind == "python"]  # fmt: skip
    assert [cell for cell in cells if "row.ratio" in cell or "key=gains.get" in cell] == []


def test_values_of_10_4_are_those_of_torch() -> None:
    asked = course.exercises()["10.4"]
    torchs = {"sub": torch.sub, "mul": torch.mul, "fmax": torch.fmax}
    checked = 0
    for case in islice(asked.cases(random.Random(1)), 80):
        for name, reads in case.reads.items():
            if reads:
                one, other = (torch.tensor(case.values[read]) for read in reads)
                wanted = torchs[name.partition("_")[0]](one, other).item()
                found = case.values[name]
                assert found == wanted or (math.isnan(found) and math.isnan(wanted)), str(case)
                checked += 1
    assert checked > 100


def test_a_lab_promises_no_smallest_case() -> None:
    """Fewer than half of the exercises make a failing case smaller, and none proves it smallest."""
    shrinking = [one for one in course.exercises().values()
                 if type(one).smaller is not course.Exercise.smaller]  # fmt: skip
    assert 0 < len(shrinking) < len(course.exercises())
    said = [block.text for source in SOURCES for block in source.blocks
            if block.kind in ("en", "zh")]  # fmt: skip
    promise = re.compile(r"shows? the smallest|最小的?(程序|例子|情形|情况|用例|反例|张量)")
    assert [text for text in said if promise.search(text)] == []
    assert statistics.fmean(map(len, said)) > 10
