"""The headers of C++ kernels: each name belongs to one entry."""

from __future__ import annotations

from collections import Counter

from inductor_lab.compiler.codegen.cpp.header import entries


def test_each_name_is_defined_by_one_entry() -> None:
    """A name of two entries would bring both into a kernel, where they collide.

    An entry for doubles adds overloads to the name that it shares with the entry for floats.
    """
    defined = Counter((name, entry.of_doubles) for entry in entries() for name in entry.defines)
    assert [name for name, count in defined.items() if count > 1] == []


def test_each_entry_defines_what_its_heading_says() -> None:
    for entry in entries()[1:]:
        text = "\n".join(entry.lines)
        assert entry.defines and all(name in text for name in entry.defines), entry.defines


def test_all_headers_compile_together() -> None:
    """Names that entries define without saying so must differ too."""
    from inductor_lab.compiler.codegen.kernel import Code, Line
    from inductor_lab.compiler.runtime.toolchain.shared_library import build_library

    lines = [line for entry in entries() for line in (*entry.lines, "")]
    function = 'extern "C" LAB_EXPORT int all_of_it() { return 7; }'
    unit = Code.of(Line(text) for text in (*lines, function))
    assert build_library(unit, "all_headers", cache=False).handle.all_of_it() == 7
