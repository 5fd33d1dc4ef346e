"""inductor_lab: a deep-learning compiler that is built to be looked into.

import inductor_lab as lab

c = lab.inspect(f, x)              # compile f, run it once, keep every stage
lab.bench(f, x)                    # compare it with eager and with stock torch.compile
lab.blame(f, x)                    # which stage, value and line is wrong, if any
fast = lab.compile(f)              # or torch.compile(f, backend="inductor_lab")
"""

import importlib
from typing import Any

from inductor_lab import display, operations

__version__ = "0.1.0"

_HOMES = {
    "Blame": "debug.result",
    "backends": "debug.backends",
    "blame": "debug.blame",
    "compile": "backend",
    "inductor_lab": "backend",
    "inspect": "backend",
    "join": "distributed.join",
    "Compilation": "compilation",
    "language": "notebook.language",
    "minify": "debug.minify.run",
    "load": "compilation",
    "LabError": "errors",
    "Observer": "observer",
    "FusionOptions": "options",
    "Options": "options",
    "lowers": "overrides",
    "override": "overrides",
    "compare": "stock.compare",
    "read_trace": "stock.trace_log",
    "recompiles": "debug.recompiles",
    "release_memory": "accelerate.pool",
    "try_kernel": "debug.edited",
}
_MODULES = {
    "bench": "bench", "course": "course", "distributed": "distributed", "faults": "debug.faults",
}
__all__ = ["__version__", *_HOMES, *_MODULES]


_OPERATIONS = {
    "decision_text": "schedule.text",
    "ladder": "codegen.ladder",
    "measured_stock": "stock.times",
    "program_text": "ir.text",
    "run_executable": "debug.running",
    "run_graph": "debug.running",
    "run_program": "debug.running",
    "run_schedule": "debug.running",
    "schedule_text": "schedule.text",
}

display.drawn_by(f"{__name__}.widgets")
operations.define({name: f"{__name__}.{module}" for name, module in _OPERATIONS.items()})


def __getattr__(name: str) -> Any:
    """Import a public name from its module when it is first asked for: `import` stays quick."""
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{_MODULES[name]}")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    no_collection = importlib.import_module(f"{__name__}.garbage").no_collection
    with no_collection():
        return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    """What Tab offers in a notebook: the public names, without importing them."""
    return sorted({*globals(), *__all__})


def load_ipython_extension(shell: Any) -> None:
    """`%load_ext inductor_lab` in a notebook: adds `%%compile`."""
    importlib.import_module(f"{__name__}.notebook.magic").register(shell)
