"""What an accelerator is: it makes programs faster, and a correct compile does not need it.

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
    """Its name, what it needs, and the functions that the pipeline calls; None where it has none.

    name          its switch in `options={"accelerators_off": [name]}`; other options decide about
                  one without a name
    needs         the feature of `torch_names.toml` that it needs; "" if it needs none
    joint         `(module, rewrites_off)`: edits a joint graph before it is partitioned
    nests         `(graph, options, lower, scheduler)`: which matrix products become loop nests, and
                  the measurements; `wants_nests(options)` says whether to ask
    libraries     `(schedule, options, trained=)`: the schedule with the fastest library for each
                  matrix product, and the measurements
    before_load   `(schedule, options)`: before a host program is loaded
    around        `(module, inputs, key, found, is_bare)`: an `Around` of AOTAutograd's work
    key           `(options, parameters, changed)`: what identifies a graph on disk, as one word
    keep          `(call, built_from, traces)`: a compiled call that can be kept on disk
    release       `()`: gives memory back to the system; returns the bytes
    helpers       names that a host program may use, and the modules that define them
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
