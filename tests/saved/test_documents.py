"""`to_dict()`: documents are valid, say what the records say, and can be read in small pieces."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
import torch

import inductor_lab as lab
from inductor_lab.compiler.base.errors import BadArguments, UnknownName
from inductor_lab.contracts.facts import facts_of
from inductor_lab.debug.doctor import report
from inductor_lab.debug.memory_report import MemoryReport
from inductor_lab.saved.documents.outline import LEAST_BYTES, select, size, within
from tests.debug import loops
from tests.saved.schemas import valid
from tests.widgets.test_bench import every as benchmarks

pytestmark = pytest.mark.usefixtures("known_limits")


def program(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    y = (x @ w).softmax(-1)
    print("a graph break")
    z = y * 2 + x.sin()
    return z.sum() + z.cumsum(0).amax()


@pytest.fixture(scope="module")
def compiled() -> lab.Compilation:
    torch.manual_seed(0)
    x, w = torch.randn(24, 24, requires_grad=True), torch.randn(24, 24, requires_grad=True)
    return lab.inspect(program, x, w).measure(0.1)


@pytest.fixture(scope="module")
def whole(compiled: lab.Compilation) -> dict[str, Any]:
    return compiled.to_dict()


@pytest.fixture
def keep(request: pytest.FixtureRequest) -> Callable[..., dict[str, Any]]:
    """Check a document, and with `--update-golden` store it if it is the first of its kind."""
    return partial(valid, keep=request.config.getoption("--update-golden"))


def items(value: Any) -> Iterator[dict[str, Any]]:
    """Every part with an id."""
    if isinstance(value, dict):
        if "id" in value:
            yield value
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from items(each)


def test_every_part_can_be_selected_and_is_valid(whole: dict[str, Any], keep) -> None:
    keep(whole)
    found = [item["id"] for item in items(whole)]
    assert len(set(found)) == len(found) > 40
    for each in found:
        part = keep(select(whole, each))
        assert part["id"] == each
    kinds = {item["kind"] for item in items(whole)}
    assert kinds == {"compilation", "capture", "graph_break", "graph", "part", "kernel",
                     "library_call", "operation", "decision", "memory_plan", "text"}  # fmt: skip


def test_a_compilation_has_the_numbers_of_its_record(compiled, whole) -> None:
    assert whole["after"]["bytes_read"] == compiled.after.bytes_read
    assert whole["kernels"] + whole["library_calls"] == compiled.after.kernels
    parts = [part for graph in whole["graphs"] for part in graph["parts"]]
    for part, record in zip(parts, compiled.parts, strict=True):
        steps = [select(whole, step) for step in part["order"]]
        assert sum(step["cost"]["bytes_read"] for step in steps) == record.schedule.after.bytes_read
        assert [step["time"]["seconds"] for step in steps] == [t.seconds for t in record.times]
        for step in steps:
            low, high = step["time"]["interval"]
            assert low <= step["time"]["seconds"] <= high
        assert len(part["decisions"]) == len(record.schedule.decisions.by_pair)
    (stop,) = whole["capture"]["breaks"]
    assert stop["place"]["code"] == 'print("a graph break")'


def test_a_kernel_has_its_operations_buffers_and_verdicts(compiled, whole) -> None:
    for number, graph in enumerate(compiled.graphs):
        for part in graph.parts:
            for n, group in enumerate(part.schedule.groups):
                kernel = select(whole, f"g{number}.{part.name}.kernel:{n}")
                operations = {each["buffer"]: each for each in kernel["operations"]}
                nests = {nest.buffer for one in group.parts for nest in one.nests}
                assert operations.keys() == nests.union(*(one.inlined for one in group.parts))
                stored = {b for b, each in operations.items() if each["role"] == "stored"}
                assert stored == group.stored
                places = [o["place"]["line"] for o in kernel["origins"] if o["place"]]
                assert places and all(o["operator"] for o in kernel["origins"])
                outputs = {each["buffer"] for each in kernel["buffers"] if each["role"] == "out"}
                assert stored <= outputs
                assert "".join(f"{line['text']}\n" for line in kernel["code"]) == str(
                    part.kernels[n].code
                )
                for fusion in kernel["fusion"]:
                    decision = select(whole, fusion["decision"])
                    against = [v for v in decision["verdicts"] if v["reason"] is not None]
                    assert fusion["against"] == against
                    assert fusion["fused"] or against
                    assert {fusion["producer"], fusion["consumer"]} & operations.keys()


def test_values_that_several_kernels_compute_are_named(keep) -> None:
    def twice(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = x + 1
        return y[:-1] * 2, y.flip(0).cumsum(1)

    found = lab.inspect(twice, torch.randn(64, 48)).to_dict()
    kernels = found["graphs"][0]["parts"][0]["kernels"]
    repeated = [(kernel["id"], one) for kernel in kernels for one in kernel["recomputed"]]
    assert repeated
    for name, one in repeated:
        for other in one["also_in"]:
            computed = {each["buffer"] for each in select(found, other)["operations"]}
            assert other != name and one["buffer"] in computed


@pytest.mark.parametrize("limit", [LEAST_BYTES, 6000])
def test_an_outline_fits_and_leads_to_every_part(whole, keep, limit: int) -> None:
    for item in items(whole):
        part = select(whole, item["id"])
        shown = within(part, limit)
        assert size(shown) <= limit
        if size(part) <= limit:
            assert shown == part
            continue
        keep(shown)
        listed, skip = [], 0
        while skip is not None:
            page = within(part, limit, skip)
            assert size(page) <= limit
            listed += [each["id"] for each in page["items"]]
            assert page["items"] or not page["next"]
            skip = page["next"]
        assert sorted(listed) == sorted(each["id"] for each in items(part)
                                          if each["id"] != item["id"])  # fmt: skip
        for name in {*shown["fields"], *shown["large_fields"]}:
            assert select(whole, f"{item['id']}/{name}")["value"] == item[name]


def test_a_field_is_read_in_pieces(whole, keep) -> None:
    kernel = whole["graphs"][0]["parts"][0]["kernels"][0]
    for name, value in (("code", kernel["code"]), ("name", kernel["name"])):
        field = keep(select(whole, f"{kernel['id']}/{name}"))
        read: Any = type(value)()
        skip = 0
        while skip is not None:
            piece = within(field, LEAST_BYTES, skip)
            assert size(piece) <= LEAST_BYTES
            read += piece["value"]
            skip = piece.get("next")
        assert read == value


def test_wrong_selections_are_refused(whole) -> None:
    with pytest.raises(UnknownName, match=r"did you mean 'g0\.forward\.kernel:0'"):
        select(whole, "g0.forward.kernal:0")
    with pytest.raises(UnknownName, match="unknown field 'codes'; did you mean 'code'"):
        select(whole, "g0.forward.kernel:0/codes")
    with pytest.raises(BadArguments, match="too few"):
        within(whole, 10)


def test_results_of_the_compiler_are_documents_of_their_own(compiled, keep) -> None:
    part = compiled.parts[0]
    keep(part.schedule.decisions.to_dict())
    decision = next(iter(part.schedule.decisions)).to_dict()
    assert keep(decision)["verdicts"]
    kernel = keep(part.kernels[0].to_dict())
    assert [o["buffer"] for o in kernel["operations"]]
    made: set[str] = set()
    for operation in kernel["operations"]:
        own = {each["buffer"] for each in kernel["operations"]}
        assert {*operation["reads"]} & own <= made
        made.add(operation["buffer"])
    for value in (part, compiled.graphs[0], compiled.capture, part.schedule.memory, part.loops,
                  part.host, part.schedule, part.rewrites, compiled.graphs[0].joint,
                  compiled.graphs[0].partition, part.graph, part.kernels[0].code):  # fmt: skip
        found = keep(value.to_dict())
        assert found["kind"] != "text" or found["text"] == str(value)
    keep(MemoryReport(compiled).to_dict())
    keep(compiled.compare(compiled).to_dict())
    keep(facts_of(compiled).to_dict(), "facts")


def test_results_of_tools(keep) -> None:
    assert keep(report().to_dict())["healthy"]
    for result in benchmarks():
        keep(result.to_dict())

    def negated(x: torch.Tensor) -> torch.Tensor:
        return torch.maximum(torch.neg(x), x)

    with lab.faults.wrong_neg():
        blamed = lab.blame(negated, torch.arange(9, dtype=torch.uint8))
    found = keep(blamed.to_dict())
    assert not found["right"]
    assert found["fault"]["place"]["code"] == "return torch.maximum(torch.neg(x), x)"
    keep(select(found, "stage:0"))
    fast = lab.compile(negated)
    with lab.recompiles() as seen:
        for rows in (3, 4, 5):
            fast(torch.randn(rows))
    found = keep(seen.to_dict())
    assert (found["compiles"], found["recompiles"]) == (2, 1)
    assert found["compiled"][1]["reasons"][0]["failed"] == found["compiled"][0]["compile_id"]
    assert [each["last"] for each in found["calls"]] == [1, 3]
    keep(select(found, found["compiled"][1]["id"]))


def test_advice(keep) -> None:
    found = keep(lab.advise(loops.static_rows).to_dict())
    assert found["edits"][0]["compiles"] == 1 < found["compiles"]
    assert "+        torch._dynamo.mark_dynamic(x, 0)" in found["edits"][0]["diff"]


def test_a_minified_graph(keep) -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        return (x.exp() - 1).log().sum(-1)

    def has_nan(function: Any, inputs: list[torch.Tensor]) -> bool:
        return bool(function(*inputs)[0].isnan().any())

    small = lab.minify(program, torch.full((4, 6), -2.0), check=has_nan, tell=None)
    found = keep(small.to_dict())
    assert found["nodes"] == small.nodes and len(found["steps"]) == len(small.log)


def test_results_are_markdown_in_notebooks(compiled) -> None:
    text = compiled._repr_markdown_()
    assert text.startswith("```text\nprogram: ") and text.endswith("\n```")
    part = compiled.parts[0]
    assert "more characters" in str(part._repr_markdown_())
    assert benchmarks()[0]._repr_markdown_().startswith("**wave**")
    assert part.schedule.decisions._repr_markdown_().startswith("```text\nbuf")
