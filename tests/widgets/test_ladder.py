from __future__ import annotations

import importlib.util
import re
import shutil

import pytest

from inductor_lab.debug.explore.assembly import assembly
from inductor_lab.debug.explore.ladder_text import ladder_code
from inductor_lab.widgets.compressed import unzipped
from inductor_lab.widgets.ladder import low_level_panes
from inductor_lab.widgets.markup import text_of
from inductor_lab.widgets.model import linked_document
from inductor_lab.widgets.report import report_html

no_triton = importlib.util.find_spec("triton") is None
needs_triton = pytest.mark.skipif(no_triton, reason="no Triton: pip install triton (Linux)")
no_objdump = shutil.which("objdump") is None
needs_objdump = pytest.mark.skipif(no_objdump, reason="no objdump: install binutils")


def origins_of(code, needle: str) -> set[str]:
    return {name for line in code.lines if needle in line.text for name in line.origins}


@needs_triton
def test_every_rung_knows_the_ops(training):
    kernel = training.graphs[0].forward.kernels[0]
    rungs = ladder_code(kernel, "cuda:90")
    assert list(rungs) == ["triton", "ttir", "ttgir", "llir", "ptx"]
    for name in ("ttir", "ttgir"):
        assert origins_of(rungs[name], "math.sin") == {"sin"}
        assert origins_of(rungs[name], "math.cos") == {"cos"}
        assert "loc(" not in str(rungs[name])
    assert origins_of(rungs["ptx"], "st.global") == {"add"}
    assert ".loc\t" not in str(rungs["ptx"]) and "!dbg" not in str(rungs["llir"])
    assert any("sin" in line.origins for line in rungs["llir"].lines)


@needs_triton
def test_amd_has_its_own_last_rung(inference):
    rungs = ladder_code(inference.graphs[0].forward.kernels[0], "hip:gfx942")
    assert "amdgcn" in rungs and "ptx" not in rungs
    assert any("sin" in line.origins for line in rungs["amdgcn"].lines)


@needs_objdump
def test_instructions_know_the_ops(training):
    kernels = training.graphs[0].forward.kernels
    (code,) = assembly(kernels).values()
    assert code.lines[0].text == f"{kernels[0].name}:"
    assert any("ret" in line.text for line in code.lines)
    assert {"sin", "cos"} <= {name for line in code.lines for name in line.origins}


@needs_triton
@needs_objdump
def test_panes_stand_in_the_report_if_asked_for(training):
    links = linked_document(training)[1]
    panes = low_level_panes(training, "cuda:90", True, links)
    assert list(panes) == [
        "g0.forward.ladder", "g0.forward.assembly", "g0.backward.ladder", "g0.backward.assembly"
    ]
    line = next(line for line in panes["g0.forward.ladder"]["views"][1]["blocks"][0]["lines"]
                if "math.sin" in line[0])
    sources = links.sources(line[1])
    assert len(sources) == 1
    page = shown_in(report_html(training, "cuda:90", True))
    assert "tt.load" in page and "machine code" in page
    assert "tt.load" not in shown_in(report_html(training))


def shown_in(page: str) -> str:
    """The explorer's document in a report."""
    text = re.search('id="lab-document">([^<]*)<', page)[1]
    return str(unzipped(text))


def test_what_is_missing_is_said(inference, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    views = low_level_panes(inference, "cuda:1", True, linked_document(inference)[1])
    assert "no objdump" in text_of(views["g0.forward.assembly"]["views"][0]["tree"])
    assert "cuda:1" in text_of(views["g0.forward.ladder"]["views"][0]["tree"])
