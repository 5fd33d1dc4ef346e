"""The program that `test_override` runs several times with the same caches.  It prints the results
of functions with changed and unchanged compilers, and how torch's cache on disk was used.

    python override_program.py plain|changed ...
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch._dynamo.utils import counters

import inductor_lab as lab
from inductor_lab.compiler.codegen.cpp.cpp_ops import CPP_OPS

CPP_OPS_AT_FIRST = dict(CPP_OPS)
if "early" in sys.argv:
    CPP_OPS["neg"] = "2 * {0}"  # before the compiler is imported

from inductor_lab.compiler.lower.ops import pointwise  # noqa: E402
from inductor_lab.compiler.lower.registry import LOWERINGS  # noqa: E402
from inductor_lab.compiler.rewrite.aten.identities import BY_TARGET, RULES, identity  # noqa: E402
from inductor_lab.compiler.rewrite.decompose.own_definitions import DEFINITIONS  # noqa: E402

aten = torch.ops.aten
FACTOR = 3.0


def _pointwise(name: str) -> Callable[..., Any]:
    """Return the lowering of another operator."""
    return LOWERINGS[getattr(aten, name).default]


@contextmanager
def text() -> Iterator[None]:
    with lab.override(cpp={"neg": "2 * {0}"}):
        yield


@contextmanager
def table() -> Iterator[None]:
    """Change a table without `override`, which requires a reset of torch."""
    before = CPP_OPS["neg"]
    CPP_OPS["neg"] = "2 * {0}"
    yield
    CPP_OPS["neg"] = before


@contextmanager
def lowering() -> Iterator[None]:
    """A wrong lowering that refers to the global FACTOR."""

    def triple(build: Any, x: Any) -> Any:
        return LOWERINGS[aten.mul.Scalar](build, x, FACTOR)

    with lab.override(lowering={aten.sin.default: triple}):
        yield


@contextmanager
def registered() -> Iterator[None]:
    with lab.override():

        @lab.lowers(aten.special_i0e)
        def i0e(build: Any, x: Any) -> Any:
            return _pointwise("neg")(build, x)

        yield


@contextmanager
def definition() -> Iterator[None]:
    with lab.override(definition={aten.hardswish.default: lambda x: x * 7}):
        yield


@contextmanager
def rule() -> Iterator[None]:
    with lab.override():

        @identity(aten.cos.default)
        def as_sin(node: Any, edit: Any) -> Any:
            return edit.add(aten.sin.default, node.args[0])

        yield


@contextmanager
def helper() -> Iterator[None]:
    """Replace a global of a phase's module that is not in a table."""
    before = pointwise.POWERS[-2]
    pointwise.POWERS[-2] = lambda build, x: build.op("neg", x)
    yield
    pointwise.POWERS[-2] = before


@contextmanager
def opaque() -> Iterator[None]:
    """A change whose contents cannot be compared between processes."""
    secret = type("Secret", (), {"op": aten.mul.Scalar})()

    def hidden(build: Any, x: Any) -> Any:
        return LOWERINGS[secret.op](build, x, 5.0)

    with lab.override(lowering={aten.tan.default: hidden}):
        yield


CHANGES: dict[str, tuple[Callable[[], Any], Callable[..., Any], Callable[..., Any]]] = {
    "text": (text, lambda x: -x + 1, lambda x: 2 * x + 1),
    "table": (table, lambda x: -x + 2, lambda x: 2 * x + 2),
    "lowering": (lowering, lambda x: x.sin() + 3, lambda x: x * FACTOR + 3),
    "registered": (registered, lambda x: torch.special.i0e(x) + 4, lambda x: 4 - x),
    "definition": (
        definition,
        lambda x: torch.nn.functional.hardswish(x) + 5,
        lambda x: x * 7 + 5,
    ),
    "rule": (rule, lambda x: x.cos() + 6, lambda x: x.sin() + 6),
    "helper": (helper, lambda x: x**-2 + 7, lambda x: 7 - x),
    "opaque": (opaque, lambda x: x.tan() + 8, lambda x: x * 5 + 8),
}
"""Maps a name to a change, a function that it makes wrong, and the wrong result."""
COUNTED = ("hit", "miss", "saved", "bypass")


def outcome(name: str, changed: bool) -> dict[str, Any]:
    change, f, wrong = CHANGES[name]
    x = torch.linspace(0.1, 0.9, 50)
    counters.clear()
    torch._dynamo.reset()
    if changed:
        with change():
            got = lab.compile(f)(x)
    else:
        got = lab.compile(f)(x)
    expected = (wrong if changed else f)(x)
    used = {kind: counters["aot_autograd"][f"autograd_cache_{kind}"] for kind in COUNTED}
    return {"right": torch.allclose(got, expected, atol=1e-5), **used}


if __name__ == "__main__":
    if "early" in sys.argv:
        print(json.dumps({"early": outcome("text", False)}))
    else:
        found = [{n: outcome(n, word == "changed") for n in CHANGES} for word in sys.argv[1:]]
        assert CPP_OPS == CPP_OPS_AT_FIRST and "as_sin" not in RULES
        assert not any("as_sin" in names for names in BY_TARGET.values()) and DEFINITIONS
        print(json.dumps(found))
