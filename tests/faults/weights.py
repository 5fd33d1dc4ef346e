"""All kinds of writes to packed weights; deleted models free their memory."""

from __future__ import annotations

import copy
import gc
import weakref
from collections.abc import Callable, Iterator

import torch
from torch import nn
from torch.testing import assert_close

import inductor_lab as lab
from inductor_lab.compiler.accelerate import matmul_libraries as matmul
from inductor_lab.compiler.accelerate.packing import WEIGHTS
from tests.faults.child import batch, caches
from tests.faults.outcome import OK, Tried, judged
from tests.faults.plan import Plan

ROWS, INNER, COLUMNS = 128, 320, 256
Write = Callable[[nn.Linear], object]


def _optimized(kind: type, **more: object) -> Write:
    def step(layer: nn.Linear) -> None:
        optimizer = kind(layer.parameters(), lr=0.1, **more)
        layer(torch.ones(2, INNER)).sum().backward()
        optimizer.step()

    return step


def _array(layer: nn.Linear) -> None:
    layer.weight.detach().numpy()[...] += 1


def _averaged(layer: nn.Linear) -> None:
    with torch.no_grad():
        layer.weight.lerp_(torch.ones_like(layer.weight), 0.5)


WRITES: dict[str, Write] = {
    "SGD": _optimized(torch.optim.SGD, momentum=0.9),
    "Adam": _optimized(torch.optim.Adam),
    "AdamW, fused": _optimized(torch.optim.AdamW, fused=True),
    "Adam, foreach": _optimized(torch.optim.Adam, foreach=True),
    "load_state_dict": lambda m: m.load_state_dict(nn.Linear(INNER, COLUMNS).state_dict()),
    "load_state_dict, assigned": lambda m: m.load_state_dict(
        nn.Linear(INNER, COLUMNS).state_dict(), assign=True),
    "p.data.add_": lambda m: m.weight.data.add_(1),
    "p.data[3]": lambda m: m.weight.data[3].mul_(-4),
    "p.data =": lambda m: setattr(m.weight, "data", torch.ones(COLUMNS, INNER)),
    "NumPy": _array,
    "DLPack": lambda m: torch.from_dlpack(m.weight.detach()).mul_(2),
    "lerp_ under no_grad": _averaged,
    "nn.init": lambda m: nn.init.xavier_normal_(m.weight),
    "clip_grad and set_": lambda m: m.weight.data.set_(torch.full((COLUMNS, INNER), 0.1)),
    "half and back": lambda m: m.half().float(),
    "a new parameter": lambda m: setattr(m, "weight", nn.Parameter(torch.ones(COLUMNS, INNER))),
}  # fmt: skip


def tries(plan: Plan) -> Iterator[Tried]:
    names = plan.some(list(WRITES), 5)
    yield from batch(caches(plan.place("writes")), written, names, plan.times(20, 3), plan.seed)
    yield from batch(caches(plan.place("models")), forgotten, plan.times(40, 5))


def _packed_is_faster() -> None:
    """Make the timing choose packed weights."""
    matmul.timed = lambda product: {"ATen": 2.0, "oneDNN": 2.0, "oneDNN packed": 1.0}


def written(names: list[str], turns: int, seed: int) -> Iterator[Tried]:
    """Repeat each write: afterwards the compiled layer equals the eager layer."""
    _packed_is_faster()
    torch.manual_seed(seed)
    for name in names:
        torch._dynamo.reset()
        layer = nn.Linear(INNER, COLUMNS)
        fast = lab.compile(layer)
        yield Tried("writes to a packed weight", *judged(follows, fast, layer))
        assert WEIGHTS.nbytes, "nothing was packed: nothing is tried"
        for _ in range(turns):
            WRITES[name](layer)
            found, said = judged(follows, fast, layer)
            yield Tried("writes to a packed weight", found, f"{name}: {said}")


def follows(fast: Callable[..., torch.Tensor], layer: nn.Linear) -> None:
    """The rounding error of a sum is proportional to the sum of the absolute values."""
    x = torch.randn(ROWS, INNER)
    with torch.no_grad():
        wide = copy.deepcopy(layer).double()
        exact, sums = wide(x.double()), x.double().abs() @ wide.weight.abs().T + 1
        error = (fast(x) - exact) / sums
        assert_close(error, torch.zeros_like(error), rtol=0, atol=1e-5)


def forgotten(turns: int) -> Iterator[Tried]:
    """Create, compile, train, call and delete models: memory stops growing."""
    _packed_is_faster()
    for turn in range(turns):
        left = weakref.ref(used_once(turn))
        torch._dynamo.reset()
        gc.collect()
        alive = left() is not None or WEIGHTS.nbytes > 0
        said = f"turn {turn}: {WEIGHTS.nbytes} bytes are packed, the model is there: {alive}"
        yield Tried("a model that goes gives its memory back", "defect" if alive else OK, said)


def used_once(seed: int) -> nn.Linear:
    torch.manual_seed(seed)
    layer = nn.Linear(INNER, COLUMNS)
    fast = lab.compile(layer)
    fast(torch.randn(ROWS, INNER)).sum().backward()
    follows(fast, layer)
    assert WEIGHTS.nbytes, "nothing was packed: nothing is tried"
    return layer
