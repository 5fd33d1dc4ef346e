"""Records kernels in torch's profiler: each call has its name, its FX nodes and its source lines.

```
with torch.profiler.profile() as p:
    compiled(x)
p.key_averages().table()        # cpp_fused_add_cos_pow_sin_0    12.5 %   ...
```

Without a profiler, each call only tests whether one is running, which takes tens of nanoseconds.
In a trace with `record_shapes=True`, each event has nodes and lines as arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import FunctionType
from typing import Any

from inductor_lab.compiler.codegen.kernel import Kernel
from inductor_lab.compiler.runtime.toolchain.shared_library import place_of
from inductor_lab.compiler.torch_door.torch_api import profiler, profiles, record_event

MOST_NODES = 40
"""The maximum number of nodes that are listed for a kernel."""

_CHOICE = """
def call(args):
    return _recorded(args) if _profiler._is_profiler_enabled else _program(args)
"""


def record_in_profiler(
    namespace: dict[str, Any], kernels: Sequence[Kernel], traces: Mapping[str, str]
) -> None:
    """Make the `call` of a host program record its kernels while torch's profiler runs.

    Kernels are recorded in the order of their calls.  `namespace` holds the globals of the host
    program.  Does nothing if torch does not support it.
    """
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
