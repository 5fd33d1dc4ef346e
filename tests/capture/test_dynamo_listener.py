"""What the listener records while Dynamo compiles."""

from __future__ import annotations

import importlib
import logging
import re
import sys

import pytest
import torch

import inductor_lab as lab
from inductor_lab.compiler.base.errors import NotRunnable
from inductor_lab.compiler.capture.dynamo_listener import recording
from inductor_lab.compiler.capture.fx_to_record import fx_graph
from inductor_lab.compiler.capture.source import function_source
from inductor_lab.compiler.torch_door import torch_api
from tests.capture import programs

HERE = "tests/capture/programs.py"


def _record(fn, *calls, **more):
    graphs = []

    def backend(module, _):
        graphs.append(fx_graph(module, f"graph{len(graphs)}"))
        return module

    torch_api.reset()
    compiled = torch.compile(fn, backend=backend, **more)
    with recording() as record:
        for inputs in calls:
            compiled(*inputs)
    return record.capture(tuple(graphs))


def test_one_graph(capfd):
    capture = _record(programs.squares, [torch.ones(4)])
    assert repr(capture).startswith("Capture(1 graph, ")
    assert capture.compile_ids == ("0/0",)
    assert not capture.breaks and not capture.recompiles and not capture.symbols
    torch.testing.assert_close(capture.run(torch.ones(4))[0], torch.ones(4))
    assert capfd.readouterr().err == ""


def test_guards_name_the_line_that_caused_them():
    capture = _record(programs.branches, [torch.ones(4), True])
    shape = next(g for g in capture.guards if g.kind == "TENSOR_MATCH")
    assert shape.source == "L['x']"
    assert (shape.span.file, shape.span.line) == (HERE, 20)
    flag = next(g for g in capture.guards if g.source == "L['flag']")
    assert flag.span.code == "return x * 2 if flag else x"
    assert "flag" in str(flag) and "L[" not in str(flag)
    ambient = next(g for g in capture.guards if g.kind == "GLOBAL_STATE")
    assert (ambient.source, ambient.span) == ("", None)


def test_a_graph_break_has_reason_hint_and_stack(capsys):
    capture = _record(programs.breaks, [torch.ones(4)])
    assert len(capture.graphs) == 2
    (found,) = capture.breaks
    assert "builtin" in found.reason
    assert "print" in found.explanation
    assert found.hints
    assert (found.span.file, found.span.line) == (HERE, 15)
    assert found.user_stack[-1].code == 'print("between")'
    assert "hint: " in str(found)
    assert re.fullmatch(r"GB\d{4}", found.code)
    assert found.link.endswith(f"/{found.code.lower()}.html")
    assert str(found).endswith(f"{found.code}: {found.link}")
    with pytest.raises(NotRunnable, match="2 graphs"):
        capture.run(torch.ones(4))


def test_bytecode_before_and_after():
    capture = _record(programs.squares, [torch.ones(4)])
    (code,) = capture.bytecode
    assert (code.compile_id, code.function) == ("0/0", "squares")
    assert "BINARY_OP" in code.original
    assert "BINARY_OP" not in code.rewritten
    assert "compiled_fn" in code.rewritten


def test_a_recompile_names_the_failed_guard():
    capture = _record(programs.branches, [torch.ones(4), True], [torch.ones(4), False])
    assert capture.compile_ids == ("0/0",), "without the flag there is nothing to compile"
    (again,) = capture.recompiles
    assert (again.compile_id, again.failed) == ("0/1", "0/0")
    assert "flag" in again.reason
    assert again.span.line == 22


def test_symbols_and_guards_on_them():
    capture = _record(programs.branches, [torch.ones(9), True], dynamic=True)
    (size,) = capture.symbols
    assert (size.source, size.hint) == ("L['x'].size()[0]", "9")
    assert size.span.line in (20, 21)
    assert "x.size()[0], here 9" in str(size)
    (guard,) = [g for g in capture.guards if g.kind == "SHAPE"]
    assert guard.code == "L['x'].size()[0] > 6"
    assert (guard.span.line, guard.span.code) == (20, "if x.shape[0] > 6:")


def test_a_symbol_of_two_attempts_is_recorded_once():
    """Dynamo traces a frame with a graph break a second time, and creates its symbols again."""

    def in_two_graphs(x):
        y = x * x.shape[0]
        print(end="")
        return y + 1

    capture = _record(in_two_graphs, [torch.ones(9)], dynamic=True)
    recorded = [(symbol.compile_id, symbol.name) for symbol in capture.symbols]
    assert len(capture.breaks) == 1 and len(set(recorded)) == len(recorded) > 0


def test_seconds_by_phase():
    seconds = _record(programs.squares, [torch.ones(4)]).seconds
    assert 0 < seconds["bytecode_tracing"] <= seconds["entire_frame_compile"] < 60


