"""The small Dynamo captures what the real one captures, and computes what Python computes."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
import torch

from inductor_lab.course import dynamo
from inductor_lab.course.dynamo.frames import LIMIT
from tests.project.test_sizes import lines_of_code

FOLDER = Path(dynamo.__file__).parent
UNARY = ("{}.sin()", "torch.relu({})", "torch.softmax({}, -1)", "-{}", "{}.sum(-1, keepdim=True)",
         "{}.mT.mT", "torch.nn.functional.gelu({}, approximate='tanh')")  # fmt: skip
BINARY = (
    "{} + {}",
    "{} - {}",
    "{} * {}",
    "torch.maximum({}, {})",
    "{} @ {}.mT @ w",
    "{} / (2 + {})",
)
SCALE = 2.0


def test_it_has_as_few_lines_as_stated() -> None:
    assert sum(map(lines_of_code, FOLDER.glob("*.py"))) <= 600


def straight_line(seed: int):
    """A random function of two square matrices without branches."""
    draw = random.Random(seed)
    known, lines = ["x", "w"], ["def f(x, w):"]
    for n in range(draw.randint(1, 8)):
        if draw.random() < 0.5:
            value = draw.choice(UNARY).format(draw.choice(known[-3:]))
        else:
            value = draw.choice(BINARY).format(draw.choice(known[-3:]), draw.choice(known[-3:]))
        lines.append(f"    t{n} = {value}")
        known.append(f"t{n}")
    made = {"torch": torch}
    exec("\n".join([*lines, f"    return {known[-1]}"]), made)
    return made["f"], "\n".join(lines)


def wiring(graph: torch.fx.Graph) -> list[object]:
    """Each operation that is used, with its arguments as positions among inputs and operations."""
    place: dict[torch.fx.Node, object] = {}
    found: list[object] = []
    for node in graph.nodes:
        if node.op == "placeholder":
            place[node] = node.name.replace("l_", "").replace("L_", "").strip("_")
        elif node.op == "output":
            found.append(torch.fx.map_arg(node.args[0][0], lambda n: place[n]))
        else:
            place[node] = f"node {len(place)}"
            args = torch.fx.map_arg((node.args, dict(node.kwargs)), lambda n: place[n])
            found.append((node.op, node.target, repr(args)))
    return found


@pytest.mark.parametrize("seed", range(25))
def test_it_agrees_with_the_real_one_without_branches(seed: int) -> None:
    function, source = straight_line(seed)
    x, w = torch.randn(4, 4), torch.randn(4, 4)
    real: list[torch.fx.Graph] = []

    def backend(module: torch.fx.GraphModule, inputs: object):
        module.graph.eliminate_dead_code()
        real.append(module.graph)
        return module.forward

    torch.compiler.reset()
    torch.compile(function, backend=backend)(x, w)
    mini = dynamo.capture(function)
    torch.testing.assert_close(mini(x, w), function(x, w), msg=source)
    (graph,) = mini.graphs
    assert names(wiring(graph.graph)) == names(wiring(real[0])), source


def names(found: list[object]) -> list[object]:
    """Inputs are numbered in the order of their first use: the two name them differently."""
    return [str(each) for each in found]


def loop(x: torch.Tensor, n: int):
    for i in range(n):
        x = helper(x, k=i) * SCALE
    return x, (x.shape[0], [x.mT])


def helper(x: torch.Tensor, k: int = 1) -> torch.Tensor:
    return x.relu() + k


def broken(x: torch.Tensor):
    y = x + 1
    a, b = y.chunk(2, -1)
    if y.sum() > 0:
        y.mul_(2)
        return a - b
    return y.sum().item() + a


def unrolled(x: torch.Tensor, items: list[object]):
    total = x
    for place, item in enumerate(items):
        print(place, item)
        total = total + item
    return -total


def with_default(x: torch.Tensor, *, way: str = "up"):
    if way is not None and way == "up" and not x.is_floating_point():
        return x
    return torch.zeros(2, 3) + x[0:1, None, -1]


def caught(x: torch.Tensor):
    try:
        return x.sin()
    finally:
        x.cos()


CALLS = [
    (loop, lambda: (torch.randn(2, 3), 2)), (loop, lambda: (torch.randn(2, 3), 0)),
    (broken, lambda: (torch.ones(2, 4),)), (broken, lambda: (-torch.ones(2, 4) * 3,)),
    (unrolled, lambda: (torch.ones(2), [1, 2.5, True])), (unrolled, lambda: (torch.ones(2), ())),
    (with_default, lambda: (torch.randn(2, 3),)), (with_default, lambda: (torch.ones(2, 3).int(),)),
    (caught, lambda: (torch.ones(3),)),
]  # fmt: skip


@pytest.mark.parametrize("function, arguments", CALLS)
def test_it_computes_what_python_computes(function, arguments, capsys) -> None:
    mini = dynamo.capture(function)
    for _ in range(2):
        args = arguments()
        copies = [a.clone() if isinstance(a, torch.Tensor) else a for a in args]
        expected = function(*args)
        printed = capsys.readouterr().out
        torch.testing.assert_close(mini(*copies), expected)
        assert capsys.readouterr().out == printed
        torch.testing.assert_close(copies[0], args[0])
    assert not mini.recompiles


def test_a_failed_guard_causes_a_new_capture(monkeypatch) -> None:
    mini = dynamo.capture(loop)
    mini(torch.ones(2, 1), 2)
    mini(torch.zeros(2, 1), 2)
    assert len(mini.graphs) == 1
    for args, failed in (((torch.ones(3, 1), 2), "tensor_match"),
                         ((torch.ones(2, 1), 1), "L['n'] == 2"),
                         ((torch.ones(2, 1), True), "type(L['n'])")):  # fmt: skip
        torch.testing.assert_close(mini(*args), loop(*args))
        assert any(failed in reason for reason in mini.recompiles)
    monkeypatch.setitem(globals(), "SCALE", 3.0)
    torch.testing.assert_close(mini(torch.ones(2, 1), 2), loop(torch.ones(2, 1), 2))


def test_one_tensor_under_two_names_is_noticed() -> None:
    def both(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        x.add_(1)
        return x + y

    mini, x = dynamo.capture(both), torch.zeros(2)
    assert mini(x, x).tolist() == [2, 2]
    assert mini(torch.zeros(2), torch.zeros(2)).tolist() == [1, 1]


def test_graph_breaks_have_a_line_and_a_reason() -> None:
    mini = dynamo.capture(broken)
    mini(torch.ones(2, 4))
    first = broken.__code__.co_firstlineno
    assert mini.breaks == [f"line {first + 3}: the branch depends on the data of a tensor"]
    assert [len(graph.graph.find_nodes(op="placeholder")) for graph in mini.graphs] == [1, 3]
    text = str(mini)
    assert "add = add(x, 1)" in text and "mul_ = y.mul_(2)" in text and "guard" in text


def test_at_the_recompile_limit_python_continues() -> None:
    mini = dynamo.capture(loop)
    for n in range(LIMIT + 3):
        torch.testing.assert_close(mini(torch.ones(2, 1), n), loop(torch.ones(2, 1), n))
    assert len(mini.all) == LIMIT


def test_errors_of_the_function_are_unchanged() -> None:
    def bad(x: torch.Tensor, n: int):
        return x / (1 // n)

    with pytest.raises(ZeroDivisionError):
        dynamo.capture(bad)(torch.ones(2), 0)
    with pytest.raises(TypeError, match="plain Python function"):
        dynamo.capture(torch.nn.Linear(2, 2))  # type: ignore[arg-type]
