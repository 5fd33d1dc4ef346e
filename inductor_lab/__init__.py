"""inductor_lab: a deep-learning compiler that is built to be looked into.

import inductor_lab as lab

c = lab.inspect(f, x)              # compile f, run it once, keep every stage
lab.bench(f, x)                    # compare it with eager and with stock torch.compile
lab.blame(f, x)                    # which stage, value and line is wrong, if any
fast = lab.compile(f)              # or torch.compile(f, backend="inductor_lab")
"""

import importlib
from typing import Any

from inductor_lab.compiler.base import display, operations
from inductor_lab.compiler.base.errors import needing_torch

__version__ = "0.1.0"

_HOMES = {
    "Blame": "debug.blame.blame_result",
    "advise": "debug.advice.advise",
    "backends": "debug.backends",
    "blame": "debug.blame.find_blame",
    "compile": "api.backend",
    "inductor_lab": "api.backend",
    "inspect": "api.backend",
    "join": "distributed.join",
    "case": "debug.judge.cases",
    "judge": "debug.judge.judge",
    "judge_kernel": "debug.judge.judge_kernel",
    "Compilation": "api.compilation",
    "language": "notebook.language",
    "memory": "debug.memory.measure",
    "minify": "debug.minify.run",
    "load": "api.compilation",
    "LabError": "compiler.base.errors",
    "Observer": "compiler.base.observer",
    "FusionOptions": "compiler.base.options",
    "Options": "compiler.base.options",
    "lowers": "api.override",
    "override": "api.override",
    "compare": "stock.compare",
    "compiles": "contracts.contract",
    "diff": "debug.diff.diff",
    "read_trace": "stock.trace_log",
    "recompiles": "debug.recompiles.watch_recompiles",
    "release_memory": "compiler.accelerators",
    "try_kernel": "debug.explore.edit_kernel",
}
_MODULES = {
    "bench": "bench", "course": "course", "distributed": "distributed",
    "errors": "compiler.base.errors", "faults": "debug.faults",
}
__all__ = ["__version__", *_HOMES, *_MODULES]


_OPERATIONS = {
    "ablation": "bench.ablation",
    "blame_again": "debug.blame.find_blame",
    "call_again": "debug.recompiles.call_again",
    "Comparison": "debug.explore.comparison",
    "compile_time": "stock.compile_time",
    "compiled_functions_go_first": "notebook.variables",
    "cuda_graphs": "debug.explore.cuda_graph_report",
    "decision_text": "compiler.schedule.text",
    "document_of": "saved.documents.document_of",
    "dump": "debug.dump.write_dump",
    "inspect_stock": "stock.live",
    "ladder": "compiler.codegen.triton.ladder",
    "logging_compiler": "debug.dump.logging_compiler",
    "measure": "bench.kernels",
    "measured_stock": "stock.times",
    "memory_text": "compiler.schedule.text",
    "open_document": "saved.open_document",
    "profile": "debug.profile",
    "program_text": "compiler.ir.text",
    "recompile": "debug.explore.what_if",
    "run_executable": "debug.explore.run_stages",
    "run_graph": "debug.explore.run_stages",
    "run_program": "debug.explore.run_stages",
    "run_schedule": "debug.explore.run_stages",
    "save": "saved.saving",
    "schedule_text": "compiler.schedule.text",
    "steps_of": "debug.explore.steps",
    "why_not_fused": "debug.explore.why_not_fused",
    "with_settings": "stock.settings",
    "write_trace": "saved.trace",
}

display.drawn_by(f"{__name__}.widgets")
operations.define({name: f"{__name__}.{module}" for name, module in _OPERATIONS.items()})


def __getattr__(name: str) -> Any:
    """Import a public name from its module when it is first asked for: `import` stays quick."""
    if name in _MODULES:
        with needing_torch():
            return importlib.import_module(f"{__name__}.{_MODULES[name]}")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    no_collection = importlib.import_module(f"{__name__}.compiler.base.garbage").no_collection
    with needing_torch(), no_collection():
        return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    """What Tab offers in a notebook: the public names and no others, without importing them."""
    return sorted(__all__)


def load_ipython_extension(shell: Any) -> None:
    """`%load_ext inductor_lab` in a notebook: adds `%%compile`."""
    with needing_torch():
        magic = importlib.import_module(f"{__name__}.notebook.magic")
    magic.register(shell)
