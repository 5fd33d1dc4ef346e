"""The local arrays of a kernel fit together on the stack of a thread, also on a small one."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

import inductor_lab as lab
from inductor_lab.compiler.codegen.cpu.stack import STACK_BYTES, fits_on_stack
from inductor_lab.compiler.codegen.tree.loop_tree import Local

F64 = torch.float64
ARRAY = re.compile(r"^ +(\w+) \w+\[(\d+)\](?:\[(\d+)\])?(?: = \{\})?;$", re.MULTILINE)
BYTES = {"double": 8, "int64_t": 8, "float": 4, "int32_t": 4, "bool": 1}


def rows(x: torch.Tensor) -> torch.Tensor:
    """18 expensive values of a row, each needed twice."""
    values = [torch.sin(x + k) for k in range(18)]
    return sum(value - value.mean(-1, keepdim=True) for value in values)


def columns(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return tuple((x * (k + 1)).sum(0) for k in range(18))


def places_in_columns(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return tuple((x * (k + 1)).sin().argmax(0) for k in range(12))


def windows(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return tuple(torch.nn.functional.max_pool2d((x + k).sin(), 3, 1, 1) for k in range(12))


def transposed(x: torch.Tensor) -> torch.Tensor:
    first, *more = x.unbind(0)
    return sum(part.t() * (k + 1) for k, part in enumerate(more)) + first


PROGRAMS: dict[str, tuple[Callable[..., object], Callable[[], torch.Tensor]]] = {
    "rows": (rows, lambda: torch.randn(64, 8192, dtype=F64)),
    "long rows": (rows, lambda: torch.randn(17, 65_536, dtype=F64)),
    "columns": (columns, lambda: torch.randn(2000, 600, dtype=F64)),
    "places in columns": (places_in_columns, lambda: torch.randn(2000, 600, dtype=F64)),
    "windows": (windows, lambda: torch.randn(1, 2, 8, 30_000)),
    "transposed": (transposed, lambda: torch.randn(20, 256, 256, dtype=F64)),
}


def stack_of(text: str) -> int:
    """The bytes of all local arrays in the text of a kernel."""
    sizes = (int(n) * int(m or 1) * BYTES[kind] for kind, n, m in ARRAY.findall(text))
    return sum(sizes)


@pytest.mark.parametrize("name", PROGRAMS)
def test_local_arrays_fit_on_a_stack(name: str) -> None:
    torch.compiler.reset()
    function, make = PROGRAMS[name]
    x = make()
    found = lab.inspect(function, x)
    torch.testing.assert_close(found.result, function(x))
    kernels = found.graphs[0].forward.kernels
    # in addition to the bounded arrays, there are few arrays per value
    assert max(stack_of(str(kernel.code)) for kernel in kernels) <= STACK_BYTES + 64 * 1024


def test_local_arrays_are_found_in_the_text() -> None:
    text = "  double row0[8192];\n  float acc0[512];\n  float parts_acc0[32][512];\n  x[3] = 1;\n"
    assert stack_of(text) == 8 * 8192 + 4 * 512 + 4 * 32 * 512
    most = Local("most", F64, (STACK_BYTES // 8,))
    assert fits_on_stack([most]) and not fits_on_stack([most, Local("more", torch.int8, (1,))])


RUNS = """
import resource, torch
resource.setrlimit(resource.RLIMIT_STACK, (8 << 20, 8 << 20))
import inductor_lab as lab
from tests.codegen.test_stack import PROGRAMS
for function, make in (PROGRAMS["rows"], PROGRAMS["columns"]):
    x = make()
    torch.testing.assert_close(lab.compile(function)(x), function(x))
print("all ran")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="it sets limits as Linux has them")
def test_kernels_run_with_small_stacks(monkeypatch: pytest.MonkeyPatch) -> None:
    """8 MiB for the first thread, 1 MiB for the other threads."""
    monkeypatch.setenv("OMP_STACKSIZE", "1m")
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    root = Path(__file__).parents[2]
    command = [sys.executable, "-c", RUNS]
    done = subprocess.run(command, capture_output=True, text=True, cwd=root, check=False)
    assert done.stdout.strip() == "all ran", done.stderr[-2000:]
