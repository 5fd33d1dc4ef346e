from __future__ import annotations

import base64
import dataclasses
import json
import re
from xml.etree import ElementTree

import pytest

from inductor_lab.compiler.base.errors import CannotWrite
from inductor_lab.widgets.page import json_for_html
from inductor_lab.widgets.plain import image
from inductor_lab.widgets.report import report_html

HOSTILE = "<img src=x onerror=alert(1)></script>"


def test_the_report_is_one_file_that_fetches_nothing(training, tmp_path):
    page = training.report(tmp_path / "r.html").read_text()
    assert not re.search(r"(src|href)\s*=\s*[\"']?(https?:|//)", page)
    assert "@import" not in page and "<iframe" not in page
    assert page.count("</html>") == 1


def test_source_and_code_can_be_read_without_a_script(training):
    page = report_html(training)
    before_script = page[: page.index("<script")]
    assert "torch.sin(x) ** 2" in before_script
    assert training.graphs[0].forward.kernels[0].name in before_script


def test_hostile_names_are_escaped(training):
    page = report_html(dataclasses.replace(training, name=HOSTILE))
    assert "<img src=x" not in page and HOSTILE not in page
    assert page.count("</script>") == 2


def test_a_static_picture_is_a_valid_svg_file_whatever_its_text_is():
    picture = image("a title", "<svg>\0\ud800\x1b\ufffe<text>x</text>\U0001f600</svg>")
    svg = base64.b64decode(re.search("base64,([^\"]*)", picture)[1])
    assert "".join(ElementTree.fromstring(svg).itertext()) == "\ufffd" * 4 + "x\U0001f600"


def test_json_cannot_end_its_script():
    text = json_for_html({"a": "</script>\u2028&<!--"})
    assert not set("<>&\u2028") & set(text)
    assert json.loads(text) == {"a": "</script>\u2028&<!--"}


def test_an_unwritable_path_is_reported(training, tmp_path):
    with pytest.raises(CannotWrite, match="cannot be written"):
        training.report(tmp_path / "no" / "such" / "folder.html")
