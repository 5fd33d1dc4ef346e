"""The interface of accelerators, which make programs faster, but which a compile does not need.

`accelerate/registration.py` lists all accelerators.  `accelerators.py` is the only file of the
compiler that imports it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

Hook = Callable[..., Any] | None


@dataclass(frozen=True)
class Accelerator:
    """The name of an accelerator, what it needs, and the hooks that the pipeline calls, or None.

    name          its switch in `options={"accelerators_off": [name]}`; other options switch an
                  accelerator without a name
    needs         the feature of `torch_names.toml` that it needs; "" if none
    joint         `(module, rewrites_off)`: edits a joint graph before it is partitioned
    nests         `(graph, options, lower, scheduler)`: returns which matrix products become loop
                  nests, and the measurements; called only if `wants_nests(options)`
    libraries     `(schedule, options, trained=)`: returns the schedule with the fastest library for
                  each matrix product, and the measurements
    before_load   `(schedule, options)`: called before a host program is loaded
    around        `(module, inputs, key, found, is_bare)`: returns an `Around` AOTAutograd's work
    key           `(options, parameters, changed)`: returns the part of the key of a graph on disk
    keep          `(call, built_from, traces)`: returns a compiled call that can be stored on disk
    release       `()`: returns memory to the system, and its size in bytes
    helpers       names that a host program can use, and the modules that define them
    """

    name: str
    needs: str = ""
    joint: Hook = None
    nests: Hook = None
    wants_nests: Hook = None
    libraries: Hook = None
    before_load: Hook = None
    around: Hook = None
    key: Hook = None
    keep: Hook = None
    release: Hook = None
    helpers: Mapping[str, str] = field(default_factory=dict)
