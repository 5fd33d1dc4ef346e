"""`lab.memory`: peaks as the operating system counts them, and the tensors behind them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from jsonschema import Draft202012Validator
from torch import nn
from torch.nn import functional

import inductor_lab as lab
from inductor_lab.compiler.base.errors import BadArguments, BadOption
from inductor_lab.debug.isolate import can_fork
from inductor_lab.debug.memory.step_memory import Holder, MemoryRun, StepMemory
from inductor_lab.saved.documents.kinds import schema
from tests.debug.system_memory import can_count, peak_increase
from tests.debug.training_steps import BY_NAME, STEPS

WHO = ["eager", "stock", "inductor_lab"]
forks = pytest.mark.skipif(not can_fork(), reason="a fork is measured")
counts = pytest.mark.skipif(not can_count(), reason="Linux counts the resident size")


def measure(fn: Any, *args: Any, **kwargs: Any) -> StepMemory:
    return lab.memory(fn, *args, suggest=False, **kwargs)


def check_peak(name: str, who: str) -> None:
    """The peak is that of the operating system, with at most 5 % difference."""
    torch.manual_seed(0)
    fn, args = BY_NAME[name].make()
    run = measure(fn, *args, compilers=[who])[who]
    assert not run.failure
    expected = run.base_bytes + peak_increase(who, fn, args, name == "trainer")
    assert abs(run.peak_bytes - expected) < 0.05 * expected
    assert sum(holder.nbytes for holder in run.holders) == run.peak_bytes


@forks
@counts
@pytest.mark.parametrize("name", ["softmax_chain", "in_place", "convolutions"])
def test_the_peak_of_eager_mode_is_that_of_the_system(name: str) -> None:
    check_peak(name, "eager")


@forks
@counts
@pytest.mark.parametrize("who", WHO)
@pytest.mark.parametrize("name", [step.name for step in STEPS])
def test_every_peak_is_that_of_the_system(name: str, who: str) -> None:
    check_peak(name, who)


# ---- the tensor behind a peak, in a line with the comment "big" ------------------------------


def saved_by_tanh(x: torch.Tensor, w: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    y = torch.tanh(x @ w)  # big
    return (y @ v).square().sum()


def saved_scores(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    scores = q @ k.transpose(-1, -2)  # big
    return (torch.softmax(scores, -1) @ v).sum()  # big


def returned(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    small = x.sum(1, keepdim=True)
    return (x + small) @ w  # big


def gradient_of_a_table(table: torch.Tensor, words: torch.Tensor) -> torch.Tensor:
    return table[words].sum()  # big


class Images(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Conv2d(3, 64, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.sigmoid(self.layer(x))  # big
        return functional.max_pool2d(x, 8).sum()  # big


def classes(x: torch.Tensor, w: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    scores = x @ w  # big
    return functional.cross_entropy(scores, labels)  # big


def views(x: torch.Tensor, w: torch.Tensor) -> tuple[torch.Tensor, ...]:
    y = x @ w  # big
    return y, y.view(-1), y.t(), y[:4]


def sorted_rows(x: torch.Tensor) -> torch.Tensor:
    values, _ = torch.sort(x)  # big
    return values[:, 0].sum()


def weights(*shapes: tuple[int, ...]) -> list[torch.Tensor]:
    return [(torch.randn(shape) / 16).requires_grad_() for shape in shapes]


CASES: list[tuple[Any, Callable[[], tuple[Any, ...]], set[str]]] = [
    (saved_by_tanh, lambda: (torch.randn(512, 16), *weights((16, 1024), (1024, 8))),
     {"saved", "temporary"}),
    (saved_scores, lambda: tuple(weights((8, 256, 16), (8, 256, 16), (8, 256, 16))),
     {"saved", "temporary"}),
    (returned, lambda: (torch.randn(512, 16), torch.randn(16, 1024)), {"output"}),
    (gradient_of_a_table, lambda: (*weights((50_000, 16)), torch.randint(50_000, (20,))),
     {"gradient", "temporary"}),
    (Images(), lambda: (torch.randn(4, 3, 64, 64),), {"saved", "temporary", "pool"}),
    (classes, lambda: (torch.randn(64, 16), *weights((16, 8000)), torch.randint(8000, (64,))),
     {"saved", "temporary", "pool"}),
    (views, lambda: (torch.randn(512, 16), torch.randn(16, 1024)), {"output"}),
    (sorted_rows, lambda: tuple(weights((256, 512))), {"saved", "temporary", "gradient"}),
]  # fmt: skip
NAMES = [getattr(case[0], "__name__", "Images") for case in CASES]


def marked_lines(fn: Any) -> set[int]:
    lines, first = inspect.getsourcelines(type(fn) if isinstance(fn, nn.Module) else fn)
    return {first + at for at, line in enumerate(lines) if line.rstrip().endswith("# big")}


def largest_new(run: MemoryRun) -> Holder:
    return next(holder for holder in run.holders if not holder.before)


def check_holder(number: int, who: str) -> None:
    fn, make, kinds = CASES[number]
    args = make()
    run = measure(fn, *args, compilers=[who])[who]
    holder = largest_new(run)
    assert holder.kind in kinds, str(run.holders)
    assert holder.place is not None and holder.place.line in marked_lines(fn), str(run.holders)
    assert holder.place.file.endswith("test_memory.py")
    assert f"test_memory.py:{holder.place.line}" in run.sentence
    assert sum(each.nbytes for each in run.holders) == run.peak_bytes


@forks
@pytest.mark.parametrize("number", range(len(CASES)), ids=NAMES)
def test_the_line_of_the_largest_tensor_in_eager_mode(number: int) -> None:
    check_holder(number, "eager")


@forks
@pytest.mark.parametrize("who", WHO[1:])
@pytest.mark.parametrize("number", range(len(CASES)), ids=NAMES)
def test_the_line_of_the_largest_tensor_in_compiled_code(number: int, who: str) -> None:
    check_holder(number, who)


@forks
def test_our_partition_says_why_a_value_is_saved() -> None:
    fn, make, _ = CASES[0]
    run = measure(fn, *make(), compilers=["inductor_lab"])["inductor_lab"]
    saved = [holder for holder in run.holders if holder.kind == "saved" and not holder.before]
    assert saved and all(holder.why and holder.name for holder in saved)
    assert run.planned_bytes is not None and run.kept_bytes > 0


# ---- eager mode in detail ------------------------------------------------------------------------


def eager(fn: Any, *args: Any, **kwargs: Any) -> MemoryRun:
    return measure(fn, *args, compilers=["eager"], **kwargs)["eager"]


def names(run: MemoryRun, kind: str) -> set[str]:
    return {holder.name for holder in run.holders if holder.kind == kind}


@forks
def test_a_variable_that_is_not_deleted_is_named() -> None:
    def step(x: torch.Tensor) -> torch.Tensor:
        unused = x @ x
        total = unused.sum()
        other = x @ x
        return total + (other + 1).sum()

    run = eager(step, torch.randn(256, 256))
    assert names(run, "variable") == {"unused", "other", "total"}
    assert "variable unused" in str(run.sentence)


@forks
def test_a_saved_tensor_names_its_node_and_its_variable() -> None:
    def step(x: torch.Tensor) -> torch.Tensor:
        y = torch.exp(x)
        return y.sum()

    run = eager(step, torch.randn(256, 256, requires_grad=True))
    saved = [holder for holder in run.holders if holder.kind == "saved"]
    assert [holder.why for holder in saved] == ["by ExpBackward0"]


@forks
def test_a_checkpoint_is_named() -> None:
    fn, args = BY_NAME["checkpointed"].make()
    run = eager(fn, *args)
    again = [holder for holder in run.holders if "checkpoint" in holder.what]
    assert sum(holder.nbytes for holder in again) > run.peak_bytes // 10


@forks
def test_a_step_with_its_own_backward_and_update() -> None:
    fn, args = BY_NAME["trainer"].make()
    before = [p.detach().clone() for p in fn.model.parameters()]
    found = measure(fn, *args, compilers=["eager"])
    assert {point.phase for point in found["eager"].points} == {"forward", "backward", "update"}
    assert names(found["eager"], "parameter") >= {"model.0.weight", "model.2.weight"}
    for parameter, value in zip(fn.model.parameters(), before, strict=True):
        assert torch.equal(parameter, value) and parameter.grad is None


@forks
def test_every_line_is_one_of_the_user() -> None:
    x = torch.ones(64, requires_grad=True)
    found = lab.memory(lambda x: (x * 2).sin().sum(), x, compilers=["eager"], suggest=False)
    places = [holder.place for run in found.runs for holder in run.holders if holder.place]
    assert {Path(place.file).name for place in places} == {"test_memory.py"}


def test_views_and_resized_storages_are_counted_once() -> None:
    def step(x: torch.Tensor) -> torch.Tensor:
        y = x * 2
        y.resize_(2 * 256, 256)
        return y[:10]

    run = eager(step, torch.randn(256, 256))
    assert run.base_bytes == 4 * 256 * 256
    assert run.peak_bytes == run.base_bytes + 3 * 4 * 256 * 256  # old and new memory of `y`
    assert run.points[-1].nbytes == run.base_bytes + 2 * 4 * 256 * 256


@forks
def test_arguments_that_share_memory_are_counted_once() -> None:
    x = torch.randn(64, 64)
    run = eager(lambda a, b, c: a + 1, x, x.t(), x[:2])
    assert run.base_bytes == 4 * 64 * 64


@forks
def test_state_and_random_numbers_are_unchanged() -> None:
    model = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8), nn.Dropout(0.5))
    calls: list[int] = []

    def step(x: torch.Tensor) -> torch.Tensor:
        calls.append(1)
        x.add_(1.0)
        return model(x).sum()

    x = torch.zeros(4, 8)
    torch.manual_seed(3)
    before = torch.get_rng_state()
    found = measure(step, x, compilers=["eager", "inductor_lab"])
    assert not found["eager"].failure and not found["inductor_lab"].failure
    assert calls == [] and torch.equal(x, torch.zeros(4, 8))
    assert torch.equal(torch.get_rng_state(), before)
    assert int(model[1].num_batches_tracked) == 0
    assert all(parameter.grad is None for parameter in model.parameters())


@forks
def test_a_step_that_raises_is_one_sentence() -> None:
    def step(x: torch.Tensor) -> torch.Tensor:
        raise ValueError("no such batch\nat all")

    found = measure(step, torch.ones(3))
    assert "raises ValueError: no such batch at test_memory.py:" in found["eager"].failure
    assert all("eager mode" in run.failure for run in found.runs[1:])
    assert "no such batch" in str(found)


@forks
def test_too_little_memory_is_one_sentence() -> None:
    def step(x: torch.Tensor) -> torch.Tensor:
        return (x[:, None, None] * x[:, None] * x).sum()

    run = eager(step, torch.randn(20_000))
    assert run.failure.startswith("this machine has too little memory: the step tries to allocate")


@forks
def test_a_step_without_tensors() -> None:
    run = eager(lambda n: n + 1, 3)
    assert (run.peak_bytes, run.base_bytes, run.holders) == (0, 0, ())
    assert "allocates no more" in run.sentence


@forks
def test_graph_breaks_and_several_graphs() -> None:
    def step(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        y = torch.tanh(x @ w)
        torch._dynamo.graph_break()
        return torch.sigmoid(y @ w).sum()

    found = measure(step, torch.randn(128, 128), *weights((128, 128)),
                    compilers=["inductor_lab"])  # fmt: skip
    run = found["inductor_lab"]
    assert not run.failure and run.kept_bytes > 0
    assert {p["id"].partition(".")[0] for p in found.to_dict()["plans"]} == {"g0", "g1"}


def test_wrong_arguments() -> None:
    with pytest.raises(BadOption, match="compilers"):
        lab.memory(torch.sin, torch.ones(2), compilers=["jax"])
    with pytest.raises(BadArguments, match="fn must be"):
        lab.memory(3, torch.ones(2))
    with pytest.raises(BadArguments, match="meta"):
        lab.memory(torch.sin, torch.ones(2, device="meta"))


# ---- suggestions ---------------------------------------------------------------------------------


def late_delete(x: torch.Tensor) -> torch.Tensor:
    unused = x @ x
    total = unused.sum()
    other = x @ x
    return total + (other + 1).sum()


def needed_later(x: torch.Tensor) -> torch.Tensor:
    used = x @ x
    other = (x @ x).sum() + (x + 1).sum()
    return other + used.sum()


class Layers(nn.Module):
    """Three blocks, whose activations are saved; `calls` counts them if it is a list."""

    def __init__(self, calls: list[int] | None = None) -> None:
        super().__init__()
        self.up = nn.ModuleList(nn.Linear(32, 256) for _ in range(3))
        self.calls = calls

    def block(self, x: torch.Tensor, number: int) -> torch.Tensor:
        if self.calls is not None:
            self.calls.append(number)
        return torch.tanh(self.up[number](x)).sum(-1, keepdim=True) + x

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for number in range(3):
            x = self.block(x, number)
        scale = 1.0 if self.calls is None else float(len(self.calls))
        return x.sum() * scale


@forks
def test_a_deletion_is_tried_and_shown() -> None:
    found = lab.memory(late_delete, torch.randn(256, 256), compilers=["eager"])
    (suggestion,) = found.suggestions
    assert suggestion.name == "del" and "+    del unused" in suggestion.diff
    size = 4 * 256 * 256
    assert suggestion.before_bytes - suggestion.after_bytes == size
    assert "del unused" in str(found) and f"tried {found.tried} suggestion" in str(found)


@forks
def test_a_variable_that_is_used_later_is_not_deleted() -> None:
    found = lab.memory(needed_later, torch.randn(256, 256), compilers=["eager"])
    assert found.suggestions == ()


@forks
def test_a_checkpoint_is_tried_and_shown() -> None:
    found = lab.memory(Layers(), torch.randn(512, 32), compilers=["eager"])
    best = found.suggestions[0]
    assert best.name == "checkpoint"
    assert "+            x = checkpoint(self.block, x, number, use_reentrant=False)" in best.diff
    assert best.after_bytes < 0.8 * best.before_bytes


@forks
def test_a_checkpoint_that_saves_nothing_is_not_shown() -> None:
    def one(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return double(x @ w).sum()

    def double(x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(x)

    found = lab.memory(one, torch.randn(256, 32), *weights((32, 256)), compilers=["eager"])
    assert found.tried and found.suggestions == ()


@forks
def test_a_deletion_that_changes_the_result_is_not_shown() -> None:
    def step(x: torch.Tensor) -> torch.Tensor:
        unused = x @ x
        total = unused.sum()
        other = x @ x
        return total + (other + len(locals())).sum()

    assert lab.memory(step, torch.randn(256, 256), compilers=["eager"]).suggestions == ()


@forks
def test_a_memory_budget_is_tried_and_shown() -> None:
    def step(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        for _ in range(4):
            x = torch.tanh(x @ w)
        return x.sum()

    found = lab.memory(step, torch.randn(2048, 64), *weights((64, 64)), compilers=["inductor_lab"])
    assert {each.name for each in found.suggestions} == {"memory_budget"}
    assert all(each.after_bytes < each.before_bytes for each in found.suggestions)


@forks
def test_a_memory_budget_that_cannot_help_is_not_tried() -> None:
    found = lab.memory(returned, torch.randn(64, 16), torch.randn(16, 64),
                       compilers=["inductor_lab"])  # fmt: skip
    assert (found.tried, found.suggestions) == (0, ())


@forks
def test_a_step_that_writes_files_is_refused(tmp_path: Path) -> None:
    def step(x: torch.Tensor) -> torch.Tensor:
        (tmp_path / "log").write_text("step", encoding="utf-8")
        return x + 1

    run = eager(step, torch.ones(3))
    assert run.failure.startswith("the step cannot be repeated: it writes ")
    assert not (tmp_path / "log").exists()


@forks
def test_the_document_follows_its_schema() -> None:
    found = measure(late_delete, torch.randn(64, 64), compilers=["eager"]).to_dict()
    Draft202012Validator(schema("memory")).validate(found)
    (run,) = found["runs"]
    assert sum(holder["nbytes"] for holder in run["holders"]) == run["peak_bytes"]
    assert max(point["nbytes"] for point in run["points"]) == run["peak_bytes"]
