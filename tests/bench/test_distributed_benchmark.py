"""The benchmark of several ranks, run on one rank: its counts, and reports of wrong contenders."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from benchmarks import distributed
from benchmarks.distributed import (
    CASES,
    OURS,
    SHORT,
    STEP,
    STOCK,
    common,
    merged,
    shares,
    table,
    total,
)


def test_exposed_communication_has_no_concurrent_work() -> None:
    sent, work = merged([(0, 4), (2, 6), (10, 12)]), merged([(5, 11)])
    assert sent == [(0, 6), (10, 12)] and total(sent) == 8
    assert common(sent, work) == 2
    assert total(sent) - common(sent, work) == 6, "0 to 5, and 11 to 12"


def event(name: str, start: float, end: float, **more: Any) -> Any:
    span = SimpleNamespace(start=1e3 * start, end=1e3 * end)
    return SimpleNamespace(name=name, time_range=span, **{**HOST, **more})


HOST = {"device_type": torch.autograd.DeviceType.CPU, "cpu_children": [],
        "is_user_annotation": False}  # fmt: skip
GPU = {"device_type": torch.autograd.DeviceType.CUDA}


def test_the_first_step_under_the_profiler_is_not_counted() -> None:
    steps = [event(f"{STEP} {n}", 10 * n, 10 * n + 10, cpu_children=[1]) for n in range(3)]
    cold = [event("gloo:all_reduce", 0, 10), event("aten::mm", 8, 12)]
    warm = [event("gloo:all_reduce", 12, 20), event("aten::mm", 16, 24)]
    waiting = [event("c10d::allreduce_", 10, 30), event("aten::wait", 12, 20)]
    found = shares([*steps, *cold, *warm, *waiting], "cpu")
    assert found == {"wire": 4, "hidden": 2, "exposed": 2, "profiled": 10}


def test_user_annotations_do_not_count_as_gpu_work() -> None:
    steps = [event(f"{STEP} {n}", 10 * n, 10 * n + 10) for n in range(2)]
    there = [event(f"{STEP} 1", 11, 19, is_user_annotation=True, **GPU),
             event("FSDP::all_gather", 10, 18, is_user_annotation=True, **GPU)]  # fmt: skip
    kernels = [event("ncclDevKernel_AllGather_RING_LL", 12, 16, **GPU),
               event("triton_fused_add_0", 15, 17, **GPU)]  # fmt: skip
    found = shares([*steps, *there, *kernels], "cuda")
    assert found == {"wire": 4, "hidden": 1, "exposed": 3, "profiled": 10}


def test_the_table_compares_with_stock_and_lists_failures() -> None:
    found: dict[str, Any] = {
        "eager": {"ms": 5.0, "wire": 2.0, "exposed": 1.0, "first": 0.5},
        STOCK: {"ms": 4.0, "wire": 2.0, "exposed": 0.5, "samples": [4, 4, 4]},
        OURS: {"ms": 2.0, "wire": 2.0, "exposed": 0.25, "samples": [2, 2, 8]},
    }
    text = table("GPT-2, DDP", found)
    assert "ours is 2.00 times as fast as stock" in text and "exposed" in text
    failed = table("GPT-2, DDP", {**found, OURS: {"failure": "the losses are off by 0.3"}})
    assert "off by 0.3" in failed and "times as fast" not in failed


def test_a_contender_with_wrong_losses_is_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    def alone(said: list[Any], wrong: bool) -> None:
        said[:] = [wrong]

    monkeypatch.setattr(distributed.dist, "get_world_size", lambda: 1)
    monkeypatch.setattr(distributed.dist, "all_gather_object", alone)
    found: dict[str, Any] = {"eager": {"losses": [2.0, 1.0]}}
    assert distributed.agree("eager", found, 1e-4)
    for losses, right in ([2.0, 1.00001], True), ([2.0, 1.1], False), ([2.0, float("nan")], False):
        found[OURS] = {"losses": losses}
        assert distributed.agree(OURS, found, 1e-4) is right
    assert "off by" in found[OURS]["failure"]


def test_every_short_name_is_a_model() -> None:
    assert set(SHORT.values()) == set(CASES)
