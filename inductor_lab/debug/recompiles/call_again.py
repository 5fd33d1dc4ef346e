"""The compiled function called once more: was its code used again, and if not, why?"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch

from inductor_lab.compiler.base.errors import BadArguments
from inductor_lab.compiler.capture.capture import Capture
from inductor_lab.compiler.capture.dynamo_listener import recording
from inductor_lab.compiler.records import Record
from inductor_lab.compiler.torch_door import torch_api
from inductor_lab.debug.explore.run_stages import calling
from inductor_lab.debug.explore.what_if import call_of


@dataclass(frozen=True, eq=False)
class Again:
    """One more call.  `capture` is what TorchDynamo did in it: empty if the code was used again."""

    capture: Capture
    result: Any

    @property
    def hit(self) -> bool:
        """Did all guards of some earlier compilation hold?"""
        return not self.capture.bytecode

    @property
    def reasons(self) -> tuple[str, ...]:
        """The guards that failed, one for each earlier compilation; none after a hit."""
        return tuple(dict.fromkeys(map(str, self.capture.recompiles)))

    def __str__(self) -> str:
        if self.hit:
            return "hit: the compiled code was used again"
        return "\n".join(self.reasons) or "compiled: torch knows of no earlier code any more"


def call_again(compilation: Record, *args: Any, **kwargs: Any) -> Again:
    """`Compilation.again`, which says what it does."""
    with calling("again", call_of(compilation), args, kwargs):
        return called_again(compilation, *args, **kwargs)


def called_again(compilation: Record, *args: Any, **kwargs: Any) -> Again:
    """The call, with arguments that are known to be possible."""
    call, compiled = call_of(compilation), compilation.compiled
    assert compiled is not None, "what has its call has its function"
    with (
        torch.set_grad_enabled(call.with_grad),
        torch_api.fresh_compile(call.sizes),
        recording() as record,
    ):
        result = compiled(*args, **kwargs)
    return Again(record.capture(()), result)


def call_with_edits(compilation: Record, edits: Mapping[str, Mapping[str, Any]]) -> Again:
    """The inspected call once more, with some inputs as a page edited them.

    `edits` has new facts by Dynamo's name of an input: `{"L['x']": {"size": [5]}}`,
    `{"L['n']": {"value": 7}}`, `{"G['K']": {"value": 4}}`.  Closed-over values and globals are put
    back after the call.
    """
    call = call_of(compilation)
    function = _python_function(call.fn)
    bound = inspect.signature(call.fn).bind(*call.args, **call.kwargs)
    bound.apply_defaults()
    outside: dict[str, Any] = {}
    for source, facts in edits.items():
        name = source[3:-2]
        if source.startswith("L") and name in bound.arguments:
            bound.arguments[name] = _edited(bound.arguments[name], facts)
        else:
            outside[source] = facts["value"]
    with _set_outside(function, outside):
        return call_again(compilation, *bound.args, **bound.kwargs)


def _python_function(fn: Callable[..., Any]) -> Any:
    return fn if hasattr(fn, "__closure__") else getattr(fn, "forward", fn)


@contextmanager
def _set_outside(function: Any, values: Mapping[str, Any]) -> Iterator[None]:
    """Give closed-over values (`L['s']`) and globals (`G['K']`) other values for a while."""
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
    """A tensor with another size, dtype or gradient; or another plain value."""
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
