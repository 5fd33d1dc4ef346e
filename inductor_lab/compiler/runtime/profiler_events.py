"""Kernels under torch's profiler: each call has its name there, its FX nodes and its source lines.

```
with torch.profiler.profile() as p:
    compiled(x)
p.key_averages().table()        # cpp_fused_add_cos_pow_sin_0    12.5 %   ...
```

Where no profiler runs, a call asks once whether one does, which takes tens of nanoseconds.  A trace
with `record_shapes=True` has nodes and lines as arguments of each event.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import FunctionType
from typing import Any

from inductor_lab.compiler.codegen.kernel import Kernel
from inductor_lab.compiler.runtime.toolchain.shared_library import place_of
from inductor_lab.compiler.torch_door.torch_api import profiler, profiles, record_event

MOST_NODES = 40
"""So many nodes of a kernel are named."""

_CHOICE = """
def call(args):
    return _recorded(args) if _profiler._is_profiler_enabled else _program(args)
"""


def seen_by_profiler(
    namespace: dict[str, Any], kernels: Sequence[Kernel], traces: Mapping[str, str]
) -> None:
    """Make a host program's `call` record its kernels, in the order of their calls, while torch's
    profiler runs; `namespace` is where the program finds them.  Not where torch cannot."""
    program = namespace["call"]
    sites: list[tuple[str, dict[str, str]]] = []

    def recorded(args: list[Any]) -> tuple[Any, ...]:
        if not sites:
            sites.extend((kernel.name, _about(kernel, traces)) for kernel in kernels)
        turn = iter(sites)

        def around(function: Callable[..., Any]) -> Callable[..., Any]:
            def call(*arguments: Any) -> Any:
                name, about = next(turn)
                with record_event(name, keyword_values=about):
                    return function(*arguments)

            return call

        own = {kernel.name: around(namespace[kernel.name]) for kernel in kernels}
        results: tuple[Any, ...] = FunctionType(program.__code__, {**namespace, **own})(args)
        return results

    if kernels and profiles:
        namespace |= {"_program": program, "_recorded": recorded, "_profiler": profiler}
        exec(compile(_CHOICE, program.__code__.co_filename, "exec"), namespace)


def _about(kernel: Kernel, traces: Mapping[str, str]) -> dict[str, str]:
    nodes = sorted(kernel.group.origins)
    more = ", …" if len(nodes) > MOST_NODES else ""
    return {
        "nodes": ", ".join(nodes[:MOST_NODES]) + more,
        "source": place_of(kernel.group.origins, traces),
    }
