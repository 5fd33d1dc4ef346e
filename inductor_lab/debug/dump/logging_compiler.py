"""The compiler of `torch.compile(backend="inductor_lab")` with torch's logs and debug folder."""

from __future__ import annotations

from dataclasses import replace

from inductor_lab.compiler.base.observer import Observer
from inductor_lab.compiler.base.options import Options
from inductor_lab.compiler.pipeline import GraphCompiler
from inductor_lab.compiler.torch_door.torch_logs import debug_folder_wanted
from inductor_lab.debug.dump.write_dump import DumpingCompiler
from inductor_lab.debug.torch_logging import ReportsToTorch


def logging_compiler(options: Options, observer: Observer) -> GraphCompiler:
    """A compiler that reports to `TORCH_LOGS` and `TORCH_TRACE`, and writes files if
    `TORCH_COMPILE_DEBUG=1`.  It compiles anew: a graph that is found on disk writes no logs."""
    observer = ReportsToTorch(observer)
    off = (*options.accelerators_off, "warm_graphs")
    options = replace(options, accelerators_off=off)
    if debug_folder_wanted():
        return DumpingCompiler(options, observer, keep=True)
    return GraphCompiler(options, observer)
