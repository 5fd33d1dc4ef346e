"""Small loops that recompile, each with known cures.  `tests/debug/test_advice.py` runs them.

`first` is the first size or number; a loop returns what must stay equal.  `CURES` has for each loop
the number of compilations of a cured loop and the edits that cure it.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

BACKEND = "eager"
SCALE = 1.0
STEP = 0
LAYER = torch.nn.Linear(2, 3)
CONVOLUTION = torch.nn.Conv2d(1, 2, 3)


def compiled(function: Any) -> Any:
    return torch.compile(function, backend=BACKEND)


def double(x: Any) -> Any:
    return x * 2 + 1


def scaled(x: torch.Tensor, n: Any) -> torch.Tensor:
    return x * n + 1


# ---- sizes -------------------------------------------------------------------------------------


def rows(first: int = 3) -> Any:
    fast, found = compiled(double), []
    for n in range(first, first + 4):
        x = torch.ones(n, 2)
        found.append(fast(x))
    return found


def static_rows(first: int = 3) -> Any:
    fast, found = torch.compile(double, backend=BACKEND, dynamic=False), []
    for n in range(first, first + 4):
        x = torch.ones(n, 2)
        found.append(fast(x))
    return found


def columns(first: int = 3) -> Any:
    fast, found = compiled(double), []
    for n in range(first, first + 4):
        x = torch.ones(2, n)
        found.append(fast(x).sum(1))
    return found


def rows_then_columns(first: int = 3) -> Any:
    fast, found = compiled(double), []
    for size in ((first, 5), (first + 1, 5), (first + 1, 6), (first + 2, 7)):
        x = torch.ones(size)
        found.append(fast(x))
    return found


def two_arguments(first: int = 3) -> Any:
    fast, found = compiled(lambda x, y: (x + 1) @ y), []
    for n in range(first, first + 3):
        x, y = torch.ones(n, 2), torch.ones(2, n + 3)
        found.append(fast(x, y))
    return found


def keyword(first: int = 3) -> Any:
    fast, found = compiled(double), []
    for n in range(first, first + 3):
        value = torch.ones(n)
        found.append(fast(x=value))
    return found


def expression(first: int = 3) -> Any:
    fast, found = compiled(double), []
    for n in range(first, first + 3):
        found.append(fast(torch.ones(n, 2)))
    return found


def list_of_tensors(first: int = 3) -> Any:
    fast, found = compiled(lambda parts: parts[0] * 2 + parts[1].sum()), []
    for n in range(first, first + 3):
        parts = [torch.ones(n), torch.ones(2)]
        found.append(fast(parts))
    return found


def dictionary(first: int = 3) -> Any:
    fast, found = compiled(lambda batch: batch["x"] * 2), []
    for n in range(first, first + 3):
        batch = {"x": torch.ones(n), "name": "a"}
        found.append(fast(batch))
    return found


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(2, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x).relu()


def module(first: int = 3) -> Any:
    model, found = torch.compile(Model(), backend=BACKEND), []
    for n in range(first, first + 3):
        x = torch.ones(n, 2)
        found.append(model(x))
    return found


def library(first: int = 3) -> Any:
    fast, found = compiled(lambda x: LAYER(x) + 1), []
    for n in range(first, first + 3):
        x = torch.ones(n, 2)
        found.append(fast(x))
    return found


@torch.compile(backend=BACKEND, dynamic=False)
def decorated(x: torch.Tensor) -> torch.Tensor:
    return x.cos() + 1


def decorated_rows(first: int = 3) -> Any:
    found = []
    for n in range(first, first + 4):
        x = torch.ones(n, 2)
        found.append(decorated(x))
    return found


def one_row_first(first: int = 3) -> Any:
    fast, found = compiled(double), []
    for n in (1, first, first + 1):
        x = torch.ones(n, 2)
        found.append(fast(x))
    return found


def last_batch(first: int = 3) -> Any:
    fast, found = compiled(double), []
    for batch in torch.arange(4.0 * first + 2).split(4):
        found.append(fast(batch))
    return found


def images(first: int = 3) -> Any:
    fast, found = compiled(lambda x: CONVOLUTION(x).relu()), []
    for n in range(first, first + 3):
        x = torch.ones(1, 1, 8 + n, 9 + n)
        found.append(fast(x))
    return found


def comprehension(first: int = 3) -> Any:
    fast = torch.compile(double, backend=BACKEND, dynamic=False)
    return [fast(torch.ones(n, 2)) for n in range(first, first + 4)]


def helper(first: int = 3) -> Any:
    fast = compiled(double)
    return [_step(fast, torch.ones(n, 3)) for n in range(first, first + 4)]


def _step(fast: Callable[..., Any], batch: torch.Tensor) -> Any:
    return fast(batch)


def arrays(first: int = 3) -> Any:
    fast, found = torch.compile(double, backend=BACKEND, dynamic=False), []
    for n in range(first, first + 4):
        found.append(torch.from_numpy(fast(np.ones(n))))
    return found


def attribute_tensor(first: int = 3) -> Any:
    state, found = SimpleNamespace(), []
    fast = compiled(lambda state: state.buffer * 2)
    for n in range(first, first + 3):
        state.buffer = torch.ones(n, 2)
        found.append(fast(state))
    return found


def training(first: int = 3) -> Any:
    fast, found = torch.compile(Model(), backend="aot_eager"), []
    for n in range(first, first + 3):
        x = torch.ones(n, 2)
        loss = fast(x).sum()
        loss.backward()
        found.append(loss)
    return found


def branch_on_size(first: int = 3) -> Any:
    fast, found = torch.compile(_branch, backend=BACKEND, dynamic=False), []
    for n in range(first, first + 4):
        x = torch.ones(n)
        found.append(fast(x))
    return found


def _branch(x: torch.Tensor) -> torch.Tensor:
    return x * 2 if x.shape[0] > 4 else x * 3


def unrolled(first: int = 3) -> Any:
    fast, found = compiled(_unrolled), []
    for n in range(first, first + 4):
        x = torch.ones(n, 2)
        found.append(fast(x))
    return found


def _unrolled(x: torch.Tensor) -> torch.Tensor:
    for _ in range(x.shape[0]):
        pass
    return x * 2


def tuple_of_tensors(first: int = 3) -> Any:
    fast, found = compiled(lambda pair: pair[0].sum() + pair[1]), []
    for n in range(first, first + 3):
        a, b = torch.ones(n), torch.ones(n, 2)
        found.append(fast((a, b)))
    return found


def while_loop(first: int = 3) -> Any:
    fast, found, n = compiled(double), [], first
    while n < first + 3:
        x = torch.ones(n, n)
        found.append(fast(x))
        n += 1
    return found


# ---- numbers -----------------------------------------------------------------------------------


def float_argument(first: int = 3) -> Any:
    fast, found = compiled(scaled), []
    for n in range(first, first + 3):
        found.append(fast(torch.ones(4), n * 0.5))
    return found


def int_argument(first: int = 3) -> Any:
    fast, found = torch.compile(scaled, backend=BACKEND, dynamic=False), []
    for n in range(first, first + 4):
        found.append(fast(torch.ones(4), n))
    return found


def float_keyword(first: int = 3) -> Any:
    fast, found = compiled(scaled), []
    for n in range(first, first + 3):
        found.append(fast(torch.ones(4), n=n / 4))
    return found


def float_in_dictionary(first: int = 3) -> Any:
    fast, found = compiled(lambda x, options: x * options["rate"]), []
    options = {"rate": 0.5, "name": "a"}
    for n in range(first, first + 3):
        options["rate"] = n * 0.25
        found.append(fast(torch.ones(4), options))
    return found


def float_in_list(first: int = 3) -> Any:
    fast, found = compiled(lambda x, factors: x * factors[0] + factors[1]), []
    for n in range(first, first + 3):
        found.append(fast(torch.ones(4), [n * 0.5, 1.0]))
    return found


def global_float(first: int = 3) -> Any:
    global SCALE
    fast, found = compiled(lambda x: x * SCALE), []
    for n in range(first, first + 3):
        SCALE = n * 0.5
        found.append(fast(torch.ones(4)))
    return found


def global_counter(first: int = 3) -> Any:
    global STEP
    STEP = 0
    fast, found = compiled(lambda x: x + STEP), []
    for _ in range(4):
        found.append(fast(torch.ones(4)))
        STEP += 1
    return found


def closed_over_float(first: int = 3) -> Any:
    scale, found = 1.0, []
    fast = compiled(lambda x: x * scale)
    for n in range(first, first + 3):
        scale = n * 0.5
        found.append(fast(torch.ones(4)))
    return found


def attribute_float(first: int = 3) -> Any:
    state, found = SimpleNamespace(), []
    fast = compiled(lambda x, state: x * state.rate)
    for n in range(first, first + 3):
        state.rate = n * 0.5
        found.append(fast(torch.ones(4), state))
    return found


class Counter(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.steps = 2

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.steps += 1
        return x * self.steps


def module_counter(first: int = 3) -> Any:
    model, found = torch.compile(Counter(), backend=BACKEND), []
    for _ in range(first + 2):
        found.append(model(torch.ones(4)))
    return found


class Rated(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.rate = 0.5

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.rate


def module_float(first: int = 3) -> Any:
    model, found = Rated(), []
    fast = torch.compile(model, backend=BACKEND)
    for n in range(first, first + 3):
        model.rate = n * 0.5
        found.append(fast(torch.ones(4)))
    return found


def learning_rate(first: int = 3) -> Any:
    fast, weight = compiled(lambda w, g, lr: w - lr * g), torch.ones(4)
    for n in range(first, first + 4):
        weight = fast(weight, torch.ones(4), 1.0 / n)
    return weight


def size_and_float(first: int = 3) -> Any:
    fast, found = compiled(scaled), []
    for n in range(first, first + 4):
        x = torch.ones(n)
        found.append(fast(x, n * 0.5))
    return found


def one_row_and_float(first: int = 1) -> Any:
    fast, found = compiled(scaled), []
    for n in range(first, first + 3):
        x = torch.ones(n, 8)
        found.append(fast(x, n * 0.3))
    return found


# ---- objects, layouts, settings ----------------------------------------------------------------


def backend_in_loop(first: int = 3) -> Any:
    found = []
    for n in range(first, first + 3):
        fast = torch.compile(double, backend=lambda graph, inputs: graph)
        found.append(fast(torch.full((4,), float(n))))
    return found


def class_in_loop(first: int = 3) -> Any:
    fast, found = compiled(lambda x, settings: x * settings.factor), []
    for n in range(first, first + 3):
        class Settings:
            factor = 2

        settings = Settings()
        found.append(fast(torch.full((4,), float(n)), settings))
    return found


def layout(first: int = 3) -> Any:
    fast, found = compiled(double), []
    for n in range(first, first + 4):
        x = torch.full((4, 4), float(n))
        y = x.t() if n % 2 else x
        found.append(fast(y).sum(0))
    return found


def gradients(first: int = 3) -> Any:
    fast, found = compiled(lambda x: x.sum() > 3), []
    for n in range(first, first + 3):
        x = torch.full((4,), float(n), requires_grad=n % 2 == 0)
        found.append(fast(x))
    return found


def dtypes(first: int = 3) -> Any:
    fast, found = compiled(lambda x: x.float() * 2), []
    for n in range(first, first + 3):
        x = torch.full((4,), float(n), dtype=torch.float64 if n % 2 else torch.float32)
        found.append(fast(x))
    return found


def widths(first: int = 3) -> Any:
    fast, found = compiled(lambda layer, x: layer(x) * 2), []
    for n in range(first, first + 4):
        layer = torch.nn.Linear(n, n + 1)
        found.append(fast(layer, torch.ones(2, n)))
    return found


def rare_mode(first: int = 3) -> Any:
    fast, found = compiled(lambda x, mode: x.sum() if mode == "sum" else x.mean()), []
    for n in range(first, first + 5):
        found.append(fast(torch.full((4,), float(n)), "mean" if n == first + 3 else "sum"))
    return found


MARKED = ("mark_dynamic", "dynamic=True", "dynamic=None")
TENSOR = ("number to tensor", "number to tensor where it is assigned", "specialize_float")
CURES: dict[str, tuple[int, tuple[str, ...]]] = {
    "rows": (1, MARKED), "static_rows": (1, MARKED), "columns": (1, MARKED),
    "rows_then_columns": (1, MARKED), "two_arguments": (1, MARKED), "keyword": (1, MARKED),
    "expression": (1, MARKED), "list_of_tensors": (1, MARKED), "dictionary": (1, MARKED),
    "module": (1, MARKED), "library": (1, MARKED), "decorated_rows": (1, MARKED),
    "one_row_and_float": (1, (*TENSOR, "decorators.mark_unbacked")),
    "one_row_first": (1, (*MARKED, "decorators.mark_unbacked", "pad")),
    "last_batch": (1, (*MARKED, "pad")), "images": (1, MARKED), "comprehension": (1, MARKED),
    "helper": (1, MARKED), "arrays": (1, MARKED), "attribute_tensor": (1, MARKED),
    "training": (1, MARKED), "branch_on_size": (2, MARKED), "unrolled": (1, ("pad",)),
    "tuple_of_tensors": (1, MARKED),
    "while_loop": (1, MARKED), "float_argument": (1, TENSOR),
    "int_argument": (1, (*TENSOR, *MARKED)), "float_keyword": (1, TENSOR),
    "float_in_dictionary": (1, TENSOR), "float_in_list": (1, TENSOR), "global_float": (1, TENSOR),
    "global_counter": (1, TENSOR), "closed_over_float": (1, TENSOR), "attribute_float": (1, TENSOR),
    "module_counter": (1, (*TENSOR, "allow_unspec_int_on_nn_module")), "module_float": (1, TENSOR),
    "learning_rate": (1, TENSOR), "size_and_float": (1, (*TENSOR, *MARKED)),
    "backend_in_loop": (1, ("hoist",)), "class_in_loop": (1, ("hoist",)),
    "layout": (1, (".contiguous()",)), "gradients": (1, (".detach()",)),
    "dtypes": (1, (".to(torch.float32)", ".to(torch.float64)")),
    "widths": (1, ("force_parameter_static_shapes", "mark_dynamic")),
    "rare_mode": (1, ("set_stance",)),
}  # fmt: skip
"""Loop → the number of compilations of a cured loop, and the names of edits that cure it."""
