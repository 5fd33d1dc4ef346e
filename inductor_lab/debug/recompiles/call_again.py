"""Call the compiled function again: is its code reused, and if not, which guards failed?"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import CodeType
from typing import Any

import numpy as np
import torch

from inductor_lab.compiler.base.errors import BadArguments
from inductor_lab.compiler.capture.capture import Capture, readable_source
from inductor_lab.compiler.capture.dynamo_listener import recording
from inductor_lab.compiler.torch_door import torch_api
from inductor_lab.debug.explore.run_stages import calling
from inductor_lab.debug.explore.what_if import Inspected, call_of


@dataclass(frozen=True, eq=False)
class Again:
    """One more call.  `capture` records what TorchDynamo did: empty if the code was reused."""

    capture: Capture
    result: Any

    @property
    def hit(self) -> bool:
        """Did all guards of an earlier compilation hold?

        False if the function has no tensor operator: then TorchDynamo compiles and keeps nothing.
        """
        return not (self.capture.bytecode or self.capture.recompiles)

    @property
    def reasons(self) -> tuple[str, ...]:
        """All failed guards of each earlier compilation; empty after a hit."""
        return tuple(dict.fromkeys(map(str, self.capture.recompiles)))

    def __str__(self) -> str:
        if self.hit:
            return "hit: the compiled code was reused"
        return "\n".join(self.reasons) or "compiled: torch no longer has any earlier code"


def call_again(compilation: Inspected, *args: Any, **kwargs: Any) -> Again:
    """Implements `Compilation.again` and `StockCompilation.again`."""
    with calling("again", call_of(compilation), args, kwargs):
        return called_again(compilation, *args, **kwargs)


def called_again(compilation: Inspected, *args: Any, **kwargs: Any) -> Again:
    """Make the call, with arguments that have been checked."""
    call, compiled = call_of(compilation), compilation.compiled
    assert compiled is not None, "a compilation with a call has a function"
    with (
        torch.set_grad_enabled(call.with_grad),
        torch_api.fresh_compile(call.sizes),
        recording() as record,
    ):
        result = compiled(*args, **kwargs)
    return Again(record.capture(()), result)


def call_with_edits(compilation: Inspected, edits: Mapping[str, Mapping[str, Any]]) -> Again:
    """Repeat the inspected call with edited inputs.

    `edits` has new facts by Dynamo's name of an input: `{"L['x']": {"size": [5]}}`,
    `{"L['n']": {"value": 7}}`, `{"G['K']": {"value": 4}}`.  Closed-over values and globals are
    restored after the call.
    """
    with _edited_call(compilation, edits) as bound:
        return call_again(compilation, *bound.args, **bound.kwargs)


@dataclass(frozen=True)
class Prediction:
    """The answer of the guards of all compiled versions to a call that is not made.

    hit       the compile id of the version that would run; None if TorchDynamo would recompile
    reasons   by compile id: the guard that fails
    """

    hit: str | None
    reasons: Mapping[str, str]


def predict_call(
    compilation: Inspected, edits: Mapping[str, Mapping[str, Any]]
) -> Prediction | None:
    """Ask TorchDynamo's guards whether a call with edited inputs would reuse compiled code.

    Nothing runs.  `edits` as in `call_with_edits`.  None if TorchDynamo keeps no version under the
    code of the user's function (as for modules, whose calls begin in torch's code).
    """
    call = call_of(compilation)
    function = _python_function(call.fn)
    versions = _versions(compilation, getattr(function, "__code__", None))
    if not versions:
        return None
    reasons: dict[str, str] = {}
    with _edited_call(compilation, edits) as bound, torch.set_grad_enabled(call.with_grad):
        values = _frame_locals(function, bound)
        for version in versions:
            name = str(version.compile_id)
            if version.guard_manager.check(values):
                return Prediction(name, reasons)
            failed = version.guard_manager.check_verbose(values).verbose_code_parts
            reasons[name] = readable_source(str(failed[0])) if failed else ""
    return Prediction(None, reasons)


def _versions(compilation: Inspected, code: CodeType | None) -> list[Any]:
    """The versions that TorchDynamo keeps for the inspected function, in the order of its checks.

    Code that was compiled for other backends, or by another `torch.compile`, does not count.
    """
    entries = torch_api.compiled_versions(code) if code is not None else []
    own = [e.backend for e in entries if str(e.compile_id) in compilation.capture.compile_ids]
    return [entry for entry in entries if any(entry.backend is each for each in own)]


def _frame_locals(function: Any, bound: inspect.BoundArguments) -> dict[str, Any]:
    """The local variables of a frame at its start: arguments, `self`, closed-over values."""
    code, cells = function.__code__, getattr(function, "__closure__", None) or ()
    closed = {name: cell.cell_contents for name, cell in zip(code.co_freevars, cells, strict=True)}
    own = getattr(function, "__self__", None)
    first = {code.co_varnames[0]: own} if own is not None else {}
    return {**closed, **first, **bound.arguments}


@contextmanager
def _edited_call(
    compilation: Inspected, edits: Mapping[str, Mapping[str, Any]]
) -> Iterator[inspect.BoundArguments]:
    """The arguments of the inspected call with edits; edited globals are set while it lasts."""
    call = call_of(compilation)
    bound = inspect.signature(call.fn).bind(*call.args, **call.kwargs)
    bound.apply_defaults()
    outside: dict[str, Any] = {}
    for source, facts in edits.items():
        name = source[3:-2]
        if source.startswith("L") and name in bound.arguments:
            bound.arguments[name] = _edited(bound.arguments[name], facts)
        else:
            outside[source] = facts["value"]
    with _set_outside(_python_function(call.fn), outside):
        yield bound


def _python_function(fn: Callable[..., Any]) -> Any:
    return fn if hasattr(fn, "__closure__") else getattr(fn, "forward", fn)


@contextmanager
def _set_outside(function: Any, values: Mapping[str, Any]) -> Iterator[None]:
    """Temporarily set closed-over values (`L['s']`) and globals (`G['K']`)."""
    code = getattr(function, "__code__", None)
    cells = dict(zip(getattr(code, "co_freevars", ()), getattr(function, "__closure__", None) or (),
                     strict=False))
    names = getattr(function, "__globals__", {})
    known = {f"L['{name}']" for name in cells} | {f"G['{name}']" for name in names}
    if unknown := values.keys() - known:
        raise BadArguments(f"{', '.join(sorted(unknown))} cannot be edited from here")
    old = {source: cells[source[3:-2]].cell_contents if source[0] == "L" else names[source[3:-2]]
           for source in values}

    def put(new: Mapping[str, Any]) -> None:
        for source, value in new.items():
            if source[0] == "L":
                cells[source[3:-2]].cell_contents = value
            else:
                names[source[3:-2]] = value

    put(values)
    try:
        yield
    finally:
        put(old)


def _edited(value: Any, facts: Mapping[str, Any]) -> Any:
    """A tensor or array with another size, dtype or gradient; or another plain value."""
    if isinstance(value, np.ndarray):
        known = {name: fact for name, fact in facts.items() if name in ("size", "dtype")}
        return _edited(torch.from_numpy(value), known).numpy()
    if not isinstance(value, torch.Tensor):
        return facts.get("value", value)
    dtype = getattr(torch, facts["dtype"]) if "dtype" in facts else value.dtype
    made = value.detach().to(dtype)
    if "size" in facts and list(facts["size"]) != list(value.shape):
        made = torch.zeros(facts["size"], dtype=dtype, device=value.device)
        if dtype.is_floating_point:
            made.normal_(generator=torch.Generator(made.device).manual_seed(0))
    wants = facts.get("requires_grad", value.requires_grad)
    can = made.is_floating_point() or made.is_complex()
    return made.requires_grad_(bool(wants and can)) if facts else value
