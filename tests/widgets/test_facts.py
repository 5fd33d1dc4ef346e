"""One count of each thing: header, rail, panes, text and saved file say the same."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
import torch

import inductor_lab as lab
from inductor_lab.bench.demo.programs import PROGRAMS
from inductor_lab.widgets.markup import inside, text_of
from inductor_lab.widgets.model import document
from inductor_lab.widgets.plain import plain_document
from inductor_lab.widgets.views import tree_of
from tests.widgets.reading import rows

QUICK = ("trig", "uint8", "add_mul", "numpy")


def small_bert() -> tuple[Callable[..., Any], tuple[Any, ...]]:
    from transformers import BertConfig, BertModel

    sizes = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2}
    model = BertModel(BertConfig(**sizes, intermediate_size=128, vocab_size=100)).eval()

    def encode(tokens: torch.Tensor) -> torch.Tensor:
        return model(tokens).last_hidden_state

    return encode, (torch.randint(0, 100, (1, 16)),)


PROGRAMS_HERE = {p.name: p.make for p in PROGRAMS if p.name in QUICK} | {"bert": small_bert}


@pytest.mark.parametrize("name", PROGRAMS_HERE)
def test_every_surface_says_the_same(name: str, tmp_path: Any) -> None:
    function, inputs = PROGRAMS_HERE[name]()
    c = lab.inspect(function, *inputs)
    doc = document(c)
    facts = {fact["label"]: fact["value"] for fact in doc["facts"]}
    text = str(c)
    for label in ("kernels", "memory passes", "peak memory"):
        assert facts[label] in text, label
        assert facts[label].split(" → ")[0] in plain_document(doc)
    assert_kernels(c, doc, facts["kernels"])
    assert_memory(c, doc, facts["peak memory"])
    assert_capture(c, doc, text)
    assert_flops(c, doc, text)
    loaded = lab.load(c.save(tmp_path / "c.lab.json"))
    assert (str(loaded), document(loaded)["facts"]) == (text, doc["facts"])


def parts(c: Any) -> dict[str, Any]:
    return {f"g{n}.{part.name}": part for n, g in enumerate(c.graphs) for part in g.parts}


def assert_kernels(c: Any, doc: Any, said: str) -> None:
    """The rails of the schedules add up to the header, and to each table and text of a schedule."""
    rails = [numbers(doc["panes"][f"{scope}.schedule"]["count"]) for scope in parts(c)]
    before, after = said.split(" → ")
    wanted = [numbers(before)[-1], sum(numbers(after))]
    assert list(map(sum, zip(*rails, strict=True))) == wanted
    for scope, part in parts(c).items():
        unfused, fused = numbers(doc["panes"][f"{scope}.schedule"]["count"])
        assert repr(part.schedule).startswith(f"Schedule(kernels {unfused:,} unfused -> ")
        note = text_of(tree_of(table(doc, f"{scope}.schedule", "kernels")))
        assert f"kernels: {unfused:,} unfused → " in note
        assert sum(numbers(note.split("; ")[0].split(" → ")[1])) == fused
        shown = rows(table(doc, f"{scope}.schedule", "kernels"))
        *steps, _, whole = (row["cells"] for row in shown)
        assert len(steps) == fused
        for column in (3, 4):  # flops and passes, of kernels as of library calls
            assert sum(numbers(row[column])[0] for row in steps) == numbers(whole[column])[0]


def assert_memory(c: Any, doc: Any, said: str) -> None:
    """Some part has the peak that the header has; its pane and its text say so."""
    wanted = said.replace("→", "->")
    panes = [doc["panes"][f"{scope}.memory"]["views"] for scope in parts(c)]
    notes = [text_of(p) for views in panes for view in views for p in inside(tree_of(view), "p")]
    before, after = wanted.split(" -> ")
    assert any(before in note for note in notes) and any(after in note for note in notes)
    assert any(before in str(part.schedule) for part in parts(c).values())


def assert_capture(c: Any, doc: Any, text: str) -> None:
    (guards,) = numbers(doc["panes"]["guards"]["count"])
    assert len(rows(table(doc, "guards", "all"))) == guards
    assert re.search(r"guards +([\d,]+)", text).group(1) == f"{guards:,}"
    assert f" of {guards:,} are about the user's code" in str(c.capture)
    assert re.search(rf"{guards:,} guards", repr(c.capture))
    view = doc["panes"]["steps"]["views"][0]
    total = sum(run["total"] for run in view["runs"])
    assert doc["panes"]["steps"]["count"] == f"{total:,}"
    if len(view["runs"]) > 1:
        assert all(f"of {total:,} instructions" in run["title"] for run in view["runs"])


def assert_flops(c: Any, doc: Any, text: str) -> None:
    """Of each kernel, of each part, and of all; what is computed again counts as the kernels do."""
    told = 0
    for scope, part in parts(c).items():
        shown = rows(table(doc, f"{scope}.schedule", "kernels"))
        flops = {row["cells"][0]: row["cells"][3] for row in shown}
        assert f"{flops['fused']} flops" in str(part.schedule)
        assert part.schedule.after.flops >= sum(g.cost.flops for g in part.schedule.groups)
        told += int(flops["fused"].replace(",", ""))
    assert f"{told:,} flop" in text


def numbers(text: str) -> list[int]:
    return [int(found.replace(",", "")) for found in re.findall(r"\d[\d,]*", text)]


def table(doc: Any, pane: str, name: str) -> Any:
    return next(view for view in doc["panes"][pane]["views"] if view["name"] == name)


def test_recomputed_ops_count_like_kernels() -> None:
    """`sin` of 1,000 floats is 10,000 flops, in the cut as in the schedule."""
    function, inputs = PROGRAMS_HERE["trig"]()
    graph = lab.inspect(function, *inputs).graphs[0]
    again = {found.name: found.flops for found in graph.partition.recomputed}
    assert again["sin"] == 10_000
    assert graph.forward.schedule.before.flops == 2 * 10_000 + 3 * 1_000


def test_counts_of_dynamic_sizes_say_what_they_count() -> None:
    """Costs take a size for 64 whatever it was in the call, while eager's are those of the call."""
    def f(x: torch.Tensor) -> torch.Tensor:
        return x.softmax(-1)

    c = lab.inspect(f, torch.randn(5, 6), options={"dynamic": True})
    names = sorted(symbol.name for symbol in c.capture.symbols)
    told = f"{', '.join(names)} counted as 64"
    doc = document(c)
    assert {fact["label"]: fact["value"] for fact in doc["facts"]}["dynamic sizes"] == told
    for pane in ("schedule", "memory"):
        views = [view for view in doc["panes"][f"g0.forward.{pane}"]["views"]
                 if view["kind"] in ("tree", "table")]  # fmt: skip
        notes = [text_of(p) for view in views for p in inside(tree_of(view), "p")]
        assert any(told in note for note in notes), pane
    assert f"{', '.join(names)}: each counted as 64" in str(c)
    fixed = lab.inspect(f, torch.randn(5, 6), options={"dynamic": False})
    assert "counted as" not in str(fixed) + plain_document(document(fixed))


def test_one_of_a_thing_is_singular_and_nothing_is_said_of_nothing() -> None:
    one = document(lab.inspect(lambda x: x + 1, torch.randn(4)))
    assert one["panes"]["g0.forward.schedule"]["count"] == "1 op → 1"
    none = document(lab.inspect(lambda x: x, torch.randn(4)))
    assert {fact["label"]: fact["value"] for fact in none["facts"]}["code"] == "nothing to generate"


def test_the_exp_of_a_softmax_counts_once() -> None:
    c = lab.inspect(lambda x: x.softmax(-1), torch.randn(100, 200))
    assert c.after.kernels == 1 and c.after.flops == c.before.flops
