"""`lab.bench`: the contenders, the comparison, and the reports of errors."""

from __future__ import annotations

import copy
import os
import warnings
from dataclasses import replace

import numpy as np
import pytest
import torch
import torch._functorch.config as functorch_config
from torch._dynamo.utils import counters
from torch.utils.benchmark import Compare, Measurement, Timer

import inductor_lab as lab
from inductor_lab.bench.bench_result import APART, BenchResult, roofline_table
from inductor_lab.bench.kernels import timed
from inductor_lab.bench.progress import Progress
from inductor_lab.compiler.base.errors import BadArguments, BadOption, NothingToChange
from inductor_lab.compiler.runtime.prestart import warn_of_mode
from inductor_lab.compiler.step_time import StepTime

QUICK = {"seconds": 0.05, "cold": False, "kernels": False}


def wave(x):
    return ((x + 1) * 2).sin()


@pytest.fixture(scope="module")
def whole(known_limits) -> BenchResult:
    x = torch.randn(2000, requires_grad=True)
    return lab.bench(
        wave, x, against=["eager"], modes=["default", "max-autotune"], backward=True, seconds=0.1
    )


def test_compile_times_and_steady_state_are_separate(whole) -> None:
    eager, ours, tuned = whole.contenders
    assert eager.compile is None
    for contender in (ours, tuned):
        took = contender.compile
        assert took.setup > 0 and took.cold > 0 and took.warm > 0
        assert contender.agrees and contender.error < 1e-4
    assert whole.timings.rounds >= 7 and set(whole.timings.seconds) == {
        "eager", "inductor_lab", "inductor_lab max-autotune"}  # fmt: skip
    assert whole.complete


def test_results_are_measurements_of_torch(whole) -> None:
    found = whole.measurements()
    assert found.keys() == whole.timings.seconds.keys()
    assert found["eager"].median == pytest.approx(whole.timings.median_ms("eager") / 1e3)
    assert "inductor_lab max-autotune" in str(Compare(list(found.values())))


def timer(**more) -> Measurement:
    """What torch measures of `wave`, with the threads of this process."""
    given = {"fn": wave, "x": torch.randn(100)}
    settings = {"num_threads": torch.get_num_threads(), "description": "by hand", **more}
    return Timer("fn(x)", globals=given, **settings).blocked_autorange(min_run_time=0.5)


def test_times_of_torch_are_a_contender(tmp_path) -> None:
    given = timer()
    result = lab.bench(wave, torch.randn(100), against=["eager", given], **QUICK)
    name = "by hand, timed before"
    assert [contender.name for contender in result.contenders] == ["eager", name, "inductor_lab"]
    assert result.timings.seconds[name] == tuple(given.times) and result.timings.rounds >= 7
    before = result.contenders[1]
    assert before.error is None and "its results are not known" in before.note
    assert result.verdict(name) and before.note in str(result)
    assert lab.bench.load(result.save(tmp_path / "bench.json")) == result
    assert result.to_dict()["contenders"][1]["median_seconds"] == pytest.approx(given.median)
    assert "<svg" in result.plot()


def test_an_earlier_benchmark_is_a_baseline() -> None:
    x = torch.randn(100)
    before = lab.bench(wave, x, against="eager", **QUICK).measurements()
    result = lab.bench(wave, x, against=before["inductor_lab"], **QUICK)
    assert result.base == "inductor_lab, timed before"
    assert result.base in result.verdict("inductor_lab")
    with pytest.raises(BadArguments, match=r"it measured wave\(f32\[100\]\), not wave\(f32\[9\]\)"):
        lab.bench(wave, torch.randn(9), against=before["eager"], **QUICK)
    with pytest.raises(BadArguments, match="and its gradient"):
        lab.bench(wave, x, against=before["eager"], **{**QUICK, "backward": True})


def test_what_cannot_be_compared_is_refused() -> None:
    other = torch.get_num_threads() + 1
    x, one = torch.randn(100), Measurement(10, [0.1], timer().task_spec)
    for against, says in (
        ([timer(num_threads=other)], f"with {other} threads, others use {other - 1}"),
        ([one], "by hand, timed before: 1 sample, at least 7 are needed"),
        (["eager", timer(), timer()], "two measurements are named by hand, timed before"),
    ):
        with pytest.raises(BadArguments, match=says):
            lab.bench(wave, x, against=against, **QUICK)


def test_a_mode_that_changes_nothing_has_a_note(whole) -> None:
    assert whole.contenders[1].note == ""
    assert whole.contenders[2].note == "changes nothing here: same code as inductor_lab"


def test_a_mode_with_a_note_has_no_warning(known_limits: None) -> None:
    warn_of_mode.cache_clear()
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        found = lab.bench(wave, torch.ones(9), against=["eager"], modes=["max-autotune"], **QUICK)
    assert found.contenders[1].agrees
    assert [w for w in warned if w.category is NothingToChange] == []


