"""The interface of accelerators, which make programs faster, but which a compile does not need.

`accelerate/registration.py` lists all accelerators.  `accelerators.py` is the only file of the
compiler that imports it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from inductor_lab.compiler.base.passes import Pass

Hook = Callable[..., Any] | None


@dataclass(frozen=True)
class Added:
    """A pass that an accelerator adds to a list (`"rewrite"`, `"lower"`, `"schedule"` or
    `"codegen"`), just before another pass; at the end if `before` is ""."""

    level: str
    before: str
    step: Pass


@dataclass(frozen=True)
class Accelerator:
    """The name of an accelerator, what it needs, its passes, and its hooks (None if absent).

    name          its switch in `options={"accelerators_off": [name]}`; other options switch an
                  accelerator without a name
    needs         the feature of `torch_names.toml` that it needs; "" if none
    passes        the passes that it adds to the four lists
    ahead         `(inputs, options)`: returns what a thread may compile before a graph is lowered,
                  as pairs of a function and its arguments
    joint         `(module, rewrites_off)`: edits a joint graph before it is partitioned
    before_load   `(schedule, options)`: called before a host program is loaded
    shorten       `(executable, schedule, kernels, options, traces)`: returns a faster call
    around        `(module, inputs, key, found, is_bare)`: returns an `Around` AOTAutograd's work
    key           `(options, parameters, changed)`: returns the part of the key of a graph on disk
    keep          `(call, built_from, traces)`: returns a compiled call that can be stored on disk
    release       `()`: returns memory to the system, and its size in bytes
    pooled        `()`: address of each block of memory that it keeps → whether it is free
    helpers       names that a host program can use, and the modules that define them
    """

    name: str
    needs: str = ""
    passes: tuple[Added, ...] = ()
    ahead: Hook = None
    joint: Hook = None
    before_load: Hook = None
    shorten: Hook = None
    around: Hook = None
    key: Hook = None
    keep: Hook = None
    release: Hook = None
    pooled: Hook = None
    helpers: Mapping[str, str] = field(default_factory=dict)
