"""The entry points of the compiler, and its handling of complete calls."""

from __future__ import annotations

import pytest
import torch
from torch.testing import assert_close

import inductor_lab as lab
from inductor_lab.compiler.base.errors import BadOption, MissingLowering, UnreadableFile


def wave(x: torch.Tensor) -> torch.Tensor:
    return torch.sin(x) * 2 + 1


def test_torch_finds_the_backend_by_name() -> None:
    assert "inductor_lab" in torch.compiler.list_backends()
    x = torch.randn(10)
    assert_close(torch.compile(wave, backend="inductor_lab")(x), wave(x))


def test_compile_works_as_a_decorator() -> None:
    @lab.compile(dynamic=False)
    def double(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    assert_close(double(torch.ones(3)), torch.full((3,), 2.0))


def test_an_unknown_option_is_refused_immediately() -> None:
    with pytest.raises(BadOption, match="memory_budgte"):
        lab.compile(wave, options={"memory_budgte": 0.5})
    with pytest.raises(BadOption, match="fastest"):
        lab.compile(wave, mode="fastest")


def test_a_graph_break_gives_two_graphs() -> None:
    def broken(x: torch.Tensor) -> torch.Tensor:
        y = x.sin()
        torch._dynamo.graph_break()
        return y.cos()

    x = torch.randn(8)
    c = lab.inspect(broken, x)
    assert len(c.graphs) == len(c.capture.graphs) == 2
    assert len(c.capture.breaks) == 1
    assert c.capture.breaks[0].span is not None
    assert_close(c.result, x.sin().cos())


def test_a_second_size_compiles_for_dynamic_sizes() -> None:
    fast = lab.compile(wave)
    for n in (5, 9, 17, 1, 0, 1000):
        x = torch.randn(n)
        assert_close(fast(x), wave(x))


def test_exceptions_of_the_function_are_propagated() -> None:
    class Mine(Exception):
        pass

    def raises(x: torch.Tensor) -> torch.Tensor:
        raise Mine("no")

    with pytest.raises(Mine):
        lab.inspect(raises, torch.ones(2))


def test_strict_names_the_op_and_the_line() -> None:
    def odd(x: torch.Tensor) -> torch.Tensor:
        return torch.linalg.inv(x)

    with pytest.raises(MissingLowering, match=r"linalg_inv[\s\S]*torch\.linalg\.inv\(x\)"):
        lab.inspect(odd, torch.eye(3), options={"strict": True})


def test_the_observer_changes_nothing() -> None:
    class Loud(lab.Observer):
        def __init__(self) -> None:
            self.seen: list[str] = []

        def entered(self, phase: str) -> None:
            self.seen.append(phase)

    x, loud = torch.randn(10, requires_grad=True), Loud()
    quiet_text = [str(p) for p in lab.inspect(wave, x).parts]
    loud_text = [str(p) for p in lab.inspect(wave, x, observer=loud).parts]
    assert quiet_text == loud_text
    assert "forward.lower" in loud.seen and "backward.codegen" in loud.seen


def test_many_inspections_of_one_function() -> None:
    """TorchDynamo stops compiling a function after eight recompiles, but an inspection does not."""
    for _ in range(10):
        assert len(lab.inspect(wave, torch.randn(3)).graphs) == 1


def test_a_loaded_compilation_has_the_same_text(tmp_path) -> None:
    c = lab.inspect(wave, torch.randn(10, requires_grad=True))
    again = lab.load(c.save(tmp_path / "wave.lab.json"))
    assert str(again) == str(c)
    assert [str(p) for p in again.parts] == [str(p) for p in c.parts]
    assert str(again.capture) == str(c.capture)
    assert again.graphs[0].forward.loops.run(torch.ones(10))[0].shape == (10,)


def test_a_file_of_another_program(tmp_path) -> None:
    path = tmp_path / "other.json"
    path.write_text('{"hello": 1}')
    with pytest.raises(UnreadableFile):
        lab.load(path)


def test_target_gives_triton_text_without_running_it() -> None:
    x = torch.randn(100)
    c = lab.inspect(wave, x, target="cuda:90")
    kernel = c.graphs[0].forward.kernels[0]
    assert kernel.language == "triton" and "@triton.jit" in str(kernel)
    assert "cuda:0" in str(c.graphs[0].forward.loops)
    assert "empty_strided_cuda" in str(c.graphs[0].forward.host)
    assert_close(c.result, wave(x))
    assert_close(c.graphs[0].forward.schedule.run(x)[0], wave(x))
    assert "sm_90" in kernel.ladder("cuda:90")["ptx"]


def test_input_mutation_and_module_state() -> None:
    model = torch.nn.BatchNorm1d(4)
    reference = torch.nn.BatchNorm1d(4)
    x = torch.randn(8, 4)
    assert_close(lab.compile(model)(x), reference(x))
    assert_close(model.running_mean, reference.running_mean)

    def bump(x: torch.Tensor) -> torch.Tensor:
        x.add_(1)
        return x * 2

    a, b = torch.zeros(3), torch.zeros(3)
    assert_close(lab.compile(bump)(a), bump(b))
    assert_close(a, b)
