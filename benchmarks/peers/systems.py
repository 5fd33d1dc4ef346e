"""The systems: each prepares a workload in its own process, and returns what is to be timed.

All of them use the same number of threads and the same precision.  A system that is not installed,
or cannot convert a workload, is reported with the reason.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.peers import in_jax
from benchmarks.peers.workloads import Work

Call = Callable[[], Any]
OURS, EAGER, EXACT = "ours", "eager", "float64"


class CannotRun(Exception):
    """Why a system cannot run a workload."""


@dataclass(frozen=True)
class System:
    """`prepare(work, threads)` returns a call without arguments, whose result is an array.

    packages  that must be installed
    kinds     of workloads that it is tried on
    """

    name: str
    prepare: Callable[[Work, int], Call]
    packages: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ("model", "kernel")

    @property
    def missing(self) -> tuple[str, ...]:
        return tuple(package for package in self.packages if not _version(package))

    @property
    def versions(self) -> str:
        return ", ".join(f"{package} {_version(package)}" for package in self.packages)


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _torch(compiled: Callable[[torch.nn.Module], Any]) -> Callable[[Work, int], Call]:
    """How a compiler of torch prepares a module: in inference mode's weaker form, `no_grad`."""

    def prepare(work: Work, threads: int) -> Call:
        torch.set_num_threads(threads)
        module, args = work.made()
        run = compiled(module)

        def call() -> Any:
            with torch.no_grad():
                return run(*args)

        return call

    return prepare


def _ours(module: torch.nn.Module) -> Any:
    import inductor_lab as lab

    return lab.compile(module)


def _tuned(module: torch.nn.Module) -> Any:
    return torch.compile(module, options={"freezing": True, "max_autotune": True})


def _exact(work: Work, threads: int) -> Call:
    """Eager mode in float64, for the values; the weights are rounded to the dtype first."""
    torch.set_num_threads(threads)
    module, args = work.made()
    wide = tuple(a.double() if a.is_floating_point() else a for a in args)
    module.double()

    def call() -> Any:
        with torch.no_grad():
            return module(*wide)

    return call


def _xla(work: Work, threads: int) -> Call:
    function = in_jax.FUNCTIONS.get(work.name)
    if function is None:
        raise CannotRun("not written in JAX here")
    import jax
    import jax.numpy as jnp

    _, args = work.made()
    given = [jnp.asarray(a.numpy()) for a in args]
    compiled = jax.jit(function)
    return lambda: compiled(*given).block_until_ready()


def _openvino(work: Work, threads: int) -> Call:
    module, args = work.made(torch.float32)
    return openvino_call(module, args, work.dtype, threads)


def openvino_call(
    module: torch.nn.Module, args: tuple[torch.Tensor, ...], dtype: torch.dtype, threads: int
) -> Call:
    """A call of a float32 module in OpenVINO, which computes in `dtype`."""
    import openvino as ov

    with torch.no_grad():
        converted = ov.convert_model(torch.export.export(module, args))
    settings = {
        "INFERENCE_PRECISION_HINT": "bf16" if dtype == torch.bfloat16 else "f32",
        "INFERENCE_NUM_THREADS": threads,
        "PERFORMANCE_HINT": "LATENCY",
    }
    request = ov.compile_model(converted, "CPU", settings).create_infer_request()
    given = [a.numpy() for a in args]
    return lambda: request.infer(given, share_inputs=True, share_outputs=True)[0]


def _onnx_runtime(work: Work, threads: int) -> Call:
    import onnxruntime as ort

    module, args = work.made()
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        path = Path(folder) / "model.onnx"
        torch.onnx.export(module, args, path, dynamo=True, verbose=False)
        session = ort.InferenceSession(path, options, ["CPUExecutionProvider"])
    binding = session.io_binding()
    for given, value in zip(session.get_inputs(), args, strict=True):
        if value.dtype == torch.bfloat16:
            raise CannotRun("NumPy has no bfloat16 for its inputs")
        binding.bind_cpu_input(given.name, value.numpy())
    for result in session.get_outputs():
        binding.bind_output(result.name)

    def call() -> Any:
        session.run_with_iobinding(binding)
        return binding.get_outputs()[0]

    return call


SYSTEMS = {
    one.name: one
    for one in (
        System(EAGER, _torch(lambda module: module), ("torch",)),
        System("stock", _torch(torch.compile), ("torch",)),
        System("stock tuned", _torch(_tuned), ("torch",)),
        System("XLA", _xla, ("jax",), ("kernel",)),
        System("OpenVINO", _openvino, ("openvino",), ("model",)),
        System("ONNX Runtime", _onnx_runtime, ("onnxruntime", "onnx", "onnxscript"), ("model",)),
        System(OURS, _torch(_ours)),
    )
}
"""What is timed, in the order of the tables."""
REFERENCE = System(EXACT, _exact)


def as_array(result: Any) -> np.ndarray[Any, Any]:
    """The first result of a system as an array of float64 (integers stay integers)."""
    if isinstance(result, (tuple, list)):
        result = result[0]
    if isinstance(result, torch.Tensor):
        whole = not result.is_floating_point()
        result = result.detach().to(torch.int64 if whole else torch.float64).numpy()
    elif hasattr(result, "numpy"):  # an OrtValue
        result = result.numpy()
    found = np.asarray(result)
    return found.astype(np.int64 if found.dtype.kind in "iub" else np.float64)


def pin(threads: int) -> None:
    """Use only so many processors, also in libraries that ask for nothing."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
