"""`lab.inspect(f, x, compiler="stock")`: stock's compilation in the records of our explorer."""

from __future__ import annotations

import logging
import re
from pathlib import Path

import pytest
import torch

import inductor_lab as lab
from inductor_lab.bench.demo.programs import PROGRAMS
from inductor_lab.compiler.base.errors import BadOption
from inductor_lab.saved.documents.outline import select
from inductor_lab.stock.stock_compilation import StockCompilation
from inductor_lab.widgets.model import document
from tests.saved.schemas import valid
from tests.stock.functions import attend


def spans_of(part, kernel) -> set[int]:
    nodes = {node.name: node for node in (*part.graph.nodes, *part.last.nodes)}
    return {nodes[n].span.line for n in kernel.nodes if n in nodes and nodes[n].span}


def test_the_result_equals_eager(attended):
    torch.manual_seed(0)
    inputs = [torch.randn(64, 64, requires_grad=True) for _ in range(3)]
    for ours, eager in zip(attended.result, attend(*inputs), strict=True):
        assert torch.allclose(ours, eager, atol=1e-4)


def test_every_stage_is_recorded(attended):
    graph = attended.graphs[0]
    assert [n.target for n in graph.captured.nodes if n.name == "a"] == ["torch.softmax"]
    assert {"softmax", "div"} & {n.name for n in graph.joint.graph.nodes}
    assert len(graph.joint.primals) == 3 and graph.joint.num_forward_outputs == 2
    assert [part.name for part in graph.parts] == ["forward", "backward"]
    for part in graph.parts:
        assert part.graph.nodes and part.last.nodes and part.ir_before and part.ir_after
        assert part.generated and part.missing == {}
        assert "async_compile" in part.text and "def call" in str(part.host)
    assert attended.capture.guards and attended.capture.seconds and attended.phases


def test_each_phase_belongs_to_a_compiler(attended):
    tracks = {phase.name: phase.track for phase in attended.phases}
    assert set(tracks.values()) == {"torch.compile", "TorchDynamo", "AOTAutograd", "TorchInductor"}
    assert tracks["total"] == "torch.compile" and tracks["bytecode_tracing"] == "TorchDynamo"
    assert tracks["create_aot_dispatcher_function"] == "AOTAutograd"
    for name in ("GraphLowering.run", "Scheduler.__init__", "async_compile.wait"):
        assert tracks[name] == "TorchInductor"


def test_kernels_are_linked_to_user_lines(attended):
    total, linked = attended.statements
    assert total > 100 and linked == total
    first = attend.__code__.co_firstlineno
    forward = attended.graphs[0].forward
    softmax = next(k for k in forward.generated if "softmax" in k.name)
    assert first + 1 in spans_of(forward, softmax)
    mm = next(k for k in forward.kernels if k.name == "extern_kernels.mm")
    assert (mm.language, mm.nodes, mm.bytes_read) == ("extern", ("mm",), 2 * 64 * 64 * 4)
    assert spans_of(forward, mm) == {first + 2}
    exp = [line for line in softmax.code.lines if ".exp(" in line.text]
    assert exp and all(line.origins == {"exp"} for line in exp)


def test_calls_in_the_wrapper_are_linked_to_their_nodes(attended):
    forward = attended.graphs[0].forward
    (call,) = [line for line in forward.host.lines if "extern_kernels.mm(" in line.text]
    assert call.origins == {"mm"}


def test_reasons_for_refused_fusions_are_recorded(attended):
    forward = attended.graphs[0].forward
    assert any(step.fused for step in forward.fusion)
    refused = [step for step in forward.fusion if not step.fused]
    assert refused and all(step.reason for step in refused)
    assert len(forward.ir_after) < len(forward.ir_before)
    nodes = {node.name: node for node in forward.ir_before}
    assert nodes["op0"].origins == {"add", "amax"} and nodes["op0"].writes == ("buf0",)
    assert "buf0" in nodes["op1"].reads
    fused = next(node for node in forward.ir_after if len(node.members) > 1)
    assert set(fused.members) <= set(nodes)


def test_a_loaded_stock_compilation_has_the_same_document(attended, tmp_path):
    loaded = lab.load(attended.save(tmp_path / "stock.json"))
    assert isinstance(loaded, StockCompilation)
    assert str(loaded) == str(attended) and document(loaded) == document(attended)


def test_the_document_has_the_panes_of_ours(attended):
    ours = document(lab.inspect(attend, *(torch.randn(64, 64) for _ in range(3))))
    shown = document(attended)
    missing = set(ours["panes"]) - set(shown["panes"])
    assert missing == {"g0.forward.memory"}
    assert shown["open"][:2] == ["source", "g0.forward.code"]
    assert "StockCompilation(attend: 1 graph" in repr(attended)
    assert "of" in re.search(r"linked +(\d+ of \d+)", str(attended))[1]


def test_loggers_and_settings_are_restored(attended):
    from torch._inductor import config  # noqa: TID251

    assert config.trace.provenance_tracking_level == 0
    for name in ("torch._inductor.scheduler.__fusion", "torch._inductor.debug.__ir_pre_fusion"):
        assert not any("Listener" in type(h).__name__ for h in logging.getLogger(name).handlers)


def test_options_that_stock_lacks_are_refused():
    with pytest.raises(BadOption, match="compiler"):
        lab.inspect(attend, compiler="stok")
    with pytest.raises(BadOption, match="this machine only"):
        lab.inspect(attend, compiler="stock", target="cuda:90")


def test_an_exception_of_the_function_is_passed_on():
    def wrong(x):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        lab.inspect(wrong, torch.ones(3), compiler="stock")


@pytest.mark.parametrize("name", ["uint8", "numpy"])
def test_demo_programs_are_linked(name: str, tmp_path: Path):
    function, arguments = next(p for p in PROGRAMS if p.name == name).make()
    found = lab.inspect(function, *arguments, compiler="stock")
    assert found.statements[0] > 5 and found.linked_share >= 0.95
    assert found.report(tmp_path / "report.html").stat().st_size > 50_000


def test_a_stock_compilation_is_a_valid_document(attended, request):
    found = attended.to_dict()
    for part in ("compilation", "g0", "g0.forward", "g0.forward.kernel:0"):
        valid(select(found, part), keep=request.config.getoption("--update-golden"))
    kernels = [k for graph in found["graphs"] for part in graph["parts"] for k in part["kernels"]]
    assert [kernel["name"] for kernel in kernels] == [kernel.name for kernel in attended.kernels]
    assert all(kernel["origins"] for kernel in kernels if kernel["language"] != "extern")
    assert any(not pair["fused"] and pair["reason"] for graph in found["graphs"]
               for part in graph["parts"] for pair in part["fusion"])  # fmt: skip
