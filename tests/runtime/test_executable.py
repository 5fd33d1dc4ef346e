"""Executables: results equal eager mode, errors name the user's lines, memory is freed."""

from __future__ import annotations

import gc
import inspect
import sys
import weakref
from typing import Any

import pytest
import torch

import inductor_lab as lab
from inductor_lab.compiler.base.errors import CompileFailed, IndexOutOfRange
from tests.scripts import script


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    where = tmp_path_factory.getbasetemp() / "kernels"  # shared by the tests of this process
    monkeypatch.setenv("INDUCTOR_LAB_CACHE_DIR", str(where))


def check(fn: Any, *args: Any) -> lab.Compilation:
    found = lab.inspect(fn, *args)
    torch.testing.assert_close(found.result, fn(*args))
    return found


def scaled(x: torch.Tensor) -> torch.Tensor:
    return x * 2 + 1


def test_inputs_can_have_storage_offsets() -> None:
    base = torch.randn(1001)
    compiled = lab.compile(scaled)
    for start in (0, 1, 3):
        torch.testing.assert_close(
            compiled(base[start : start + 90]), base[start : start + 90] * 2 + 1
        )


def test_a_compiled_graph_empties_its_list_of_arguments() -> None:
    x = torch.randn(30)
    executable = check(scaled, x).graphs[0].forward.executable
    assert executable is not None
    given = [x]
    (result,) = executable(given)
    assert given == [] and torch.equal(result, x * 2 + 1)
    assert torch.equal(executable.run(x)[0], result)


def test_empty_tensors() -> None:
    check(scaled, torch.randn(0, 5))
    check(lambda x: (x + 1).sum(), torch.randn(0, 5))


def test_library_calls_between_kernels() -> None:
    check(lambda x, w: torch.relu(x @ w + 1) @ w.T, torch.randn(7, 5), torch.randn(5, 6))
    check(lambda x: torch.sort(x * 2)[1] + 1, torch.randn(50))


def test_symbolic_sizes() -> None:
    compiled = lab.compile(lambda x: (x * 2).sum(0) + x.shape[0], dynamic=True)
    for rows in (3, 8, 40):
        x = torch.randn(rows, 4)
        torch.testing.assert_close(compiled(x), (x * 2).sum(0) + rows)


def test_gradients() -> None:
    x, w = torch.randn(8, 20), torch.randn(20, 20, requires_grad=True)

    def loss(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return (torch.tanh(x @ w) * 2).square().mean()

    (expected,) = torch.autograd.grad(loss(x, w), w)
    (found,) = torch.autograd.grad(lab.compile(loss)(x, w), w)
    torch.testing.assert_close(found, expected)


def test_an_index_out_of_range_is_an_error_with_the_line() -> None:
    table = torch.randn(10, 4)

    def pick(i: torch.Tensor) -> torch.Tensor:
        return table[i] + 1

    compiled = lab.compile(pick)
    torch.testing.assert_close(compiled(torch.tensor([1, -1])), table[[1, -1]] + 1)
    for bad in (10, -11):
        with pytest.raises(
            IndexOutOfRange, match=r"return table\[i\] \+ 1 .*test_executable.py:\d+"
        ):
            compiled(torch.tensor([1, bad]))
    assert issubclass(IndexOutOfRange, IndexError)
    torch.testing.assert_close(compiled(torch.tensor([3, 2])), table[[3, 2]] + 1)


def test_a_failed_compile_names_the_users_line(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The compiler is replaced by one that fails on multiplications."""
    picky = script(
        tmp_path / "picky-g++",
        '[ "$1" = --version ] && echo "g++ 1, Free Software Foundation" && exit 0\n'
        'for last; do case "$last" in *.cpp) source="$last";; esac; done\n'
        'line=$(grep -n " \\* 2.0f" "$source" | head -n 1 | cut -d: -f1)\n'
        'echo "$source:$line:5: error: I do not multiply" >&2; exit 1',
    )
    monkeypatch.setenv("CXX", str(picky))
    with pytest.raises(CompileFailed) as failed:
        lab.inspect(scaled, torch.randn(33))
    message = str(failed.value)
    assert "kernel.cpp" in message and "I do not multiply" in message
    assert "return x * 2 + 1" in message and "test_executable.py" in message
    assert ">" in message and "2.0f" in message, "the line of the kernel is shown"


def test_intermediates_and_inputs_are_freed() -> None:
    x = torch.randn(64, 64)
    executable = check(lambda x: (x @ x) @ x, x).graphs[0]
    call = executable.forward.executable
    assert call is not None
    own = torch.randn(64, 64)
    gone = weakref.ref(own)
    arguments = [own]
    del own
    (result,) = call(arguments)
    gc.collect()
    assert gone() is None and result.shape == (64, 64)


def test_without_the_cache() -> None:
    x = torch.randn(31)
    found = lab.inspect(scaled, x, options={"cache": False})
    executable = found.graphs[0].forward.executable
    assert executable is not None and executable.library is not None
    assert executable.library.path.exists() == (sys.platform == "win32"), "it is loaded"
    torch.testing.assert_close(found.result, scaled(x))


def test_indices_in_range_raise_no_error() -> None:
    """Masked labels, checked in a SIMD loop with sums of other widths (GCC 12 miscompiled this)."""

    def loss(scores: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        shifted = torch.nn.functional.pad(labels, (0, 1), value=-100)[..., 1:].reshape(-1)
        keep = shifted != -100
        picked = scores.gather(1, torch.where(keep, shifted, 0)[:, None])[:, 0]
        return torch.where(keep, -picked, 0.0).sum() / keep.sum()

    check(loss, torch.randn(256, 1000), torch.randint(0, 1000, (4, 64)))


def not_positive(x: torch.Tensor) -> torch.Tensor:
    y = x + 1
    return torch.linalg.cholesky(y - 8)


def no_probabilities(x: torch.Tensor) -> torch.Tensor:
    y = x + 1
    return torch.nn.functional.binary_cross_entropy(y, y)


def too_large(x: torch.Tensor) -> torch.Tensor:
    y = x + 1
    return y[0, 0] + torch.ones(1 << 46)


@pytest.mark.parametrize("fn", [not_positive, no_probabilities, too_large])
@pytest.mark.parametrize("backend", ["compiled", "inspected"])
def test_an_error_at_run_time_has_the_users_line(fn: Any, backend: str) -> None:
    x = torch.ones(3, 3)
    with pytest.raises(RuntimeError) as eager:
        fn(x)
    with pytest.raises(type(eager.value)) as found:
        lab.compile(fn)(x) if backend == "compiled" else lab.inspect(fn, x)
    assert str(found.value) == str(eager.value)
    source = inspect.getsource(fn).splitlines()[-1].strip()
    (note,) = found.value.__notes__
    line = fn.__code__.co_firstlineno + 2
    assert note.startswith(f"  {source}") and f"test_executable.py:{line}:" in note