def test_recordings_nest_and_leave_no_trace():
    logger = logging.getLogger("torch.__trace")
    before = (logger.level, list(logger.handlers))
    with recording() as outer, recording() as inner:
        torch_api.reset()
        torch.compile(programs.squares, backend="eager")(torch.ones(3))
    assert len(outer.events) == len(inner.events) > 0
    assert len(outer.bytecode) == len(inner.bytecode) == 1
    assert (logger.level, list(logger.handlers)) == before
    torch_api.reset()
    torch.compile(programs.squares, backend="eager")(torch.ones(3))
    assert len(outer.bytecode) == 1


def test_a_handler_that_removes_itself_hides_no_record():
    """torch's own handler does that when it gets its first record and TORCH_TRACE is not set."""
    logger = logging.getLogger("torch.__trace")

    class Once(logging.Handler):
        def emit(self, record):
            logger.removeHandler(self)

    logger.addHandler(once := Once())
    try:
        with recording() as outer, recording() as inner:
            torch_api.reset()
            torch.compile(programs.squares, backend="eager")(torch.ones(3))
    finally:
        logger.removeHandler(once)
    assert len(outer.events) == len(inner.events) > 0
    assert outer.events[0].metadata == inner.events[0].metadata


def test_other_handlers_still_get_records():
    logger = logging.getLogger("torch.__trace")
    heard = []
    other = logging.Handler()
    other.emit = heard.append
    logger.addHandler(other)
    try:
        capture = _record(programs.squares, [torch.ones(4)])
    finally:
        logger.removeHandler(other)
    assert heard and capture.guards


def test_an_exception_ends_the_recording():
    logger = logging.getLogger("torch.__trace")
    before = list(logger.handlers)
    with pytest.raises(ZeroDivisionError), recording():
        raise ZeroDivisionError
    assert logger.handlers == before


def test_the_whole_capture_as_text():
    capture = _record(programs.branches, [torch.ones(9), True], [torch.ones(3), True], dynamic=True)
    text = str(capture)
    for part in ("== recompiles", "== symbols", "== guards", "== graphs", "def forward("):
        assert part in text
    assert "TENSOR_MATCH" in text
    assert "DIMENSION_DYNAMIC_MARKING" not in text


def test_source_of_functions_and_modules():
    source = function_source(programs.squares)
    assert (source.file, source.first_line) == (HERE, 8)
    assert source.line(9) == "    y = torch.sin(x) ** 2"
    assert source.line(99) == ""
    assert str(source).splitlines()[0] == "   8  def squares(x):"
    wrapped = torch.compile(programs.squares, backend="eager")
    assert function_source(wrapped) == source
    assert "self.layers" in function_source(programs.Stack()).text
    assert "self.layers" in function_source(torch.compile(programs.Stack())).text


def test_callables_without_source():
    assert function_source(torch.sin).text == ""
    assert function_source(eval("lambda x: x")).text == ""


def test_a_second_inspection_is_not_a_recompile():
    first, second = (lab.inspect(programs.squares, torch.ones(4)) for _ in range(2))
    assert first.capture.bytecode and second.capture.bytecode
    assert second.capture.recompiles == ()
    assert second.again(torch.ones(5)).reasons[0].count("size mismatch") == 1


def test_a_break_inside_torch_is_reported_at_the_users_line() -> None:
    """A module of torch has no line of the user, and the line of `lab.inspect` is ours."""
    layer = torch.nn.Linear(2, 2)
    layer.register_full_backward_hook(lambda module, given, made: None)
    found = lab.inspect(layer, torch.ones(1, 2, requires_grad=True))
    assert found.capture.breaks
    for each in found.capture.breaks:
        assert each.span is not None and each.span.file.endswith("test_dynamo_listener.py")
        assert "lab.inspect(layer" in each.span.code


def test_lines_of_a_reloaded_module_are_read_again(tmp_path, monkeypatch) -> None:
    """Python caches the lines of a file after it has printed one, and torch uses that cache."""
    file = tmp_path / "reloaded_here.py"
    first = "def f(x):\n    y = x.sin()\n    return y + 1\n"
    file.write_text(first)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    module = importlib.import_module("reloaded_here")
    assert lines_of(lab.inspect(module.f, torch.ones(3))) == ["y = x.sin()", "return y + 1"]
    file.write_text("# one\n# two\n" + first.replace("sin", "cosh"))
    importlib.reload(module)
    found = lab.inspect(module.f, torch.ones(3))
    assert lines_of(found) == ["y = x.cosh()", "return y + 1"]
    (node, *_) = [node for node in found.capture.graphs[0].nodes if node.span is not None]
    assert (node.span.line, node.span.column, node.span.end_column) == (4, 9, 17)


def lines_of(compilation) -> list[str]:
    nodes = compilation.capture.graphs[0].nodes
    return [node.span.code for node in nodes if node.span is not None]
