"""What the JupyterLab extension gets for a file: the explorer as data, or a sentence."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import inductor_lab as lab
from inductor_lab.compiler.base.options import Options
from inductor_lab.notebook import open_saved, server_extension
from inductor_lab.saved import saving
from inductor_lab.widgets import mime, open_in_kernel
from inductor_lab.widgets.compressed import unzipped
from inductor_lab.widgets.model import VERSION, document

JAVASCRIPT = Path(__file__).parents[2] / "javascript"


def scaled(x):
    return torch.sin(x) * 2


@pytest.fixture(scope="module")
def file(tmp_path_factory) -> Path:
    return lab.inspect(scaled, torch.ones(8)).save(tmp_path_factory.mktemp("c") / "c.lab.json")


def shown(answer):
    assert (answer["format"], answer["version"]) == (mime.FORMAT, VERSION)
    return unzipped(answer["gzip"])


def test_the_server_sends_the_document_of_the_loaded_compilation(file):
    answer = json.loads(server_extension.converted(file.read_bytes()))
    assert shown(answer) == json.loads(json.dumps(document(lab.load(file))))


def test_the_explorer_has_the_language_of_jupyterlab(file):
    for language, spoken in (("zh", "zh"), ("en", "en"), ("fr", "en")):
        answer = json.loads(server_extension.converted(file.read_bytes(), language))
        assert shown(answer).get("language", "en") == spoken


def test_a_kernel_displays_the_same(file, monkeypatch):
    """In JupyterLite, which has no server."""
    displayed = []
    monkeypatch.setattr(open_in_kernel, "display", lambda data, raw: displayed.append(data))
    for text, language in ((file.read_text(), "zh"), (file.read_text(), "en"), ("{}", "en")):
        open_in_kernel.display_explorer(text, language)
    chinese, english, wrong = (data[mime.MIME_TYPE] for data in displayed)
    assert shown(english) == json.loads(json.dumps(document(lab.load(file))))
    assert shown(chinese)["language"] == "zh"
    assert "is not a saved compilation" in wrong["error"]


def test_compilations_by_stock_open_too(tmp_path):
    stock = lab.inspect(scaled, torch.ones(8), compiler="stock")
    text = stock.save(tmp_path / "stock.lab.json").read_bytes()
    assert shown(open_saved.explorer_of(text))["title"] == stock.name


@pytest.mark.parametrize(("text", "said"), [
    (b"", "This file is not a saved compilation of inductor_lab, or is incomplete"),
    (b'{"inductor_lab": 1, "cla', "is not a saved compilation of inductor_lab, or is incomplete"),
    (b"\xff\xfe", "is not a saved compilation"),
    (b"[" * 100_000, "is not a saved compilation"),
    (b'{"cells": []}', "is not a saved compilation"),
    (b'{"inductor_lab": 99}', "This file was written by a newer version of inductor_lab"),
    (b'{"inductor_lab": 1}', "This file is damaged"),
    (b'{"inductor_lab":1,"classes":{},"table":[],"root":["o","os.system","id"]}', "is damaged"),
])  # fmt: skip
def test_any_other_text_is_a_sentence(text, said):
    answer = open_saved.explorer_of(text)
    assert list(answer) == ["error"] and said in answer["error"]


def test_a_file_of_another_kind_is_named(tmp_path):
    text = saving.save(tmp_path / "o.lab.json", Options()).read_bytes()
    (said,) = open_saved.explorer_of(text).values()
    assert "This file contains a Options, not a Compilation or StockCompilation" in said


def test_parts_that_do_not_fit_together_are_a_sentence(file, monkeypatch):
    monkeypatch.setattr(mime, "document", lambda compilation: {}["g0"])
    answer = open_saved.explorer_of(file.read_bytes())
    assert answer == {"error": "This file is damaged: KeyError: 'g0'"}


def test_a_file_that_is_too_large_is_not_read(monkeypatch):
    monkeypatch.setattr(server_extension, "LARGEST", 3 << 20)
    monkeypatch.setattr(server_extension, "CONVERT", ["no such program"])
    answer = json.loads(server_extension.converted(b" " * (5 << 20)))
    said = "This file is too large for the explorer: 5 MB; the limit is 3 MB."
    assert answer == {"error": said}


@pytest.mark.parametrize(("program", "said"), [
    ("raise SystemExit('no torch here')", "The process that converts it ended: no torch here"),
    ("import time; time.sleep(60)", "could not be opened within"),
])  # fmt: skip
def test_a_process_that_fails_is_a_sentence(program, said, monkeypatch):
    monkeypatch.setattr(server_extension, "CONVERT", [sys.executable, "-c", program])
    monkeypatch.setattr(server_extension, "SECONDS", 5.0)
    assert said in json.loads(server_extension.converted(b""))["error"]


def test_the_server_does_not_import_torch():
    program = "import sys, inductor_lab.notebook.server_extension; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == "False", done.stderr


def test_the_browser_reads_what_python_writes():
    text = (JAVASCRIPT / "mime.js").read_text(encoding="utf-8")
    for name in ("jupyterlab_entry.js", "kernel.js"):
        entry = (JAVASCRIPT / name).read_text(encoding="utf-8")
        assert f'const MIME_TYPE = "{mime.MIME_TYPE}";' in entry
    assert f'const FORMAT = "{mime.FORMAT}";' in text and f"const VERSION = {VERSION};" in text
    megabytes = int(re.search(r"LARGEST_FILE = (\d+) \* MB", text)[1])
    assert megabytes << 20 == server_extension.LARGEST