def test_code_from_disk_also_has_the_note(known_limits: None) -> None:
    """The second compile of each contender loads its graph from disk."""
    with functorch_config.patch(enable_autograd_cache=True):
        found = lab.bench(
            wave,
            torch.randn(2000, requires_grad=True),
            against=["eager"],
            modes=["default", "max-autotune"],
            backward=True,
            seconds=0.05,
            kernels=False,
        )
        assert counters["aot_autograd"]["autograd_cache_hit"] >= 1
    assert found.contenders[2].note == "changes nothing here: same code as inductor_lab"


LATER = "timed at another moment"
"""The note if a call took a different time while its kernels were timed."""


def test_kernels_are_compared_with_the_limits_of_the_machine(whole) -> None:
    assert [step.name.startswith("cpp_fused") for step in whole.steps] == [True, True]
    table = whole.tables[1]
    known = whole.limits is not None and not whole.limits.doubt
    assert ("roof" in table.columns) == (">of the roof" in table.columns) == known
    assert len(table.rows) == 2


def test_unknown_roofs_have_no_columns() -> None:
    known = StepTime("cpp_fused_add_0", True, 2e-3, 0.1, 4_000_000, 1_000, 1e-3)
    columns = roofline_table((known,)).columns
    table = roofline_table((replace(known, roof=None),))
    assert table.columns == columns[:-2] and columns[-2:] == (">of the roof", "roof")
    assert all(len(row) == len(table.columns) for row in table.rows)
    assert "limits" not in table.title


def test_kernels_and_calls_do_not_contradict_each_other(whole) -> None:
    """A page once showed a kernel of 47 µs in a call of 7.7 ms, at 4,496 % of its roof."""
    call = whole.timings.median_ms("inductor_lab") / 1e3
    assert (LATER in str(whole)) or sum(step.seconds for step in whole.steps) < APART * call
    assert all(step.share is None or step.share <= 1.05 for step in whole.steps)


def test_a_note_reports_kernels_timed_under_other_conditions(whole) -> None:
    x = torch.randn(2000)
    found = timed(lab.inspect(wave, x), 0)
    later = replace(found.compilation, call_seconds=7.7e-3)
    shown = replace(whole, steps=(), limits=None).with_steps(later, found.limits)
    assert shown.steps and not shown.same_moment(later) and "7.7 ms then" in str(shown)


def test_a_forward_alone_has_the_kernels_of_a_forward() -> None:
    x = torch.randn(2000, requires_grad=True)
    result = lab.bench(wave, x, against=["eager"], seconds=0.05, cold=False)
    assert len(result.steps) <= 1


def training_step():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.BatchNorm1d(8))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)

    def step(x):
        optimizer.zero_grad()
        loss = model(x).pow(2).mean()
        loss.backward()
        optimizer.step()
        return loss

    return model, step


def test_a_step_that_keeps_state_agrees_has_its_kernels_and_trains_nothing() -> None:
    model, step = training_step()
    before = copy.deepcopy(model.state_dict())
    result = lab.bench(step, torch.randn(16, 8), against="eager", backward=None, seconds=0.05)
    eager, ours = result.contenders
    assert eager.name == "eager" and ours.agrees and ours.error < 1e-5
    assert "and its gradient" not in result.work
    assert any("cpp_fused" in step.name for step in result.steps)
    assert all(torch.equal(before[name], now) for name, now in model.state_dict().items())
    assert all(parameter.grad is None for parameter in model.parameters())


def test_the_gradient_is_timed_if_there_is_one() -> None:
    x = torch.randn(200, requires_grad=True)
    for against in ("eager", "aot_eager"):
        result = lab.bench(wave, x, against=against, backward=None, seconds=0.02, kernels=False)
        assert result.work.endswith("and its gradient")
        assert [c.name for c in result.contenders] == [against, "inductor_lab"]
    found = lab.bench(wave, x.detach(), against="eager", backward=None, seconds=0.02, cold=False)
    assert "gradient" not in found.work


def test_texts(whole) -> None:
    text = str(whole)
    assert "cold compile" in text and "thread" in text and "and its gradient" in text
    assert "cpp_fused" in text and "\n" not in repr(whole)
    lines = whole.to_markdown().splitlines()
    assert lines[2].startswith("|  | setup |") and lines[3].startswith("| --- | ---: |")


def test_saved_and_loaded(whole, tmp_path) -> None:
    assert lab.bench.load(whole.save(tmp_path / "bench.json")) == whole


def test_the_cache_of_the_user_is_restored(whole) -> None:
    assert not any("lab-bench-" in value for value in os.environ.values())


def test_any_backend_and_any_function_can_be_compared() -> None:
    def by_hand(x):
        return torch.sin(2 * x + 2)

    result = lab.bench(wave, torch.randn(100), against=["eager", "aot_eager", by_hand], **QUICK)
    names = [contender.name for contender in result.contenders]
    assert names == ["eager", "aot_eager", "by_hand", "inductor_lab"]
    assert all(contender.agrees for contender in result.contenders)


def test_stock_can_be_compared() -> None:
    result = lab.bench(wave, torch.randn(100), **QUICK)
    assert [c.name for c in result.contenders] == ["eager", "inductor", "inductor_lab"]
    assert not any(c.failure for c in result.contenders)
    assert any("than inductor" in s or "of inductor" in s or "as inductor" in s
               for s in result.sentences)  # fmt: skip


