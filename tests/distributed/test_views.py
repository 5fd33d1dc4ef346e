"""Views of several ranks: predicted timelines, and the comparison of ranks."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch

import inductor_lab as lab
from inductor_lab.compiler.base.errors import BadArguments
from inductor_lab.distributed import INFINIBAND, Rates
from inductor_lab.widgets.svg import DARK, LIGHT, SHAPES
from tests.distributed.programs import save_step
from tests.distributed.ranks import of_all, results_of

LANES = {"bar": "work", "wire": "wire", "wait": "wait"}


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("ranks")
    of_all(results_of(2, save_step, str(folder)))
    return [folder / "rank0.lab.json", folder / "rank1.lab.json"]


def test_comparison_of_the_ranks_of_a_group(saved: list[Path]) -> None:
    ranks = lab.join(saved)
    assert ranks.agree and len(ranks) == 2
    assert len(ranks.collectives[0]) == 4, "two blocks, forwards and backwards"
    assert ranks.collectives[0][0].startswith("all_reduce(float32[4, 16, 32], sum")
    assert not ranks.differences, "compile times are measured, and no difference of the programs"
    assert "rank 1" in str(ranks) and "<svg" in ranks._repr_html_()


def test_work_wire_and_wait_are_distinguishable_and_named(saved: list[Path]) -> None:
    """They differ in colour, outline and text, in both themes."""
    page = lab.join(saved)._repr_html_()
    drawn = {role: len(re.findall(f'<rect class="{role}"', page)) for role in LANES}
    events = [event for line in lab.join(saved).timelines for event in line.events]
    for role, lane in LANES.items():
        bars = sum(event.track == lane for event in events)
        assert drawn[role] == bars + 1, "one is the legend's"
        assert LIGHT[f".{role}"] != DARK[f".{role}"]
    for palette in (LIGHT, DARK):
        assert len({palette[f".{role}"] for role in LANES}) == 3
    assert "stroke-dasharray" in SHAPES.split(".wait{")[1].split("}")[0]
    for words in ("kernels and library calls", "collectives", "exposed communication"):
        assert page.count(f": {words}</text>") == 1


def test_ranks_with_different_collectives_are_reported(saved: list[Path]) -> None:
    other = lab.inspect(lambda x: x + 1, torch.ones(4))
    ranks = lab.join([lab.load(saved[0]), other])
    assert not ranks.agree
    assert "collective 1 differs" in str(ranks) and "rank 1 starts none" in str(ranks)


def test_the_spans_of_a_timeline_sum_to_its_length(saved: list[Path]) -> None:
    step = lab.load(saved[0])
    line = lab.distributed.timeline(step, 2)
    bytes_of_one = 4 * 16 * 32 * 4
    assert line.sent == 4 * bytes_of_one, "2 (n-1)/n of each is sent, and n is 2"
    assert lab.distributed.timeline(step, 4).sent == 4 * bytes_of_one * 3 / 2
    assert line.wire == pytest.approx(line.hidden + line.exposed)
    work = sum(span.seconds for span in line.spans if span.lane == "work")
    assert line.seconds == pytest.approx(work + line.exposed)
    assert line.hidden > 0, "gradients of weights are computed during the transfer"


def test_nothing_is_exposed_on_an_infinitely_fast_link(saved: list[Path]) -> None:
    quick = Rates(memory=1e10, arithmetic=1e10, link=1e18, latency=1e-12)
    line = lab.distributed.timeline(lab.load(saved[0]), 8, rates=quick)
    assert line.exposed < 1e-9
    slow = line.at(1024, INFINIBAND)
    assert slow.ranks == 1024 and slow.exposed > line.exposed


def test_libraries_that_were_measured_are_compared() -> None:
    with torch.no_grad():
        product = lab.inspect(torch.nn.Linear(512, 512), torch.randn(64, 512))
    chosen = [choice.chosen for part in product.parts for choice in part.libraries]
    (found,) = [fact for fact in lab.join([product]).facts if fact.what == "libraries"]
    assert found.values == (f"{chosen[0]} 1" if chosen else "none",)


def test_invalid_arguments_are_refused(saved: list[Path]) -> None:
    with pytest.raises(BadArguments, match="nothing to join"):
        lab.join([])
    with pytest.raises(BadArguments, match="1 rank was given, and a collective has 2"):
        lab.join([saved[0].with_name("gathered0.lab.json")])
    with pytest.raises(BadArguments, match="ranks must be"):
        lab.distributed.timeline(lab.inspect(lambda x: x + 1, torch.ones(4)), 0)
