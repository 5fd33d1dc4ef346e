"""`lab.compare(ours, stock)`: kernels, bytes and code of both compilers for each line."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
import torch

import inductor_lab as lab
from inductor_lab.compiler.base.errors import BadArguments, NotRunnable, UnknownName
from tests.stock.functions import attend

FIRST = attend.__code__.co_firstlineno


@pytest.fixture(scope="module")
def both(attended):
    inputs = [torch.randn(64, 64, requires_grad=True) for _ in range(3)]
    return lab.compare(lab.inspect(attend, *inputs), attended)


def test_every_line_has_the_kernels_of_both_compilers(both):
    assert [found.line for found in both.lines] == [FIRST + n for n in (1, 2, 3, 4)]
    assert both.lines[0].code == "a = torch.softmax(x + y, -1)"
    for found in both.lines:
        assert found.ours and found.stock
    product = both.lines[1]
    assert any(not work.generated for work in product.ours)
    moved = {
        (work.name, work.nbytes)
        for work in (*product.ours, *product.stock)
        if work.part == "g0.forward" and work.name.split(".")[-1] in ("mm", "default")
    }
    assert moved == {(name, 3 * 64 * 64 * 4) for name in ("aten.mm.default", "extern_kernels.mm")}


def test_code_of_both_compilers_is_shown_for_a_line(both):
    ours, stock = both.code(FIRST + 1)
    assert "lab_exp" in ours and ".exp(" in stock
    assert "lab_exp" not in both.code(FIRST + 4)[0]
    with pytest.raises(UnknownName, match=str(FIRST + 1)):
        both.code(10_000)


def test_totals_and_the_page(both):
    assert sum(work.generated for work in both.stock) == 6
    assert "stock" in str(both) and "kernels moving" in repr(both)
    page = both._repr_html_()
    assert "torch.softmax" in page and "extern_kernels.mm" in page and "<script" not in page


def test_kernels_of_both_have_times(attended, known_limits):
    inputs = [torch.randn(64, 64, requires_grad=True) for _ in range(3)]
    stock = attended.measure(seconds=0.0)
    both = lab.compare(lab.inspect(attend, *inputs).measure(seconds=0.0), stock)
    works = [w for w in (*both.ours, *both.stock) if not w.name.startswith("torch.ops.")]
    assert all(work.seconds for work in works), str(both)
    calls = {kernel.name: kernel.calls for kernel in stock.kernels}
    assert "extern_kernels.mm" in calls and stock.result is attended.result
    assert all(kernel.seconds is None for kernel in attended.kernels), "it is not changed"
    timed = [line for line in str(both).splitlines() if line.endswith("µs")]
    assert len(timed) > len(works), "a kernel is listed at each of its lines"


def test_names_are_restored_after_a_measurement(attended):
    from inductor_lab.stock.times import _is_of, _modules

    attended.measure(seconds=0.0)
    modules = [m for m in _modules() if any(_is_of(m, part) for part in attended.parts)]
    assert modules
    for module in modules:
        kernels = [value for name, value in vars(module).items() if name.startswith("cpp_fused")]
        assert kernels and not any("_clock" in repr(kernel) for kernel in kernels)


def test_a_loaded_stock_compilation_cannot_be_measured(attended, tmp_path):
    with pytest.raises(NotRunnable, match="loaded from a file"):
        lab.load(attended.save(tmp_path / "stock.json")).measure()


def test_each_call_of_a_kernel_counts():
    from inductor_lab.stock.compare import Work, total_text, work_text

    sine = Work("cpp_fused_sin_0", "g0.forward", True, 8000, None, frozenset(), calls=4)
    product = Work("extern_kernels.mm", "g0.forward", False, 12000, None, frozenset(), calls=4)
    assert total_text([sine, product]) == "4 kernels moving 8.0 kB, 4 library calls"
    assert work_text(product) == "extern_kernels.mm  g0.forward  4 calls  12.0 kB"


def test_a_summary_counts_calls_as_the_comparison_does(both, attended):
    said = re.search(r"stock +(\d+) kernels? moving .*, (\d+) library calls?", str(both))
    counted = re.search(r" in (\d+) calls?, \d+ library functions? in (\d+) call", str(attended))
    assert said and counted and said.groups() == counted.groups(), f"{both}\n{attended}"


def test_comparing_two_stock_compilations_is_refused(attended):
    with pytest.raises(BadArguments, match="a compilation by inductor_lab"):
        lab.compare(attended, attended)


@pytest.mark.parametrize("count", [0, 1, 2])
def test_one_library_function_is_singular(attended, count):
    from inductor_lab.widgets.stock import facts

    (graph,) = attended.graphs
    kernel = replace(attended.kernels[0], language="extern")
    forward = replace(graph.forward, kernels=(kernel,) * count)
    given = replace(attended, graphs=(replace(graph, forward=forward, backward=None),))
    labels = {label: value for label, value, *_ in facts(given)}
    assert labels["library function" if count == 1 else "library functions"] == str(count)