def test_arrays_and_keywords() -> None:
    def norm(x, *, scale):
        return (x - x.mean()) / x.std() * scale

    result = lab.bench(norm, np.random.randn(100), scale=2.0, against=["eager"], **QUICK)
    assert result.contenders[1].agrees and result.work == "norm(float64[100], 2.0)"


def test_the_verdict_reports_wrong_results() -> None:
    def wrong(x):
        return wave(x) + 0.5

    result = lab.bench(wave, torch.randn(100), against=["eager", wrong], **QUICK)
    assert not result.contenders[1].agrees
    assert "but its results differ by" in result.verdict("wrong")


def test_random_results_are_not_wrong_results() -> None:
    def noisy(x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.dropout(x, 0.5)

    x = torch.randn(1000)
    state = torch.get_rng_state()
    result = lab.bench(noisy, x, against=["eager"], **QUICK)
    ours = result.contenders[1]
    assert ours.agrees and "results cannot be compared" in ours.note and ours.note in str(result)
    assert "differ" not in result.verdict("inductor_lab")
    assert torch.equal(state, torch.get_rng_state())
    still = lab.bench(lambda x: x * 2, x, against=["eager", lambda x: x * 3], **QUICK)
    assert not still.contenders[1].agrees


def test_a_failing_compiler_is_listed_in_the_table() -> None:
    @torch.compiler.disable
    def opaque(x):
        return x.sin()

    result = lab.bench(
        lambda x: opaque(x), torch.ones(4), against=["eager"], options={"fullgraph": True}, **QUICK
    )
    failed = result.contenders[1]
    assert failed.failure and failed.name not in result.timings.seconds
    assert failed.failure in str(result) and result.timings.rounds >= 7


def test_an_error_of_the_function_is_passed_on() -> None:
    def bad(x):
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        lab.bench(bad, torch.ones(4), **QUICK)


def test_bad_requests() -> None:
    with pytest.raises(BadOption, match="no_such_backend"):
        lab.bench(wave, torch.ones(4), against=["eager", "no_such_backend"], **QUICK)
    with pytest.raises(BadOption, match="mode"):
        lab.bench(wave, torch.ones(4), modes=["fastest"], **QUICK)
    with pytest.raises(BadArguments, match="nothing to compare with"):
        lab.bench(wave, torch.ones(4), against=[], **QUICK)
    with pytest.raises(BadArguments, match="no gradient to measure"):
        lab.bench(wave, torch.ones(4), against=["eager"], **{**QUICK, "backward": True})


def test_arguments_of_the_user_are_not_changed() -> None:
    x = torch.zeros(10)
    result = lab.bench(lambda x: x.add_(1), x, against=["eager"], **QUICK)
    assert x.sum() == 0 and result.contenders[1].agrees


class Watching(Progress):
    """Records the progress messages; interrupts (Ctrl-C) at a given word."""

    def __init__(self, stop_at: str = "") -> None:
        self.stop_at = stop_at
        self.heard: list[tuple[float, str]] = []
        self.last: BenchResult | None = None

    def update(self, done, doing, result) -> None:
        self.heard.append((done, doing))
        if self.stop_at and self.stop_at in doing:
            raise KeyboardInterrupt

    def finished(self, result) -> None:
        self.last = result


def test_an_error_of_the_function_is_raised_before_any_compiler_is_set_up() -> None:
    """Stock took half a minute to set up before a missing argument was reported."""
    watching = Watching()
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        lab.bench(wave, progress=watching)
    assert not any("setting up" in doing for _, doing in watching.heard)


def test_progress_goes_up_and_ends_with_the_result() -> None:
    watching = Watching()
    result = lab.bench(wave, torch.ones(100), against=["eager"], seconds=0.5, progress=watching)
    shares = [done for done, _ in watching.heard]
    assert shares == sorted(shares) and 0 <= shares[0] < shares[-1] <= 1
    said = " ".join(doing for _, doing in watching.heard)
    for word in ("setting up", "nothing on disk", "forward.codegen", "round", "each kernel"):
        assert word in said
    assert watching.last == result


@pytest.mark.parametrize("stop_at", ["nothing on disk", "compiling again", "round", "each kernel"])
def test_ctrl_c_keeps_what_was_measured(stop_at) -> None:
    watching = Watching(stop_at)
    seconds = 0.1 if stop_at == "each kernel" else 600
    result = lab.bench(wave, torch.ones(100), against=["eager"], seconds=seconds, progress=watching)
    assert not result.complete and watching.last == result
    assert "Stopped early" in str(result)
    assert (result.timings.rounds > 0) == (stop_at in ("round", "each kernel"))
    if stop_at != "nothing on disk":
        assert result.contenders[1].compile.cold > 0


def test_the_bench_module_is_callable() -> None:
    import inductor_lab.bench.timing  # noqa: F401

    assert lab.bench.sweep is not None and callable(lab.bench)
    assert {"sweep", "four_experiments", "ceilings", "load", "run"} <= set(dir(lab.bench))
    with pytest.raises(AttributeError, match="no attribute"):
        _ = lab.bench.nothing
